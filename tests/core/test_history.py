import numpy as np
import pytest

from asyncfeded.core.errors import SettingError, VersionError
from asyncfeded.core.history import VersionHistory
from builders import vector


def test_a_version_lives_until_its_last_lease_ends() -> None:
    history = VersionHistory()
    history.store(1, vector(1, 2))
    history.lease(1)
    history.release(1)
    assert history[1].tolist() == [1, 2]
    history.release(1)
    assert 1 not in history
    with pytest.raises(VersionError, match="version 1 is not stored"):
        history[1]


def test_the_memory_of_a_dropped_version_is_used_again() -> None:
    history = VersionHistory()
    buffer = history.empty_buffer(2)
    address = buffer.ctypes.data
    history.store(1, buffer)
    del buffer
    history.release(1)
    assert history.empty_buffer(2).ctypes.data == address


def test_memory_that_somebody_still_looks_at_is_left_to_them() -> None:
    history = VersionHistory()
    history.store(1, vector(1, 2, 3))
    part = history[1][1:]
    history.release(1)
    history.empty_buffer(3)[:] = 9
    assert part.tolist() == [2, 3]


def test_a_stored_version_cannot_be_written_to() -> None:
    history = VersionHistory()
    history.store(1, vector(1))
    with pytest.raises(ValueError, match="read-only"):
        history[1][0] = 5


def test_keeping_everything_drops_nothing() -> None:
    history = VersionHistory(keep="everything")
    for version in range(1, 6):
        history.store(version, np.full(2, version, np.float32))
        history.release(version)
    assert len(history) == 5
    assert history[1].tolist() == [1, 1]


def test_leases_that_do_not_exist_are_errors() -> None:
    history = VersionHistory()
    with pytest.raises(VersionError, match="cannot be leased"):
        history.lease(7)
    with pytest.raises(VersionError, match="cannot be released"):
        history.release(7)


def test_an_unknown_policy_is_refused() -> None:
    with pytest.raises(SettingError, match="'everything' or 'sketch'; given 'some'"):
        VersionHistory(keep="some")  # type: ignore[arg-type]


def test_a_history_of_sketches_keeps_the_parameters_of_the_newest_version_alone() -> None:
    history = VersionHistory("sketch", buckets=64)
    history.store(1, vector(1, 2))
    history.store(2, vector(4, 6))
    assert history[2].tolist() == [4, 6]
    with pytest.raises(VersionError, match="of version 1 only a sketch is stored"):
        history[1]
    # Two elements in 64 buckets hardly ever meet: here the distance is exact.
    assert history.norm_and_distance(vector(0, 2), base=1, current=2, trained=2) == (2.0, 5.0)


def test_the_memory_of_a_version_that_is_sketched_is_used_again() -> None:
    history = VersionHistory("sketch", buckets=8)
    buffer = history.empty_buffer(2)
    address = buffer.ctypes.data
    history.store(1, buffer)
    del buffer
    history.store(2, vector(1, 2))
    assert history.empty_buffer(2).ctypes.data == address


def test_statistics_are_kept_beside_a_sketch_and_stay_out_of_it() -> None:
    history = VersionHistory("sketch", buckets=64)
    history.store(1, vector(1, 2, 70), trained=2)
    history.store(2, vector(4, 6, 90), trained=2)
    assert history.statistics(1, trained=2).tolist() == [70]
    assert history.norm_and_distance(vector(1, 0, 5), 1, 2, trained=2) == (1.0, 5.0)


@pytest.mark.parametrize("buckets", [0, 2**24 + 1])
def test_a_number_of_buckets_out_of_range_is_named(buckets: int) -> None:
    with pytest.raises(SettingError, match=f"from 1 to 16,777,216; given {buckets}"):
        VersionHistory("sketch", buckets=buckets)
