"""How long a training takes from start to 256 of 256, how fast a stop is answered, and what many at once do.

    python -m tests.bench.training start URL [--seeds 5]   the default reversal model, over HTTP as the page does it
    python -m tests.bench.training stop URL [--times 10]
    python -m tests.bench.training soak URL [--people 6] [--minutes 3] [--pid PID]

URL is a running app's, such as http://127.0.0.1:8501. PID is the server's, for its memory and its processes'.
"""

import argparse
import json
import random
import statistics
import struct
import tempfile
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import torch

from transformer import ReversalTask, exact_match, load_checkpoint

REST = ("finished", "stopped", "failed", "paused")


def post(url: str, question: dict[str, Any]) -> dict[str, Any]:
    request = urllib.request.Request(url, json.dumps(question).encode(), {"Content-Type": "application/json"})
    return json.load(urllib.request.urlopen(request, timeout=60))


def standing(url: str, run: str) -> dict[str, Any]:
    block = urllib.request.urlopen(f"{url}/training/{run}?steps=1000000&frames=1000000", timeout=60).read()
    (length,) = struct.unpack_from("<I", block)
    return json.loads(block[4 : 4 + length])


def started(url: str, **view: Any) -> str:
    return post(f"{url}/training", {"task": "reverse", "source": [3, 4, 5], "view": view})["run"]


def until(url: str, run: str, names: tuple[str, ...]) -> dict[str, Any]:
    while (state := standing(url, run))["name"] not in names:
        time.sleep(0.05)  # as fine as the figure that is told
    return state


def start(url: str, seeds: int) -> None:
    """From the click to the finished state; then the model is fetched and decodes 256 fresh sequences."""
    taken, processor = [], []
    for seed in range(seeds):
        began = time.perf_counter()
        run = started(url, seed=seed)
        until(url, run, REST)
        taken.append(time.perf_counter() - began)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.safetensors"
            path.write_bytes(urllib.request.urlopen(f"{url}/training/{run}/model.safetensors").read())
            checkpoint = load_checkpoint(path)
        processor.append(checkpoint.training["spent"]["processor_seconds"])
        right = exact_match(checkpoint.model, ReversalTask(), 256, torch.Generator().manual_seed(77 + seed))
        print(f"seed {seed}: {taken[-1]:6.1f} s by the clock, {processor[-1]:5.1f} processor-seconds, {right} of 256")
    print(f"median {statistics.median(taken):.1f} s, {statistics.median(processor):.1f} processor-seconds")


def stop(url: str, times: int) -> None:
    """From the request to the state that says stopped, at a random moment of a training."""
    taken = []
    for _ in range(times):
        run = started(url, steps=2000)
        until(url, run, ("running",))
        time.sleep(random.random() * 2)  # a stop falls anywhere in the training
        began = time.perf_counter()
        post(f"{url}/training/{run}", {"do": "stop"})
        until(url, run, REST)
        taken.append(time.perf_counter() - began)
    print(f"stop: median {statistics.median(taken):.2f} s, worst of {times} {max(taken):.2f} s")


def soak(url: str, people: int, minutes: float, pid: int | None) -> None:
    """People who start, watch, pause, resume, stop and leave, each with sizes of their own."""
    ends, done, troubles = time.monotonic() + 60 * minutes, [0] * people, []

    def person(i: int) -> None:
        draw = random.Random(i)
        while time.monotonic() < ends:
            try:
                run = started(url, d_model=draw.choice([8, 16, 32, 64]), heads=2, steps=300, seed=draw.randrange(1000))
                leaves = time.monotonic() + draw.uniform(2, 40)
                while time.monotonic() < min(leaves, ends) and standing(url, run)["name"] not in REST:
                    time.sleep(0.25)  # as often as a page asks
                post(f"{url}/training/{run}", {"do": draw.choice(["stop", "pause"])})
                done[i] += 1
            except (urllib.error.URLError, TimeoutError) as error:
                troubles.append(repr(error))

    threads = [threading.Thread(target=person, args=(i,)) for i in range(people)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        if pid:
            workers = children(pid)
            memory = f"{resident(pid):.0f} MB, {len(workers)} workers {sum(map(resident, workers)):.0f} MB"
            print(f"{ends - time.monotonic():6.0f} s left: server {memory}, {sum(done)} trainings", flush=True)
        time.sleep(15)  # between two lines of the table
    print(f"{sum(done)} trainings by {people} people; troubles: {troubles or 'none'}")


def children(pid: int) -> list[int]:
    lists = [(task / "children").read_text() for task in Path(f"/proc/{pid}/task").iterdir()]
    return [int(child) for each in lists for child in each.split()]


def resident(pid: int) -> float:
    """Megabytes; 0 for a process that has just ended."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmRSS")), 0.0)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("start", "stop", "soak"))
    parser.add_argument("url")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--times", type=int, default=10)
    parser.add_argument("--people", type=int, default=6)
    parser.add_argument("--minutes", type=float, default=3.0)
    parser.add_argument("--pid", type=int)
    args = parser.parse_args()
    torch.set_num_threads(1)
    if args.what == "start":
        start(args.url, args.seeds)
    elif args.what == "stop":
        stop(args.url, args.times)
    else:
        soak(args.url, args.people, args.minutes, args.pid)
