"""Text to token ids and back, for tasks whose tokens are written apart."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

PAD, BOS, EOS = 0, 1, 2
SPECIAL_TOKENS = ("<pad>", "<bos>", "<eos>")


@dataclass(frozen=True)
class SymbolTokenizer:
    """Symbols written apart by spaces, commas, semicolons or brackets; ids 0, 1, 2 are PAD, BOS, EOS, symbols follow.

    Text never becomes a special token: "<eos>" is an unknown symbol like any other.
    """

    symbols: tuple[str, ...]
    pad_id: int = PAD
    bos_id: int = BOS
    eos_id: int = EOS

    @property
    def vocab_size(self) -> int:
        return len(SPECIAL_TOKENS) + len(self.symbols)

    def split(self, text: str) -> list[str]:
        """The written symbols of a text, known or not."""
        return [piece for piece in re.split(r"[\s,;()\[\]]+", text) if piece]

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
        """The symbols of ids, one space between; special tokens are left out. Raises ValueError for an unknown id."""
        return " ".join(self.labels([i for i in ids if i not in (self.pad_id, self.bos_id, self.eos_id)]))

    def labels(self, ids: Iterable[int]) -> list[str]:
        """One label per id, special tokens as <pad>, <bos>, <eos>. Raises ValueError for an unknown id."""
        names = self.vocabulary()
        ids = list(ids)
        for i in ids:
            if not 0 <= i < len(names):
                raise ValueError(f"token id {i} is outside the vocabulary of {len(names)}")
        return [names[i] for i in ids]

    def vocabulary(self) -> Sequence[str]:
        """The label of every id, in the order of ids."""
        return (*SPECIAL_TOKENS, *self.symbols)


def shorten(text: str, most: int = 24) -> str:
    """At most ``most`` characters of a text, for a message."""
    return text if len(text) <= most else text[: most - 1] + "…"
