"""Compiled code is kept on disk where that is possible; where it is not, everything works too."""

import pickle
from pathlib import Path

import pytest
from numba.core.caching import IndexDataCacheFile

from asyncfeded.core.kernels import compiled, is_on_disk


def make(folder: Path, monkeypatch: pytest.MonkeyPatch) -> object:
    """A function of a file of its own, whose compiled code goes beside it."""
    file = folder / "doubling.py"
    file.write_text("def doubled(number):\n    return 2 * number\n")
    monkeypatch.setattr("numba.core.config.CACHE_DIR", "")
    names: dict[str, object] = {}
    exec(compile(file.read_text(), str(file), "exec"), names)  # noqa: S102 - our own two lines
    return names["doubled"]


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), PermissionError(13, "")])
def test_a_cache_that_cannot_be_written_any_more_is_done_without(
    error: OSError, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise error

    monkeypatch.setattr(IndexDataCacheFile, "save", full)
    doubled = compiled(make(tmp_path, monkeypatch))  # type: ignore[type-var]
    assert doubled(4) == 8  # type: ignore[operator]


def test_code_is_kept_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    doubled = compiled(make(tmp_path, monkeypatch))  # type: ignore[type-var]
    assert not is_on_disk(doubled)  # type: ignore[arg-type]
    assert doubled(4) == 8  # type: ignore[operator]
    assert is_on_disk(doubled)  # type: ignore[arg-type]
    assert len(list(tmp_path.rglob("*.nbc"))) == 1


@pytest.mark.parametrize("kind", ["*.nbi", "*.nbc"])
@pytest.mark.parametrize("content", [b"", b"damaged", pickle.dumps("something else")])
def test_a_damaged_cache_is_done_without(
    kind: str, content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    function = make(tmp_path, monkeypatch)
    assert compiled(function)(4) == 8  # type: ignore[type-var,operator]
    (file,) = tmp_path.rglob(kind)
    file.write_bytes(content)
    assert compiled(function)(4) == 8  # type: ignore[type-var,operator]
