"""From Marian's settings to a config of this project."""

from ..config import TransformerConfig
from ..tokenizer import SPECIAL_TOKENS
from .folder import MarianFolder

_ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "swish": "silu", "silu": "silu"}
_NEEDED = (
    "d_model", "encoder_layers", "decoder_layers", "encoder_attention_heads", "decoder_attention_heads",
    "encoder_ffn_dim", "decoder_ffn_dim", "max_position_embeddings", "activation_function",
)  # fmt: skip


def id_order(folder: MarianFolder) -> list[int]:
    """The Marian id that each id here stands for: those of PAD, BOS, EOS and the unknown, then all others."""
    others = (i for i in range(len(folder.symbols)) if i not in (folder.pad, folder.eos, folder.unknown))
    return [folder.pad, folder.start, folder.eos, folder.unknown, *others]


def symbols_of(folder: MarianFolder) -> list[str]:
    """The symbols of ids 3 and up; the first stands for all that is unknown."""
    return [folder.symbols[i] for i in id_order(folder)[len(SPECIAL_TOKENS) :]]


def config_of(folder: MarianFolder) -> TransformerConfig:
    """The same sizes and choices. Raises ValueError for what has no place."""
    config, where = folder.config, folder.path / "config.json"
    if missing := [name for name in _NEEDED if name not in config]:
        raise ValueError(f"{where} lacks {', '.join(missing)}")
    for name in ("attention_heads", "ffn_dim"):
        encoder, decoder = config[f"encoder_{name}"], config[f"decoder_{name}"]
        if encoder != decoder:
            raise ValueError(
                f"{where} has encoder_{name} {encoder} and decoder_{name} {decoder}; here both stacks share one number"
            )
    if config["decoder_layers"] == 0:
        raise ValueError(f"{where} has decoder_layers 0; a translator has a decoder")
    activation = config["activation_function"]
    if activation not in tuple(_ACTIVATIONS):
        raise ValueError(f"{where} has activation_function {activation!r}; allowed are {', '.join(_ACTIVATIONS)}")
    shared, tied = (config.get(f"{name}_embeddings", True) for name in ("share_encoder_decoder", "tie_word"))
    if shared and not tied:
        raise ValueError(f"{where} shares embeddings between encoder and decoder but not with the output projection")
    n_ids = len(id_order(folder))
    try:
        return TransformerConfig(
            src_vocab_size=n_ids,
            tgt_vocab_size=n_ids,
            d_model=config["d_model"],
            n_heads=config["encoder_attention_heads"],
            d_ff=config["encoder_ffn_dim"],
            n_encoder_layers=config["encoder_layers"],
            n_decoder_layers=config["decoder_layers"],
            max_len=config["max_position_embeddings"],
            dropout=config.get("dropout", 0.1),
            hidden_dropout=config.get("activation_dropout", 0.0),
            activation=_ACTIVATIONS[activation],
            scale_embeddings=bool(config.get("scale_embedding", False)),
            tie_embeddings=bool(shared),
        )
    except (ValueError, TypeError) as error:
        raise ValueError(f"{where}: {error}") from error
