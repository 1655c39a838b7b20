"""The tree of errors.

    AsyncFedEDError
    ├── SettingError       a setting out of its range, of the wrong type or unknown
    ├── FileError          a file or folder that cannot be read, written or understood
    │   └── InUseError     a folder that another process uses
    ├── ClientStateError   a call that does not fit what the server knows of a client
    ├── VersionError       a version of the model that is not stored
    ├── StateError         a saved state that is damaged or does not fit
    ├── RuleError          a rule that broke its contract
    ├── TrainingError      a client's training that raised
    └── ClusterError       a Ray or a Flower that cannot be reached or used

A bad update is none of these: it is answered by a receipt that says why it was refused.
"""


class AsyncFedEDError(Exception):
    """The root: everything this package raises on purpose."""


class SettingError(AsyncFedEDError, ValueError):
    """A setting out of its range, of the wrong type or unknown."""


class FileError(AsyncFedEDError):
    """A file or folder that cannot be read, written or understood."""


class InUseError(FileError):
    """A folder that another process uses."""


class ClientStateError(AsyncFedEDError):
    """A call that does not fit what the server knows of a client."""


class VersionError(AsyncFedEDError, LookupError):
    """A version of the model that is not stored."""


class StateError(AsyncFedEDError):
    """A saved state that is damaged, or belongs to something else."""


class RuleError(AsyncFedEDError):
    """A rule that broke its contract."""


class TrainingError(AsyncFedEDError):
    """A client's training that raised."""


class ClusterError(AsyncFedEDError):
    """A Ray or a Flower that cannot be reached or used, or whose processes are lost."""


def require(condition: bool, name: str, limit: str, value: object) -> None:
    """Raise a SettingError that names the setting, its limit and the value unless it holds."""
    if not condition:
        raise SettingError(f"{name} must be {limit}; given {value!r}")
