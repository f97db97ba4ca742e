import ast
import importlib
import inspect
from pathlib import Path

import pytest

import transformer

NAMES = [
    "BOS",
    "EOS",
    "MASKED_SOFTMAXES",
    "PAD",
    "PRESETS",
    "PRESET_NOTES",
    "TASKS",
    "AdditionTask",
    "AttentionRecord",
    "AttentionSite",
    "Batch",
    "Checkpoint",
    "CopyTask",
    "DateTask",
    "DecodeStep",
    "GeneratedTask",
    "KVCache",
    "MarianTask",
    "MergeStep",
    "MultiHeadAttention",
    "NumberTask",
    "PieceTokenizer",
    "ResidualSite",
    "ReversalTask",
    "SortTask",
    "SubwordTokenizer",
    "SymbolTokenizer",
    "Task",
    "Tokenizer",
    "Trace",
    "TrainSettings",
    "TrainState",
    "TrainStep",
    "Transformer",
    "TransformerConfig",
    "TranslationTask",
    "added_scores",
    "angular_frequencies",
    "answer_share",
    "attention",
    "attention_scores",
    "attention_weights",
    "causal_mask",
    "diagonals",
    "embedding_rms",
    "exact_match",
    "expected_entropy",
    "expected_largest",
    "expected_slope",
    "expected_token_rms",
    "expected_trace",
    "float32_encoding",
    "greedy_decode",
    "head_saturation",
    "head_similarity",
    "jacobian_trace",
    "join_pieces",
    "leak",
    "load_checkpoint",
    "load_training",
    "median_slope",
    "merge_steps",
    "nearest_positions",
    "padding_mask",
    "permuted_outputs",
    "rotary_scores",
    "rotate",
    "rotation",
    "rotation_blocks",
    "row_entropy",
    "save_checkpoint",
    "sequence_loss",
    "sigmoid_slope",
    "sinusoidal_encoding",
    "softmax_jacobian",
    "teacher_forced_loss",
    "train",
    "typical_gap",
    "wavelengths",
    "weights_and_gradients",
    "with_means",
    "without_positions",
]
PACKAGE = Path(transformer.__file__).parent
SCREEN = {"streamlit", "plotly", "altair", "pandas", "app", "pages"}


def test_the_public_names():
    assert transformer.__all__ == NAMES
    assert all(hasattr(transformer, name) for name in NAMES)


def test_what_is_imported_at_the_top_is_public():
    tree = ast.parse((PACKAGE / "__init__.py").read_text())
    imported = [alias.name for node in tree.body if isinstance(node, ast.ImportFrom) for alias in node.names]
    assert sorted(imported) == sorted(NAMES)


@pytest.mark.parametrize("name", [name for name in NAMES if callable(getattr(transformer, name))])
def test_every_public_class_and_function_is_explained(name):
    explanation = getattr(transformer, name).__doc__
    assert explanation
    assert not explanation.startswith(f"{name}(")  # the signature that a dataclass gets when it has no docstring


def test_train_is_the_function_whatever_is_imported():
    importlib.import_module("transformer.train.__main__")
    importlib.import_module("transformer.train.loop")
    assert inspect.isgeneratorfunction(transformer.train)


def imports(source: str) -> set[str]:
    """The top-level packages that a module imports, wherever in it; relative imports stay inside the package."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            found.add(node.module.split(".")[0])
    return found


def test_an_import_is_found_wherever_it_stands():
    source = (
        "from .config import x\nimport os.path\ndef f():\n    import plotly.express as px\n    from app.state import y"
    )
    assert imports(source) == {"os", "plotly", "app"}


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_the_package_knows_nothing_of_any_screen(path):
    assert imports(path.read_text()) & SCREEN == set()


def test_all_its_files_were_walked():
    walked = {str(path.relative_to(PACKAGE)) for path in PACKAGE.rglob("*.py")}
    assert {"__init__.py", "attention.py", "model.py", "train/__main__.py", "train/loop.py"} <= walked
