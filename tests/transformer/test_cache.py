import pytest
import torch

from tests.transformer.small import LENGTHS, SIZES, B, S, T, small_model, sources, targets
from transformer import AttentionSite, KVCache, causal_mask, padding_mask

FIRST, SECOND = AttentionSite("decoder", 0, "self"), AttentionSite("decoder", 1, "self")
CROSS = AttentionSite("decoder", 0, "cross")


def keys(length: int, first: int = 0) -> torch.Tensor:
    """(2, 3, length, 5) with the position as every number."""
    return torch.arange(first, first + length).view(1, 1, -1, 1).expand(2, 3, length, 5).float()


def test_a_new_cache_is_empty():
    cache = KVCache()
    assert cache.length() == cache.length(FIRST) == cache.n_numbers("self") == cache.n_numbers("cross") == 0
    assert FIRST not in cache


def test_new_positions_stand_after_the_old_ones():
    cache = KVCache()
    cache.append(FIRST, keys(4), -keys(4))
    k, v = cache.append(FIRST, keys(2, first=4), -keys(2, first=4))
    assert torch.equal(k, keys(6))
    assert torch.equal(v, -keys(6))
    assert cache[FIRST][0] is k
    assert cache[FIRST][1] is v


def test_sites_are_kept_apart():
    cache = KVCache()
    cache.append(FIRST, keys(4), keys(4))
    assert SECOND not in cache
    assert cache.length(SECOND) == 0


def test_the_decoders_length_does_not_count_the_source():
    cache = KVCache()
    cache.append(CROSS, keys(7), keys(7))
    assert cache.length() == 0
    cache.append(FIRST, keys(4), keys(4))
    assert (cache.length(), cache.length(CROSS), cache.length(FIRST)) == (4, 7, 4)


def test_n_numbers_counts_keys_and_values():
    cache = KVCache()
    cache.append(FIRST, keys(4), keys(4))
    cache.append(CROSS, keys(7), keys(7))
    assert cache.n_numbers("self") == 2 * (2 * 3 * 4 * 5)
    assert cache.n_numbers("cross") == 2 * (2 * 3 * 7 * 5)


def test_a_cache_serves_one_memory():
    cache, memory = KVCache(), torch.zeros(2, 7, 14)
    cache.bind(memory)
    cache.bind(memory)
    with pytest.raises(ValueError, match="another source; start a new KVCache"):
        cache.bind(memory.clone())


@torch.no_grad()
def test_a_cache_reused_for_another_source_is_refused():
    model, cache = small_model(), KVCache()
    model.decode(targets()[:, :1], model.encode(sources()), cache=cache)
    with pytest.raises(ValueError, match="another source"):
        model.decode(targets()[:, 1:2], model.encode(sources()), cache=cache)


@torch.no_grad()
def test_self_attention_grows_and_cross_attention_stays():
    model, cache = small_model(), KVCache()
    memory = model.encode(sources())
    per_position = 2 * B * SIZES["n_heads"] * SIZES["d_head"]
    layers = range(SIZES["n_decoder_layers"])
    for t in range(T):
        model.decode(targets()[:, t : t + 1], memory, cache=cache)
        assert [cache.length(AttentionSite("decoder", i, "self")) for i in layers] == [t + 1] * len(layers)
        assert [cache.length(AttentionSite("decoder", i, "cross")) for i in layers] == [S] * len(layers)
        assert cache.n_numbers("self") == len(layers) * per_position * (t + 1)
        assert cache.n_numbers("cross") == len(layers) * per_position * S


@torch.no_grad()
def test_each_layer_has_keys_of_its_own_for_the_one_memory():
    model, cache = small_model(), KVCache()
    model.decode(targets()[:, :1], model.encode(sources()), cache=cache)
    first, second = (cache[AttentionSite("decoder", i, "cross")][0] for i in (0, 1))
    assert not torch.allclose(first, second)


@pytest.mark.parametrize("split", [1, 2, 4])
@pytest.mark.parametrize("positional", ["sinusoidal", "learned", "rotary", "none"])
@torch.no_grad()
def test_several_tokens_at_a_time_equal_all_at_once(split, positional):
    model, cache, tgt = small_model(positional=positional, d_head=4), KVCache(), targets()
    src_mask = padding_mask(LENGTHS, S)
    memory = model.encode(sources(), src_mask)
    full = model.decode(tgt, memory, causal_mask(T), src_mask)
    head = model.decode(tgt[:, :split], memory, causal_mask(split), src_mask, cache=cache)
    tail = model.decode(tgt[:, split:], memory, causal_mask(T)[:, :, split:], src_mask, cache=cache)
    torch.testing.assert_close(torch.cat([head, tail], dim=1), full, rtol=0, atol=1e-4)


@torch.no_grad()
def test_cached_positions_count_towards_max_len():
    model, cache = small_model(max_len=3), KVCache()
    memory = model.encode(sources(length=3))
    for t in range(3):
        model.decode(targets()[:, t : t + 1], memory, cache=cache)
    with pytest.raises(ValueError, match="4 decoder positions are more than max_len 3"):
        model.decode(targets()[:, 3:4], memory, cache=cache)
