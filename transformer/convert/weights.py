"""From Marian's tensors to a Transformer: names, the order of ids and the order of the stream's dimensions."""

import pickle
from collections.abc import Sequence
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from ..config import TransformerConfig
from ..model import Transformer
from ..positional import sinusoidal_encoding
from ..tokenizer import BOS, PAD
from .folder import MarianFolder
from .settings import id_order

# The logit of what is never written: none can win against it, and 16 bits hold it exactly.
NEVER = -10_000.0

_FILES = ("model.safetensors", "pytorch_model.bin")
_SOURCE, _TARGET, _OUTPUT = "model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight", "lm_head.weight"
_SHARED = ("model.shared.weight", _SOURCE, _TARGET, _OUTPUT)
_ATTENTION = {"self_attention": "self_attn", "cross_attention": "encoder_attn"}
_READS = {"w_q": "q_proj", "w_k": "k_proj", "w_v": "v_proj"}
# By their name here: maps that read the stream; maps and norms that give it.
_READING = {f"{a}.{m}": f"{_ATTENTION[a]}.{_READS[m]}" for a in _ATTENTION for m in _READS} | {"ffn.w_1": "fc1"}
_GIVING = {f"{a}.w_o": f"{_ATTENTION[a]}.out_proj" for a in _ATTENTION} | {
    "ffn.w_2": "fc2",
    "self_sublayer.norm": "self_attn_layer_norm",
    "cross_sublayer.norm": "encoder_attn_layer_norm",
    "ffn_sublayer.norm": "final_layer_norm",
}


def stream_order(d_model: int) -> Tensor:
    """The Marian dimension that stands at each place of the stream here: 0, d/2, 1, d/2 + 1, ... (d_model,)."""
    return torch.arange(d_model).reshape(2, -1).T.flatten()


@torch.no_grad()
def model_of(folder: MarianFolder, config: TransformerConfig) -> Transformer:
    """The model with its weights, in eval mode. Raises ValueError naming the tensor that is missing, extra or odd."""
    theirs = _Tensors(read_weights(folder.path), folder.path)
    model = Transformer(config, torch.Generator()).eval()
    _check_positions(theirs, config)
    _embeddings(theirs, folder, model)
    stream = stream_order(config.d_model)
    for stack in ("encoder", "decoder"):
        for name, parameter in getattr(model, stack).named_parameters():
            layer, rest = name.split(".", 1)
            part, kind = rest.rsplit(".", 1)
            marian = f"model.{stack}.layers.{layer}.{(_READING | _GIVING)[part]}.{kind}"
            tensor = theirs.take([marian], tuple(parameter.shape))
            if part in _GIVING:
                tensor = tensor[stream]
            elif kind == "weight":
                tensor = tensor[:, stream]
            parameter.copy_(tensor)
    if extra := sorted(theirs.left):
        raise ValueError(
            f"{folder.path} has {len(extra)} tensors that Marian has no place for, the first is {extra[0]}"
        )
    return model


def read_weights(path: Path) -> dict[str, Tensor]:
    """All tensors of a folder by their Marian names, in float32. Raises ValueError for a file of anything else."""
    file = next((path / name for name in _FILES if (path / name).is_file()), None)
    if file is None:
        raise ValueError(f"{path} has no weights; they must be in {' or '.join(_FILES)}")
    try:
        if file.suffix == ".safetensors":
            found = load_file(file)
        else:
            found = torch.load(file, map_location="cpu", weights_only=True)  # nothing that the file says is run
    except (SafetensorError, pickle.UnpicklingError, RuntimeError, EOFError, ValueError, KeyError) as error:
        raise ValueError(
            f"{file} cannot be read as tensors and nothing else: {str(error).partition('.')[0]}"
        ) from error
    if not isinstance(found, dict) or not all(
        isinstance(name, str) and isinstance(tensor, Tensor) for name, tensor in found.items()
    ):
        raise ValueError(f"{file} holds something else than tensors by name")
    return {name: tensor.float() for name, tensor in found.items()}


def _embeddings(theirs: "_Tensors", folder: MarianFolder, model: Transformer) -> None:
    """Fill embeddings and output projection; PAD, BOS and what the settings forbid get a logit of ``NEVER``."""
    n, d = len(folder.symbols), model.config.d_model
    ids, stream = torch.tensor(id_order(folder)), stream_order(d)
    if model.config.tie_embeddings:
        roles = {model.output: _SHARED}
    elif folder.config.get("tie_word_embeddings", True):
        roles = {model.src_embedding.token: [_SOURCE], model.tgt_embedding.token: [_TARGET, _OUTPUT]}
    else:
        roles = {model.src_embedding.token: [_SOURCE], model.tgt_embedding.token: [_TARGET], model.output: [_OUTPUT]}
    for module, names in roles.items():
        module.weight.copy_(theirs.take(names, (n, d))[ids][:, stream])
    if model.output not in roles:
        model.output.weight.copy_(model.tgt_embedding.token.weight)
    bias = theirs.take(["final_logits_bias"], (1, n), missing=torch.zeros(1, n))[0]
    bias[folder.forbidden] = NEVER
    model.output.bias.copy_(bias[ids])
    model.output.bias[[PAD, BOS]] = NEVER


def _check_positions(theirs: "_Tensors", config: TransformerConfig) -> None:
    """Older files hold the tables of sinusoids; they are computed here, so they need only be right."""
    table = sinusoidal_encoding(config.max_len, config.d_model)
    for stack in ("encoder", "decoder"):
        name = f"model.{stack}.embed_positions.weight"
        if name not in theirs.left:
            continue
        found = theirs.take([name], tuple(table.shape))[:, stream_order(config.d_model)]
        if not torch.allclose(found, table, rtol=0, atol=1e-3):
            raise ValueError(f"{theirs.path}: {name} does not hold Marian's sinusoids; learned positions have no place")


class _Tensors:
    """Marian's tensors by name, each taken once; ``left`` holds those not taken yet."""

    def __init__(self, tensors: dict[str, Tensor], path: Path) -> None:
        self.left = tensors
        self.path = path

    def take(self, names: Sequence[str], shape: tuple[int, ...], missing: Tensor | None = None) -> Tensor:
        """The one tensor that stands under any of the names. Raises ValueError when it is missing, odd, or two."""
        found = {name: self.left.pop(name) for name in names if name in self.left}
        if not found and missing is None:
            raise ValueError(f"{self.path} lacks the tensor {' or '.join(names)}")
        for name, tensor in found.items():
            if tuple(tensor.shape) != shape:
                raise ValueError(f"{self.path}: {name} has shape {tuple(tensor.shape)}, its config needs {shape}")
            if not tensor.isfinite().all():
                raise ValueError(f"{self.path}: {name} holds numbers that are not finite")
        first, *others = found.values() if found else [missing]
        if any(not torch.equal(first, other) for other in others):
            raise ValueError(f"{self.path}: {' and '.join(found)} differ, but the config makes one matrix of them")
        return first
