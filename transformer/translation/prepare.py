"""Everything that a training run needs, from a file of pairs and a wish or from a snapshot."""

from pathlib import Path
from typing import Any, NamedTuple

from ..config import TransformerConfig
from ..subwords import SubwordTokenizer, train_subwords
from ..tasks import TranslationTask
from .batches import Ids, digest, encode_pairs
from .evaluate import short
from .pairs import Sides, read_sentences, split
from .settings import TranslationSettings
from .snapshot import Run, cooled_down, load_snapshot

MAX_LEN = 128  # positions of the model: far beyond training, so that a person can see what happens there
LONGEST = 64  # tokens; a longer pair is left out of training
SIZES = {"d_model": 192, "heads": 4, "layers": 3, "vocab_size": 8_000, "dropout": 0.1}


class Prepared(NamedTuple):
    """A run, the sentences on each side, and the training pairs in ids."""

    run: Run
    sides: Sides
    pairs: list[Ids]


def fresh(path: Path, settings: TranslationSettings, sizes: dict[str, Any], attribution: str) -> Prepared:
    """Learn the subwords and make an untrained model of these sizes, named as in ``SIZES``.

    Raises ValueError for a file or sizes that do not serve.
    """
    sides = read_sides(path, settings.max_words)
    texts = (text for sentence in sides["train"] for text in (sentence.english, *sentence.french))
    subwords = train_subwords(texts, sizes["vocab_size"])
    tokenizer = SubwordTokenizer(subwords, MAX_LEN)
    pairs = encode_pairs(sides["train"], tokenizer, LONGEST)
    task = TranslationTask(
        subwords=subwords,
        max_positions=MAX_LEN,
        longest_source=max(len(source) for source, _ in pairs),
        longest_target=max(len(target) for _, target in pairs),
    )
    config = TransformerConfig(
        src_vocab_size=tokenizer.vocab_size,
        tgt_vocab_size=tokenizer.vocab_size,
        d_model=sizes["d_model"],
        n_heads=sizes["heads"],
        d_ff=4 * sizes["d_model"],
        n_encoder_layers=sizes["layers"],
        n_decoder_layers=sizes["layers"],
        max_len=MAX_LEN,
        dropout=sizes["dropout"],
        norm="pre",
        tie_embeddings=True,
    )
    return Prepared(Run.new(config, task, settings, digest(pairs), attribution), sides, pairs)


def resumed(path: Path, snapshot: Path, cooldown: int | None, lr: float | None) -> Prepared:
    """Take up a snapshot where it was left, or to cool down over so many steps, from lr or its own rate.

    Raises ValueError when it cannot, or when the file holds other pairs than the run was trained on.
    """
    run = load_snapshot(snapshot)
    if cooldown is not None:
        run = cooled_down(run, cooldown, lr)
    sides = read_sides(path, run.settings.max_words)
    pairs = encode_pairs(sides["train"], run.task.tokenizer, LONGEST)
    if digest(pairs) != run.pairs:
        raise ValueError(f"{path} does not hold the pairs that {snapshot} was trained on")
    return Prepared(run, sides, pairs)


def read_sides(path: Path, max_words: int) -> Sides:
    """Read and split a file. Raises ValueError when there is nothing to measure on."""
    sides = split(read_sentences(path), max_words)
    for side in ("validation", "test"):
        if not short(sides[side]):
            raise ValueError(
                f"{path} is too small: of its sentences of 3 to 8 words none falls to the {side} side, "
                "and only about one in a hundred does"
            )
    return sides
