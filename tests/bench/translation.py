"""What the shipped translator costs: a token, a sentence, and on the page from the key to the translation.

    python -m tests.bench.translation [URL]

URL is a running app's, such as http://127.0.0.1:8501; without it only the model is measured.
"""

import argparse
import statistics
import time
from collections.abc import Callable

import torch
from playwright.sync_api import Page, expect, sync_playwright

from tests.browser import chromium
from tests.browser.conftest import FLAGS
from tests.browser.test_translation import SENTENCES, write
from transformer import Checkpoint, greedy_decode, load_checkpoint
from transformer.translation.evaluate import translate
from transformer.zoo import CHECKPOINTS

# In the browser: from a click on the second candidate to the frame in which it stands written, in ms.
CLICK = """(root) => new Promise((found) => {
  const began = performance.now(), look = () =>
    root.querySelector(".token.chosen") ? found(performance.now() - began) : requestAnimationFrame(look);
  root.querySelectorAll("ol button")[1].click();
  look();
})"""


def median_ms(act: Callable[[], object], times: int = 9) -> float:
    taken = []
    for _ in range(times):
        started = time.perf_counter()
        act()
        taken.append(1000 * (time.perf_counter() - started))
    return statistics.median(taken)


def model(checkpoint: Checkpoint) -> None:
    """A sentence with and without a cache, one after the other, so that a busy machine slows both."""
    print("tokens   encoder ms   a token, KV cache, ms   no cache, ms   ratio   sentence, ms")
    for sentence in SENTENCES:
        src = torch.tensor([checkpoint.tokenizer.encode(sentence)])
        with torch.no_grad():
            memory = checkpoint.model.encode(src)
            encoder = median_ms(lambda src=src: checkpoint.model.encode(src))

        def decode(use_cache: bool, src: torch.Tensor = src, memory: torch.Tensor = memory) -> int:
            return len(list(greedy_decode(checkpoint.model, src, 40, memory=memory, use_cache=use_cache)))

        n = decode(True)
        cached, whole = median_ms(lambda: decode(True)) / n, median_ms(lambda: decode(False)) / n
        print(f"{n:6} {encoder:12.2f} {cached:23.2f} {whole:14.2f} {cached / whole:7.2f} {encoder + n * cached:14.1f}")


def page(window: Page, checkpoint: Checkpoint) -> None:
    """From Enter to the whole translation on the screen, and from another candidate to the branch."""
    taken, branches = [], []
    for sentence, text in zip(SENTENCES, translate(checkpoint.model, checkpoint.task, SENTENCES), strict=True):
        started = time.perf_counter()
        write(window, sentence)
        expect(window.locator(".player .text")).to_have_text(text)
        taken.append(1000 * (time.perf_counter() - started))
        window.get_by_role("button", name="Restart", exact=True).click()
        branches.append(window.locator(".player").evaluate(CLICK))
        window.get_by_role("button", name="Back to the model's own choice").click()
        expect(window.locator(".token.chosen")).to_have_count(0)
    for name, times in (("a typed sentence", taken), ("a branch", branches)):
        print(f"{name} on the page: median {statistics.median(times):.0f} ms, most {max(times):.0f} ms")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.translation", description=__doc__)
    parser.add_argument("url", nargs="?")
    url = parser.parse_args().url
    torch.set_num_threads(1)
    checkpoint = load_checkpoint(CHECKPOINTS / "en-fr-d192-h4.safetensors")
    model(checkpoint)
    if url:
        with sync_playwright() as playwright:
            launched = playwright.chromium.launch(executable_path=chromium.find(), args=list(FLAGS))
            window = launched.new_page(viewport={"width": 1280, "height": 900})
            window.goto(url)
            expect(window.locator(".player .text")).not_to_be_empty(timeout=30_000)
            page(window, checkpoint)
            launched.close()


if __name__ == "__main__":
    main()
