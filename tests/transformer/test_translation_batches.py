import math

import pytest
import torch
from torch.nn import functional as F

from tests.transformer.small import seeded
from tests.transformer.translations import sentences, tokenizer
from transformer import BOS, EOS, PAD
from transformer.train.loss import smoothed_loss
from transformer.translation.batches import collate, digest, encode_pairs, epoch_batches
from transformer.translation.pairs import Sentence

TOKENIZER = tokenizer()
PAIRS = encode_pairs(sentences(), TOKENIZER, 64)


def lengths(n: int = 500) -> list[tuple[list[int], list[int]]]:
    """Pairs of 1 to 19 source and 0 to 16 target tokens."""
    drawn = torch.randint(0, 17, (n, 2), generator=seeded()).tolist()
    return [([7] * (source + 3 if target else 1), [8] * target) for source, target in drawn]


# encoding


def test_each_translation_is_a_pair():
    assert len(PAIRS) == 480
    assert TOKENIZER.decode(PAIRS[0][0]) == TOKENIZER.decode(PAIRS[1][0]) == "The cat sees the tea."
    assert [TOKENIZER.decode(target) for _, target in PAIRS[:2]] == ["Le chat voit le thé.", "Le chat voit le thé !"]


def test_a_pair_with_a_long_side_is_left_out():
    long = "cat " * 70  # more than even the tokenizer takes
    asked = [Sentence("a cat", (long, "a")), Sentence(long, ("a",)), Sentence("the tea", ("b",))]
    assert [TOKENIZER.decode(target) for _, target in encode_pairs(asked, TOKENIZER, 6)] == ["a", "b"]


def test_a_digest_tells_pairs_apart():
    assert digest(PAIRS) == digest(list(PAIRS))
    assert len({digest(PAIRS), digest(PAIRS[::-1]), digest(PAIRS[1:]), digest([])}) == 4


# batches


@pytest.mark.parametrize("budget", [19, 20, 64, 333, 100_000])
@pytest.mark.parametrize("seed", [0, 5])
def test_no_batch_is_over_the_budget_and_no_pair_is_lost(budget, seed):
    pairs = lengths()
    batches = list(epoch_batches(pairs, budget, seed, 0))
    for batch in batches:
        rows = collate(batch)
        assert rows.src.numel() <= budget
        assert rows.tgt_in.numel() <= budget
    assert sorted(pair for batch in batches for pair in batch) == sorted(pairs)


def test_batches_are_full_and_hold_little_padding():
    batches = list(epoch_batches(PAIRS, 333, 0, 0))
    real = sum(len(target) + 1 for batch in batches for _, target in batch)
    assert real / sum(collate(batch).tgt_in.numel() for batch in batches) > 0.9
    assert real / (333 * len(batches)) > 0.8


def test_seed_and_epoch_decide_the_order():
    def order(seed: int, epoch: int) -> list:
        return list(epoch_batches(PAIRS, 200, seed, epoch))

    assert order(3, 2) == order(3, 2)
    assert order(3, 2) != order(3, 1) != order(2, 3) != order(3, 2)


def test_batches_are_not_the_same_sets_in_another_order():
    sets = [{str(sorted(batch)) for batch in epoch_batches(PAIRS, 200, 0, epoch)} for epoch in range(2)]
    assert sets[0] != sets[1]


def test_a_pair_over_the_budget_is_refused():
    with pytest.raises(ValueError, match="a pair of 9 tokens does not fit into batches of 8 tokens"):
        list(epoch_batches([([5], [5] * 8)], 8, 0, 0))


def test_no_pairs_are_no_batches():
    assert list(epoch_batches([], 8, 0, 0)) == []


def test_a_batch_by_hand():
    batch = collate([([5, 6, 7], [8]), ([9], [10, 11])])
    assert batch.src.tolist() == [[5, 6, 7], [9, PAD, PAD]]
    assert batch.lengths.tolist() == [3, 1]
    assert batch.tgt_in.tolist() == [[BOS, 8, PAD], [BOS, 10, 11]]
    assert batch.tgt_out.tolist() == [[8, EOS, PAD], [10, 11, EOS]]


# the loss


def test_the_loss_by_hand():
    # Probabilities 1/2, 1/4, 1/8, 1/8; right is token 1, smoothing 0.3 over the three that are not PAD.
    logits = torch.tensor([[0.5, 0.25, 0.125, 0.125]]).log() + 4.0
    bits = 0.7 * 2 + 0.1 * (2 + 3 + 3)
    assert smoothed_loss(logits, torch.tensor([1]), 0.3).item() == pytest.approx(bits * math.log(2))


def test_the_loss_is_a_mean_over_tokens():
    logits, target = torch.randn(5, 7, generator=seeded()), torch.tensor([1, 6, 3, 3, 2])
    single = [smoothed_loss(logits[i : i + 1], target[i : i + 1], 0.2).item() for i in range(5)]
    assert smoothed_loss(logits, target, 0.2).item() == pytest.approx(sum(single) / 5)


def test_without_smoothing_it_is_cross_entropy():
    logits, target = torch.randn(5, 7, generator=seeded()), torch.tensor([1, 6, 3, 3, 2])
    torch.testing.assert_close(smoothed_loss(logits, target, 0.0), F.cross_entropy(logits, target))


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.6])
def test_its_gradient_is_probability_less_wanted_probability(smoothing):
    logits, target = torch.randn(5, 7, generator=seeded()), torch.tensor([1, 6, 3, 3, 2])
    wanted = torch.full((5, 7), smoothing / 6)
    wanted[:, PAD] = 0
    wanted[torch.arange(5), target] += 1 - smoothing
    assert torch.allclose(wanted.sum(1), torch.ones(5))

    plain, ours = logits.clone().requires_grad_(), logits.clone().requires_grad_()
    (3 * F.cross_entropy(plain, wanted)).backward()
    (3 * smoothed_loss(ours, target, smoothing)).backward()
    torch.testing.assert_close(ours.grad, plain.grad)
    torch.testing.assert_close(ours.grad, 3 * (logits.softmax(1) - wanted) / 5)


def test_padding_is_wanted_nowhere():
    logits = torch.zeros(1, 4, requires_grad=True)
    target = torch.tensor([2])
    for _ in range(300):
        (slope,) = torch.autograd.grad(smoothed_loss(logits, target, 0.3), logits)
        logits = (logits - 5 * slope).detach().requires_grad_()
    torch.testing.assert_close(logits.softmax(1)[0], torch.tensor([0.0, 0.1, 0.8, 0.1]), atol=3e-3, rtol=0)


def test_sixteen_bit_logits_give_a_sixteen_bit_gradient_of_a_full_loss():
    logits = torch.randn(5, 7, generator=seeded()).bfloat16().requires_grad_()
    loss = smoothed_loss(logits, torch.tensor([1, 6, 3, 3, 2]), 0.1)
    loss.backward()
    assert (loss.dtype, logits.grad.dtype) == (torch.float32, torch.bfloat16)
