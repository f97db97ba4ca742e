import re

import pytest
import torch

from tests.transformer.small import seeded
from transformer import BOS, EOS, PAD, TASKS, Batch, ReversalTask


def test_the_registry_names_each_task():
    assert {name: kind().name for name, kind in TASKS.items()} == {name: name for name in TASKS}
    assert TASKS["reverse"] is ReversalTask


def test_the_target_is_the_source_backwards():
    assert ReversalTask().target([3, 11, 7]) == [7, 11, 3]
    assert ReversalTask().target([]) == []


def test_the_only_sequence_of_one_symbol():
    # Two 3s, whatever the draw; a third place for PAD.
    batch = ReversalTask(n_symbols=1, min_len=2, max_len=2).batch(1, seeded())
    assert batch.src.tolist() == [[3, 3]]
    assert batch.lengths.tolist() == [2]
    assert batch.tgt_in.tolist() == [[BOS, 3, 3]]
    assert batch.tgt_out.tolist() == [[3, 3, EOS]]


def test_every_row_is_padded_reversed_and_shifted():
    batch = ReversalTask().batch(200, seeded())
    for src, length, tgt_in, tgt_out in zip(*(x.tolist() for x in vars(batch).values()), strict=True):
        symbols, padding = src[:length], [PAD] * (8 - length)
        assert src == symbols + padding
        assert all(3 <= symbol <= 11 for symbol in symbols)
        assert tgt_in == [BOS, *symbols[::-1], *padding]
        assert tgt_out == [*symbols[::-1], EOS, *padding]


def test_shapes_are_those_of_the_longest():
    batch = ReversalTask(min_len=1, max_len=5).batch(7, seeded())
    assert batch.src.shape == (7, 5)
    assert batch.tgt_in.shape == batch.tgt_out.shape == (7, 6)
    assert batch.lengths.shape == (7,)
    assert {batch.src.dtype, batch.tgt_in.dtype, batch.tgt_out.dtype, batch.lengths.dtype} == {torch.int64}


def test_lengths_and_symbols_are_uniform():
    batch = ReversalTask(n_symbols=4, min_len=2, max_len=5).batch(8_000, seeded())
    lengths = torch.bincount(batch.lengths, minlength=7)
    symbols = torch.bincount(batch.src.flatten(), minlength=8)
    # 2,000 of each length with deviation sqrt(8,000 * 1/4 * 3/4) = 39; 7,000 of each symbol with about 72.
    assert lengths[[0, 1, 6]].sum() == 0
    assert ((lengths[2:6] - 2_000).abs() < 200).all()
    assert symbols[[1, 2, 7]].sum() == 0
    assert ((symbols[3:7] - 7_000).abs() < 400).all()


def test_length_0_is_an_empty_row():
    batch = ReversalTask(min_len=0, max_len=1).batch(50, seeded())
    empty = batch.lengths == 0
    assert 0 < empty.sum() < 50
    assert batch.src[empty].unique().tolist() == [PAD]
    assert batch.tgt_in[empty].unique(dim=0).tolist() == [[BOS, PAD]]
    assert batch.tgt_out[empty].unique(dim=0).tolist() == [[EOS, PAD]]


def test_a_batch_masks_source_padding_and_the_future():
    batch = Batch(torch.tensor([[3, 4], [5, PAD]]), torch.tensor([2, 1]), torch.zeros(2, 3), torch.zeros(2, 3))
    assert batch.src_mask.tolist() == [[[[True, True]]], [[[True, False]]]]
    assert batch.tgt_mask.int().tolist() == [[[[1, 0, 0], [1, 1, 0], [1, 1, 1]]]]


def test_batches_follow_from_the_generator_and_go_on():
    task = ReversalTask()
    first, second = seeded(4), seeded(4)
    assert torch.equal(task.batch(64, first).src, task.batch(64, second).src)
    assert not torch.equal(task.batch(64, first).src, task.batch(64, seeded(4)).src)


def test_drawing_a_batch_leaves_the_global_generator_alone():
    before = torch.random.get_rng_state()
    ReversalTask().batch(7, seeded())
    assert torch.equal(torch.random.get_rng_state(), before)


def test_the_tokenizer_writes_a_symbol_as_its_id():
    tokenizer = ReversalTask(n_symbols=9).tokenizer
    assert tokenizer.vocab_size == 12
    assert tokenizer.encode("3 11 7") == [3, 11, 7]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"n_symbols": 0}, "0 symbols and lengths 0 to 8"),
        ({"min_len": 9}, "9 symbols and lengths 9 to 8"),
        ({"min_len": -1}, "9 symbols and lengths -1 to 8"),
        ({"max_len": 0}, "9 symbols and lengths 0 to 0"),
    ],
)
def test_a_task_that_cannot_be_is_refused_with_its_numbers(changes, said):
    with pytest.raises(ValueError, match=re.escape(said)):
        ReversalTask(**changes)
