"""Every size and every choice of a Transformer in one frozen object."""

from dataclasses import dataclass
from typing import Literal, get_args

Norm = Literal["post", "pre"]
Activation = Literal["relu", "gelu", "silu"]
Positional = Literal["sinusoidal", "learned", "rotary", "none"]
LayerNormKind = Literal["torch", "unbiased"]
Init = Literal["default", "xavier", "xavier_attention"]
EmbeddingInit = Literal["normal", "scaled", "xavier"]
Output = Literal["logits", "log_probs"]

_CHOICES = {
    "norm": Norm,
    "activation": Activation,
    "positional": Positional,
    "layer_norm": LayerNormKind,
    "init": Init,
    "embedding_init": EmbeddingInit,
    "output": Output,
}
_SIZES = ("src_vocab_size", "tgt_vocab_size", "d_model", "n_heads", "d_ff", "n_encoder_layers", "max_len")


@dataclass(frozen=True, kw_only=True)
class TransformerConfig:
    """The shape of a model; the defaults are the paper's base model (Vaswani et al. 2017, Table 3).

    d_head              width of one head, the d_k of the formulas; None means d_model // n_heads.
                        It may be chosen freely, as in Table 3 (B) of the paper.
    n_decoder_layers    0 makes an encoder only: no target embedding and no output projection.
    max_len             most positions of a source or of a target; longer input is refused.
    norm                "post": LayerNorm(x + sublayer(x)); "pre": x + sublayer(LayerNorm(x)).
    final_norm          one more LayerNorm at the end of each stack; None means: only with pre-LN.
    bias                biases of attention and of the feed-forward network; attention_bias and ffn_bias set one
                        apart. The output projection always has one.
    hidden_dropout      dropout inside the feed-forward network; None means: the same as dropout.
    residual            False leaves the sum around each sublayer out: LayerNorm(f(x)) or f(LayerNorm(x)).
    ffn                 False leaves the feed-forward sublayer out of every layer, with its LayerNorm.
    activation          of the feed-forward network; "gelu" is the exact one, "silu" is x sigmoid(x), also called swish.
    scale_scores        divide the scores by sqrt(d_k); False leaves the division out, to see what it is for.
    init                "default": torch's; "xavier": every matrix; "xavier_attention": W_Q, W_K, W_V and
                        W_O, with zero biases.
    embedding_init      "normal": N(0, 1); "scaled": N(0, 1/d_model); "xavier": as a matrix.
    scale_embeddings    multiply embeddings by sqrt(d_model) before positions are added.
    tie_embeddings      one matrix for source embedding, target embedding and output projection.
    layer_norm          "torch": variance over n, eps inside the root; "unbiased": deviation over n - 1,
                        eps added to it.
    output              what ``Transformer.project`` gives: "logits" or "log_probs".

    Raises ValueError, naming the numbers, for any combination that no model can have.
    """

    src_vocab_size: int
    tgt_vocab_size: int
    d_model: int = 512
    n_heads: int = 8
    d_head: int | None = None
    d_ff: int = 2048
    n_encoder_layers: int = 6
    n_decoder_layers: int = 6
    max_len: int = 512
    dropout: float = 0.1
    hidden_dropout: float | None = None
    norm: Norm = "post"
    final_norm: bool | None = None
    residual: bool = True
    ffn: bool = True
    activation: Activation = "relu"
    bias: bool = True
    attention_bias: bool | None = None
    ffn_bias: bool | None = None
    positional: Positional = "sinusoidal"
    scale_scores: bool = True
    init: Init = "xavier"
    embedding_init: EmbeddingInit = "scaled"
    scale_embeddings: bool = True
    tie_embeddings: bool = False
    layer_norm: LayerNormKind = "torch"
    norm_eps: float = 1e-5
    output: Output = "logits"

    def __post_init__(self) -> None:
        for name in _SIZES:
            _check_whole_number(name, getattr(self, name), least=1)
        _check_whole_number("n_decoder_layers", self.n_decoder_layers, least=0)
        for name, allowed in _CHOICES.items():
            value = getattr(self, name)
            if value not in get_args(allowed):
                raise ValueError(f"{name} is {value!r}; it must be one of {', '.join(map(repr, get_args(allowed)))}")
        for name in ("dropout", "hidden_dropout"):
            value = getattr(self, name)
            if value is not None and not 0 <= value < 1:
                raise ValueError(f"{name} is {value}; it must be at least 0 and less than 1")
        if not self.norm_eps >= 0:
            raise ValueError(f"norm_eps is {self.norm_eps}; it must not be negative")
        self._check_widths()

    def _check_widths(self) -> None:
        if self.d_head is not None:
            _check_whole_number("d_head", self.d_head, least=1)
        elif self.d_model % self.n_heads:
            raise ValueError(
                f"d_model {self.d_model} is not divisible by n_heads {self.n_heads}; "
                "choose another pair or give d_head explicitly"
            )
        if self.positional == "sinusoidal" and self.d_model % 2:
            raise ValueError(
                f"d_model {self.d_model} is odd; sinusoidal positions need sine-cosine pairs, so an even d_model"
            )
        if self.positional == "rotary" and self.head_width % 2:
            raise ValueError(
                f"d_head {self.head_width} is odd; rotary positions turn pairs of dimensions, so an even d_head"
            )
        if self.layer_norm == "unbiased" and self.d_model < 2:
            raise ValueError(f"d_model {self.d_model} has no unbiased deviation; it needs at least 2")
        if self.tie_embeddings and self.src_vocab_size != self.tgt_vocab_size:
            raise ValueError(
                f"tied embeddings need one vocabulary; got {self.src_vocab_size} source words "
                f"and {self.tgt_vocab_size} target words"
            )
        if self.tie_embeddings and self.n_decoder_layers == 0:
            raise ValueError("tied embeddings need a decoder; n_decoder_layers is 0")

    @property
    def head_width(self) -> int:
        """d_k: the width of one head's queries, keys and values."""
        return self.d_model // self.n_heads if self.d_head is None else self.d_head

    @property
    def has_final_norm(self) -> bool:
        return self.norm == "pre" if self.final_norm is None else self.final_norm

    @property
    def has_attention_bias(self) -> bool:
        return self.bias if self.attention_bias is None else self.attention_bias

    @property
    def has_ffn_bias(self) -> bool:
        return self.bias if self.ffn_bias is None else self.ffn_bias


def _check_whole_number(name: str, value: object, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError(f"{name} is {value!r}; it must be a whole number of at least {least}")
