"""A stored run is named by the content of its file of availability, not by the file's name."""

from pathlib import Path

import pytest

from asyncfeded.experiment import load_data, run_settings
from asyncfeded_paper.record import identity, key

QUICK = {"seconds": 1, "clients": 3}


@pytest.fixture
def times(tmp_path: Path) -> Path:
    path = tmp_path / "times.csv"
    path.write_text("client,start,end\nclient-0,0,2\n")
    return path


def test_the_name_of_a_stored_run_changes_with_the_content_of_the_file_alone(
    times: Path, tmp_path: Path
) -> None:
    settings = run_settings(QUICK)
    digest = load_data(settings).sha256
    known = identity(settings, digest)
    before = {
        name: value
        for name, value in known.items()
        if name not in ("availability", "when_away", "repeat_every")
    }
    assert key(before) == key(known)  # runs that were stored before are found
    keys = [key(known)]
    for name, text in (
        ("same.csv", times.read_text()),
        ("other.csv", "client,start,end\nclient-0,0,1\n"),
    ):
        path = tmp_path / name
        path.write_text(text)
        keys.append(_key(path, digest))
    assert len({_key(times, digest), *keys}) == 3


def _key(path: Path, digest: str) -> str:
    settings = run_settings({**QUICK, "availability": str(path)})
    return key(identity(settings, digest))
