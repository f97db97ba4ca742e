"""A vocabulary of subwords: byte pair encoding (Sennrich et al. 2016) by the ``tokenizers`` library."""

import json
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from tokenizers import Regex, decoders, models, pre_tokenizers, trainers
from tokenizers import Tokenizer as Subwords

from .merging import MergeStep, merge_steps
from .tokenizer import INSIDE, SPECIAL_TOKENS, Tokenizer

_BYTES = [f"<0x{byte:02X}>" for byte in range(256)]

# What merges never cross. An English contraction is one piece ("don't"), a French word before its apostrophe
# another ("l'" + "homme"), a hyphen goes with what follows it ("as" + "-tu"), digits stand alone. The space
# before a piece belongs to it.
_PIECES = (
    r" ?[\p{L}\p{M}]+'(?:t|s|m|d|re|ve|ll)(?![\p{L}\p{M}])"
    r"|[ -]?[\p{L}\p{M}]+'?"
    r"| ?\p{N}"
    r"| ?[^\s\p{L}\p{M}\p{N}]+"
)
_CHARACTERS = 128
_APOSTROPHES = str.maketrans("’‘", "''")
SURROGATES = re.compile("[\ud800-\udfff]")


def normalise(text: str) -> str:
    """A text as the model reads it, and as it is measured.

    Unicode NFC; every run of white space, no-break spaces before French punctuation included, is one space, none
    at the ends; typographic apostrophes are "'"; half of a surrogate pair, which is no character, is U+FFFD.
    """
    text = unicodedata.normalize("NFC", SURROGATES.sub("\ufffd", text))
    return " ".join(text.translate(_APOSTROPHES).split())


@dataclass(frozen=True)
class SubwordTokenizer(Tokenizer):
    """Subwords of one vocabulary for both languages. Nothing is unknown: a rare character is written as its bytes.

    definition  the JSON of a ``tokenizers.Tokenizer``, as ``train_subwords`` makes it.
    max_tokens  a longer text is refused.

    decode(encode(text)) is normalise(text). Raises ValueError for a definition that is none.
    """

    definition: str
    max_tokens: int

    def __post_init__(self) -> None:
        first = [*SPECIAL_TOKENS, *_BYTES]
        if [self._subwords.id_to_token(i) for i in range(len(first))] != first:
            raise ValueError(
                f"a subword vocabulary starts with {', '.join(SPECIAL_TOKENS)} and 256 bytes; this does not"
            )

    @cached_property
    def _subwords(self) -> Subwords:
        try:
            return Subwords.from_str(self.definition)
        except Exception as error:  # the library raises nothing narrower
            raise ValueError(f"the definition of the subwords cannot be read: {error}") from error

    @cached_property
    def symbols(self) -> tuple[str, ...]:
        """The label of every subword: without its space, or marked by “·” where none stands before it."""
        n_specials, n_bytes = len(SPECIAL_TOKENS), len(_BYTES)
        ids = range(n_specials + n_bytes, self._subwords.get_vocab_size())
        return (*_BYTES, *(_label(self._subwords.id_to_token(i)) for i in ids))

    def split(self, text: str) -> list[str]:
        return self.labels(self.encode(text))

    def encode(self, text: str) -> list[int]:
        """Ids as the encoder takes them. Raises ValueError for a text of more than ``max_tokens``."""
        text = normalise(text)
        ids = self._subwords.encode(" " + text).ids if text else []
        if len(ids) > self.max_tokens:
            raise ValueError(f"{len(ids):,} tokens are too many: this model takes at most {self.max_tokens}.")
        return ids

    def pieces(self, ids: Sequence[int]) -> list[str]:
        self.labels(ids)  # refuses an unknown id
        return [self._subwords.id_to_token(i) for i in ids]

    @property
    def n_merges(self) -> int:
        """How many merges were learned."""
        return len(self._ranks)

    def stretches(self, text: str) -> list[str]:
        """What merges never cross, in order: words with the space before them, digits, signs."""
        text, cutter = normalise(text), self._subwords.pre_tokenizer
        if not text or cutter is None:
            return [" " + text] if text else []
        return [stretch for stretch, _ in cutter.pre_tokenize_str(" " + text)]

    def merges(self, stretch: str) -> list[MergeStep]:
        """How a stretch comes by its pieces, from characters, or bytes of those too rare, to what ``encode`` gives."""
        return merge_steps([symbol for character in stretch for symbol in self.spelled(character)], self._ranks)

    def spelled(self, character: str) -> list[str]:
        """What a character is before any merge: itself, or its bytes where it is too rare for the vocabulary."""
        known = self._subwords.token_to_id(character) is not None
        return [character] if known else [_BYTES[byte] for byte in character.encode()]

    @cached_property
    def _ranks(self) -> dict[tuple[str, str], int]:
        learned = json.loads(self._subwords.to_str())["model"].get("merges", [])
        return {(left, right): rank for rank, (left, right) in enumerate(learned)}

    def unfamiliar(self, ids: Iterable[int]) -> int:
        """How many are single bytes: parts of characters that were too rare for the vocabulary."""
        return sum(map(_is_byte, ids))

    def _continues(self, before: int, piece: int) -> bool:
        return (_is_byte(before) and _is_byte(piece)) or super()._continues(before, piece)

    def decode(self, ids: Iterable[int]) -> str:
        kept = [i for i in ids if i not in (self.pad_id, self.bos_id, self.eos_id)]
        if wrong := [i for i in kept if not 0 <= i < self.vocab_size]:
            raise ValueError(f"token id {wrong[0]} is outside the vocabulary of {self.vocab_size}")
        return self._subwords.decode(kept).removeprefix(" ")


def train_subwords(texts: Iterable[str], vocab_size: int) -> str:
    """Learn merges from texts; returns the JSON of the tokenizer. Ids: PAD, BOS, EOS, 256 bytes, characters, merges.

    Fewer than vocab_size ids come out when the texts hold no more merges. Characters beyond the 128 most frequent
    are left to their bytes. Raises ValueError when vocab_size leaves no room for merges.
    """
    least = len(SPECIAL_TOKENS) + len(_BYTES) + _CHARACTERS
    if vocab_size <= least:
        raise ValueError(f"a vocabulary of {vocab_size} subwords is too small; it must have more than {least}")
    subwords = Subwords(models.BPE(byte_fallback=True))
    subwords.pre_tokenizer = pre_tokenizers.Split(Regex(_PIECES), "isolated")
    subwords.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Fuse()])
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=[*SPECIAL_TOKENS, *_BYTES],
        limit_alphabet=_CHARACTERS,
        show_progress=False,
    )
    subwords.train_from_iterator((" " + normalise(text) for text in texts), trainer)
    definition = json.loads(subwords.to_str())
    # As "added tokens" the special ones and the bytes would be found in text: "<eos>" typed would be EOS.
    definition["added_tokens"] = []
    return json.dumps(definition, ensure_ascii=False)


def _is_byte(i: int) -> bool:
    return 0 <= i - len(SPECIAL_TOKENS) < len(_BYTES)


def _label(piece: str) -> str:
    return piece[1:] if piece.startswith(" ") and len(piece) > 1 else INSIDE + piece
