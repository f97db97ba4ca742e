"""The forward pass written out once more, one sentence, one head and one query at a time, to check the package by.

It shares no code with the package: it takes a config and a state dict, computes in double precision, and follows
the equations of document 000 (the treatise) and of the paper (Vaswani et al. 2017) as they stand on the page.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor


class Reference:
    """A Transformer as loops. ``weights[stack, layer, kind]`` holds (B, H, T_q, T_k) after a pass."""

    def __init__(self, config, state: dict[str, Tensor]) -> None:
        self.config = config
        self.state = {name: value.double() for name, value in state.items()}
        self.weights: dict[tuple[str, int, str], Tensor] = {}
        self._rows: dict[tuple[str, int, str], list[Tensor]] = {}

    def memory(self, src: Tensor, src_mask: Tensor | None = None) -> Tensor:
        """The encoder's output (B, S, d_model)."""
        S = src.shape[1]
        allowed = _allowed(src_mask, len(src), S, S)
        return self._batch([self._encode(ids, allowed[b]) for b, ids in enumerate(src)])

    def states(self, tgt: Tensor, memory: Tensor, tgt_mask: Tensor | None, src_mask: Tensor | None) -> Tensor:
        """The decoder's last states (B, T, d_model)."""
        T, S = tgt.shape[1], memory.shape[1]
        own, cross = _allowed(tgt_mask, len(tgt), T, T), _allowed(src_mask, len(tgt), T, S)
        return self._batch([self._decode(ids, memory[b], own[b], cross[b]) for b, ids in enumerate(tgt)])

    def output(self, states: Tensor) -> Tensor:
        """W x + b for each state, Eq. 3.5, and if so configured the logarithm of its softmax."""
        logits = states @ self.state["output.weight"].T + self.state["output.bias"]
        if self.config.output == "logits":
            return logits
        return logits - logits.exp().sum(-1, keepdim=True).log()

    def __call__(self, src: Tensor, tgt: Tensor, src_mask: Tensor | None, tgt_mask: Tensor | None) -> Tensor:
        return self.output(self.states(tgt, self.memory(src, src_mask), tgt_mask, src_mask))

    # One sentence: ids (T,), stream (T, d_model), allowed (T_q, T_k).

    def _encode(self, ids: Tensor, allowed: Tensor) -> Tensor:
        x = self._embed("src_embedding", ids)
        for layer in range(self.config.n_encoder_layers):
            x = self._self_attention("encoder", layer, x, allowed)
            x = self._feed_forward("encoder", layer, x)
        return self._norm("encoder_norm", x) if self._has_final_norm() else x

    def _decode(self, ids: Tensor, memory: Tensor, own: Tensor, cross: Tensor) -> Tensor:
        x = self._embed("tgt_embedding", ids)
        for layer in range(self.config.n_decoder_layers):
            x = self._self_attention("decoder", layer, x, own)
            x = self._cross_attention(layer, x, memory, cross)
            x = self._feed_forward("decoder", layer, x)
        return self._norm("decoder_norm", x) if self._has_final_norm() else x

    def _embed(self, name: str, ids: Tensor) -> Tensor:
        """sqrt(d_model) times a row of the embedding, plus its position: Eq. 2.7."""
        d = self.config.d_model
        rows = []
        for p, i in enumerate(ids.tolist()):
            row = self.state[f"{name}.token.weight"][i]
            if self.config.scale_embeddings:
                row = math.sqrt(d) * row
            if self.config.positional == "sinusoidal":
                row = row + _sinusoids(p, d)
            elif self.config.positional == "learned":
                row = row + self.state[f"{name}.position.weight"][p]
            rows.append(row)
        return torch.stack(rows) if rows else torch.zeros(0, d, dtype=torch.float64)

    def _self_attention(self, stack: str, layer: int, x: Tensor, allowed: Tensor) -> Tensor:
        """MultiHead(X, X, X): Eq. 2.1."""
        site, turned = (stack, layer, "self"), self.config.positional == "rotary"
        return self._residual(
            f"{stack}.{layer}.self_sublayer", x, lambda h: self._multi_head(site, h, h, allowed, turned)
        )

    def _cross_attention(self, layer: int, x: Tensor, memory: Tensor, allowed: Tensor) -> Tensor:
        """MultiHead(X, Memory, Memory): Eq. 3.4."""
        site = ("decoder", layer, "cross")
        return self._residual(
            f"decoder.{layer}.cross_sublayer", x, lambda h: self._multi_head(site, h, memory, allowed, turned=False)
        )

    def _feed_forward(self, stack: str, layer: int, x: Tensor) -> Tensor:
        """max(0, x W_1 + b_1) W_2 + b_2, or GELU or SiLU for the maximum: Eq. 2.4. Nothing where there is none."""
        if not self.config.ffn:
            return x
        name = f"{stack}.{layer}.ffn"

        def ffn(h: Tensor) -> Tensor:
            wide = self._linear(f"{name}.w_1", h)
            if self.config.activation == "relu":
                wide = wide * (wide > 0)
            elif self.config.activation == "silu":
                wide = wide / (1 + (-wide).exp())
            else:
                wide = wide * (1 + torch.erf(wide / math.sqrt(2))) / 2
            return self._linear(f"{name}.w_2", wide)

        return self._residual(f"{stack}.{layer}.ffn_sublayer", x, ffn)

    def _residual(self, name: str, x: Tensor, f: Callable[[Tensor], Tensor]) -> Tensor:
        """post-LN: LayerNorm(x + f(x)), Eq. 2.2; pre-LN: x + f(LayerNorm(x)), Eq. 2.3. Broken: without the x +."""
        kept = x if self.config.residual else torch.zeros_like(x)
        if self.config.norm == "post":
            return self._norm(f"{name}.norm", kept + f(x))
        return kept + f(self._norm(f"{name}.norm", x))

    def _multi_head(
        self, site: tuple[str, int, str], x: Tensor, source: Tensor, allowed: Tensor, turned: bool
    ) -> Tensor:
        """Concat(head_1 .. head_H) W_O, Eq. 1.6, as the sum of what each head adds through its own rows of W_O."""
        stack, layer, kind = site
        name = f"{stack}.{layer}.{kind}_attention"
        d_k = self.config.d_head or self.config.d_model // self.config.n_heads
        total = torch.zeros(len(x), self.config.d_model, dtype=torch.float64)
        weights = []
        for h in range(self.config.n_heads):
            own = slice(h * d_k, (h + 1) * d_k)
            q, k, v = (
                self._linear(f"{name}.{w}", rows, own) for w, rows in (("w_q", x), ("w_k", source), ("w_v", source))
            )
            if turned:
                q, k = _turn(q), _turn(k)
            z, head_weights = _head(q, k, v, allowed, self.config.scale_scores)
            total = total + z @ self.state[f"{name}.w_o.weight"][:, own].T
            weights.append(head_weights)
        self._rows.setdefault(site, []).append(torch.stack(weights))
        return total + self.state.get(f"{name}.w_o.bias", 0.0)

    def _linear(self, name: str, x: Tensor, rows: slice = slice(None)) -> Tensor:
        """x W + b with W the chosen rows of the stored matrix, transposed."""
        y = x @ self.state[f"{name}.weight"][rows].T
        return y + self.state[f"{name}.bias"][rows] if f"{name}.bias" in self.state else y

    def _norm(self, name: str, x: Tensor) -> Tensor:
        """Mean 0 and deviation 1 over d_model, then gain and shift: document 001, or document 002's variant of it."""
        n = self.config.d_model
        centred = x - x.sum(-1, keepdim=True) / n
        squares = (centred * centred).sum(-1, keepdim=True)
        if self.config.layer_norm == "torch":
            deviation = (squares / n + self.config.norm_eps).sqrt()
        else:
            deviation = (squares / (n - 1)).sqrt() + self.config.norm_eps
        return self.state[f"{name}.weight"] * centred / deviation + self.state[f"{name}.bias"]

    def _has_final_norm(self) -> bool:
        return self.config.norm == "pre" if self.config.final_norm is None else self.config.final_norm

    def _batch(self, sentences: list[Tensor]) -> Tensor:
        self.weights.update({site: torch.stack(rows) for site, rows in self._rows.items()})
        self._rows.clear()
        return torch.stack(sentences)


def _head(q: Tensor, k: Tensor, v: Tensor, allowed: Tensor, scaled: bool) -> tuple[Tensor, Tensor]:
    """softmax(q k^T / sqrt(d_k)) v over the allowed keys only, Eq. 1.1 and 1.2; a query without keys gets nothing."""
    weights = torch.zeros(len(q), len(k), dtype=torch.float64)
    root = math.sqrt(q.shape[1]) if scaled else 1.0
    for i in range(len(q)):
        keys = [j for j in range(len(k)) if allowed[i, j]]
        scores = [float((q[i] * k[j]).sum()) / root for j in keys]
        powers = [math.exp(score - max(scores)) for score in scores]
        for j, power in zip(keys, powers, strict=True):
            weights[i, j] = power / sum(powers)
    return weights @ v, weights


def _sinusoids(p: int, d: int) -> Tensor:
    """sin and cos of p / 10000^(2i/d) side by side: Eq. 2.5 and 2.6."""
    angles = [p / 10000 ** (2 * i / d) for i in range(d // 2)]
    return torch.tensor([f(angle) for angle in angles for f in (math.sin, math.cos)], dtype=torch.float64)


def _turn(x: Tensor) -> Tensor:
    """Each pair of numbers as one complex number, times e^(i p omega): Su et al. 2021, Eq. 12."""
    T, d = x.shape
    turns = [[p / 10000 ** (2 * i / d) for i in range(d // 2)] for p in range(T)]
    angles = torch.tensor(turns, dtype=torch.float64).reshape(T, d // 2)
    turned = torch.view_as_complex(x.reshape(T, d // 2, 2)) * torch.polar(torch.ones_like(angles), angles)
    return torch.view_as_real(turned).reshape(T, d)


def _allowed(mask: Tensor | None, B: int, T_q: int, T_k: int) -> Tensor:
    """Any mask, or none, as a table (B, T_q, T_k) of who may attend to whom."""
    if mask is None:
        return torch.ones(B, T_q, T_k, dtype=torch.bool)
    return mask[:, 0].expand(B, T_q, T_k)
