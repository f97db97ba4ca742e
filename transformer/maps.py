"""torch's own linear map and embedding, without their first draw of weights where ``init_parameters`` follows."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from torch import nn

_FILLED_LATER = ContextVar("filled later", default=False)


@contextmanager
def filled_later() -> Iterator[None]:
    """Maps made inside draw nothing: that took half of a build. Their memory holds anything until it is filled."""
    token = _FILLED_LATER.set(True)
    try:
        yield
    finally:
        _FILLED_LATER.reset(token)


class Linear(nn.Linear):
    """nn.Linear, but for ``filled_later``."""

    def reset_parameters(self) -> None:
        if not _FILLED_LATER.get():
            super().reset_parameters()


class Embedding(nn.Embedding):
    """nn.Embedding, but for ``filled_later``."""

    def reset_parameters(self) -> None:
        if not _FILLED_LATER.get():
            super().reset_parameters()
