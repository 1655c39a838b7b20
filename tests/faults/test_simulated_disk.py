"""The simulated disk is a disk: it does what a real one does, and forgets what one may forget."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asyncfeded.store.disk import Disk, RealDisk
from asyncfeded.store.sectors import SECTOR
from faults.chance import Chance
from faults.simulated_disk import SimulatedDisk

NAMES = st.sampled_from(["a", "b"])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("create"), NAMES),
        st.tuples(st.just("delete"), NAMES),
        st.tuples(st.just("sync"), NAMES),
        st.tuples(st.just("rename"), NAMES, NAMES),
        st.tuples(st.just("cut"), NAMES, st.integers(0, 700)),
        st.tuples(st.just("append"), NAMES, st.lists(st.binary(max_size=700), max_size=3)),
        st.tuples(st.just("rewrite"), NAMES, st.integers(0, 600), st.binary(max_size=100)),
        st.tuples(st.just("read"), NAMES, st.integers(0, 2000), st.integers(0, 2000)),
    ),
    max_size=30,
)


def outcome(disk: Disk, call: str, arguments: tuple[Any, ...]) -> object:
    try:
        result = getattr(disk, call)(*arguments)
    except OSError as error:
        return error.errno
    return bytes(result) if call == "read" else None


def is_asked_by_a_journal(disk: SimulatedDisk, call: str, arguments: tuple[Any, ...]) -> bool:
    """A cut does not lengthen a file, nothing is written over its end, no file replaces itself."""
    name = arguments[0]
    size = disk.size(name) if name in disk.files else 0
    match call:
        case "cut":
            return bool(arguments[1] <= size)
        case "rewrite":
            return bool(arguments[1] + len(arguments[2]) <= size)
        case "rename":
            return bool(name != arguments[1])
        case _:
            return True


@given(STEPS)
def test_without_faults_it_does_what_a_real_disk_does(steps: list[tuple[Any, ...]]) -> None:
    simulated = SimulatedDisk(Chance(0, {}))
    with TemporaryDirectory() as folder, RealDisk(folder) as real:
        for call, *given in steps:
            arguments = tuple(given)
            if is_asked_by_a_journal(simulated, call, arguments):
                assert outcome(simulated, call, arguments) == outcome(real, call, arguments)
        names = sorted(simulated.names())
        assert names == sorted(real.names())
        for name in names:
            assert bytes(simulated.files[name].seen) == (Path(folder) / name).read_bytes()


def after_power_loss(seed: int) -> SimulatedDisk:
    """Two sectors are safe; then two are written, and a file is made, without a sync."""
    disk = SimulatedDisk(Chance(seed, {}))
    disk.create("a")
    disk.append("a", [b"1" * 2 * SECTOR])
    disk.sync("a")
    disk.sync_folder()
    disk.append("a", [b"2" * 2 * SECTOR])
    disk.create("b")
    disk.restart(power_lost=True)
    return disk


def test_a_power_loss_keeps_what_was_synced_and_any_part_of_the_rest() -> None:
    kept: set[tuple[bool, bool]] = set()
    sizes, names = set(), set()
    for seed in range(300):
        disk = after_power_loss(seed)
        content = bytes(disk.files["a"].seen).ljust(4 * SECTOR, b"\0")
        assert content[: 2 * SECTOR] == b"1" * 2 * SECTOR
        assert set(content[2 * SECTOR :]) <= {0, ord("2")}
        kept.add((content[2 * SECTOR] != 0, content[3 * SECTOR] != 0))
        sizes.add(disk.size("a"))
        names.add(tuple(sorted(disk.files)))
    assert kept == {(False, False), (False, True), (True, False), (True, True)}
    assert {2 * SECTOR, 4 * SECTOR} < sizes
    assert names == {("a",), ("a", "b")}


def test_a_killed_process_leaves_all_that_it_wrote() -> None:
    disk = SimulatedDisk(Chance(0, {}))
    disk.create("a")
    disk.append("a", [b"x"])
    disk.restart(power_lost=False)
    assert bytes(disk.read("a", 0, 10)) == b"x"


def test_after_a_failed_sync_what_is_seen_need_not_become_safe() -> None:
    forgotten = 0
    for seed in range(100):
        disk = SimulatedDisk(Chance(seed, {"sync failed": 1.0}))
        disk.create("a")
        disk.sync_folder()
        disk.append("a", [b"x" * SECTOR])
        with pytest.raises(OSError, match="Input/output error"):
            disk.sync("a")
        seen = bytes(disk.read("a", 0, SECTOR))
        disk.chance.rates = {}
        disk.sync("a")
        disk.restart(power_lost=True)
        forgotten += seen == b"x" * SECTOR != bytes(disk.read("a", 0, SECTOR))
    assert 10 < forgotten < 90
