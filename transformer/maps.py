"""torch's own linear map and embedding, without their first draw of weights where ``init_parameters`` follows."""

from torch import nn


class Linear(nn.Linear):
    """nn.Linear. On the meta device, where there is no memory to fill, it draws nothing: that took half of a build."""

    def reset_parameters(self) -> None:
        if not self.weight.is_meta:
            super().reset_parameters()


class Embedding(nn.Embedding):
    """nn.Embedding, with the same exception."""

    def reset_parameters(self) -> None:
        if not self.weight.is_meta:
            super().reset_parameters()
