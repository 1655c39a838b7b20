"""Runs in real time that end unexpectedly: what a client has heard of counts, and counts once."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from torch import nn

from asyncfeded import ClientUpdate, Result, TrainTask, federate
from asyncfeded.callbacks import Callback, Checkpoint, Run, checkpoint
from asyncfeded.core.errors import FileError
from asyncfeded.runtime.evaluation import Evaluation
from asyncfeded.runtime.events import Event, Received
from asyncfeded.runtime.transport import Arriving, Joining, Signal
from asyncfeded.runtime.world import Clock, OpenWorld, Setup
from failing_disk import FailingDisk

NAMES = ("client-0", "client-1")


class Clients:
    """Two clients that answer in turn, a tenth of a second apart; `again` is sent before.

    `disk` fails in its own way from the update number `fails` on.
    """

    clock: ClassVar[Clock] = "real"

    def __init__(self, fails: int = 0, how: str = "", again: Sequence[ClientUpdate] = ()) -> None:
        self.sent: list[TrainTask] = []
        self.answers: list[ClientUpdate] = []
        self._fails, self._how = fails, how
        self._again = list(again)

    def connection(self) -> AbstractContextManager[None]:
        return nullcontext()

    @contextmanager
    def open(self, setup: Setup) -> Iterator[OpenWorld]:
        self._now, self._ends = setup.begins, setup.seconds
        self._joins = [Joining(self._now, name) for name in NAMES]
        yield OpenWorld(self, lambda parameters, seconds: lambda: Evaluation({"accuracy": 0.5}))

    def send(self, task: TrainTask) -> None:
        self.sent.append(task)

    def next_signal(self) -> Signal | None:
        self._now += 0.1
        if self._now >= self._ends:
            return None
        if self._again:
            return Arriving(self._now, self._again.pop(0))
        if self._joins:
            return self._joins.pop(0)
        task = [task for task in self.sent if task.client_id == NAMES[len(self.answers) % 2]][-1]
        delta = np.full(task.parameters.size, 0.01, np.float32)
        update = ClientUpdate(task.client_id, task.version, delta, 20, task.epochs, task.round)
        self.answers.append(update)
        if len(self.answers) == self._fails:
            setattr(DISKS[-1], self._how, True)
        return Arriving(self._now, update)

    def close(self) -> None:
        """Nothing is to be ended."""


DISKS: list[FailingDisk] = []


class Disk(FailingDisk):
    """A disk that a test can reach."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        DISKS.append(self)


def run(world: Clients, folder: Path, resume: bool = False, *more: Callback) -> Result:
    data = [(torch.zeros(20, 3), torch.zeros(20, dtype=torch.long))] * 2
    torch.manual_seed(0)
    where: Any = {"resume": folder} if resume else {}
    callbacks: list[Callback] = [*more, *([] if resume else [Checkpoint(folder)])]
    return federate(nn.Linear(3, 2), data, world=world, seconds=3.0, callbacks=callbacks, **where)


@pytest.mark.parametrize(
    ("how", "reason"),
    [("full", "No space left on device"), ("sync_fails", "Input/output error")],
)
def test_after_a_failed_write_nobody_hears_anything_and_the_folder_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str, reason: str
) -> None:
    monkeypatch.setattr(checkpoint, "RealDisk", Disk)
    failed = Clients(fails=5, how=how)
    with pytest.raises(FileError) as raised:
        run(failed, tmp_path)
    assert str(raised.value) == (
        f"journal {str(tmp_path)!r} cannot be written: {reason}; nothing after record 6 was "
        "acknowledged: mend that, and start again from the folder"
    )
    # Two joins and four updates are safe; the fifth update was not answered.
    assert len(failed.sent) == 6
    assert len(failed.answers) == 5
    result = run(Clients(), tmp_path, resume=True)
    assert result.finished
    assert result.updates >= 4
    assert result.lost_rounds == {"server_restarted": 2}


class PowerCut(BaseException):
    """Ends a run as nothing of it expects."""


def test_an_update_that_is_sent_again_after_a_restart_counts_once(tmp_path: Path) -> None:
    def cut(_: Event, run: Run) -> None:
        if run.updates == 6:
            raise PowerCut

    before = Clients()
    with pytest.raises(PowerCut):
        run(before, tmp_path, False, cut)
    after = Clients(again=before.answers)
    received = []

    def listen(event: Event, _: Run) -> None:
        if isinstance(event, Received):
            received.append((event.receipt.client_id, event.round, event.receipt.accepted))

    result = run(after, tmp_path, True, listen)
    replayed, again, later = received[:6], received[6:12], received[12:]
    assert replayed == [(name, number, True) for number in range(3) for name in NAMES]
    assert again == [(name, number, False) for name, number, _ in replayed]
    assert all(accepted for *_, accepted in later)
    assert result.updates == 6 + len(later)
    assert result.versions == result.updates + 1
    assert len(set(received)) == len(received)
