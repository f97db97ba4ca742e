"""Reading a sentencepiece model (.spm), which is a protobuf message: only the fields that are needed."""

import struct
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# How a value is written: see the encoding of protocol buffers.
_VARINT, _COUNTED, _FIXED = 0, 2, {1: 8, 5: 4}
# What a piece is, and how the pieces were learned: sentencepiece_model.proto.
_NORMAL, _USER_DEFINED, _BYTE = 1, 4, 6
_MODEL_TYPES = {1: "unigram", 2: "bpe", 3: "word", 4: "char"}


@dataclass(frozen=True)
class SentencePieces:
    """What a text is cut by: pieces with their log-probabilities, the table of characters, rules for spaces."""

    pieces: list[tuple[str, float]]
    charsmap: bytes
    dummy_prefix: bool
    single_spaces: bool


def read_spm(path: Path) -> SentencePieces:
    """Read a unigram model. Raises ValueError for a damaged file, or for a kind that is not supported."""
    try:
        model = _fields(path.read_bytes())
        trainer, normalizer = (_fields(b"".join(model[number])) for number in (2, 3))
        pieces = [_piece(message) for message in model[1]]
        charsmap = b"".join(normalizer[2][-1:])
    except (ValueError, TypeError, AttributeError, struct.error) as error:
        raise ValueError(f"{path} is not a sentencepiece model: {error}") from error
    if not pieces:
        raise ValueError(f"{path} is not a sentencepiece model: it has no pieces")
    kind = _MODEL_TYPES.get(_last(trainer, 3, 1), "unknown")
    if kind != "unigram":
        raise ValueError(f"{path} is a sentencepiece model of type {kind}; only unigram models can be converted")
    for wrong, said in {
        any(kind == _USER_DEFINED for *_, kind in pieces): "has user-defined pieces",
        any(kind == _BYTE for *_, kind in pieces): "writes unknown characters as bytes",
        bool(_last(trainer, 24, 0)): "puts spaces after words",
        not _last(normalizer, 5, 1): "leaves spaces as they are",
    }.items():
        if wrong:
            raise ValueError(f"{path} {said}; such a sentencepiece model cannot be converted")
    return SentencePieces(
        # Control pieces and unused ones are never cut out of a text.
        pieces=[(piece, score) for piece, score, kind in pieces if kind == _NORMAL],
        charsmap=charsmap,
        dummy_prefix=bool(_last(normalizer, 3, 1)),
        single_spaces=bool(_last(normalizer, 4, 1)),
    )


def _piece(message: bytes) -> tuple[str, float, int]:
    fields = _fields(message)
    (score,) = struct.unpack("<f", _last(fields, 2, bytes(4)))
    return _last(fields, 1, b"").decode(), score, _last(fields, 3, _NORMAL)


def _last(fields: dict[int, list], number: int, default: Any) -> Any:
    """A field that stands once; in protobuf the last one counts."""
    return fields[number][-1] if fields[number] else default


def _fields(message: bytes) -> dict[int, list]:
    """The values of a message by field number: whole numbers as int, all others as bytes. Raises ValueError."""
    found = defaultdict(list)
    for number, value in _values(message):
        found[number].append(value)
    return found


def _values(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    place = 0
    while place < len(message):
        key, place = _whole_number(message, place)
        number, kind = key >> 3, key & 7
        if kind == _VARINT:
            value, place = _whole_number(message, place)
            yield number, value
            continue
        if kind == _COUNTED:
            length, place = _whole_number(message, place)
        elif kind in _FIXED:
            length = _FIXED[kind]
        else:
            raise ValueError(f"it has a field of unknown kind {kind}")
        if place + length > len(message):
            raise ValueError("it ends in the middle of a field")
        yield number, message[place : place + length]
        place += length


def _whole_number(message: bytes, place: int) -> tuple[int, int]:
    """A varint, seven bits a byte, the lowest first; and the place after it."""
    value = shift = 0
    while place < len(message):
        byte, place = message[place], place + 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, place
        shift += 7
    raise ValueError("it ends in the middle of a number")
