import re
from dataclasses import asdict

import pytest
import torch

from tests.transformer.small import seeded
from transformer import PRESET_NOTES, PRESETS, Transformer

PARAMETERS = {
    "treatise": 51_825_544,
    "reversal": 930_828,
    "config-object": 101_009_544,
    "encoder-tour": 839_040,
    "paper-base": 63_119_496,
}


def test_every_preset_is_counted_and_explained():
    assert list(PRESETS) == list(PARAMETERS) == list(PRESET_NOTES)


@pytest.mark.parametrize("name", PARAMETERS)
def test_parameters(name):
    model = Transformer(PRESETS[name], seeded())
    assert sum(p.numel() for p in model.parameters()) == PARAMETERS[name]


@pytest.mark.parametrize("name", PARAMETERS)
def test_the_note_states_the_count(name):
    assert re.findall(r"([\d,]+) parameters", PRESET_NOTES[name]) == [f"{PARAMETERS[name]:,}"]


def test_the_treatise_by_hand():
    # Width 512, hidden 2,048: attention 4 (512^2 + 512), network 2 * 512 * 2,048 + 2,048 + 512, norm 2 * 512.
    attention, ffn, norm = 1_050_624, 2_099_712, 1_024
    encoder = 6 * (attention + ffn + 2 * norm) + norm
    decoder = 6 * (2 * attention + ffn + 3 * norm) + norm
    assert encoder + decoder + 2 * 5_000 * 512 + (5_000 * 512 + 5_000) == PARAMETERS["treatise"]


# What sets each model apart, read from the code (not the text) of its document.
BUILT = {
    "treatise": {
        "norm": "post", "final_norm": True, "activation": "relu", "layer_norm": "torch", "scale_embeddings": True,
        "init": "xavier", "embedding_init": "xavier", "max_len": 100, "dropout": 0.1, "output": "logits",
    },
    "reversal": {
        "norm": "pre", "activation": "relu", "layer_norm": "torch", "scale_embeddings": True, "hidden_dropout": 0.0,
        "init": "xavier_attention", "embedding_init": "scaled", "max_len": 512, "dropout": 0.1, "output": "logits",
    },
    "config-object": {
        "norm": "post", "final_norm": True, "activation": "relu", "layer_norm": "unbiased", "norm_eps": 1e-6,
        "scale_embeddings": True, "init": "default", "embedding_init": "normal", "output": "log_probs",
    },
    "encoder-tour": {
        "norm": "pre", "activation": "gelu", "attention_bias": False, "bias": True, "scale_embeddings": False,
        "init": "default", "embedding_init": "normal", "n_decoder_layers": 0, "dropout": 0.0,
    },
    "paper-base": {
        "norm": "post", "final_norm": None, "activation": "relu", "tie_embeddings": True, "scale_embeddings": True,
        "dropout": 0.1, "d_model": 512, "n_heads": 8, "d_ff": 2048,
    },
}  # fmt: skip


@pytest.mark.parametrize("name", PARAMETERS)
def test_a_preset_is_built_as_its_document_builds_it(name):
    config = asdict(PRESETS[name])
    assert {field: config[field] for field in BUILT[name]} == BUILT[name]
    assert config["positional"] == "sinusoidal"


def test_the_config_object_doubles_only_its_vocabulary():
    # Tied three ways it would have 63,121,544: two matrices of 37,000 x 512 fewer.
    assert PARAMETERS["config-object"] - 2 * 37_000 * 512 == 63_121_544
    # The paper's model has no norms at the end of its stacks: 2 * 2 * 512 fewer again.
    assert PARAMETERS["paper-base"] == 63_121_544 - 2 * 2 * 512


@torch.no_grad()
def test_the_shapes_their_documents_print():
    tour = Transformer(PRESETS["encoder-tour"], seeded()).eval()
    assert tour(torch.randint(10_000, (2, 10), generator=seeded())).shape == (2, 10, 64)
    reversal = Transformer(PRESETS["reversal"], seeded()).eval()
    assert reversal(torch.full((5, 8), 3), torch.full((5, 9), 3)).shape == (5, 9, 12)
