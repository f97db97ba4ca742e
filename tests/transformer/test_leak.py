"""Which logits move when one target token changes, under which mask."""

import re

import pytest
import torch

from tests.transformer.small import CHOICES, LENGTHS, S, T, small_model, sources, targets
from transformer import causal_mask, leak, padding_mask

SRC_MASK = padding_mask(LENGTHS[1:], S)
OPEN = torch.ones(1, 1, T, T, dtype=torch.bool)
PAST = torch.ones(T, T, dtype=torch.bool).tril(-1)  # entry (p, t): position t stands before the changed p


def leaked(masks, token=11, **changes):
    model = small_model(**changes)
    with torch.no_grad():
        memory = model.encode(sources()[1:], SRC_MASK)
    return leak(model, memory, targets()[1:], token, masks, SRC_MASK)


@pytest.mark.parametrize("choice", CHOICES)
def test_the_causal_mask_lets_nothing_through_to_the_last_bit(choice):
    causal, opened = leaked(torch.cat((causal_mask(T), OPEN)), **CHOICES[choice])
    assert torch.equal(causal[PAST], torch.zeros(T * (T - 1) // 2))
    assert causal.diagonal().min() > 0
    assert opened[PAST].min() > 0


def test_an_entry_is_the_largest_change_of_two_plain_passes():
    model, src, tgt = small_model(), sources()[1:], targets()[1:]
    changed = tgt.clone()
    changed[0, 3] = 11
    with torch.no_grad():
        before, after = (model(src, ids, SRC_MASK, causal_mask(T)) for ids in (tgt, changed))
    torch.testing.assert_close(leaked(causal_mask(T))[0, 3], (after - before).abs().amax(-1)[0], atol=1e-5, rtol=1e-5)


def test_the_same_token_moves_nothing():
    tgt = targets()[1:]
    moved = leaked(OPEN, token=int(tgt[0, 2]))[0]
    assert moved[2].tolist() == [0] * T


def test_one_opened_cell_leaks_to_its_query_and_to_whoever_reads_it():
    # Query 1 may see key 3: a change of token 3 reaches positions 1 and 2 (which reads 1), never position 0.
    mask = causal_mask(T).clone()
    mask[0, 0, 1, 3] = True
    row = leaked(mask)[0, 3]
    assert row[0] == 0
    assert (row[1:] > 0).all()


def test_the_mode_of_the_model_is_left_alone():
    model = small_model().train()
    leak(model, torch.zeros(1, S, 14), targets()[1:], 11, OPEN, SRC_MASK)
    assert model.training


@pytest.mark.parametrize(
    ("tgt", "masks", "said"),
    [
        (targets(), OPEN, "one target is needed, of shape (1, T); got (2, 5)"),
        (targets()[1:], causal_mask(4), "masks of shape (1, 1, 4, 4) do not fit a target of 5 tokens: (M, 1, 5, 5)"),
        (targets()[1:], OPEN[0], "masks of shape (1, 5, 5) do not fit a target of 5 tokens"),
    ],
)
def test_what_does_not_fit_is_refused(tgt, masks, said):
    with pytest.raises(ValueError, match=re.escape(said)):
        leak(small_model(), torch.zeros(1, S, 14), tgt, 11, masks)
