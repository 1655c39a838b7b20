"""Every example runs and prints what stands in the file beside it."""

import runpy
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

from printed import differences

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
SCRIPTS = sorted(EXAMPLES.glob("*.py"))
MOST_LINES = 60


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_an_example_prints_what_stands_beside_it(
    script: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(EXAMPLES)  # as if the script were started
    with redirect_stdout(StringIO()) as printed:
        runpy.run_path(str(script), run_name="__main__")
    assert differences(script.with_suffix(".txt").read_text(), printed.getvalue()) == []


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_an_example_is_short(script: Path) -> None:
    assert len(script.read_text().splitlines()) <= MOST_LINES


def test_the_examples_and_their_outputs_are_pairs() -> None:
    assert {script.stem for script in SCRIPTS} == {text.stem for text in EXAMPLES.glob("*.txt")}
