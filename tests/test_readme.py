"""What the README shows must run, and must be true."""

import re
from pathlib import Path

import pytest

from asyncfeded import rules
from snippets import commands_in, unknown_in

README = (Path(__file__).parent.parent / "README.md").read_text()
PYTHON_BLOCKS = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)


def test_the_readme_has_its_examples() -> None:
    assert len(PYTHON_BLOCKS) >= 2
    federation = next(block for block in PYTHON_BLOCKS if "federate(" in block)
    assert len([line for line in federation.splitlines() if line.strip()]) <= 10


def test_the_examples_of_the_readme_run_one_after_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "__main__"}
    for block in PYTHON_BLOCKS:
        exec(compile(block, "README.md", "exec"), names)  # noqa: S102
    assert (tmp_path / "accuracy.png").stat().st_size > 10_000
    assert (tmp_path / "best.safetensors").exists()


def test_the_readme_is_short() -> None:
    assert len(README.split()) < 900


def test_the_readme_names_only_rules_and_options_that_exist() -> None:
    named = set(re.findall(r"--rule ([a-z-]+)(?=\s)", README))
    assert "fedbuff" in named
    assert named <= set(rules.REGISTRY)
    blocks = re.findall(r"```sh\n(.*?)```", README, flags=re.DOTALL)
    commands = [words for block in blocks for words in commands_in(block)]
    assert len(commands) >= 5
    for words in commands:
        assert list(unknown_in(words)) == [], " ".join(words)
