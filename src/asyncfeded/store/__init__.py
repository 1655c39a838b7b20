"""What a run leaves on disk."""

from typing import TYPE_CHECKING

from asyncfeded.late import later

if TYPE_CHECKING:
    from asyncfeded.files import write_table, write_text
    from asyncfeded.store.runs import RunStore, key_of

__all__ = [
    "RunStore",
    "key_of",
    "write_table",
    "write_text",
]

__getattr__ = later(
    __name__,
    {
        "RunStore": "asyncfeded.store.runs",
        "key_of": "asyncfeded.store.runs",
        "write_table": "asyncfeded.files",
        "write_text": "asyncfeded.files",
    },
)
