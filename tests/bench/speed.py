"""Our model against torch.nn.Transformer of the same sizes, measured in one run, and the price of a trace.

Two contenders take turns, so that whatever else the machine does slows both; a ratio is the median of the
ratios of neighbouring turns, and below 1 ours is the faster. One thread each.
"""

import argparse
import statistics
import time
from collections.abc import Callable

import torch
from torch import Tensor, nn

from transformer import Trace, Transformer, TransformerConfig, causal_mask, greedy_decode, padding_mask

NEVER = 10**9  # an EOS that no model writes, so that every decode has its full length

SIZES = {
    "2+2 layers, d_model 128, batch 64": (
        TransformerConfig(
            src_vocab_size=1_000,
            tgt_vocab_size=1_000,
            d_model=128,
            d_ff=512,
            n_encoder_layers=2,
            n_decoder_layers=2,
            final_norm=True,
        ),
        64,
        16,
    ),
    "paper's base, batch 2": (TransformerConfig(src_vocab_size=1_000, tgt_vocab_size=1_000, final_norm=True), 2, 32),
}


class Peer(nn.Module):
    """torch.nn.Transformer between embeddings and an output projection like ours, less the positions."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.src = nn.Embedding(config.src_vocab_size, config.d_model)
        self.tgt = nn.Embedding(config.tgt_vocab_size, config.d_model)
        self.inner = nn.Transformer(
            config.d_model,
            config.n_heads,
            config.n_encoder_layers,
            config.n_decoder_layers,
            config.d_ff,
            config.dropout,
            batch_first=True,
        )
        self.output = nn.Linear(config.d_model, config.tgt_vocab_size)

    def forward(self, src: Tensor, tgt: Tensor, src_mask: Tensor, tgt_mask: Tensor) -> Tensor:
        padded, future = ~src_mask[:, 0, 0], ~tgt_mask[0, 0]  # torch's masks mean the opposite
        states = self.inner(
            self.src(src),
            self.tgt(tgt),
            tgt_mask=future,
            src_key_padding_mask=padded,
            memory_key_padding_mask=padded,
            tgt_is_causal=True,
        )
        return self.output(states)

    def decode(self, src: Tensor, src_mask: Tensor, n_tokens: int) -> Tensor:
        """Greedy, the encoder run once; the module has no cache, so the prefix is run again at each step."""
        padded = ~src_mask[:, 0, 0]
        memory = self.inner.encoder(self.src(src), src_key_padding_mask=padded)
        prefix = torch.ones(src.shape[0], 1, dtype=torch.long)
        for length in range(1, n_tokens + 1):
            future = ~causal_mask(length)[0, 0]
            states = self.inner.decoder(
                self.tgt(prefix), memory, tgt_mask=future, memory_key_padding_mask=padded, tgt_is_causal=True
            )
            prefix = torch.cat((prefix, self.output(states[:, -1]).argmax(-1, keepdim=True)), dim=1)
        return prefix


def keep_freed_memory() -> None:
    """Let glibc keep what is freed: its threshold for giving blocks back grows with the largest one ever freed.

    Else each pass returns its tensors to the system and touches new pages for the next ones, which on a virtual
    machine takes longer than the arithmetic and differs from run to run.
    """
    torch.empty(32 * 2**20 - 2**14, dtype=torch.uint8)


def compare(ours: Callable[[], object], peer: Callable[[], object], turns: int) -> tuple[float, float, float]:
    """Median milliseconds of each and the median ratio of neighbouring turns."""
    ours(), peer()
    keep_freed_memory()
    a, b = [], []
    for turn in range(turns):
        contenders = [(ours, a), (peer, b)]
        for run, times in contenders if turn % 2 else reversed(contenders):
            start = time.perf_counter()
            run()
            times.append(1e3 * (time.perf_counter() - start))
    return statistics.median(a), statistics.median(b), statistics.median(x / y for x, y in zip(a, b, strict=True))


def training_step(model: nn.Module, forward: Callable[[], Tensor], target: Tensor) -> Callable[[], None]:
    """Forward, backward and Adam."""
    optimizer = torch.optim.Adam(model.parameters(), fused=True)

    def step() -> None:
        optimizer.zero_grad()
        nn.functional.cross_entropy(forward().flatten(0, 1), target.flatten()).backward()
        optimizer.step()

    return step


def rows_for(config: TransformerConfig, batch: int, length: int, turns: int) -> list[tuple[str, float, float, float]]:
    generator = torch.Generator().manual_seed(0)
    model, peer = Transformer(config, generator), Peer(config)
    src = torch.randint(3, config.src_vocab_size, (batch, length), generator=generator)
    tgt = torch.randint(3, config.tgt_vocab_size, (batch, length), generator=generator)
    full, half = (padding_mask(torch.linspace(low, length, batch).long(), length) for low in (length, 1))
    causal = causal_mask(length)

    model.eval(), peer.eval()
    with torch.no_grad():
        rows = [
            ("forward", *compare(lambda: model(src, tgt, full, causal), lambda: peer(src, tgt, full, causal), turns)),
            (
                "forward, sources half padding",
                *compare(lambda: model(src, tgt, half, causal), lambda: peer(src, tgt, half, causal), turns),
            ),
            (
                "trace on against off",
                *compare(
                    lambda: model(src, tgt, full, causal, Trace()), lambda: model(src, tgt, full, causal), 2 * turns
                ),
            ),
        ]

        def decode(use_cache: bool) -> None:
            for _ in greedy_decode(model, src, length, src_mask=full, use_cache=use_cache, eos_id=NEVER):
                pass

        def peer_decode() -> Tensor:
            return peer.decode(src, full, length)

        rows.append((f"decode {length} tokens, no cache", *compare(lambda: decode(False), peer_decode, turns // 3)))
        rows.append((f"decode {length} tokens, KV cache", *compare(lambda: decode(True), peer_decode, turns // 3)))

    model.train(), peer.train()
    ours = training_step(model, lambda: model(src, tgt, full, causal), tgt)
    theirs = training_step(peer, lambda: peer(src, tgt, full, causal), tgt)
    rows.insert(1, ("training step", *compare(ours, theirs, turns)))
    return rows


def cost_per_token(config: TransformerConfig, use_cache: bool, lengths: list[int], repeats: int) -> list[float]:
    """Median milliseconds of the decode step that reaches each length, batch 1; the prefix length is the x axis."""
    model = Transformer(config, torch.Generator().manual_seed(0)).eval()
    src = torch.full((1, 16), 3)
    times: dict[int, list[float]] = {length: [] for length in lengths}
    for _ in range(repeats):
        start = time.perf_counter()
        for step in greedy_decode(model, src, max(lengths), use_cache=use_cache, eos_id=NEVER):
            now = time.perf_counter()
            near = min(lengths, key=lambda length: abs(length - 1 - step.index))
            if abs(near - 1 - step.index) <= 4:
                times[near].append(1e3 * (now - start))
            start = time.perf_counter()
    return [statistics.median(times[length]) for length in lengths]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python3 -m tests.bench", description=__doc__)
    parser.add_argument("--turns", type=int, default=15, help="turns of each contender (default 15)")
    turns = parser.parse_args().turns
    torch.set_num_threads(1)
    print(f"torch {torch.__version__}, one thread; ms are medians, ours / peer is below 1 where ours is the faster\n")
    for name, (config, batch, length) in SIZES.items():
        print(f"{name}, length {length}".ljust(52) + "ours ms   peer ms   ours / peer")
        for label, ours, peer, ratio in rows_for(config, batch, length, turns):
            print(f"  {label:<48} {ours:>8.2f}  {peer:>8.2f}   {ratio:>8.2f}")
        print()
    lengths = [16, 64, 128, 256]
    print("cost of one more token, batch 1, by length".ljust(52) + "   ".join(f"{length:>6}" for length in lengths))
    for name, (config, _, _) in SIZES.items():
        for use_cache in (True, False):
            costs = cost_per_token(config, use_cache, lengths, repeats=3 if use_cache else 1)
            label = f"{name.split(', batch')[0]}, {'KV cache' if use_cache else 'no cache'}, ms"
            print(f"  {label:<48}" + "   ".join(f"{cost:>6.2f}" for cost in costs))


if __name__ == "__main__":
    main()
