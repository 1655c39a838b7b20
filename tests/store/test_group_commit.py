"""A thread writes while the caller goes on."""

from collections.abc import Iterator
from pathlib import Path
from threading import Event, Thread

import pytest

from asyncfeded.store import group_commit
from asyncfeded.store.disk import RealDisk
from asyncfeded.store.group_commit import GroupCommit
from asyncfeded.store.journal import Journal
from waiting import wait_until


class SlowDisk(RealDisk):
    """A disk that syncs when it is let; `syncs` counts those begun."""

    syncs = 0

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.may_sync = Event()
        self.may_sync.set()

    def sync(self, name: str) -> None:
        self.syncs += 1
        self.may_sync.wait()
        super().sync(name)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SlowDisk]:
    with SlowDisk(tmp_path) as disk:
        yield disk


@pytest.fixture
def journal(disk: SlowDisk) -> Journal:
    journal = Journal(disk)
    journal.snapshot(b"a")
    return journal


def contents(disk: RealDisk) -> list[bytes]:
    return [bytes(content) for _, content in Journal(disk).records()]


def test_what_is_appended_during_a_sync_shares_the_next(disk: SlowDisk, journal: Journal) -> None:
    with GroupCommit(journal) as group:
        disk.may_sync.clear()
        before = disk.syncs
        group.append(b"0")
        wait_until(lambda: disk.syncs == before + 1)
        for number in range(1, 10):
            assert group.append(b"%d" % number) == number + 1
        assert group.committed == 0
        disk.may_sync.set()
        group.commit()
        assert group.committed == 10
        assert disk.syncs == before + 2
    assert contents(disk) == [b"%d" % number for number in range(10)]


def test_a_snapshot_waits_for_what_was_appended(disk: SlowDisk, journal: Journal) -> None:
    with GroupCommit(journal) as group:
        for _ in range(100):
            group.append(b"x")
        group.snapshot(b"b")
        assert (group.number, group.committed, group.size) == (100, 100, 512)
        group.append(b"y")
    again = Journal(disk)
    assert bytes(again.read_snapshot()) == b"b"
    assert [(n, bytes(content)) for n, content in again.records()] == [(101, b"y")]


def test_the_caller_waits_once_too_much_waits(
    disk: SlowDisk, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_commit, "MOST_BYTES_WAITING", 1000)
    with GroupCommit(journal) as group:
        disk.may_sync.clear()
        group.append(bytes(600))
        group.append(bytes(600))
        third = Thread(target=group.append, args=(bytes(600),))
        third.start()
        third.join(0.05)
        assert (third.is_alive(), group.number) == (True, 2)
        disk.may_sync.set()
        third.join()
        group.commit()
        assert group.number == 3
