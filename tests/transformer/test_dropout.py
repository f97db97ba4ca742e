import pytest
import torch

from tests.transformer.small import seeded, small_model, sources, targets
from transformer.dropout import Dropout


def test_it_zeroes_a_share_and_divides_the_rest():
    x = torch.full((100, 1_000), 3.0)
    y = Dropout(0.25, seeded()).train()(x)
    # 100,000 draws: the share kept has deviation sqrt(0.75 * 0.25 / 100,000) = 0.0014.
    assert (y != 0).double().mean().item() == pytest.approx(0.75, abs=0.007)
    assert y.unique().tolist() == [0, 4]  # 3 / 0.75


@pytest.mark.parametrize(("p", "training"), [(0.5, False), (0.0, True)])
def test_in_eval_mode_and_at_0_it_is_the_identity(p, training):
    x = torch.ones(7)
    assert Dropout(p, seeded()).train(training)(x) is x


def test_the_same_generator_state_drops_the_same():
    x = torch.ones(1_000)
    first, second = (Dropout(0.5, seeded(3)).train()(x) for _ in range(2))
    assert torch.equal(first, second)
    dropout = Dropout(0.5, seeded(3)).train()
    assert not torch.equal(dropout(x), dropout(x))


def test_gradients_pass_where_numbers_were_kept():
    x = torch.ones(1_000, requires_grad=True)
    y = Dropout(0.5, seeded()).train()(x)
    y.sum().backward()
    assert torch.equal(x.grad, y.detach())


def test_with_a_generator_the_global_one_is_not_touched():
    before = torch.random.get_rng_state()
    Dropout(0.5, seeded()).train()(torch.ones(7))
    assert torch.equal(torch.random.get_rng_state(), before)


def test_without_a_generator_it_draws_from_the_global_one():
    with torch.random.fork_rng(devices=[]):
        before = torch.random.get_rng_state()
        Dropout(0.5).train()(torch.ones(7))
        assert not torch.equal(torch.random.get_rng_state(), before)


def test_a_model_drops_only_while_training():
    model, src, tgt = small_model(dropout=0.3), sources(), targets()
    with torch.no_grad():
        quiet = model(src, tgt)
        assert torch.equal(model(src, tgt), quiet)
        model.train()
        assert not torch.equal(model(src, tgt), model(src, tgt))


def test_each_place_of_a_model_has_its_rate():
    model = small_model(dropout=0.3, hidden_dropout=0.2)
    rates = {name: module.p for name, module in model.named_modules() if isinstance(module, Dropout)}
    hidden = {name for name, rate in rates.items() if rate == 0.2}
    assert hidden == {name for name in rates if name.endswith("ffn.dropout")}
    assert set(rates.values()) == {0.2, 0.3}
    # 2 embeddings; attention, hidden and one per sublayer in 2 encoder layers of 2 and 3 decoder layers of 3.
    assert len(rates) == 2 + 2 * (1 + 1 + 2) + 3 * (2 + 1 + 3)
    assert {m.p for m in small_model(dropout=0.3).modules() if isinstance(m, Dropout)} == {0.3}
