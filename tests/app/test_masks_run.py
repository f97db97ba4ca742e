"""What the Masks page computes, against the model and against masks written out."""

import numpy as np
import pytest
import torch

from app.masks_block import panel_data
from app.masks_breaks import empty_rows, leaks, query_axis
from app.masks_run import (
    attention_arrays,
    masks,
    next_tokens,
    records,
    run,
    sentences,
    with_companions,
)
from app.masks_state import View
from app.models import shipped
from tests.app.test_decoding import unpack
from transformer import TASKS, ReversalTask, Trace, Transformer, attention_weights, causal_mask
from transformer.tasks import DateTask

TASK = ReversalTask()
FULL = [[3, 11, 7, 4, 5, 6], [9, 9, 4, 8, 10, 3, 3], [5, 6]]
LENGTHS = [4, 7, 0]


@pytest.fixture(scope="module")
def model() -> Transformer:
    return shipped("reverse-d64-h4").model


@pytest.fixture(scope="module")
def batch(model: Transformer):
    return sentences(model, TASK, FULL, LENGTHS)


def test_the_batch_is_padded_to_its_longest_whatever_the_lengths(batch) -> None:
    assert batch.src.tolist() == [[3, 11, 7, 4, 0, 0, 0], FULL[1], [0] * 7]
    assert batch.tgt.tolist() == [[1, 4, 7, 11, 3, 0, 0, 0], [1, *FULL[1][::-1]], [1, 0, 0, 0, 0, 0, 0, 0]]
    assert batch.written.tolist() == [[4, 7, 11, 3, 2, 0, 0, 0], [*FULL[1][::-1], 2], [2, 0, 0, 0, 0, 0, 0, 0]]
    assert batch.tgt_lengths.tolist() == [5, 8, 1]


def test_a_piece_without_an_answer_is_answered_by_the_model() -> None:
    task, model = DateTask(), shipped("date-d64-h4").model
    full = [task.tokenizer.encode(text) for text in ("3.5.2021", "12/31/1999", "3 May 2021")]
    batch = sentences(model, task, full, [len(full[0]) - 1, len(full[1]), 0])
    assert task.tokenizer.decode(batch.tgt[1].tolist()) == "1999-12-31"
    assert 1 <= int(batch.tgt_lengths[0]) <= 11
    assert batch.src.shape == (3, 10)


@pytest.mark.parametrize("name", TASKS)
def test_companions_are_two_fresh_ones_of_other_lengths(name: str) -> None:
    task = TASKS[name]()
    own = task.tokenizer.encode(next(iter(task.examples.values())))
    first, again, other = (with_companions(task, own, draw) for draw in (0, 0, 1))
    assert first == again
    assert first != other
    assert first[0] == own
    assert all(first[1:])
    if name in ("reverse", "date", "number"):
        assert len({len(one) for one in first}) == 3


def test_masks_have_the_shapes_of_the_page_and_the_cells_of_the_definitions(batch) -> None:
    made = masks(batch, causal=True)
    assert made.encoder.shape == made.cross.shape == (3, 1, 1, 7)
    assert (made.padding.shape, made.causal.shape, made.decoder.shape) == ((3, 1, 1, 8), (1, 1, 8, 8), (3, 1, 8, 8))
    for b, n in enumerate([5, 8, 1]):
        for i in range(8):
            assert made.decoder[b, 0, i].tolist() == [j <= i and j < n for j in range(8)]
    assert made.encoder[:, 0, 0].tolist() == [[j < n for j in range(7)] for n in LENGTHS]
    assert torch.equal(masks(batch, causal=False).decoder, made.padding.expand(3, 1, 8, 8))


def test_a_flip_turns_one_cell_of_one_mask_and_twice_turns_it_back(batch) -> None:
    flips = [("d", 1, 2, 5), ("e", 0, 0, 1), ("c", 2, 0, 6)]
    usual, turned = masks(batch, causal=True), masks(batch, True, flips)
    assert (usual.decoder != turned.decoder).nonzero().tolist() == [[1, 0, 2, 5]]
    assert (usual.encoder != turned.encoder).nonzero().tolist() == [[0, 0, 0, 1]]
    assert (usual.cross != turned.cross).nonzero().tolist() == [[2, 0, 0, 6]]
    assert torch.equal(masks(batch, True, [*flips, *flips]).decoder, usual.decoder)


def test_padding_changes_nothing_for_what_is_real(model: Transformer, batch) -> None:
    logits = run(model, batch, masks(batch, causal=True))
    for b, (length, n) in enumerate(zip(LENGTHS, [5, 8, 1], strict=True)):
        with torch.no_grad():
            alone = model(batch.src[b : b + 1, :length], batch.tgt[b : b + 1, :n], None, causal_mask(n))
        torch.testing.assert_close(logits[b, :n], alone[0], atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
def test_weights_are_the_masked_softmax_of_the_scores_shown(model: Transformer, batch, kind: str) -> None:
    trace = Trace()
    run(model, batch, masks(batch, True, [("d", 0, 2, 4), ("e", 0, 0, 0)]), trace)
    shown = {name: torch.tensor(array) for name, array in attention_arrays(records(trace, kind), 0).items()}
    mask = shown["mask"].bool().expand(2, 4, -1, -1)
    torch.testing.assert_close(shown["weights"], attention_weights(shown["scores"], mask))
    assert not shown["weights"][~mask].any()


def test_an_empty_sentence_has_rows_of_zeros_and_a_finite_output(model: Transformer, batch) -> None:
    trace = Trace()
    logits = run(model, batch, masks(batch, causal=True), trace)
    assert not attention_arrays(records(trace, "encoder"), 2)["weights"].any()
    assert not attention_arrays(records(trace, "cross"), 2)["weights"].any()
    assert logits.isfinite().all()
    assert next_tokens(logits[2])["next"][0, 0] == TASK.tokenizer.eos_id


def test_next_tokens_are_the_most_probable(model: Transformer, batch) -> None:
    logits = run(model, batch, masks(batch, causal=True))
    shown = next_tokens(logits[0])
    assert shown["next"][:5, 0].tolist() == [4, 7, 11, 3, 2]
    np.testing.assert_allclose(shown["probability"][:, 0], logits[0].softmax(-1).amax(-1), atol=1e-6)


def test_the_leak_is_exactly_0_before_the_change_with_the_causal_mask_only(model: Transformer, batch) -> None:
    found = leaks(model, batch, masks(batch, True, [("d", 0, 0, 3)]), 0, 9, own=True)
    before = np.tril(np.ones((5, 5), dtype=bool), -1)
    assert {name: array.shape for name, array in found.items()} == dict.fromkeys(
        ("leak_causal", "leak_open", "leak_yours"), (5, 5)
    )
    assert (found["leak_causal"][before] == 0).all()
    assert (found["leak_open"][before] > 0).all()
    # Query 1 may see key 4: the first position answers to a change of the fourth, and to none of the fifth.
    assert found["leak_yours"][3, 0] > 0
    assert found["leak_yours"][4, :4].tolist() == [0, 0, 0, 0]


def test_an_empty_row_of_real_scores_four_ways(model: Transformer, batch) -> None:
    trace = Trace()
    run(model, batch, masks(batch, causal=True), trace)
    shown = empty_rows(records(trace, "decoder")[1], 0, 3, 2)
    weights, numbers = shown["empty_weights"], shown["empty_numbers"]
    assert np.isnan(weights[0]).all()
    np.testing.assert_allclose(weights[1], 1 / 8)
    assert not weights[2:].any()
    assert np.isnan(numbers[0]).tolist() == [True, True, False, True]
    assert numbers[1, 0] == pytest.approx(1)
    assert numbers[1, 3] > 0
    assert np.isnan(numbers[2]).tolist() == [False, False, True, False]
    assert numbers[3].tolist() == [0, 0, 0, 0]


def test_padding_hidden_from_the_query_axis_spreads_nan_or_changes_nothing(model: Transformer, batch) -> None:
    trace = Trace()
    logits = run(model, batch, masks(batch, causal=True), trace)
    found = query_axis(model, batch, logits, trace)
    # Of 21 rows the first sentence pads 3 and the third 7; a second attention makes NaN of the first sentence whole.
    # The third has no key at all, so its second attention reads nothing: with our weights 0 times NaN still is NaN.
    assert (found["rows"], found["hidden"], found["nan_1"], found["nan_2"]) == (21, 10, 10, 14)
    assert found["change"] < 1e-5


def test_what_the_panel_is_sent() -> None:
    view = View(lengths=(4, None, 0), flips=(("d", 0, 2, 4),), attend="cross", row=99, head=9, place=99, token=99)
    header, arrays = unpack(panel_data(TASK, FULL[0], view, {"count": 7})[0])
    assert header["count"] == 7
    assert header["lengths"][0] == 4
    assert header["lengths"][2] == 0
    assert header["view"]["flips"] == ["d1.3.5"]
    assert (header["view"]["place"], header["view"]["head"], header["view"]["token"]) == (4, 3, None)
    assert arrays["scores"].shape == arrays["weights"].shape == (2, 4, 9, 8)
    assert arrays["leak_yours"].shape == (5, 5)
    assert header["edited"]
    assert arrays["moved"].max() > 0


def test_while_a_slider_moves_masks_weights_and_output_are_sent_and_what_breaks_is_not() -> None:
    whole, all_arrays = unpack(panel_data(TASK, FULL[0], View(), {})[0])
    part, arrays = unpack(panel_data(TASK, FULL[0], View(), {"whole": False})[0])
    assert whole["whole"]
    assert not part["whole"]
    assert all(np.array_equal(array, all_arrays[name]) for name, array in arrays.items())
    assert {"encoder", "decoder", "cross", "scores", "weights", "next", "probability", "moved"} <= arrays.keys()
    assert not {"leak_causal", "empty_weights", "open_weights"} & arrays.keys()


@pytest.mark.parametrize("name", TASKS)
@pytest.mark.parametrize("lengths", [(None, None, None), (0, 0, 0), (1, 2, 3)])
def test_every_task_and_length_fills_a_block(name: str, lengths: tuple) -> None:
    task = TASKS[name]()
    for src in ([], task.tokenizer.encode(next(iter(task.examples.values())))):
        header, arrays = unpack(panel_data(task, src, View(lengths=lengths, sentence=2), {})[0])
        assert all(np.isfinite(array).all() for key, array in arrays.items() if not key.startswith("empty"))
        assert not header["edited"]
        assert not arrays["moved"].any()
