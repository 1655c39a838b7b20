"""The loop with a scripted transport: what it sends, yields and evaluates, and when."""

from math import inf, nan

from asyncfeded import Server, TrainTask, rules
from asyncfeded.core.vectors import Vector
from asyncfeded.runtime.evaluation import Evaluation, Pending
from asyncfeded.runtime.events import (
    Evaluated,
    Finished,
    Joined,
    Left,
    Received,
    RoundLost,
    Started,
)
from asyncfeded.runtime.loop import run
from asyncfeded.runtime.transport import REJOINED, Arriving, Joining, Leaving, Losing, Signal
from builders import Fixed, answer, vector


class Scripted:
    """Clients "a" and "b" join; "a" answers at given times; "b" leaves."""

    def __init__(self, times: list[float]) -> None:
        self.sent: list[TrainTask] = []
        self.closed = False
        self._times = iter(times)
        self._joins = iter([Joining(0.0, "a"), Joining(0.0, "b")])
        self._leave: Signal | None = Leaving(9.0, "b")

    def send(self, task: TrainTask) -> None:
        self.sent.append(task)

    def next_signal(self) -> Signal | None:
        if (joining := next(self._joins, None)) is not None:
            return joining
        if (seconds := next(self._times, None)) is not None:
            task = next(task for task in reversed(self.sent) if task.client_id == "a")
            return Arriving(seconds, answer(task, [1.0]))
        leave, self._leave = self._leave, None
        return leave

    def close(self) -> None:
        self.closed = True


def test_the_loop_passes_tasks_on_and_tells_what_happened() -> None:
    transport = Scripted([1.0, 3.0])
    server = Server(vector(0), rules.asyncfeded(lam=1, eps=1))
    events = list(run(server, transport, seconds=10.0))
    kinds = [Started, Joined, Joined, Received, Received, Left, Finished]
    assert [type(event) for event in events] == kinds
    assert [(t.client_id, t.version) for t in transport.sent] == [
        ("a", 1),
        ("b", 1),
        ("a", 2),
        ("a", 3),
    ]
    assert transport.closed


def test_the_model_is_measured_at_the_interval_and_once_per_version() -> None:
    measured = []

    def evaluate(parameters: Vector, seconds: float) -> Pending:
        measured.append((seconds, float(parameters[0])))
        return lambda: Evaluation({"accuracy": float(parameters[0])})

    server = Server(vector(0), rules.asyncfeded(lam=1, eps=1))
    events = run(server, Scripted([1.0, 3.0]), 7.0, evaluate, evaluate_every=2.0)
    points = [(e.seconds, e.version, e.accuracy) for e in events if isinstance(e, Evaluated)]
    # Updates at 1 and 3: the model is 0, then 1, then 2. The last point is the end of the run.
    assert points[:4] == [(0.0, 1, 0.0), (2.0, 2, 1.0), (4.0, 3, 2.0), (6.0, 3, 2.0)]
    assert measured == [(0.0, 0.0), (2.0, 1.0), (4.0, 2.0)]


def test_a_run_goes_on_while_an_evaluation_is_made() -> None:
    happened = []

    def evaluate(parameters: Vector, seconds: float) -> Pending:
        happened.append(f"begun {seconds:g}")
        return lambda: Evaluation({"accuracy": 0.5})

    transport = Scripted([1.0, 3.0])
    transport._leave = None
    server = Server(vector(0), rules.asyncfeded())
    for event in run(server, transport, 4.0, evaluate, evaluate_every=2.0):
        if isinstance(event, Received | Evaluated):
            happened.append(f"{type(event).__name__} {event.seconds:g}")
    # The evaluation of 0 is waited for at 2, when the update of 1 has long been folded in.
    assert happened == [
        *("begun 0", "Received 1", "Evaluated 0", "begun 2"),
        *("Received 3", "Evaluated 2", "begun 4", "Evaluated 4"),
    ]


def test_the_end_of_a_run_is_measured_whether_or_not_it_is_at_the_interval() -> None:
    for seconds, expected in ((4.0, [0.0, 2.0, 4.0]), (5.0, [0.0, 2.0, 4.0, 5.0])):
        server = Server(vector(0), rules.asyncfeded())
        transport = Scripted([1.0])
        transport._leave = None
        events = run(
            server, transport, seconds, lambda *_: lambda: Evaluation({"accuracy": 0.5}), 2.0
        )
        assert [e.seconds for e in events if isinstance(e, Evaluated)] == expected


def test_a_loop_that_is_dropped_closes_its_transport() -> None:
    transport = Scripted([1.0])
    events = run(Server(vector(0), rules.asyncfeded()), transport, 10.0)
    for _ in range(3):
        next(events)
    events.close()
    assert transport.closed


def test_time_never_goes_back_whatever_the_clock_of_a_transport_does() -> None:
    times = [3.0, 1.0, nan, 4.0, -inf, 1e300, 5.0]
    transport = Fixed(*(Joining(t, f"client-{number}") for number, t in enumerate(times)))
    server = Server(vector(0), rules.asyncfeded())
    events = run(server, transport, 10.0, lambda *_: lambda: Evaluation({}), 2.0)
    joined = [event.seconds for event in events if isinstance(event, Joined)]
    assert joined == [3.0, 3.0, 3.0, 4.0, 4.0, 10.0, 10.0]


def test_a_client_that_joins_twice_has_begun_anew_and_loses_its_round() -> None:
    transport = Fixed(Joining(0.0, "a"), Joining(1.0, "a"))
    server = Server(vector(0), rules.asyncfeded())
    events = list(run(server, transport, 10.0))
    assert events[2] == RoundLost(1.0, "a", 0, REJOINED, 1)
    assert [task.round for task in transport.sent] == [0, 1]


def test_a_client_that_joins_twice_and_waits_goes_on_with_the_others() -> None:
    server = Server(vector(0), rules.fedavg())
    transport = Fixed(
        Joining(0.0, "a"),
        Joining(0.0, "b"),
        Losing(1.0, "a", 0),
        Joining(2.0, "a"),
        Losing(3.0, "b", 0),
    )
    list(run(server, transport, 10.0))
    assert [(task.client_id, task.round) for task in transport.sent] == [
        *(("a", 0), ("b", 0)),
        *(("a", 1), ("b", 1)),
    ]


def test_a_loss_that_comes_late_or_twice_means_nothing() -> None:
    lost = Losing(1.0, "a", 0)
    transport = Fixed(Joining(0.0, "a"), lost, lost, Losing(1.0, "nobody", 0))
    server = Server(vector(0), rules.asyncfeded())
    events = list(run(server, transport, 10.0))
    assert [type(event) for event in events] == [Started, Joined, RoundLost, Finished]
    assert [task.round for task in transport.sent] == [0, 1]
