"""Every block of Python in the documentation runs and prints what the page says.

So do the commands under the title "Try it". Other titles are names of files, which are written.
"""

import sys
from contextlib import redirect_stdout
from importlib import invalidate_caches
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from command_line import asyncfeded
from printed import differences
from snippets import OUTPUT, TRY_IT, Block, blocks_of, commands_in

DOCS = Path(__file__).parent.parent.parent / "docs"
PAGES = sorted(
    page
    for page in DOCS.glob("*.md")
    if any(block.language == "python" and block.title is None for block in blocks_of(page))
)


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_python_of_a_page_runs_and_prints_what_the_page_says(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    # A page is one program: its blocks run in order and share their names.
    names: dict[str, Any] = {"__name__": "__main__"}
    printed = ""
    for block in blocks_of(page):
        match block:
            case Block("text", title, text) if title == OUTPUT:
                assert differences(text, printed) == []
            case Block("python", None, code):
                printed = output_of(code, names)
            case Block("sh", title, text) if title == TRY_IT:
                for words in commands_in(text):
                    done = asyncfeded(*words[1:], cwd=tmp_path)
                    assert done.returncode == 0, done.stderr
            case Block(_, str(title), text) if Path(title).suffix:
                (tmp_path / title).write_text(text)
                monkeypatch.setitem(sys.modules, Path(title).stem, None)  # forgotten afterwards
                del sys.modules[Path(title).stem]
                invalidate_caches()


def output_of(code: str, names: dict[str, Any]) -> str:
    with redirect_stdout(StringIO()) as output:
        exec(compile(code, "a page", "exec"), names)  # noqa: S102
    return output.getvalue()


def test_the_how_to_pages_have_code() -> None:
    assert {"own-rule", "own-metric", "callbacks"} <= {page.stem for page in PAGES}
