"""Measuring a translator on sentences it was not trained on."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from sacrebleu.metrics import BLEU, CHRF

from ..decode import greedy_decode
from ..masks import padding_mask
from ..model import Transformer
from ..tasks import TranslationTask
from ..tasks.base import padded
from ..tokenizer import Tokenizer
from .pairs import Sentence, Sides, without_near_twin

SHORT = range(3, 9)  # English words of everyday sentences


@dataclass(frozen=True)
class Scores:
    """How good translations are.

    bleu                sacreBLEU against all references of a sentence, 0 to 100.
    bleu_one_reference  against the first one only.
    chrf                against all, 0 to 100.
    exact_match         how many are letter by letter one of the references.
    exact_match_of      of how many.
    """

    bleu: float
    bleu_one_reference: float
    chrf: float
    exact_match: int
    exact_match_of: int


def translate(model: Transformer, task: TranslationTask, texts: Sequence[str], batch_size: int = 128) -> list[str]:
    """Greedy translations in the order of texts; each ends at EOS, or one token after the longest of training.

    The translation of an empty text is empty, and so is that of one too long for the model.
    """
    tokenizer = task.tokenizer
    sources = [_encoded(tokenizer, text) for text in texts]
    # Of about the same length in a batch, so that little is padding.
    order = sorted((i for i, source in enumerate(sources) if source), key=lambda i: len(sources[i]))
    found = [""] * len(texts)
    for start in range(0, len(order), batch_size):
        rows = order[start : start + batch_size]
        src, lengths = padded([sources[i] for i in rows])
        steps = greedy_decode(model, src, task.max_target + 1, src_mask=padding_mask(lengths, src.shape[1]))
        written = torch.stack([step.token for step in steps], dim=1)  # (B, T), PAD after EOS
        for i, ids in zip(rows, written.tolist(), strict=True):
            found[i] = tokenizer.decode(ids)
    return found


def _encoded(tokenizer: Tokenizer, text: str) -> list[int]:
    try:
        return tokenizer.encode(text) if text.strip() else []
    except ValueError:
        return []


def score(translations: Sequence[str], sentences: Sequence[Sentence]) -> Scores:
    """Compare translations with the references of their sentences; both are normalised text, not tokenised.

    Raises ValueError when there is nothing to compare.
    """
    if not sentences:
        raise ValueError("there are no sentences to measure on")
    most = max(len(sentence.french) for sentence in sentences)
    # sacrebleu wants the n-th reference of all sentences together, None where there is no n-th.
    references = [[dict(enumerate(s.french)).get(n) for s in sentences] for n in range(most)]
    return Scores(
        bleu=BLEU().corpus_score(translations, references).score,
        bleu_one_reference=BLEU().corpus_score(translations, references[:1]).score,
        chrf=CHRF().corpus_score(translations, references).score,
        exact_match=sum(t in s.french for t, s in zip(translations, sentences, strict=True)),
        exact_match_of=len(sentences),
    )


def short(sentences: Iterable[Sentence]) -> list[Sentence]:
    """Those of 3 to 8 English words."""
    return [sentence for sentence in sentences if sentence.n_words in SHORT]


def measure(model: Transformer, task: TranslationTask, sides: Sides) -> dict[str, Scores]:
    """Scores on the test sentences: the short ones and all, and of both those with no near twin in training.

    Where one of these groups has no sentence it is left out.
    """
    test = sides["test"]
    texts = [sentence.english for sentence in test]
    found = dict(zip(texts, translate(model, task, texts), strict=True))
    alone = without_near_twin(test, sides["train"])
    groups = {"short": short(test), "short_without_twin": short(alone), "all": test, "all_without_twin": alone}
    return {name: score([found[s.english] for s in group], group) for name, group in groups.items() if group}
