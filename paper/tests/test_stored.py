"""Runs of a store are found by their settings; data are read only where several runs fit."""

from dataclasses import asdict, replace
from pathlib import Path

import pytest

from asyncfeded.experiment import run_settings
from asyncfeded.store import RunStore
from asyncfeded_paper import stored
from asyncfeded_paper.record import Record, identity, key
from asyncfeded_paper.stored import StoredRuns

FEMNIST = run_settings({"task": "femnist"})
OTHER = run_settings({"task": "femnist", "seed": 1})


def record_of(digest: str) -> Record:
    known = identity(FEMNIST, digest)
    return Record(key(known), known, [0.0], [0.5], [1.0], {}, {})


def keep(folder: Path, *records: Record) -> RunStore:
    store = RunStore(folder)
    for record in records:
        store.put(asdict(record))
    return store


def test_a_run_is_found_where_its_data_are_not(tmp_path: Path) -> None:
    record = record_of("a")
    runs = StoredRuns(keep(tmp_path, record))
    assert runs.find(FEMNIST) == record
    assert runs.find(OTHER) is None


def test_of_runs_on_different_data_the_one_on_the_data_that_are_there_is_meant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = StoredRuns(keep(tmp_path, record_of("a"), record_of("b")))
    monkeypatch.setattr(stored, "digest_for", lambda settings: "b")
    assert runs.find(FEMNIST) == record_of("b")
    monkeypatch.setattr(stored, "digest_for", lambda settings: "c")
    assert runs.find(FEMNIST) is None


def test_runs_of_older_code_are_not_found(tmp_path: Path) -> None:
    new = record_of("a")
    known = {**new.settings, "results": 1}
    runs = StoredRuns(keep(tmp_path, replace(new, key=key(known), settings=known)))
    assert runs.find(FEMNIST) is None
