"""How a sentencepiece model tidies a text before it cuts it: a table of replacements, and rules for spaces."""

import struct
from collections.abc import Iterator
from dataclasses import dataclass

SPACE = "▁"  # a space, once it is part of a piece


@dataclass(frozen=True)
class Charsmap:
    """Replacements as sentencepiece stores them: the longest one that fits goes first, at every place of the text.

    units     a trie over UTF-8 bytes as a double array (Darts); unit 0 is its root.
    replaced  what stands for the matches: UTF-8, each ended by a zero byte; leaves of the trie point into it.

    Tables of this kind also exist in the ``tokenizers`` library, which drops combining marks after a letter that is
    replaced ("ｈ" + a mark); so they are read here.
    """

    units: tuple[int, ...]
    replaced: bytes

    @classmethod
    def read(cls, table: bytes) -> "Charsmap":
        """From a model's precompiled_charsmap; an empty one replaces nothing. Raises ValueError for a damaged one."""
        if not table:
            return cls((), b"")
        size = int.from_bytes(table[:4], "little")
        if not 4 <= size <= len(table) - 4 or size % 4:
            raise ValueError(f"the table of character replacements is damaged: its trie has {size:,} bytes")
        return cls(struct.unpack_from(f"<{size // 4}I", table, 4), table[4 + size :])

    def parts(self, text: str) -> Iterator[str]:
        """The text in parts, each replaced by what the table says, or one character as it stands."""
        data, start = text.encode(), 0
        while start < len(data):
            end, place = self._longest(data, start)
            if end == start:
                first = data[start]
                end = start + (1 if first < 0x80 else 2 if first < 0xE0 else 3 if first < 0xF0 else 4)
                yield data[start:end].decode(errors="replace")
            else:
                yield self.replaced[place : self.replaced.find(b"\0", place)].decode(errors="replace")
            start = end

    def _longest(self, data: bytes, start: int) -> tuple[int, int]:
        """Where the longest match at ``start`` ends, and where its replacement stands; start itself without a match."""
        found, units = (start, 0), self.units
        node = _offset(units[0]) if units else 0
        for end in range(start, len(data)):
            node ^= data[end]
            if node >= len(units) or units[node] & 0x800000FF != data[end]:
                break
            unit = units[node]
            node ^= _offset(unit)
            if unit >> 8 & 1 and node < len(units):
                found = end + 1, units[node] & 0x7FFFFFFF
        return found


def _offset(unit: int) -> int:
    return unit >> 10 << ((unit & 0x200) >> 6)


def tidy(text: str, charsmap: Charsmap, dummy_prefix: bool, single_spaces: bool) -> str:
    """A text as sentencepiece cuts it, every space written as "▁".

    dummy_prefix   one more space in front, so that a first word is like any other.
    single_spaces  none at the ends and one in a row. Other white space counts where the table makes it a space.
    """
    parts, after_space = [], single_spaces
    for part in charsmap.parts(text):
        kept = part.lstrip(" ") if after_space else part
        if kept:
            parts.append(kept)
            after_space = single_spaces and kept.endswith(" ")
    tidied = (SPACE if dummy_prefix and text else "") + "".join(parts).replace(" ", SPACE)
    return tidied.rstrip(SPACE) if single_spaces else tidied
