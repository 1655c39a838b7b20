"""A journal and its thread that note what they are given."""

from collections.abc import Callable
from threading import Condition
from typing import cast

from asyncfeded.store.disk import Buffer, Disk
from asyncfeded.store.group_commit import GroupCommit
from asyncfeded.store.journal import Journal
from asyncfeded.store.sectors import plain_bytes
from faults.turns import Turns

Note = Callable[[int, bytes], None]


class NotingJournal(Journal):
    """Notes every record before it is written."""

    def __init__(self, disk: Disk, token: Callable[[int], bytes], note: Note) -> None:
        super().__init__(disk, token)
        self.note = note

    def append(self, *content: Buffer) -> int:
        self.note(self.number + 1, b"".join(plain_bytes(content)))
        return super().append(*content)


class NotingGroup(GroupCommit):
    """Notes every record when it is taken: it must not change while it waits to be written."""

    def __init__(self, journal: NotingJournal, turns: Turns) -> None:
        self._note = journal.note
        changed = cast(Condition, turns)
        super().__init__(journal, changed, turns.make_thread)  # type: ignore[arg-type]

    def append(self, *content: Buffer) -> int:
        self._note(self.number + 1, b"".join(plain_bytes(content)))
        return super().append(*content)
