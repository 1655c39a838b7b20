"""What the page on comparing shows must run, and print what the page says."""

import re
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "comparing.md").read_text()


@pytest.mark.slow
def test_the_blocks_of_the_page_run_and_print_what_it_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "__main__"}
    first, second = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    (shown,) = re.findall(r"It prints\n\n```\n(.*?)```", PAGE, flags=re.DOTALL)
    exec(compile(first, "comparing.md", "exec"), names)  # noqa: S102
    printed = capsys.readouterr().out
    # Another processor rounds otherwise, so figures may differ a little; the columns may not.
    assert printed.splitlines()[:2] == shown.splitlines()[:2]
    assert [line.split()[:1] for line in printed.splitlines()[3:]] == [
        ["ours"],
        ["fedbuff"],
        ["fedavg"],
    ]
    assert {path.name for path in tmp_path.iterdir()} == {"rules.png", "rules.csv", "rules.tex"}
    exec(compile(second, "comparing.md", "exec"), names)  # noqa: S102
    assert "max recall" in capsys.readouterr().out
