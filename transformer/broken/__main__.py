"""Break parts and measure the damage: ``python -m transformer.broken``, or with NAMES only some of them.

For each part two models are trained with the same seed on the same batches, one intact and one with the part
removed or spoiled, and measured on the same 2,048 fresh sequences.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import torch

from ..train.options import at_least
from .parts import PARTS
from .results import RESULTS, table, train_and_measure, watched, written


def main(argv: Sequence[str] | None = None) -> int:
    """Parse, train, measure, write, print the table. Returns 0."""
    parser = argparse.ArgumentParser(prog="python -m transformer.broken", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(PARTS)} (default: all)")
    parser.add_argument("--seeds", type=at_least(0), nargs="+", metavar="SEED", help="default 0 1 2; document: 0")
    parser.add_argument(
        "--jobs", type=at_least(1), default=1, metavar="N", help="trainings at once, one core each (default 1)"
    )
    parser.add_argument("--steps", type=at_least(1), metavar="N", help="stop after so many of the 450 steps, for a try")
    parser.add_argument(
        "--fresh", type=at_least(1), default=2048, metavar="N", help="sequences to measure on (default 2048)"
    )
    parser.add_argument("--out", type=Path, default=RESULTS, metavar="FILE", help="default assets/broken.json")
    parser.add_argument(
        "--watch", action="store_true", help="train one part's twins with one seed and print each point as JSON"
    )
    args = parser.parse_args(argv)
    if unknown := [name for name in args.names if name not in PARTS]:
        parser.error(f"no part is called {', '.join(unknown)}; there are {', '.join(PARTS)}")
    torch.set_num_threads(1)
    if args.watch:
        if len(args.names) != 1 or len(args.seeds or ()) != 1:
            parser.error("--watch takes one NAME and --seeds SEED")
        for event in watched(PARTS[args.names[0]], args.seeds[0], args.steps, args.fresh):
            print(json.dumps(event), flush=True)
        return 0
    seeds = {name: args.seeds or PARTS[name].seeds for name in args.names or PARTS}
    with ProcessPoolExecutor(args.jobs) as pool:
        measured = train_and_measure(seeds, pool, args.steps, args.fresh)
    before = json.loads(args.out.read_text(encoding="utf-8")) if args.out.exists() else {}
    results = written(measured, before)
    args.out.write_text(json.dumps(results, separators=(",", ":")) + "\n", encoding="utf-8")
    print(table({**results, "parts": {name: results["parts"][name] for name in seeds}}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
