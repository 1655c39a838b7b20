"""The layers of the package: who may import whom, read off the source."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "src" / "asyncfeded"

ALLOWED = {
    "version": set(),
    "late": set(),
    "randomness": set(),
    "on_demand": set(),
    "own_code": {"core"},
    "contract": {"core", "randomness", "store"},
    "client_data": {"core", "data", "learning", "randomness", "on_demand"},
    "core": set(),
    "files": {"core"},
    "reading": {"core"},
    "tensors": {"core", "reading"},
    "npy": set(),
    "rules": {"core"},
    "guards": {"core"},
    "runtime": {"core"},
    "learning": {"core", "randomness", "files", "reading", "tensors"},
    "data": {"core", "randomness", "on_demand", "files", "npy", "reading", "tensors"},
    "report": {"core", "files"},
    "store": {"core", "runtime", "files", "reading", "tensors"},
    "callbacks": {"core", "runtime", "store", "files"},
    "availability": {"core", "runtime", "randomness", "on_demand", "files", "reading"},
    "simulation": {"core", "runtime", "availability", "randomness", "on_demand", "reading"},
    "cluster": {"core", "runtime", "availability"},
    "flower": {
        *("core", "rules", "runtime", "learning", "randomness", "npy", "client_data"),
        *("argument_kinds", "callbacks", "federation", "result"),
    },
    "result": {"core", "runtime", "report", "files", "version"},
    "federation": {
        *("client_data", "core", "runtime", "learning", "store", "result", "on_demand"),
        *("callbacks", "version"),
    },
    "argument_kinds": {"core", "learning"},
    "front_door": {
        *("core", "rules", "runtime", "simulation", "learning", "data", "randomness", "on_demand"),
        *("argument_kinds", "client_data", "federation", "result"),
    },
    "tasks": {"core", "data", "learning", "on_demand", "own_code", "client_data"},
    "comparison": {
        *("core", "runtime", "callbacks", "report", "result", "files", "version"),
        *("front_door", "learning", "randomness", "federation", "store", "reading"),
    },
    "experiment": {
        *("core", "rules", "guards", "runtime", "learning", "data", "report", "store", "result"),
        *("simulation", "cluster", "randomness", "on_demand", "files", "version"),
        *("federation", "tasks", "own_code", "client_data", "callbacks", "availability", "reading"),
    },
    "cli": {
        *("core", "rules", "callbacks", "experiment", "tasks", "data", "report", "runtime"),
        *("own_code", "contract", "comparison", "version"),
    },
    "__main__": {"cli"},
}
NO_TORCH = (
    "core",
    "rules",
    "guards",
    "runtime",
    "store",
    "simulation",
    "cluster",
    "data",
    "report",
)
NO_CLOCK_NO_IO_NO_RANDOMNESS = ("core", "rules", "guards")
WORLDLY = {"time", "datetime", "random", "os", "pathlib", "socket", "asyncio"}


def imports_of(path: Path) -> set[str]:
    """Every module that a file imports, with `from asyncfeded import x` as asyncfeded.x."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            assert node.module is not None
            found.add(node.module)
            if node.module == "asyncfeded":
                found |= {f"asyncfeded.{alias.name}" for alias in node.names}
    return found


def files_of(layer: str) -> list[Path]:
    single = PACKAGE / f"{layer}.py"
    return [single] if single.exists() else sorted((PACKAGE / layer).rglob("*.py"))


def test_every_part_of_the_package_has_a_layer() -> None:
    parts = {
        path.stem
        for path in PACKAGE.iterdir()
        if (path.suffix == ".py" and path.stem != "__init__") or (path / "__init__.py").exists()
    }
    assert parts == set(ALLOWED)


@pytest.mark.parametrize("layer", ALLOWED)
def test_a_layer_imports_only_what_lies_below_it(layer: str) -> None:
    for path in files_of(layer):
        ours = {name.split(".")[1] for name in imports_of(path) if name.startswith("asyncfeded.")}
        assert ours <= ALLOWED[layer] | {layer, "late"}, path


def test_data_need_nothing_of_the_core_but_its_errors() -> None:
    for path in files_of("data"):
        core = {name for name in imports_of(path) if name.startswith("asyncfeded.core")}
        assert core <= {"asyncfeded.core.errors"}, path


@pytest.mark.parametrize("layer", NO_TORCH)
def test_torch_stays_in_the_learning_layer(layer: str) -> None:
    for path in files_of(layer):
        assert not any(name.split(".")[0] == "torch" for name in imports_of(path)), path


@pytest.mark.parametrize("layer", NO_CLOCK_NO_IO_NO_RANDOMNESS)
def test_the_core_has_no_clock_no_io_and_no_randomness(layer: str) -> None:
    for path in files_of(layer):
        assert not imports_of(path) & WORLDLY, path
        assert "np.random" not in path.read_text(), path
        assert "open(" not in path.read_text(), path
