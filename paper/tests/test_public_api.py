"""The evaluation uses asyncfeded as everybody does: by the names that its packages export."""

import ast
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

PAPER = Path(__file__).parent.parent
FILES = sorted([*(PAPER / "src").rglob("*.py"), *(PAPER / "readings").rglob("*.py")])
PUBLIC = {
    "asyncfeded",
    *(f"asyncfeded.{name}" for name in ("cli", "data", "experiment", "learning", "report")),
    *(f"asyncfeded.{name}" for name in ("rules", "runtime", "simulation", "store")),
}


def names_used_by(source: str) -> Iterator[tuple[str, str | None]]:
    """Every import of asyncfeded: the module, and a name from it if there is one."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from ((alias.name, None) for alias in node.names if is_of_the_library(alias.name))
        elif isinstance(node, ast.ImportFrom) and is_of_the_library(node.module or ""):
            assert node.level == 0
            yield from ((str(node.module), alias.name) for alias in node.names)


def is_of_the_library(module: str) -> bool:
    return module.split(".")[0] == "asyncfeded"


def is_public(module: str, name: str | None) -> bool:
    return module in PUBLIC and (name is None or name in import_module(module).__all__)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_module_of_the_evaluation_uses_public_names_alone(path: Path) -> None:
    used = list(names_used_by(path.read_text("utf-8")))
    assert [one for one in used if not is_public(*one)] == []


@pytest.mark.parametrize(
    "line",
    [
        "from asyncfeded.core.server import Server",
        "from asyncfeded.experiment.run import resolve",
        "from asyncfeded.experiment import _shapes",
        "import asyncfeded.core",
    ],
)
def test_what_is_not_public_is_found(line: str) -> None:
    (used,) = names_used_by(line)
    assert not is_public(*used)
