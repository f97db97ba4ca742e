"""The encoder-decoder Transformer."""

import math

import torch
from torch import Tensor, nn

from . import maps
from .cache import KVCache
from .config import TransformerConfig
from .dropout import Dropout
from .init import init_parameters
from .layers import DecoderLayer, EncoderLayer, layer_norm
from .positional import sinusoidal_encoding
from .trace import ResidualSite, Stack, Trace


class Embedding(nn.Module):
    """Token ids (B, T) -> stream (B, T, d_model): embedding times sqrt(d_model), plus positions. Treatise Eq. 2.7."""

    def __init__(
        self, config: TransformerConfig, stack: Stack, vocab_size: int, generator: torch.Generator | None
    ) -> None:
        super().__init__()
        self.site = ResidualSite(stack, 0, "embedding")
        self.max_len = config.max_len
        self.scale = math.sqrt(config.d_model) if config.scale_embeddings else 1.0
        self.token = maps.Embedding(vocab_size, config.d_model)
        self.position = maps.Embedding(config.max_len, config.d_model) if config.positional == "learned" else None
        self.dropout = Dropout(config.dropout, generator)

    def forward(self, ids: Tensor, offset: int, table: Tensor | None, trace: Trace | None) -> Tensor:
        """The first id stands at position ``offset``; table (max_len, d_model) holds sinusoids or is None.

        Raises ValueError for ids of the wrong kind, outside the vocabulary, or beyond max_len positions.
        """
        tokens, positions = self.parts(ids, offset, table)
        x = self.dropout(tokens if positions is None else tokens + positions)
        if trace is not None:
            trace.residual[self.site] = x
        return x

    def parts(self, ids: Tensor, offset: int, table: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """The two summands of Eq. 2.7: scaled embeddings (B, T, d_model) and positions (T, d_model) or None.

        Arguments and errors as for a call.
        """
        self._check(ids, offset)
        positions = slice(offset, offset + ids.shape[1])
        tokens = self.token(ids) * self.scale
        if self.position is not None:
            return tokens, self.position.weight[positions]
        return tokens, None if table is None else table[positions]

    def _check(self, ids: Tensor, offset: int) -> None:
        if ids.ndim != 2 or ids.dtype not in (torch.int64, torch.int32):
            raise ValueError(
                f"token ids must be whole numbers of shape (B, T); got {ids.dtype} of shape {tuple(ids.shape)}"
            )
        last = offset + ids.shape[1]
        if last > self.max_len:
            raise ValueError(f"{last} {self.site.stack} positions are more than max_len {self.max_len}")
        if ids.numel() and not 0 <= int(ids.min()) <= int(ids.max()) < self.token.num_embeddings:
            wrong = int(ids.min()) if int(ids.min()) < 0 else int(ids.max())
            raise ValueError(f"token id {wrong} is outside the vocabulary of {self.token.num_embeddings}")


class Transformer(nn.Module):
    """Encoder and decoder as one config describes them; with n_decoder_layers = 0 an encoder alone.

    All randomness, of the initial weights and of dropout, comes from ``generator`` (None: torch's global one).
    The model keeps no state between calls: what a pass computed is collected by a Trace given to that pass,
    what a decode has cached by a KVCache given to it. So one model can serve many threads.
    """

    def __init__(self, config: TransformerConfig, generator: torch.Generator | None = None) -> None:
        super().__init__()
        self.config = config
        self.generator = generator
        with maps.filled_later():  # by init_parameters, from the model's own generator
            self.src_embedding = Embedding(config, "encoder", config.src_vocab_size, generator)
            self.encoder = nn.ModuleList(EncoderLayer(config, i, generator) for i in range(config.n_encoder_layers))
            self.encoder_norm = layer_norm(config) if config.has_final_norm else None
            if config.n_decoder_layers:
                self.tgt_embedding = Embedding(config, "decoder", config.tgt_vocab_size, generator)
                self.decoder = nn.ModuleList(DecoderLayer(config, i, generator) for i in range(config.n_decoder_layers))
                self.decoder_norm = layer_norm(config) if config.has_final_norm else None
                self.output = maps.Linear(config.d_model, config.tgt_vocab_size)
        if config.tie_embeddings:
            self.tgt_embedding.token.weight = self.src_embedding.token.weight
            self.output.weight = self.src_embedding.token.weight
        table = sinusoidal_encoding(config.max_len, config.d_model) if config.positional == "sinusoidal" else None
        # Not saved: a checkpoint then loads into a model with another max_len.
        self.register_buffer("positions", table, persistent=False)
        init_parameters(self, config, generator)

    def encode(self, src: Tensor, src_mask: Tensor | None = None, trace: Trace | None = None) -> Tensor:
        """Source ids (B, S) -> memory (B, S, d_model). src_mask (B, 1, 1, S); None: all are real tokens."""
        x = self.src_embedding(src, 0, self.positions, trace)
        for layer in self.encoder:
            x = layer(x, src_mask, trace)
        return self._final_norm(x, "encoder", self.encoder_norm, trace)

    def decode(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        src_mask: Tensor | None = None,
        trace: Trace | None = None,
        cache: KVCache | None = None,
    ) -> Tensor:
        """Target ids (B, T) and memory (B, S, d_model) -> the decoder's last states (B, T, d_model).

        tgt_mask fits (B, 1, T, T), None: every position sees every other; src_mask (B, 1, 1, S).
        With a cache, tgt holds the new tokens only, at the positions after the cached ones, and tgt_mask
        fits (B, 1, T, T_cached + T).
        Raises ValueError when the model has no decoder, or when memory does not fit.
        """
        self._need_decoder()
        if memory.ndim != 3 or memory.shape[0] != tgt.shape[0] or memory.shape[2] != self.config.d_model:
            raise ValueError(
                f"memory of shape {tuple(memory.shape)} does not fit targets of shape {tuple(tgt.shape)} "
                f"and d_model {self.config.d_model}; it must be (B, S, d_model)"
            )
        if cache is not None:
            cache.bind(memory)
        x = self.tgt_embedding(tgt, 0 if cache is None else cache.length(), self.positions, trace)
        for layer in self.decoder:
            x = layer(x, memory, tgt_mask, src_mask, trace, cache)
        return self._final_norm(x, "decoder", self.decoder_norm, trace)

    def project(self, x: Tensor) -> Tensor:
        """Decoder states (..., d_model) -> logits, or log-probabilities if so configured (..., V). Treatise Eq. 3.5."""
        self._need_decoder()
        logits = self.output(x)
        return logits.log_softmax(dim=-1) if self.config.output == "log_probs" else logits

    def forward(
        self,
        src: Tensor,
        tgt: Tensor | None = None,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        trace: Trace | None = None,
    ) -> Tensor:
        """Source (B, S) and target ids (B, T) -> (B, T, V), one prediction of the next token at each position.

        src_mask also hides source padding from cross-attention. Give tgt_mask = causal_mask(T), joined with
        the target's padding mask, unless the future is meant to be seen. An encoder alone takes src only and
        gives its memory (B, S, d_model).
        """
        memory = self.encode(src, src_mask, trace)
        if not self.config.n_decoder_layers and tgt is None:
            return memory
        self._need_decoder()
        if tgt is None:
            raise ValueError("an encoder-decoder needs target ids (B, T); call encode for the memory alone")
        return self.project(self.decode(tgt, memory, tgt_mask, src_mask, trace))

    def _final_norm(self, x: Tensor, stack: Stack, norm: nn.Module | None, trace: Trace | None) -> Tensor:
        if norm is None:
            return x
        x = norm(x)
        if trace is not None:
            n_layers = self.config.n_encoder_layers if stack == "encoder" else self.config.n_decoder_layers
            trace.residual[ResidualSite(stack, n_layers - 1, "norm")] = x
        return x

    def _need_decoder(self) -> None:
        if not self.config.n_decoder_layers:
            raise ValueError(
                "this model is an encoder alone (n_decoder_layers is 0); it has no decoder and no output projection"
            )
