import pytest
import sacrebleu
import torch

from tests.transformer.small import seeded
from tests.transformer.test_checkpoint import rewrite, set_in
from tests.transformer.translations import task
from transformer import EOS, Transformer, TransformerConfig, greedy_decode, load_checkpoint, save_checkpoint
from transformer.translation.evaluate import measure, score, short, translate
from transformer.translation.pairs import Sentence

TASK = task()
CONFIG = TransformerConfig(
    src_vocab_size=TASK.tokenizer.vocab_size, tgt_vocab_size=TASK.tokenizer.vocab_size, d_model=16, n_heads=2, d_ff=24,
    n_encoder_layers=1, n_decoder_layers=1, max_len=64, dropout=0.3,
)  # fmt: skip
SENTENCES = [
    Sentence("The cat sees the tea.", ("Le chat voit le thé.", "Le chat regarde le thé.")),
    Sentence("My friend wants bread.", ("Mon ami veut du pain.",)),
    Sentence("The boy finds the key.", ("Le garçon trouve la clé.", "Le garçon retrouve la clé.", "Il trouve la clé.")),
]
TRANSLATIONS = ["Le chat regarde le thé.", "Mon ami veut un pain.", "Le garçon trouve la clé !"]


def model() -> Transformer:
    return Transformer(CONFIG, seeded())


# scores


def test_scores_are_those_of_sacrebleu_called_directly():
    found = score(TRANSLATIONS, SENTENCES)
    by_place = [
        ["Le chat voit le thé.", "Mon ami veut du pain.", "Le garçon trouve la clé."],
        ["Le chat regarde le thé.", None, "Le garçon retrouve la clé."],
        [None, None, "Il trouve la clé."],
    ]
    assert found.bleu == sacrebleu.corpus_bleu(TRANSLATIONS, by_place).score
    assert found.bleu_one_reference == sacrebleu.corpus_bleu(TRANSLATIONS, by_place[:1]).score
    assert found.chrf == sacrebleu.corpus_chrf(TRANSLATIONS, by_place).score
    assert (found.exact_match, found.exact_match_of) == (1, 3)
    assert 0 < found.bleu_one_reference < found.bleu < 100


def test_the_score_by_hand():
    assert score(["Mon ami veut du pain."], SENTENCES[1:2]).bleu == pytest.approx(100)
    # Of n-grams, "." being a word, 5 of 6, 3 of 5, 1 of 4 and 0 of 3 are right; sacrebleu takes 0 as a half.
    by_hand = 100 * (5 / 6 * 3 / 5 * 1 / 4 * 0.5 / 3) ** 0.25
    assert score(["Mon ami veut un pain."], SENTENCES[1:2]).bleu == pytest.approx(by_hand)


def test_nothing_to_measure_is_refused():
    with pytest.raises(ValueError, match="there are no sentences to measure on"):
        score([], [])


def test_short_sentences_have_3_to_8_words():
    asked = [Sentence(" ".join(["word"] * n), ("x",)) for n in range(1, 12)]
    assert [sentence.n_words for sentence in short(asked)] == [3, 4, 5, 6, 7, 8]


# translating


def test_a_translation_is_the_greedy_decode_of_its_sentence_alone():
    texts = ["The dog likes the house today.", "bread", "The cat sees the tea.", "My friend takes the key here."]
    translator = model()
    alone = []
    for text in texts:
        steps = greedy_decode(translator, torch.tensor([TASK.tokenizer.encode(text)]), TASK.max_target + 1)
        alone.append(TASK.tokenizer.decode(int(step.token) for step in steps if step.token != EOS))
    for batch_size in (1, 3, 128):
        assert translate(translator, TASK, texts, batch_size) == alone
    assert len(set(alone)) > 1


def test_an_empty_text_and_one_too_long_stay_empty():
    found = translate(model(), TASK, ["", "the tea", "cat " * 65, " "])
    assert [bool(text) for text in found] == [False, True, False, False]
    assert translate(model(), TASK, []) == []


def test_groups_are_measured_apart():
    test = [*SENTENCES, Sentence("Go.", ("Va !",))]
    training = [Sentence("The cat sees the key.", ("Le chat voit la clé.",))]
    translator = model()
    found = measure(translator, TASK, {"train": training, "validation": [], "test": test})
    of = {name: scores.exact_match_of for name, scores in found.items()}
    assert of == {"short": 3, "short_without_twin": 2, "all": 4, "all_without_twin": 3}
    translations = translate(translator, TASK, [sentence.english for sentence in test])
    assert found["all"] == score(translations, test)
    assert found["short_without_twin"] == score(translations[1:3], test[1:3])
    only_twins = measure(translator, TASK, {"train": test, "validation": [], "test": test})
    assert only_twins.keys() == {"short", "all"}


# the task and its checkpoint


def test_a_translator_comes_back_with_its_tokenizer(tmp_path):
    translator = model().eval()
    save_checkpoint(tmp_path / "t.safetensors", translator, TASK, metrics={"short": {"bleu": 55.5}})
    found = load_checkpoint(tmp_path / "t.safetensors")
    assert (found.task, found.tokenizer) == (TASK, TASK.tokenizer)
    assert found.metrics == {"short": {"bleu": 55.5}}
    texts = ["The cat sees 😀.", "bread"]
    assert translate(found.model, found.task, texts) == translate(translator, TASK, texts)


def test_a_damaged_tokenizer_is_refused(tmp_path):
    path = tmp_path / "t.safetensors"
    save_checkpoint(path, model(), TASK)
    rewrite(path, set_in("task", subwords="{"))
    with pytest.raises(ValueError, match="the definition of the subwords cannot be read"):
        load_checkpoint(path)


def test_the_task_has_no_single_answer():
    assert (TASK.max_source, TASK.max_target) == (12, 14)
    with pytest.raises(ValueError, match="has many good translations"):
        TASK.target(TASK.tokenizer.encode("The cat"))


def test_its_examples_can_be_read():
    assert all(0 < len(TASK.tokenizer.encode(text)) <= 64 for text in TASK.examples.values())
