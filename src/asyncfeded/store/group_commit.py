"""Group commit: a thread writes while the caller goes on, and one sync serves all who wait.

Checksum, write and sync leave the interpreter to others. While a sync goes on, further records
gather; they share the next.
"""

from collections import deque
from collections.abc import Callable
from threading import Condition, Thread
from typing import Self

from asyncfeded.store.disk import Buffer
from asyncfeded.store.journal import Journal
from asyncfeded.store.sectors import plain_bytes

MOST_BYTES_WAITING = 64 * 2**20
"""Once so much waits, the caller waits too until it is safe."""


class GroupCommit:
    """A journal with a thread that writes; a `with` block ends the thread.

    It has the methods of `Journal`, for one thread to call. What was appended must not be changed
    before it is committed. Once a write has failed, every call raises. `changed` and `make_thread`
    stand in for a condition and a thread where a simulation decides whose turn it is.
    """

    def __init__(
        self,
        journal: Journal,
        changed: Condition | None = None,
        make_thread: Callable[..., Thread] = Thread,
    ) -> None:
        self._journal = journal
        self._changed = Condition() if changed is None else changed
        self._waiting: deque[tuple[int, list[memoryview]]] = deque()
        self._bytes_waiting = 0
        self._ended = False
        self._failure: BaseException | None = None
        self.number = journal.number
        self.committed = journal.committed
        self._thread = make_thread(target=self._run, name="journal", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def size(self) -> int:
        """The length of the journal's file once all is written, or a little more."""
        with self._changed:
            return self._journal.size + self._bytes_waiting

    def append(self, *content: Buffer) -> int:
        """Take a record and give its number; it is safe once `committed` has reached this."""
        pieces = plain_bytes(content)
        with self._changed:
            self._changed.wait_for(self._has_room)
            self._check()
            number = self.number + 1
            # The thread checks the number: whoever is interrupted here cannot shift the others.
            self._waiting.append((number, pieces))
            self._bytes_waiting += _size(pieces)
            self.number = number
            self._changed.notify_all()
            return number

    def wait_for(self, number: int) -> None:
        """Wait until the record of this number, and all before it, are safe."""
        assert number <= self.number, "only a record that was appended is waited for"
        with self._changed:
            self._changed.wait_for(lambda: self.committed >= number or self._failure is not None)
            self._check()

    def commit(self) -> None:
        """Wait until every record appended so far is safe."""
        self.wait_for(self.number)

    def snapshot(self, *content: Buffer) -> None:
        """Begin a generation with this content, which stands for all records so far."""
        self.commit()
        try:
            self._journal.snapshot(*content)
        except BaseException as error:
            self._failure = error
            raise

    def close(self) -> None:
        """Write what was appended, as far as that is possible, and end the thread."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()
        self._thread.join()

    def _has_room(self) -> bool:
        return self._bytes_waiting < MOST_BYTES_WAITING or self._failure is not None

    def _check(self) -> None:
        """Raise what the thread met; after a failure the journal itself says it best."""
        assert not self._ended, "the journal is closed"
        if self._failure is not None:
            self._journal.commit()
            raise self._failure

    def _run(self) -> None:
        try:
            while self._write_what_waits():
                pass
        except BaseException as error:  # noqa: BLE001 - the callers must hear of it, whatever it is
            with self._changed:
                self._failure = error
                self._waiting.clear()
                self._changed.notify_all()

    def _write_what_waits(self) -> bool:
        with self._changed:
            self._changed.wait_for(lambda: self._ended or len(self._waiting) > 0)
            records, self._waiting = self._waiting, deque()
        if not records:
            return False
        for number, pieces in records:
            assert self._journal.append(*pieces) == number, "every record is taken once"
        self._journal.commit()
        with self._changed:
            self._bytes_waiting -= sum(_size(pieces) for _, pieces in records)
            self.committed = self._journal.committed
            self._changed.notify_all()
        return True


def _size(pieces: list[memoryview]) -> int:
    return sum(map(len, pieces))
