"""What a run leaves on disk."""

from typing import TYPE_CHECKING

from asyncfeded.late import later

if TYPE_CHECKING:
    from asyncfeded.files import write_table, write_text
    from asyncfeded.store.runs import RunStore, run_key

__all__ = [
    "RunStore",
    "run_key",
    "write_table",
    "write_text",
]

__getattr__ = later(
    __name__,
    {
        "RunStore": "asyncfeded.store.runs",
        "run_key": "asyncfeded.store.runs",
        "write_table": "asyncfeded.files",
        "write_text": "asyncfeded.files",
    },
)
