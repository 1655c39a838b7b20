"""No test reads or writes the user's own data and caches."""

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def _folders_of_this_test(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASYNCFEDED_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("ASYNCFEDED_DATA_DIR", str(tmp_path / "data"))
