"""Dates in four spellings to the international one."""

import datetime
import re
from collections.abc import Sequence
from dataclasses import dataclass

from ..tokenizer import Tokenizer
from .base import EnumeratedTask

MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
_FIRST, _LAST = datetime.date(1900, 1, 1), datetime.date(2099, 12, 31)
_SPELLINGS = (
    lambda d: f"{d.day} {MONTHS[d.month - 1]} {d.year}",
    lambda d: f"{MONTHS[d.month - 1]} {d.day}, {d.year}",
    lambda d: f"{d.day}.{d.month}.{d.year}",
    lambda d: f"{d.month}/{d.day}/{d.year}",
)
# The same four, read back: groups y, m or name, d.
_READINGS = (
    r"(?P<d>\d{1,2})(?P<name>[A-Z][a-z]+)(?P<y>\d{4})",
    r"(?P<name>[A-Z][a-z]+)(?P<d>\d{1,2}),(?P<y>\d{4})",
    r"(?P<d>\d{1,2})\.(?P<m>\d{1,2})\.(?P<y>\d{4})",
    r"(?P<m>\d{1,2})/(?P<d>\d{1,2})/(?P<y>\d{4})",
)


class DateTokenizer(Tokenizer):
    """Digits one by one, months as words (three letters are enough, in any case), and the signs , . / -."""

    symbols = (*"0123456789,./-", *MONTHS)

    def split(self, text: str) -> list[str]:
        pieces = re.findall(r"[0-9]|[^\W\d_]+|[^\s]", text)
        return [self._month(piece) for piece in pieces]

    @staticmethod
    def _month(piece: str) -> str:
        full = [month for month in MONTHS if len(piece) >= 3 and month.lower().startswith(piece.lower())]
        return full[0] if full else piece


@dataclass(frozen=True)
class DateTask(EnumeratedTask):
    """Write a date of the years 1900 to 2099 as year-month-day; it comes in one of four spellings."""

    name = "date"
    title = "Date format"
    answer = "the date"
    prompt = "a date such as 3 May 2021, 3.5.2021 or 5/3/2021"
    examples = {  # noqa: RUF012 (a class constant of the task)
        "3 May 2021": "3 May 2021",
        "July 14, 1989": "July 14, 1989",
        "29.2.2000": "29.2.2000",
        "12/31/1999": "12/31/1999",
    }
    tokenizer = DateTokenizer()
    max_source = 10  # 12/31/1999
    max_target = 10
    n_pairs = ((_LAST - _FIRST).days + 1) * len(_SPELLINGS)

    def pair(self, i: int) -> tuple[list[int], list[int]]:
        day, spelling = divmod(i, len(_SPELLINGS))
        date = _FIRST + datetime.timedelta(days=day)
        return self.tokenizer.encode(_SPELLINGS[spelling](date)), self.tokenizer.encode(date.isoformat())

    def target(self, src: Sequence[int]) -> list[int]:
        written = self.tokenizer.decode(src)
        for reading in _READINGS:
            if found := re.fullmatch(reading, written):
                parts = found.groupdict()
                month = MONTHS.index(parts["name"]) + 1 if "name" in parts else int(parts["m"])
                return self.tokenizer.encode(datetime.date(int(parts["y"]), month, int(parts["d"])).isoformat())
        raise ValueError(f"“{written}” is not a date in one of the four spellings")
