import json
import subprocess
import sys
from dataclasses import asdict, replace
from itertools import islice
from pathlib import Path

import pytest
import torch

from tests.transformer.small import seeded, small_model, sources
from transformer import (
    BOS,
    EOS,
    PRESETS,
    ReversalTask,
    Transformer,
    TransformerConfig,
    exact_match,
    greedy_decode,
    padding_mask,
    sequence_loss,
    teacher_forced_loss,
)
from transformer.broken import PARTS, Recipe, decoded, fresh_model, measure, outcome, training
from transformer.broken.__main__ import main
from transformer.broken.results import RESULTS, TWINS, table, target, twins, watched
from transformer.train.__main__ import DOCUMENT_SETTINGS, FRESH_SEED, QUICK_CONFIG

TASK = ReversalTask()
SHIPPED = json.loads(RESULTS.read_text(encoding="utf-8"))


def n_parameters(model: Transformer) -> int:
    return sum(p.numel() for p in model.parameters())


# fields of the config


def test_without_feed_forward_networks_exactly_their_parameters_are_missing():
    # W_1 (23, 14) and b_1, W_2 (14, 23) and b_2, gain and shift of the sublayer's LayerNorm, in 2 + 3 layers.
    of_one = 23 * 14 + 23 + 14 * 23 + 14 + 2 * 14
    assert n_parameters(small_model()) - n_parameters(small_model(ffn=False)) == 5 * of_one


def test_without_residual_connections_no_parameter_is_missing():
    assert n_parameters(small_model(residual=False)) == n_parameters(small_model())


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_what_attention_does_not_hand_on_is_gone_without_the_residual_connection(norm):
    def memories(residual: bool) -> torch.Tensor:
        model = small_model(residual=residual, norm=norm, ffn=False)
        with torch.no_grad():
            for layer in model.encoder:
                layer.self_attention.w_o.weight.zero_()
            return model.encode(sources())

    broken, intact = memories(False), memories(True)
    assert torch.equal(broken, broken[:1, :1].expand_as(broken))  # every token of every source alike
    assert not torch.allclose(intact[0, 0], intact[0, 1])


# training and decoding without a part


def test_training_without_the_padding_mask_attends_to_padding():
    config = replace(QUICK_CONFIG, d_model=16, n_heads=2, d_ff=32)
    recipe = Recipe(settings={"padding": False})
    model = Transformer(config, seeded())
    plain = Transformer(config, seeded())
    _, loss = next(training(recipe, model, steps=1))
    batch = TASK.batch(32, plain.generator)
    expected = sequence_loss(plain(batch.src, batch.tgt_in, None, batch.tgt_mask), batch.tgt_out).item()
    assert loss == pytest.approx(expected)
    assert loss != sequence_loss(plain(batch.src, batch.tgt_in, batch.src_mask, batch.tgt_mask), batch.tgt_out).item()


def test_two_decodes_with_dropout_on_differ_and_without_do_not():
    model = small_model(dropout=0.5)

    def logits(dropout: bool) -> torch.Tensor:
        return torch.stack([step.logits for step in greedy_decode(model, sources(), 4, dropout=dropout)])[0]

    assert torch.equal(logits(False), logits(False))
    assert not torch.equal(logits(True), logits(True))
    assert not model.training
    model.train()
    logits(False)
    assert model.training


def test_another_start_token_gives_another_first_prediction():
    model = small_model()
    first = [next(greedy_decode(model, sources(), 1, bos_id=start)).logits for start in (BOS, EOS)]
    assert not torch.allclose(*first)


def test_the_teacher_forced_loss_by_its_definition_with_each_change():
    config = TransformerConfig(src_vocab_size=12, tgt_vocab_size=12, d_model=16, n_heads=2, d_ff=32,
                               n_encoder_layers=1, n_decoder_layers=1, max_len=9, dropout=0.3)  # fmt: skip
    model = Transformer(config, seeded()).eval()
    batch = TASK.batch(11, seeded(5), held_out=True)

    def loss(tgt_in=batch.tgt_in, src_mask=batch.src_mask, tgt_mask=batch.tgt_mask) -> float:
        return sequence_loss(model(batch.src, tgt_in, src_mask, tgt_mask), batch.tgt_out).item()

    def measured(*given, **changes) -> float:
        return teacher_forced_loss(model, TASK, 11, seeded(5), *given, **changes)

    other_start = torch.cat((torch.full((11, 1), EOS), batch.tgt_in[:, 1:]), dim=1)
    assert measured() == pytest.approx(loss())
    assert measured(False) == pytest.approx(loss(tgt_mask=None))
    assert measured(padding=False) == pytest.approx(loss(src_mask=None))
    assert measured(start=EOS) == pytest.approx(loss(other_start))
    assert len({measured(), measured(False), measured(padding=False), measured(start=EOS), measured(dropout=True)}) == 5


# the parts as data


def test_every_part_of_the_question_is_there():
    assert list(PARTS) == [
        "causal", "positions", "embeddings", "scale", "residual", "ffn", "heads", "warmup", "pre-ln", "padding",
        "padding-decoding", "dropout", "start", "document",
    ]  # fmt: skip


@pytest.mark.parametrize("name", PARTS)
def test_a_broken_twin_differs_from_its_twin_in_one_thing(name):
    part = PARTS[name]
    changed = [
        (where, field)
        for where in ("config", "settings", "decoding")
        for field in getattr(part.broken, where)
        if getattr(part.broken, where)[field] != getattr(part.intact, where).get(field)
    ]
    assert part.intact.base == part.broken.base
    assert changed == [("settings", "padding"), ("decoding", "padding")] if name == "padding" else len(changed) == 1


@pytest.mark.parametrize("name", PARTS)
def test_twins_see_the_same_batches(name):
    states = []
    for recipe in twins(PARTS[name]).values():
        model = fresh_model(recipe, 3)
        list(islice(training(recipe, model, steps=2), 1))
        states.append(model.generator.get_state())
    assert torch.equal(*states)


def test_a_recipe_is_what_the_training_command_would_make():
    document = PARTS["document"].intact
    assert fresh_model(document, 0).config == PRESETS["reversal"]
    assert fresh_model(PARTS["causal"].intact, 0).config == QUICK_CONFIG
    assert DOCUMENT_SETTINGS.steps == 6_000


@pytest.mark.parametrize(
    ("intact", "broken", "answer"),
    [(2000, 2000, 0), (2000, 1900, 0), (2000, 1899, 1), (2000, 300, 1), (2000, 299, 2), (2000, 0, 2), (0, 0, 0)],
)
def test_which_answer_came_true_by_hand(intact, broken, answer):
    assert outcome(intact, broken) == answer


# measuring


@pytest.fixture(scope="module")
def half_trained() -> Transformer:
    model = fresh_model(Recipe(), 0)
    list(training(Recipe(), model, steps=120))
    return model


def test_measuring_is_counting_exact_answers(half_trained):
    found = measure(Recipe(), half_trained, 0, 200)
    assert found.exact == exact_match(half_trained, TASK, 200, torch.Generator().manual_seed(FRESH_SEED))
    assert found.alone == found.exact  # what the padding mask hides cannot matter
    assert 0 < found.exact < 200
    source, said = found.wrong
    assert decoded(Recipe(), half_trained, [source]) == [said]
    assert said != [*TASK.target(source), EOS]
    unmasked = measure(Recipe(decoding={"padding": False}), half_trained, 0, 200)
    fresh = torch.Generator().manual_seed(FRESH_SEED)
    assert unmasked.exact == exact_match(half_trained, TASK, 200, fresh, padding=False)


def test_measuring_with_dropout_on_can_be_repeated():
    model = fresh_model(Recipe(config={"dropout": 0.2}), 0)
    recipe = Recipe(decoding={"dropout": True})
    assert measure(recipe, model, 0, 50) == measure(recipe, model, 0, 50)


def test_decoding_pads_to_the_longest_source_of_the_task(half_trained):
    source = [3, 4, 5]
    src = torch.tensor([[3, 4, 5, 0, 0, 0, 0, 0]])
    expected = [int(step.token) for step in greedy_decode(half_trained, src, 9)]
    assert decoded(Recipe(decoding={"padding": False}), half_trained, [source])[0] == expected
    masked = greedy_decode(half_trained, src, 9, src_mask=padding_mask(torch.tensor([3]), 8))
    assert decoded(Recipe(), half_trained, [source])[0] == [int(step.token) for step in masked]


# the command and its file


def test_watching_gives_points_of_both_twins_and_then_what_was_measured():
    part = PARTS["start"]
    *points, last = watched(part, 5, steps=10, n=16)
    assert [(event["twin"], event["step"]) for event in points] == [(t, s) for s in (5, 10) for t in TWINS]
    assert last["measured"]["target"] == target(part, last["measured"]["source"])
    assert {"loss", "exact", "alone", "answer", "parameters"} <= last["measured"]["broken"].keys()


def test_a_part_is_measured_and_written_beside_the_others(tmp_path, capsys):
    out = tmp_path / "broken.json"
    out.write_text(json.dumps({"parts": {"causal": SHIPPED["parts"]["causal"]}}))
    few = ["--steps", "10", "--fresh", "16", "--seeds", "1", "2", "--out", str(out)]
    assert main(["ffn", *few]) == 0
    written = json.loads(out.read_text())
    assert list(written["parts"]) == ["causal", "ffn"]
    assert list(written["parts"]["ffn"]["seeds"]) == ["1", "2"]
    assert [step for step, _ in written["parts"]["ffn"]["seeds"]["1"]["broken"]["curve"]] == [5, 10]
    assert "`python -m transformer.broken ffn`" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["wings"], "no part is called wings; there are causal, "),
        (["causal", "--watch"], "--watch takes one NAME and --seeds SEED"),
        (["--seeds", "1", "--watch"], "--watch takes one NAME and --seeds SEED"),
        (["causal", "--seeds", "-1"], "not a whole number"),
    ],
)
def test_a_wrong_request_is_explained(arguments, said, capsys):
    with pytest.raises(SystemExit):
        main(arguments)
    assert said in capsys.readouterr().err


def test_watching_runs_as_a_module():
    command = [sys.executable, "-W", "error", "-m", "transformer.broken", "ffn", "--seeds", "0", "--watch"]
    run = subprocess.run(
        [*command, "--steps", "5", "--fresh", "8"],
        cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert run.stderr == ""
    assert len([json.loads(line) for line in run.stdout.splitlines()]) == 3


# the shipped file


@pytest.mark.parametrize("name", SHIPPED["parts"])
def test_the_shipped_results_are_of_these_recipes(name):
    part, measured = PARTS[name], SHIPPED["parts"][name]
    assert {twin: measured[twin] for twin in TWINS} == {twin: asdict(r) for twin, r in twins(part).items()}
    assert list(measured["seeds"]) == [str(seed) for seed in part.seeds]
    for run in measured["seeds"].values():
        for twin, recipe in twins(part).items():
            assert set(run[twin]) == {"loss", "exact", "alone", "parameters", "answer", "curve", "seconds"}
            assert run[twin]["parameters"] == n_parameters(fresh_model(recipe, 0))
            assert 0 <= run[twin]["exact"] <= SHIPPED["fresh"] == 2048
            steps = [step for step, _ in run[twin]["curve"]]
            assert steps == sorted(set(steps))
            assert steps[-1] == (6_000 if recipe.base == "document" else 450)
        assert (run["broken"]["answer"] != target(part, run["source"])) == run["first_error"]


def test_all_parts_are_shipped():
    assert list(PARTS) == list(SHIPPED["parts"])


def test_document_001s_experiment_goes_as_the_document_has_it():
    run = SHIPPED["parts"]["document"]["seeds"]["0"]
    end = {twin: run[twin]["curve"][-1][1] for twin in TWINS}
    assert 0.05 < end["broken"] < 0.2  # the document: 0.0985 against 0.0059
    assert end["intact"] < 0.02
    assert run["broken"]["exact"] / 2048 == pytest.approx(244 / 256, abs=0.02)
    assert run["intact"]["exact"] == 2048


@pytest.mark.parametrize("name", ["causal", "ffn", "padding"])
def test_a_quick_run_again_reproduces_the_first_losses(name):
    for twin, recipe in twins(PARTS[name]).items():
        again = [loss for _, loss in training(recipe, fresh_model(recipe, 1), steps=10)]
        shipped = SHIPPED["parts"][name]["seeds"]["1"][twin]["curve"][:2]
        assert again == pytest.approx([loss for _, loss in shipped], rel=1e-3)


def test_the_readme_has_the_measured_table():
    quick = {name: part for name, part in SHIPPED["parts"].items() if PARTS[name].intact.base == "quick"}
    readme = (RESULTS.parents[1] / "README.md").read_text(encoding="utf-8")
    assert table({**SHIPPED, "parts": quick}) in readme


def test_the_table_has_a_line_for_each_part_with_its_means_and_its_command():
    part = SHIPPED["parts"]["causal"]
    exact = [run["broken"]["exact"] for run in part["seeds"].values()]
    lines = table(SHIPPED).splitlines()
    assert len(lines) == 2 + len(SHIPPED["parts"])
    assert f"| {sum(exact) / len(exact):,.0f} | `python -m transformer.broken causal` |" in lines[2]
