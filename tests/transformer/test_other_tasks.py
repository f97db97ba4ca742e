"""Copy, sort, dates, number words, addition."""

import datetime

import pytest
import torch

from transformer import PAD, TASKS, AdditionTask, CopyTask, DateTask, NumberTask, SortTask
from transformer.tasks.base import is_held_out
from transformer.tasks.numbers import in_words


@pytest.mark.parametrize("kind", TASKS.values(), ids=TASKS)
@pytest.mark.parametrize("held_out", [False, True])
def test_a_batch_holds_questions_with_their_answers(kind: type, held_out: bool) -> None:
    task = kind()
    batch = task.batch(67, torch.Generator().manual_seed(3), held_out)
    for src, length, tgt_in, tgt_out in zip(batch.src, batch.lengths, batch.tgt_in, batch.tgt_out, strict=True):
        question = src[:length].tolist()
        answer = task.target(question)
        assert PAD not in question
        assert src[length:].tolist() == [PAD] * (len(src) - length)
        rest = [PAD] * (len(tgt_out) - len(answer) - 1)
        assert tgt_in.tolist() == [1, *answer, *rest]
        assert tgt_out.tolist() == [*answer, 2, *rest]
        assert len(question) <= task.max_source
        assert len(answer) <= task.max_target


@pytest.mark.parametrize("kind", TASKS.values(), ids=TASKS)
def test_every_example_can_be_read_and_answered(kind: type) -> None:
    task = kind()
    for text in task.examples.values():
        ids = task.tokenizer.encode(text)
        assert len(ids) <= task.max_source
        assert len(task.target(ids)) <= task.max_target


@pytest.mark.parametrize("kind", TASKS.values(), ids=TASKS)
def test_the_same_generator_gives_the_same_batch(kind: type) -> None:
    first, second = (kind().batch(13, torch.Generator().manual_seed(7)) for _ in range(2))
    assert torch.equal(first.src, second.src)
    assert torch.equal(first.tgt_out, second.tgt_out)


def test_a_tenth_is_held_out() -> None:
    assert is_held_out(torch.arange(1_000_000)).float().mean().item() == pytest.approx(0.1, abs=1e-3)


def test_copy_and_sort() -> None:
    assert CopyTask().target([5, 3, 5]) == [5, 3, 5]
    assert SortTask().target([5, 3, 11, 5]) == [3, 5, 5, 11]


@pytest.mark.parametrize(
    ("written", "iso"),
    [
        ("3 May 2021", "2021-05-03"),
        ("3 may 2021", "2021-05-03"),
        ("Dec 25, 1999", "1999-12-25"),
        ("29.2.2000", "2000-02-29"),
        ("12/31/1900", "1900-12-31"),
    ],
)
def test_dates(written: str, iso: str) -> None:
    task = DateTask()
    assert task.tokenizer.decode(task.target(task.tokenizer.encode(written))) == iso


def test_date_pairs_run_from_the_first_day_to_the_last() -> None:
    task = DateTask()
    decode = task.tokenizer.decode
    assert [decode(ids) for ids in task.pair(0)] == ["1January1900", "1900-01-01"]
    assert [decode(ids) for ids in task.pair(task.n_pairs - 1)] == ["12/31/2099", "2099-12-31"]
    assert task.n_pairs == 4 * (datetime.date(2100, 1, 1) - datetime.date(1900, 1, 1)).days


@pytest.mark.parametrize("written", ["31.2.2000", "13/13/2000", "May 2021", "3 3 3"])
def test_no_dates(written: str) -> None:
    task = DateTask()
    with pytest.raises(ValueError, match=r"day|month|date"):
        task.target(task.tokenizer.encode(written))


@pytest.mark.parametrize(
    ("n", "words"),
    [
        (0, "zero"),
        (13, "thirteen"),
        (40, "forty"),
        (99, "ninety nine"),
        (205, "two hundred five"),
        (1000, "one thousand"),
        (9999, "nine thousand nine hundred ninety nine"),
    ],
)
def test_number_words(n: int, words: str) -> None:
    assert in_words(n) == words.split()


def test_every_number_leads_back_to_itself() -> None:
    task = NumberTask()
    for n in range(task.n_pairs):
        src, answer = task.pair(n)
        assert task.target(src) == answer
        assert task.tokenizer.decode(answer) == str(n)


def test_number_words_may_be_written_as_people_do() -> None:
    tokenizer = NumberTask().tokenizer
    assert tokenizer.encode("Two Hundred and Forty-Seven") == tokenizer.encode("two hundred forty seven")


@pytest.mark.parametrize("words", ["five five", "hundred", "ten thousand", "thousand thousand", "7", ""])
def test_no_numbers(words: str) -> None:
    task = NumberTask()
    with pytest.raises(ValueError, match="not a number"):
        task.target(task.tokenizer.encode(words))


def test_addition_pairs_digits_from_the_least_on() -> None:
    task = AdditionTask()
    src = task.tokenizer.encode("123 + 67")
    assert task.tokenizer.labels(src) == ["3", "7", "2", "6", "1", "0"]
    assert task.tokenizer.labels(task.target(src)) == ["0", "9", "1", "0"]
    assert task.tokenizer.decode(task.target(src)) == "190"
    assert task.tokenizer.decode(task.target(task.tokenizer.encode("0+0"))) == "0"


@pytest.mark.parametrize("text", ["", "5", "1000+1", "5-3", "a+b", "1+2+3"])
def test_no_sums_are_refused_kindly(text: str) -> None:
    with pytest.raises(ValueError, match="not a sum of two numbers from 0 to 999"):
        AdditionTask().tokenizer.encode(text)
