"""The translator that ships is what its header says."""

import pytest

from transformer import load_checkpoint
from transformer.translation.evaluate import translate
from transformer.zoo import CHECKPOINTS

PATH = CHECKPOINTS / "en-fr-d192-h4.safetensors"


@pytest.fixture(scope="module")
def shipped():
    return load_checkpoint(PATH)


def test_it_is_small_and_says_whose_sentences_it_learned(shipped):
    assert PATH.stat().st_size <= 20_000_000
    assert shipped.training["attribution"] == "Tatoeba (tatoeba.org) and manythings.org/anki, CC BY 2.0"
    assert shipped.task.name == "en-fr"
    assert shipped.tokenizer.vocab_size == shipped.config.tgt_vocab_size == 8_000


def test_its_run_was_finished_and_its_log_kept(shipped):
    settings, log = shipped.training["settings"], shipped.training["progress"]["log"]
    assert shipped.training["steps_done"] == settings["steps"] == log[-1]["step"]
    assert [line["step"] for line in log[:2]] == [settings["every"], 2 * settings["every"]]


def test_its_scores_on_sentences_it_never_saw(shipped):
    scores = shipped.metrics
    assert scores.keys() == {"short", "short_without_twin", "all", "all_without_twin"}
    assert scores["short"]["bleu"] >= 52
    assert scores["short"]["bleu_one_reference"] <= scores["short"]["bleu"]
    assert scores["short_without_twin"]["exact_match_of"] < scores["short"]["exact_match_of"] < 1_200


@pytest.mark.parametrize(
    ("english", "french"),
    [
        ("I don't know.", "Je ne sais pas."),
        ("She lost her key.", "Elle a perdu sa clé."),
        ("Tom has something that I want.", "Tom a quelque chose que je veux."),
    ],
)
def test_it_translates(english, french, shipped):
    assert translate(shipped.model, shipped.task, [english]) == [french]


@pytest.mark.parametrize("text", ["<eos>", "😀", "x" * 60, "$a __ b$", "The the the the.", "¿", "1 2 3"])
def test_it_has_an_answer_to_anything(text, shipped):
    (answer,) = translate(shipped.model, shipped.task, [text])
    assert "<eos>" not in answer
