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
    with pytest.raises(SettingError, match="'leased' or 'everything'; given 'some'"):
        VersionHistory(keep="some")  # type: ignore[arg-type]
