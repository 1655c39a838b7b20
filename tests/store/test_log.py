import json
from hashlib import sha256
from pathlib import Path

import pytest

from asyncfeded import Server, rules
from asyncfeded.runtime.events import Evaluated, Finished, Joined, Received, Started
from asyncfeded.store.log import EventLog
from builders import answer, vector


def test_the_digest_is_that_of_the_file_and_evaluations_stay_out(tmp_path: Path) -> None:
    server = Server(vector(0), rules.asyncfeded(lam=1, eps=1))
    task = server.join("a")
    receipt = server.receive(answer(task, [0.1]))
    path = tmp_path / "events.jsonl"
    with EventLog(path) as log:
        log.write(Started(0.0, "asyncfeded", "00"))
        log.write(Joined(0.0, "a", 1, 10))
        log.write(Evaluated(1.0, 1, {"accuracy": 0.5}))
        log.write(Received(1.5, 0, 1, 10, receipt))
        log.write(Finished(2.0, 2, "ff"))
    assert log.sha256 == sha256(path.read_bytes()).hexdigest()
    records = [json.loads(line) for line in path.read_text().splitlines()]
    assert [record["event"] for record in records] == ["start", "join", "update", "finish"]
    assert records[2] == {
        "event": "update",
        "seconds": 1.5,
        "client": "a",
        "round": 0,
        "accepted": True,
        "reason": None,
        "base_version": 1,
        "version": 2,
        "lag": 0,
        "epochs": 10,
        "next_epochs": 13,
        "delta_norm": receipt.delta_norm,
        "staleness": 0.0,
        "learning_rate": 1.0,
    }


def test_a_log_that_an_error_ends_has_every_event_before_it(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    log = EventLog(path)

    def fail_after_a_hundred() -> None:
        with log:
            for number in range(100):
                log.write(Joined(0.5 * number, f"client-{number}", 1, 10))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_after_a_hundred()
    names = [json.loads(line)["client"] for line in path.read_text().splitlines()]
    assert names == [f"client-{number}" for number in range(100)]
    assert log.sha256 == sha256(path.read_bytes()).hexdigest()


def test_a_log_without_a_file_has_the_same_digest(tmp_path: Path) -> None:
    with EventLog(tmp_path / "log") as filed, EventLog() as digested:
        for log in (filed, digested):
            log.write(Joined(0.25, "a", 1, 10))
    assert filed.sha256 == digested.sha256
