"""Opening a folder after whatever ended the process that wrote to it.

The newest snapshot counts, with the records of its journal. The journal of a generation is safe
before its snapshot gets its name, so a snapshot without a journal is damage; and records come
only after the snapshot, so a journal with records but without its snapshot is damage too.

What can be read need not be safe: a process that was killed leaves what it wrote in the memory of
the operating system, also after a sync that failed, and the next sync then says nothing of it. So
the records that no later record calls safe are written again before they are believed.
"""

import re
from collections import deque
from collections.abc import Container
from dataclasses import dataclass

from asyncfeded.store.disk import Disk
from asyncfeded.store.frame import JOURNAL, SNAPSHOT, FileHead
from asyncfeded.store.scan import damaged, read_head, read_records, read_records_from, read_snapshot
from asyncfeded.store.sectors import SECTOR

_NAME = re.compile(r"[a-z]+-(\d{6,})\.[a-z]+")


def snapshot_name(generation: int) -> str:
    """The file of a snapshot."""
    return f"snapshot-{generation:06d}.bin"


def unfinished_name(generation: int) -> str:
    """The file of a snapshot that is being written."""
    return f"snapshot-{generation:06d}.unfinished"


def journal_name(generation: int) -> str:
    """The file of the records after a snapshot."""
    return f"journal-{generation:06d}.log"


@dataclass(frozen=True, slots=True)
class Recovered:
    """The newest generation in a folder, the number of its last record, and its length."""

    head: FileHead
    number: int
    size: int


def recover(disk: Disk) -> Recovered | None:
    """Find and check what is safe, and delete what is left over; None in a new folder."""
    names = {name: number for name in disk.names() if (number := _generation(name))}
    newest = max((names[name] for name in names if name.endswith(".bin")), default=0)
    for name, generation in names.items():
        if generation > newest and name == journal_name(generation) and disk.size(name) > SECTOR:
            raise damaged(disk, snapshot_name(generation), f"it is not there, and {name} is")
    disk.sync_folder()  # a snapshot that is seen may not be safe yet; older ones are deleted below
    found = _recover(disk, names, newest) if newest else None
    for name in names:
        if name not in (snapshot_name(newest), journal_name(newest)):
            disk.delete(name)
    return found


def _generation(name: str) -> int:
    """The number in a name of ours; 0 for another file."""
    match = _NAME.fullmatch(name)
    number = int(match[1]) if match else 0
    ours = (snapshot_name(number), unfinished_name(number), journal_name(number))
    return number if name in ours else 0


def _recover(disk: Disk, names: Container[str], generation: int) -> Recovered:
    snapshot, journal = snapshot_name(generation), journal_name(generation)
    head = read_head(disk, snapshot, SNAPSHOT, generation)
    read_snapshot(disk, snapshot, head)
    if journal not in names:
        raise damaged(disk, journal, f"it is not there, and {snapshot} is")
    journal_head = read_head(disk, journal, JOURNAL, generation)
    if (journal_head.key, journal_head.number) != (head.key, head.number):
        raise damaged(disk, journal, f"it does not belong to {snapshot}")
    number, size = head.number, SECTOR
    not_surely_safe: deque[tuple[int, int]] = deque()
    for record in read_records(disk, journal, journal_head):
        number, size = record.number, record.end
        not_surely_safe.append((number, record.start))
        while not_surely_safe[0][0] <= record.safe:
            not_surely_safe.popleft()
    if size < disk.size(journal):
        disk.cut(journal, size)
    if not_surely_safe:
        _write_again(disk, journal, journal_head, *not_surely_safe[0])
    disk.sync(journal)
    return Recovered(journal_head, number, size)


def _write_again(disk: Disk, journal: str, head: FileHead, number: int, start: int) -> None:
    """Write a journal's last records again, beginning with this one."""
    for record in read_records_from(disk, journal, head, number, start):
        disk.rewrite(journal, record.start, record.written)
