"""A vocabulary of sentencepiece's: unigram pieces (Kudo 2018), cut by the ``tokenizers`` library."""

import base64
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tokenizers import Tokenizer as Cutter
from tokenizers import models

from .charsmap import SPACE, Charsmap, tidy
from .subwords import SURROGATES
from .tokenizer import EOS, INSIDE, SPECIAL_TOKENS, Tokenizer

UNK = len(SPECIAL_TOKENS)  # the first symbol: what no other symbol is
# Stands for the unknown where the cutter wants a piece for it. Spaces are "▁" by then, so no text holds one.
_NEVER = " "


@dataclass(frozen=True)
class PieceTokenizer(Tokenizer):
    """Pieces of a model that was trained elsewhere with sentencepiece, as Marian's are. A source ends with EOS.

    definition  JSON as ``define`` makes it.
    max_tokens  a longer text is refused, EOS counted.

    A text is tidied and cut as the source language's sentencepiece model does it; then each piece is looked up
    among the symbols, which are those of both languages, and is unknown (``UNK``) where it is none. A text may
    begin with a language code such as ">>fra<<": what stands between is one symbol.

    Raises ValueError for a definition that is none.
    """

    definition: str
    max_tokens: int

    def __post_init__(self) -> None:
        _ = self._cutter, self._charsmap, self._ids

    @staticmethod
    def define(
        pieces: Sequence[tuple[str, float]],
        charsmap: bytes,
        dummy_prefix: bool,
        single_spaces: bool,
        symbols: Sequence[str],
    ) -> str:
        """The JSON of a tokenizer.

        pieces   those that a source is cut into, with their log-probabilities.
        symbols  of sources and targets, in the order of ids from 3 on; the first stands for all that is unknown.
        """
        definition = {
            "pieces": [[piece, score] for piece, score in pieces],
            "charsmap": base64.b64encode(charsmap).decode(),
            "dummy_prefix": dummy_prefix,
            "single_spaces": single_spaces,
            "symbols": list(symbols),
        }
        return json.dumps(definition, ensure_ascii=False)

    @cached_property
    def _defined(self) -> dict[str, Any]:
        try:
            defined = json.loads(self.definition)
            ok = all(isinstance(symbol, str) for symbol in defined["symbols"]) and defined["symbols"]
            ok = ok and all(isinstance(defined[name], bool) for name in ("dummy_prefix", "single_spaces"))
        except (ValueError, RecursionError, KeyError, TypeError) as error:
            raise ValueError(f"the definition of the pieces cannot be read: {error}") from error
        if not ok:
            raise ValueError("the definition of the pieces cannot be read: symbols or rules for spaces are missing")
        return defined

    @cached_property
    def _cutter(self) -> Cutter:
        try:
            pieces = [(piece, float(score)) for piece, score in self._defined["pieces"]]
            return Cutter(models.Unigram([(_NEVER, 0.0), *pieces], 0))
        except Exception as error:  # the library raises nothing narrower
            raise ValueError(f"the definition of the pieces cannot be read: {error}") from error

    @cached_property
    def _charsmap(self) -> Charsmap:
        try:
            return Charsmap.read(base64.b64decode(self._defined["charsmap"], validate=True))
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"the definition of the pieces cannot be read: {error}") from error

    @cached_property
    def _ids(self) -> dict[str, int]:
        return {symbol: i for i, symbol in enumerate(self._defined["symbols"], start=UNK)}

    @cached_property
    def symbols(self) -> tuple[str, ...]:
        """The label of every symbol: without its space, or marked by “·” where none stands before it."""
        unknown, *others = self._defined["symbols"]
        return (unknown, *map(_label, others))

    @cached_property
    def codes(self) -> tuple[str, ...]:
        """The language codes, such as ">>fra<<", that a text may begin with; most vocabularies have none."""
        return tuple(symbol for symbol in self._defined["symbols"] if _is_code(symbol))

    def split(self, text: str) -> list[str]:
        return self.labels(self.encode(text))

    def encode(self, text: str) -> list[int]:
        """Ids as the encoder takes them, EOS last. Raises ValueError for a text of more than ``max_tokens``."""
        text, pieces = SURROGATES.sub("\ufffd", text), []
        if text.startswith(">>") and (end := text.find("<<")) != -1:
            pieces, text = [text[: end + 2]], text[end + 2 :]
        tidied = tidy(text, self._charsmap, self._defined["dummy_prefix"], self._defined["single_spaces"])
        pieces += self._cutter.encode(tidied).tokens
        ids = [*(self._ids.get(piece, UNK) for piece in pieces), EOS]
        if len(ids) > self.max_tokens:
            raise ValueError(f"{len(ids):,} tokens are too many: this model takes at most {self.max_tokens}.")
        return ids

    def pieces(self, ids: Sequence[int]) -> list[str]:
        symbols = (*SPECIAL_TOKENS, *self._defined["symbols"])
        return [symbols[i].replace(SPACE, " ") for i, _ in zip(ids, self.labels(ids), strict=True)]

    def unfamiliar(self, ids: Iterable[int]) -> int:
        """How many are unknown."""
        return sum(i == UNK for i in ids)

    def decode(self, ids: Iterable[int]) -> str:
        kept = [i for i in ids if i not in (self.pad_id, self.bos_id, self.eos_id)]
        if wrong := [i for i in kept if not 0 <= i < self.vocab_size]:
            raise ValueError(f"token id {wrong[0]} is outside the vocabulary of {self.vocab_size}")
        return "".join(self._defined["symbols"][i - UNK] for i in kept).replace(SPACE, " ").strip()


def _label(piece: str) -> str:
    if piece == SPACE or _is_code(piece):
        return piece
    return piece[1:] if piece.startswith(SPACE) else INSIDE + piece


def _is_code(piece: str) -> bool:
    return piece.startswith(">>") and piece.endswith("<<")
