"""A journal: what was appended and committed is there after any crash, once and in order.

A folder holds one generation: a snapshot, and the records after it. A new snapshot begins the next
generation; the older is deleted when the newer is safe. What content means is the caller's affair.

    journal = Journal(disk)                     # finds what is there, checks it, refuses damage
    if journal.is_new:
        journal.snapshot(b"the first state")
    state = journal.read_snapshot()
    for number, content in journal.records():   # what happened since
        ...
    number = journal.append(b"what", b"happened")
    journal.commit()                            # now it may be acknowledged
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from secrets import token_bytes

from asyncfeded.core.errors import FileError
from asyncfeded.store.disk import Buffer, Disk
from asyncfeded.store.frame import JOURNAL, KEY_BYTES, SNAPSHOT, FileHead, framed
from asyncfeded.store.recovery import journal_name, recover, snapshot_name, unfinished_name
from asyncfeded.store.scan import read_head, read_records, read_snapshot
from asyncfeded.store.sectors import SECTOR, plain_bytes


class Journal:
    """The journal in a folder. A failed write ends it for good: every later call raises the same.

    `number` is the number of the last record, `committed` that of the last one which is safe, and
    `size` is the length of the journal's file: make a snapshot when it has grown too long.
    `token` gives random bytes for the key of a generation.
    """

    def __init__(self, disk: Disk, token: Callable[[int], bytes] = token_bytes) -> None:
        self._disk = disk
        self._token = token
        self._failure: str | None = None
        try:
            found = recover(disk)
        except OSError as error:
            raise FileError(
                f"journal {str(disk.folder)!r} cannot be opened: {error.strerror or error}"
            ) from None
        self._head = found.head if found else FileHead(JOURNAL, 0, 0, b"")
        self._name = journal_name(self._head.generation)
        self.number = self.committed = found.number if found else 0
        self.size = found.size if found else 0

    @property
    def is_new(self) -> bool:
        """Whether there is no snapshot yet: a journal begins with one."""
        return self._head.generation == 0

    def read_snapshot(self) -> memoryview:
        """Read the content of the newest snapshot."""
        assert not self.is_new, "a journal begins with a snapshot"
        generation = self._head.generation
        name = snapshot_name(generation)
        with self._reading():
            head = read_head(self._disk, name, SNAPSHOT, generation)
            return read_snapshot(self._disk, name, head)

    def records(self) -> Iterator[tuple[int, memoryview]]:
        """Read the records after the snapshot, one at a time: number and content."""
        assert not self.is_new, "a journal begins with a snapshot"
        with self._reading():
            for record in read_records(self._disk, self._name, self._head):
                yield record.number, record.content

    def append(self, *content: Buffer) -> int:
        """Write a record, in any number of pieces, and give its number; `commit` makes it safe."""
        pieces = plain_bytes(content)
        with self._writing():
            assert not self.is_new, "a journal begins with a snapshot"
            self.size += self._write(self._name, pieces, self.number + 1, self._head.key)
            self.number += 1
        return self.number

    def commit(self) -> None:
        """Wait until every record appended so far is safe."""
        with self._writing():
            if self.committed < self.number:
                self._disk.sync(self._name)
                self.committed = self.number

    def wait_for(self, number: int) -> None:
        """Wait until the record of this number, and all before it, are safe."""
        assert number <= self.number, "only a record that was appended is waited for"
        with self._writing():
            pass
        if self.committed < number:
            self.commit()

    def snapshot(self, *content: Buffer) -> None:
        """Begin a generation with this content, which stands for all records so far."""
        pieces = plain_bytes(content)
        with self._writing():
            before = self._head.generation
            self._head = self._begin(before + 1, pieces)
            self._name = journal_name(before + 1)
            self.size = SECTOR
            self.committed = self.number
            if before:
                self._disk.delete(snapshot_name(before))
                self._disk.delete(journal_name(before))

    def _begin(self, generation: int, content: Sequence[memoryview]) -> FileHead:
        """Write both files of a generation; it counts once the snapshot has its name."""
        disk, key = self._disk, self._token(KEY_BYTES)
        unfinished, journal = unfinished_name(generation), journal_name(generation)
        disk.create(unfinished)
        disk.append(unfinished, [FileHead(SNAPSHOT, generation, self.number, key).to_bytes()])
        self._write(unfinished, content, self.number, key)
        disk.sync(unfinished)
        head = FileHead(JOURNAL, generation, self.number, key)
        disk.create(journal)
        disk.append(journal, [head.to_bytes()])
        disk.sync(journal)
        disk.sync_folder()  # a snapshot never has its name without its journal
        disk.rename(unfinished, snapshot_name(generation))
        disk.sync_folder()
        return head

    def _write(self, name: str, content: Sequence[memoryview], number: int, key: bytes) -> int:
        written = 0
        for part in framed(content, number, self.committed, key):
            self._disk.append(name, part)
            written += sum(map(len, part))
        return written

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise FileError(
                f"journal {str(self._disk.folder)!r} cannot be read: {error.strerror or error}"
            ) from None

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Let nothing follow a write that failed or was interrupted: its record may be half there.

        A sync that failed is not tried again: what it should have written may be forgotten, and
        the next sync would succeed.
        """
        if self._failure is not None:
            raise FileError(self._failure)
        try:
            yield
        except BaseException as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            self._failure = (
                f"journal {str(self._disk.folder)!r} cannot be written: "
                f"{reason or type(error).__name__}; nothing after record "
                f"{self.committed} was acknowledged: mend that, and start again from the folder"
            )
            if isinstance(error, OSError):
                raise FileError(self._failure) from error
            raise
