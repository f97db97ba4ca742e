"""One run on several processes or machines, started by torchrun: each takes its own rows of every batch."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from ..tasks import Batch


@contextmanager
def process_group() -> Iterator[None]:
    """Joined with the other processes of torchrun inside, by gloo, which needs no GPU; alone where there are none."""
    if "TORCHELASTIC_RUN_ID" not in os.environ:
        yield
        return
    dist.init_process_group("gloo")
    try:
        yield
    finally:
        dist.destroy_process_group()


@dataclass(frozen=True)
class Share:
    """Which of how many processes this one is.

    All processes draw the same batch from the same generator, so together they do what one process would, but
    for the order of additions. Dropout draws alike for each process's rows, so there the masks are others.
    """

    rank: int = 0
    world: int = 1

    @classmethod
    def here(cls, batch_size: int) -> "Share":
        """This process's share. Raises ValueError when the rows of a batch cannot be divided evenly."""
        share = cls(dist.get_rank(), dist.get_world_size()) if dist.is_initialized() else cls()
        if batch_size % share.world:
            raise ValueError(f"a batch of {batch_size} cannot be shared evenly by {share.world} processes")
        return share

    def rows(self, batch: Batch) -> Batch:
        """Every world-th row from the rank-th on."""
        own = slice(self.rank, None, self.world)
        return Batch(batch.src[own], batch.lengths[own], batch.tgt_in[own], batch.tgt_out[own])

    def wrapped(self, model: nn.Module) -> nn.Module:
        """The model with gradients averaged over all processes, or itself."""
        return model if self.world == 1 else DistributedDataParallel(model)

    def summed(self, value: Tensor) -> Tensor:
        """The sum over all processes."""
        if self.world > 1:
            dist.all_reduce(value)
        return value
