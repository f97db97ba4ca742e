"""What stands in a Marian model's folder beside its weights, read and checked: settings, vocabulary, pieces."""

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .spm import SentencePieces, read_spm

# Others of these were possible once; the library that writes these folders computes none of them any more.
_FIXED = {
    "normalize_before": False,
    "normalize_embedding": False,
    "add_final_layer_norm": False,
    "static_position_embeddings": True,
}


@dataclass(frozen=True)
class MarianFolder:
    """All but the weights. Numbers are Marian's ids.

    symbols    of both languages, in the order of their ids.
    start      what a decode starts from, usually the same as pad.
    forbidden  what is never to be written, usually pad.
    source     what a source is cut by.
    languages  codes or names of source and target, or None.
    """

    path: Path
    config: dict[str, Any]
    symbols: list[str]
    pad: int
    start: int
    eos: int
    unknown: int
    forbidden: list[int]
    source: SentencePieces
    languages: tuple[str, str] | None


def read_folder(path: Path) -> MarianFolder:
    """Read all but the weights. Raises ValueError, naming the file and what it should hold, for another folder."""
    if not path.is_dir():
        raise ValueError(f"{path} is not a folder; give the one that holds config.json, source.spm and vocab.json")
    config = _read_json(path / "config.json")
    if config.get("model_type") != "marian":
        raise ValueError(f"{path / 'config.json'} is of a {config.get('model_type')!r} model; it must be 'marian'")
    for name, needed in _FIXED.items():
        if config.get(name, needed) != needed:
            raise ValueError(f"{path / 'config.json'} says {name} {config[name]!r}; it must be {needed!r}")
    generation = _read_json(path / "generation_config.json", {})
    settings = config | {name: value for name, value in generation.items() if value is not None}
    of_tokenizer = _read_json(path / "tokenizer_config.json", {})
    if of_tokenizer.get("separate_vocabs") or (path / "target_vocab.json").exists():
        raise ValueError(f"{path} has one vocabulary for each language; only models with one for both can be converted")
    symbols = _symbols(path / "vocab.json", config.get("vocab_size"))
    ids = {name: _special(name, of_tokenizer, symbols, path) for name in ("pad_token", "eos_token", "unk_token")}
    for name in ("pad_token", "eos_token"):
        if settings.get(f"{name}_id") != ids[name]:
            raise ValueError(
                f"{path / 'vocab.json'} gives {name} the id {ids[name]}, the config {settings.get(f'{name}_id')!r}"
            )
    start = settings.get("decoder_start_token_id", ids["pad_token"])
    if type(start) is not int or start not in range(len(symbols)):
        raise ValueError(f"{path}: decoder_start_token_id {start!r} is none of {len(symbols):,} symbols")
    return MarianFolder(
        path=path,
        config=config,
        symbols=symbols,
        source=read_spm(_source_spm(path)),
        languages=_languages(of_tokenizer, path.resolve().name),
        pad=ids["pad_token"],
        start=start,
        eos=ids["eos_token"],
        unknown=ids["unk_token"],
        forbidden=_forbidden(settings.get("bad_words_ids") or [], len(symbols), path),
    )


def _read_json(path: Path, missing: dict | None = None) -> dict[str, Any]:
    if not path.is_file() and missing is not None:
        return missing
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ValueError(f"{path.parent} has no {path.name}") from error
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise ValueError(f"{path} is not a JSON object")
    return found


def _symbols(path: Path, vocab_size: object) -> list[str]:
    ids = _read_json(path)
    symbols = sorted(ids, key=lambda symbol: ids[symbol] if isinstance(ids[symbol], int) else -1)
    if [ids[symbol] for symbol in symbols] != list(range(len(symbols))):
        raise ValueError(f"{path} must number its {len(symbols):,} symbols from 0 on, each once")
    if len(symbols) != vocab_size:
        raise ValueError(f"{path} has {len(symbols):,} symbols, but vocab_size in config.json is {vocab_size!r}")
    return symbols


def _special(name: str, of_tokenizer: dict[str, Any], symbols: list[str], path: Path) -> int:
    written = of_tokenizer.get(name) or {"pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}[name]
    written = written.get("content") if isinstance(written, dict) else written
    if written not in symbols:
        raise ValueError(f"{path / 'vocab.json'} has no {written}, which it needs as {name}")
    return symbols.index(written)


def _source_spm(path: Path) -> Path:
    models = sorted(path.glob("*.spm"))
    if path / "source.spm" in models:
        return path / "source.spm"
    if len(models) != 1:
        raise ValueError(f"{path} has no source.spm, nor one .spm file for both languages")
    return models[0]


def _languages(of_tokenizer: dict[str, Any], name: str) -> tuple[str, str] | None:
    source, target = of_tokenizer.get("source_lang"), of_tokenizer.get("target_lang")
    if isinstance(source, str) and isinstance(target, str):
        return source, target
    named = re.fullmatch(r"opus-mt-(?:tc-\w+-)?([A-Za-z_+]+)-([A-Za-z_+]+)", name)
    return (named[1], named[2]) if named else None


def _forbidden(bad_words: object, n_symbols: int, path: Path) -> list[int]:
    try:
        return [int(word) for (word,) in bad_words if 0 <= word < n_symbols]
    except (ValueError, TypeError) as error:
        raise ValueError(
            f"{path}: bad_words_ids is {bad_words!r}; only single symbols can be forbidden, as in [[58100]]"
        ) from error
