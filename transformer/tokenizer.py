"""Text to token ids and back."""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

PAD, BOS, EOS = 0, 1, 2
SPECIAL_TOKENS = ("<pad>", "<bos>", "<eos>")
INSIDE = "·"  # in labels, before a piece that no space stands before


class Tokenizer(ABC):
    """One vocabulary for sources and targets; ids 0, 1, 2 are PAD, BOS and EOS, symbols follow.

    Text never becomes a special token: "<eos>" is an unknown symbol like any other.
    """

    symbols: tuple[str, ...]  # as they are written, in the order of their ids from 3 on
    joiner = ""  # stands between symbols in decoded text
    pad_id, bos_id, eos_id = PAD, BOS, EOS

    @abstractmethod
    def split(self, text: str) -> list[str]:
        """The symbols that a text is written in, known or not."""

    def vocabulary(self) -> tuple[str, ...]:
        """The label of every id, in the order of ids."""
        return (*SPECIAL_TOKENS, *self.symbols)

    @property
    def vocab_size(self) -> int:
        return len(SPECIAL_TOKENS) + len(self.symbols)

    def encode(self, text: str) -> list[int]:
        """Ids as the encoder takes them. Raises ValueError naming every unknown symbol and what is allowed."""
        ids = {symbol: i for i, symbol in enumerate(self.symbols, start=len(SPECIAL_TOKENS))}
        pieces = self.split(text)
        unknown = list(dict.fromkeys(piece for piece in pieces if piece not in ids))
        if unknown:
            named = ", ".join(f"“{shorten(piece)}”" for piece in unknown[:5])
            more = f" and {len(unknown) - 5} more" if len(unknown) > 5 else ""
            are = "is not a symbol" if len(unknown) == 1 else "are not symbols"
            raise ValueError(f"{named}{more} {are} of this task. Its symbols are {' '.join(self.symbols)}.")
        return [ids[piece] for piece in pieces]

    def decode(self, ids: Iterable[int]) -> str:
        """The text of ids; special tokens are left out. Raises ValueError for an unknown id."""
        return self.joiner.join(self.labels(i for i in ids if i not in (self.pad_id, self.bos_id, self.eos_id)))

    def words(self, ids: Sequence[int]) -> list[range]:
        """The positions of the pieces of each word, in order; where words are not cut, every symbol by itself.

        Punctuation, an article before its apostrophe ("l'"), what follows a hyphen and special tokens are words.
        """
        found: list[range] = []
        for i in range(len(ids)):
            if i and self._continues(ids[i - 1], ids[i]):
                found[-1] = range(found[-1].start, i + 1)
            else:
                found.append(range(i, i + 1))
        return found

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """Each piece as it stands in a text, with the space that belongs to it; symbols are their labels.

        Raises ValueError for an unknown id.
        """
        return self.labels(ids)

    def _continues(self, before: int, piece: int) -> bool:
        """Whether a piece goes on with the word of the piece before it."""
        earlier, label = self.labels((before, piece))
        if earlier in (f"{INSIDE} ", "▁"):  # a space by itself, as either kind of pieces writes it
            return True
        return label.startswith(INSIDE) and label[1:2].isalnum() and earlier[-1:].isalnum()

    def unfamiliar(self, ids: Iterable[int]) -> int:
        """How many of the ids stand for what the vocabulary does not have."""
        return 0

    def labels(self, ids: Iterable[int]) -> list[str]:
        """One label per id, special tokens as <pad>, <bos>, <eos>. Raises ValueError for an unknown id."""
        names, found = self.vocabulary(), []
        for i in ids:
            if not 0 <= i < len(names):
                raise ValueError(f"token id {i} is outside the vocabulary of {len(names)}")
            found.append(names[i])
        return found


@dataclass(frozen=True)
class SymbolTokenizer(Tokenizer):
    """Symbols written apart by spaces, commas, semicolons or brackets."""

    symbols: tuple[str, ...]
    joiner = " "

    def split(self, text: str) -> list[str]:
        return [piece for piece in re.split(r"[\s,;()\[\]]+", text) if piece]


def shorten(text: str, most: int = 24) -> str:
    """At most ``most`` characters of a text, for a message."""
    return text if len(text) <= most else text[: most - 1] + "…"
