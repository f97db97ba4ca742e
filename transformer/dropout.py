"""Dropout that draws from a generator it is given, so that a run can be repeated and resumed exactly."""

import torch
from torch import Tensor, nn


class Dropout(nn.Module):
    """Zero each number with probability p while training and divide the others by 1 - p (Srivastava et al. 2014).

    The identity in eval mode. Without a generator it draws from torch's global one.
    """

    def __init__(self, p: float, generator: torch.Generator | None = None) -> None:
        super().__init__()
        self.p = p
        self.generator = generator

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or self.p == 0:
            return x
        kept = torch.empty_like(x).bernoulli_(1 - self.p, generator=self.generator)
        return x * kept.div_(1 - self.p)

    def extra_repr(self) -> str:
        return f"p={self.p}"
