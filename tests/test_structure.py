"""Which way imports run, what stands at the top level, and that the code is tidy."""

import ast
import subprocess
import sys

import pytest

from app.setup import ROOT

LAYERS = {"transformer": {"transformer"}, "app": {"app", "transformer"}, "pages": {"app", "transformer", "pages"}}
PROJECT = {"transformer", "app", "pages", "tests"}
SCREEN = {"streamlit", "plotly", "altair", "pandas"}


def imported(layer: str) -> set[tuple[str, str]]:
    """(file, top-level name) for every absolute import in a folder."""
    found = set()
    for path in (ROOT / layer).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.level == 0:
                names = [node.module]
            found |= {(str(path.relative_to(ROOT)), name.split(".")[0]) for name in names}
    return found


@pytest.mark.parametrize("layer", LAYERS)
def test_imports_run_from_pages_to_app_to_transformer(layer: str) -> None:
    assert imported(layer)
    assert {(file, name) for file, name in imported(layer) if name in PROJECT - LAYERS[layer]} == set()


def test_transformer_knows_nothing_of_a_screen() -> None:
    assert {(file, name) for file, name in imported("transformer") if name in SCREEN} == set()


def test_libraries_to_test_by_are_for_tests_only() -> None:
    used = {(file, name) for layer in LAYERS for file, name in imported(layer)}
    assert {(file, name) for file, name in used if name in {"transformers", "sentencepiece"}} == set()


def test_pages_are_thin() -> None:
    assert {(file, name) for file, name in imported("pages") if name in {"torch", "plotly", "altair", "numpy"}} == set()


def test_top_level_holds_what_was_agreed() -> None:
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    tops = {path.split("/")[0] for path in tracked if not path.startswith(".")}
    assert tops <= PROJECT | {"assets", "requirements.txt", "README.md", "pyproject.toml"}


@pytest.mark.parametrize("check", [["check"], ["format", "--check"]], ids=" ".join)
def test_code_is_tidy(check: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "ruff", *check, "."], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
