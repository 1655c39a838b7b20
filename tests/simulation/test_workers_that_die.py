"""A worker process that ends by itself is named, wherever it was at that moment."""

import os
import pickle
import signal
import struct
from contextlib import closing
from multiprocessing.connection import Connection

import pytest

import toy
from asyncfeded import TrainTask
from asyncfeded.core.errors import TrainingError
from asyncfeded.simulation.pool import WorkerPool


def task() -> TrainTask:
    return TrainTask("client-0", 1, toy.toy_initial(), 1)


@pytest.mark.parametrize("sent_bytes", [2, 30], ids=["within the length", "within the content"])
def test_a_worker_killed_while_it_sends_a_message_is_named(
    sent_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    parent, send = os.getpid(), Connection.send

    def send_a_part(connection: Connection, message: object) -> None:
        if os.getpid() == parent:
            send(connection, message)
            return
        content = pickle.dumps(message)
        os.write(connection.fileno(), (struct.pack("!i", len(content)) + content)[:sent_bytes])
        os.kill(os.getpid(), signal.SIGKILL)

    monkeypatch.setattr(Connection, "send", send_a_part)
    with closing(WorkerPool(toy.toy_train, 1, toy.SIZE)) as pool:
        pool.submit(task(), 1.0)
        with pytest.raises(TrainingError, match=r"worker process 0 ended by itself \(exit code -9"):
            pool.result(task())


def test_a_pool_whose_workers_are_all_gone_says_so_when_it_is_given_a_task() -> None:
    with closing(WorkerPool(toy.toy_train, 2, toy.SIZE)) as pool:
        for process in pool._processes:
            process.kill()
            process.join()
        with pytest.raises(TrainingError, match=r"worker process 0 ended by itself \(exit code -9"):
            pool.submit(task(), 1.0)
