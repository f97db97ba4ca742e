"""The KV cache: keys and values that a decoder has already computed."""

from dataclasses import dataclass, field

import torch
from torch import Tensor

from .trace import AttentionKind, AttentionSite


@dataclass
class KVCache:
    """Keys and values (B, H, T, d_k) by attention site, for one decode of one batch of sources.

    Self-attention's grow by the new positions at each step; cross-attention's are those of the memory,
    each layer's its own, computed at the first step. A cache serves one memory only.
    """

    _entries: dict[AttentionSite, tuple[Tensor, Tensor]] = field(default_factory=dict)
    _memory: Tensor | None = None

    def __contains__(self, site: AttentionSite) -> bool:
        return site in self._entries

    def __getitem__(self, site: AttentionSite) -> tuple[Tensor, Tensor]:
        return self._entries[site]

    def length(self, site: AttentionSite | None = None) -> int:
        """Positions cached at a site; without one, target positions cached by the decoder so far."""
        if site is None:
            return max((k.shape[-2] for s, (k, _) in self._entries.items() if s.kind == "self"), default=0)
        return self._entries[site][0].shape[-2] if site in self._entries else 0

    def append(self, site: AttentionSite, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Add new positions at a site and return all of them, (B, H, T_cached + T_new, d_k)."""
        if site in self._entries:
            past_k, past_v = self._entries[site]
            k, v = torch.cat((past_k, k), dim=-2), torch.cat((past_v, v), dim=-2)
        self._entries[site] = (k, v)
        return k, v

    def bind(self, memory: Tensor) -> None:
        """Tie the cache to one encoder output. Raises ValueError when it already serves another."""
        if self._memory is not None and self._memory is not memory:
            raise ValueError("this cache holds keys and values of another source; start a new KVCache for each source")
        self._memory = memory

    def n_numbers(self, kind: AttentionKind) -> int:
        """How many numbers the cache holds for self- or for cross-attention."""
        return sum(k.numel() + v.numel() for site, (k, v) in self._entries.items() if site.kind == kind)
