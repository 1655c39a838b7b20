"""The server: a state machine without I/O, clock or randomness.

The same calls give the same bits. So it can be tested by enumeration and replayed from a log, and
every transport uses the same class. Threads must not share it: it has one caller.
"""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from asyncfeded.core import vectors
from asyncfeded.core.clients import ClientRecord, Clients, protocol_fault
from asyncfeded.core.errors import (
    ClientStateError,
    RuleError,
    SettingError,
    StateError,
    require,
)
from asyncfeded.core.history import NOTHING, VersionHistory
from asyncfeded.core.messages import NO_FIGURES, ClientUpdate, Receipt, Refusal, TrainTask
from asyncfeded.core.rule import AnyRule, Arrival, Decision, Guard, Rule, Step, no_state
from asyncfeded.core.rule_state import RuleState
from asyncfeded.core.state import ServerState, check, plain_settings
from asyncfeded.core.statistics import Statistics
from asyncfeded.core.validation import (
    LARGEST_COUNT,
    are_limbs,
    check_initial,
    content_fault,
    fits_a_float,
)
from asyncfeded.core.vectors import Vector, all_finite, read_only

quietly = np.errstate(over="ignore", invalid="ignore", divide="ignore")
"""Silences NumPy's warnings of values that are not finite: the server refuses these itself."""


class _Outcome(NamedTuple):
    """What became of an update."""

    reason: Refusal | None
    lag: int | None = None
    delta_norm: float | None = None
    figures: Mapping[str, float] = NO_FIGURES


class Server:
    """Holds the model and folds in updates as its rule decides.

    `trained` is the number of leading elements that an optimizer trains (default: all). The
    rest are statistics: rules do not see them, and a step moves them towards the clients' own
    values and not past them. The last `exact` of them are taken from the client that reported last
    instead of averaged: whole numbers from 0 to 65,535, the parts of integers. `population` is the
    number of clients in the federation, if it has more than those that have joined.

    Examples:
        >>> import numpy as np
        >>> from asyncfeded import ClientUpdate, Server, rules
        >>> server = Server(np.zeros(2, np.float32), rule=rules.asyncfeded(lam=5.0, eps=5.0))
        >>> task = server.join("client-7")
        >>> delta = np.array([3, 4], np.float32)  # what the client has learned
        >>> update = ClientUpdate("client-7", task.version, delta, 120, task.epochs)
        >>> receipt = server.receive(update)
        >>> receipt.staleness, receipt.learning_rate  # a fresh update: η = λ / ε
        (0.0, 1.0)
        >>> server.version, server.parameters.tolist()
        (2, [3.0, 4.0])
    """

    def __init__(
        self,
        initial: Vector,
        rule: AnyRule,
        *,
        guards: Sequence[Guard] = (),
        history: VersionHistory | None = None,
        trained: int | None = None,
        exact: int = 0,
        population: int | None = None,
    ) -> None:
        if not isinstance(rule, Rule):
            raise SettingError(f"rule must be a rule, such as rules.asyncfeded(); given {rule!r}")
        check_initial(initial)
        self.rule = rule
        self.version = 1
        self.accepted = 0
        self.refused: Counter[Refusal] = Counter()
        self.lost: Counter[str] = Counter()
        self._size = initial.size
        self._trained = initial.size if trained is None else trained
        require(1 <= self._trained <= self._size, "trained", f"from 1 to {self._size}", trained)
        untrained = self._size - self._trained
        require(0 <= exact <= untrained, "exact", f"from 0 to {untrained}", exact)
        self._exact = exact
        self._statistics = Statistics(untrained, exact) if untrained else None
        self._guards = tuple(guards)
        self._history = VersionHistory() if history is None else history
        if self._history.is_used:
            raise SettingError("history must be a new one for every server; given one that is used")
        if rule.reads_base and not self._history.is_exact:
            raise SettingError(
                f"history must be 'leased' or 'everything' under rule {rule.name!r}, which reads "
                "the version that a client started from; given 'sketch'"
            )
        self._history.store(1, initial.copy(), self._trained)
        self._clients = Clients(rule.first_work, population)
        self._number_at_work = 0
        self._state = RuleState(rule, initial[: self._trained])
        # A rule without a state that does not read the base has no vectors to compute with; and
        # half a microsecond counts where a small model takes twenty.
        computes = rule.init is not no_state or rule.reads_base
        self._on_update = quietly(rule.on_update) if computes else rule.on_update

    @property
    def parameters(self) -> Vector:
        """The model now, as a read-only view that later updates do not change."""
        return self._history.current

    @property
    def clients(self) -> tuple[str, ...]:
        """The clients that take part, in the order in which they joined."""
        return tuple(self._clients)

    @property
    def at_work(self) -> tuple[str, ...]:
        """The clients that hold a task, in the order in which they joined."""
        return tuple(name for name, client in self._clients.items() if client.task is not None)

    @property
    def number_at_work(self) -> int:
        """How many clients hold a task."""
        return self._number_at_work

    @property
    def epochs(self) -> dict[str, int]:
        """K of every client that takes part, by name."""
        return {name: math.floor(client.work.epochs) for name, client in self._clients.items()}

    @property
    def stored_versions(self) -> int:
        """How many versions of the model are held in memory."""
        return len(self._history)

    def join(self, client_id: str) -> TrainTask:
        """Let a client take part, from the current version on; if it returns, it keeps its K."""
        return self._next_task(client_id, self._clients.join(client_id))

    def state(self) -> ServerState:
        """Everything that the server needs to go on with the same bits, as data.

        The arrays are the server's own: write them before its next call.
        """
        return ServerState(
            rule=self.rule.name,
            settings=plain_settings(self.rule.settings),
            size=self._size,
            trained=self._trained,
            exact=self._exact,
            version=self.version,
            accepted=self.accepted,
            refused={reason.value: count for reason, count in self.refused.items()},
            lost=dict(self.lost),
            history=self._history.state(),
            clients=self._clients.state(),
            statistics=None if self._statistics is None else self._statistics.state(),
            memory=self._state.saved(),
        )

    @classmethod
    def restore(cls, state: ServerState, rule: AnyRule, *, guards: Sequence[Guard] = ()) -> Self:
        """Make the server that a state was taken from, under the same rule.

        Examples:
            >>> import numpy as np
            >>> from asyncfeded import Server, rules
            >>> server = Server(np.zeros(2, np.float32), rule=rules.fedavg())
            >>> _ = server.join("client-7")
            >>> Server.restore(server.state(), rules.fedavg()).at_work
            ('client-7',)
        """
        given = (rule.name, plain_settings(rule.settings))
        if given != (state.rule, state.settings):
            raise StateError(
                f"the state was saved under rule {state.rule!r} with {state.settings} and must be "
                f"restored under the same; given {given[0]!r} with {given[1]}"
            )
        check(1 <= state.trained <= state.size, f"{state.trained} of {state.size} are trained")
        check(0 <= state.exact <= state.size - state.trained, f"{state.exact} elements are exact")
        history = VersionHistory.restore(state.history, state.size, state.trained)
        check(state.version in history, f"version {state.version}, the newest, is missing")
        server = cls(
            history[state.version],
            rule,
            guards=guards,
            trained=state.trained,
            exact=state.exact,
            population=state.clients.population,
        )
        server._go_on(state, history)
        return server

    def _go_on(self, state: ServerState, history: VersionHistory) -> None:
        """Take over a saved state in the place of a new server's."""
        self.version, self.accepted = state.version, state.accepted
        known = set(Refusal)
        check(known.issuperset(state.refused), f"updates were refused as {list(state.refused)}")
        self.refused = Counter({Refusal(name): count for name, count in state.refused.items()})
        self.lost = Counter(state.lost)
        self._history = history
        held = self._clients.restore(state.clients)
        leases = Counter(held.values())
        leases[state.version] += 1
        check(
            +leases == Counter({v: n for v, n in history.leases().items() if n}),
            "the clients' tasks and the leases on versions do not agree",
        )
        for name, version in held.items():
            client = self._clients.find(name)
            assert client is not None
            parameters = history[version] if history.is_exact else NOTHING
            client.task = TrainTask(
                name,
                version,
                parameters,
                math.floor(client.work.epochs),
                client.next_round - 1,
                client.work.proximal_mu,
            )
        self._number_at_work = len(held)
        check(
            (self._statistics is None) == (state.statistics is None),
            "the elements that are not trained have no statistics, or have some without need",
        )
        if self._statistics is not None and state.statistics is not None:
            self._statistics.restore(state.statistics)
        self._state.restore(state.memory)

    @property
    def rule_state(self) -> Any:
        """The rule's state, which holds plain data only."""
        return self._state.now

    def round_of(self, client_id: str) -> int | None:
        """The round of the task that a client holds; None if it holds none."""
        client = self._clients.find(client_id)
        return None if client is None or client.task is None else client.task.round

    def takes_part(self, client_id: str) -> bool:
        """Whether a client has joined, and neither left nor rests."""
        return client_id in self._clients

    def leave(self, client_id: str, lost: str | None = None) -> tuple[TrainTask, ...]:
        """Let a client go; returns the tasks of those who waited only for it.

        With `lost`, the round that it was at counts as lost for this reason.
        """
        self._clients.check_leave(client_id)
        self._state.client_left(client_id)
        client = self._clients.leave(client_id)
        if lost is not None and client.task is not None:
            self.lost[lost] += 1
        return self._let_go(client)

    def lose_round(self, client_id: str, round_number: int, reason: str) -> tuple[TrainTask, ...]:
        """Note that a client's update will not come; the client goes on with the same K.

        Returns its next task. Under a synchronous rule, the reports of the others make the step:
        returns the tasks of the next round if the round waited only for this client.
        """
        client = self._check_holds(client_id, round_number, "be lost")
        self.lost[reason] += 1
        if self.rule.on_round_end is None:
            self._give_back(client)
            return (self._next_task(client_id, client),)
        return self._let_go(client)

    def hand_over(self, task: TrainTask, client_id: str) -> TrainTask:
        """Let another client join in the place of one whose newest task was not sent.

        The first client rests as if it had never got the task. Returns the other's task.
        """
        client = self._check_holds(task.client_id, task.round, "be handed over")
        successor = self._clients.join(client_id)
        if task.version != self.version:
            self._history.lease(self.version)
            self._history.release(task.version)
        client.next_round -= 1
        client.task = None
        self._clients.rest(task.client_id)
        return self._task_for(client_id, successor)

    def _check_holds(self, client_id: str, round_number: int, what: str) -> ClientRecord:
        """Find the client that holds the task of this round."""
        client = self._clients.find(client_id)
        if client is None or client.task is None or client.task.round != round_number:
            raise ClientStateError(
                f"client {client_id!r} does not hold the task of round {round_number}, "
                f"which cannot {what}"
            )
        return client

    def _let_go(self, client: ClientRecord) -> tuple[TrainTask, ...]:
        self._give_back(client)
        step_taken, tasks = self._end_round_if_complete()
        if not step_taken:
            self.refused[Refusal.STEP_NOT_FINITE] += 1
        return tasks

    def receive(self, update: ClientUpdate, held_seconds: float | None = None) -> Receipt:
        """Fold in an update, or say why not; a refused update changes nothing but a counter.

        `held_seconds` is the time since the client's task was sent, if the caller measures time:
        the server reads no clock.
        """
        if self.rule.needs_seconds and held_seconds is None:
            raise ClientStateError(
                f"held_seconds must be given under rule {self.rule.name!r}, which weighs updates "
                "by time; given None"
            )
        receipt = self._answer(update, held_seconds)
        if receipt.reason is None:
            self.accepted += 1
        else:
            self.refused[receipt.reason] += 1
        return receipt

    def _answer(self, update: ClientUpdate, held_seconds: float | None) -> Receipt:
        client = self._clients.find(update.client_id)
        if client is None:
            return self._receipt(update, _Outcome(Refusal.UNKNOWN_CLIENT))
        fault = protocol_fault(client, update)
        if fault is not None:
            return self._receipt(update, _Outcome(fault), self._task_in_hand(client))
        fault = content_fault(update, self._size)
        if fault is None and update.round is None and self._repeats(client, update):
            return self._receipt(update, _Outcome(Refusal.DUPLICATE), self._task_in_hand(client))
        outcome = _Outcome(fault) if fault else self._fold_in(update, client, held_seconds)
        if client.task is not None:
            self._give_back(client)
        if self.rule.on_round_end is None:
            return self._receipt(update, outcome, self._next_task(update.client_id, client))
        return self._wait_for_round_end(update, outcome)

    def _task_in_hand(self, client: ClientRecord) -> TrainTask | None:
        """The task that a client holds; None if it waits, or if only a sketch is kept."""
        return client.task if self._history.is_exact else None

    def _repeats(self, client: ClientRecord, update: ClientUpdate) -> bool:
        """Whether an update without a round repeats the client's last update from this version."""
        if update.version != client.last_taken:
            return False
        return vectors.norm(update.delta[: self._trained]) == client.last_delta_norm

    def _fold_in(
        self, update: ClientUpdate, client: ClientRecord, held_seconds: float | None
    ) -> _Outcome:
        """Let the rule decide about a valid update and do what it says."""
        lag = self.version - int(update.version)
        delta_norm, distance = self._history.norm_and_distance(
            update.delta, update.version, self.version, self._trained
        )
        statistics = None if self._statistics is None else self._client_statistics(update)
        if not (math.isfinite(delta_norm) and (statistics is None or all_finite(statistics))):
            return _Outcome(Refusal.NOT_FINITE, lag)
        if self._exact and statistics is not None and not are_limbs(statistics[-self._exact :]):
            return _Outcome(Refusal.OUT_OF_RANGE, lag)
        if delta_norm == 0.0:
            return _Outcome(Refusal.ZERO_DELTA, lag, delta_norm)
        arrival = self._arrival(update, client, lag, delta_norm, distance, held_seconds)
        for guard in self._guards:
            if (reason := guard(arrival)) is not None:
                return _Outcome(reason, lag, delta_norm)
        decision = self._on_update(self._state.now, arrival)
        step = decision.step
        self._check_step(step)
        weight = 0.0 if statistics is None else self._statistics_weight(decision)
        for figure in decision.figures.values():
            if not math.isfinite(figure):
                return _Outcome(Refusal.STEP_NOT_FINITE, lag, delta_norm)
        is_kept = step is None and decision.mix is None
        mixed = self._mixed(decision, arrival)
        # The client's version is no longer needed, so its memory can take the next one.
        del arrival
        self._give_back(client)
        stepped = mixed if step is None else self._stepped(step)
        if stepped is None and not is_kept:
            self._drop_what_was_kept()
            return _Outcome(Refusal.STEP_NOT_FINITE, lag, delta_norm)
        if self._statistics is not None and statistics is not None:
            self._statistics.report(statistics, weight)
        if stepped is None:
            self._state.now = decision.state
        else:
            self._publish(stepped)
            self._state.step_taken(decision.state)
        client.work = decision.work
        client.last_taken = update.version
        client.last_delta_norm = delta_norm
        return _Outcome(None, lag, delta_norm, decision.figures)

    def _client_statistics(self, update: ClientUpdate) -> Vector:
        """The client's own values of the elements that are not trained."""
        base = self._history.statistics(update.version, self._trained)
        return quietly(np.add)(base, update.delta[self._trained :])

    def _arrival(
        self,
        update: ClientUpdate,
        client: ClientRecord,
        lag: int,
        delta_norm: float,
        distance: float,
        held_seconds: float | None,
    ) -> Arrival:
        """Present an update as rules and guards see it."""
        delta, current = read_only(update.delta), self._history.current
        base = self._history[update.version] if self._history.is_exact else NOTHING
        if self._statistics is not None:
            trained = slice(self._trained)
            delta, base, current = delta[trained], base[trained], current[trained]
        return Arrival(
            update.client_id,
            delta,
            base,
            current,
            lag,
            int(update.num_examples),
            client.work,
            delta_norm,
            distance,
            self._number_at_work,
            self._clients.size,
            int(update.epochs if update.steps is None else update.steps),
            held_seconds,
            update.figures,
        )

    def _stepped(self, step: Step) -> Vector | None:
        """x_t + scale · direction in memory for the next version; None if it is not finite."""
        return self._filled(
            lambda start, out: vectors.add_scaled(start, float(step.scale), step.direction, out=out)
        )

    def _mixed(self, decision: Decision[Any], arrival: Arrival) -> Vector | None:
        """x_t mixed with the client's model, if the rule says so; None also if it is not finite."""
        if decision.mix is None:
            return None
        self._check_mix(decision.mix, decision.step)
        weight, base, delta = float(decision.mix), arrival.base, arrival.delta
        return self._filled(lambda start, out: vectors.mix(start, weight, base, delta, out=out))

    def _filled(self, fill: Callable[[Vector, Vector], bool]) -> Vector | None:
        """Memory for the next version that `fill(x_t, memory)` has filled, if it says yes."""
        buffer = self._history.empty_buffer(self._size)
        start, out = self._history.current, buffer
        if self._statistics is not None:
            start, out = start[: self._trained], buffer[: self._trained]
        if fill(start, out):
            return buffer
        self._history.return_buffer(buffer)
        return None

    def _publish(self, buffer: Vector) -> None:
        """Make this the next version, with statistics as the clients have reported them."""
        if self._statistics is not None:
            untrained = slice(self._trained, None)
            buffer[untrained] = self._statistics.moved(self._history.current[untrained])
        self._history.store(self.version + 1, buffer, self._trained)
        self._history.release(self.version)
        self.version += 1

    def _wait_for_round_end(self, update: ClientUpdate, outcome: _Outcome) -> Receipt:
        """Answer under a synchronous rule; the last update of a round ends it."""
        step_taken, tasks = self._end_round_if_complete()
        if outcome.reason is None and not step_taken:
            outcome = outcome._replace(reason=Refusal.STEP_NOT_FINITE)
        own = next((task for task in tasks if task.client_id == update.client_id), None)
        others = tuple(task for task in tasks if task is not own)
        return self._receipt(update, outcome, own, others)

    def _end_round_if_complete(self) -> tuple[bool, tuple[TrainTask, ...]]:
        """End a synchronous round once nobody is at work; the flag is False if its step failed."""
        if self.rule.on_round_end is None or self._number_at_work > 0:
            return True, ()
        end = quietly(self.rule.on_round_end)(self._state.now)
        self._check_step(end.step)
        stepped = None if end.step is None else self._stepped(end.step)
        step_taken = end.step is None or stepped is not None
        if step_taken:
            self._state.step_taken(end.state)
        else:
            self._drop_what_was_kept()
        if stepped is not None:
            self._publish(stepped)
        tasks = [self._next_task(name, client) for name, client in self._clients.items()]
        return step_taken, tuple(tasks)

    def _drop_what_was_kept(self) -> None:
        """Go back to the state after the last step, because a step was not finite.

        Clients may send again what was dropped, also those that do not name their round.
        """
        self._state.step_failed(self.parameters[: self._trained])
        if self._statistics is not None:
            self._statistics.forget()
        for _, client in self._clients.items():
            if client.last_taken == self.version:
                client.last_taken = None

    def _check_mix(self, share: float, step: Step | None) -> None:
        name = self.rule.name
        if step is not None:
            raise RuleError(f"rule {name!r} returned a step and a mix; it may return one of them")
        if type(share) is not float and not fits_a_float(share):
            raise RuleError(f"rule {name!r} returned a mix that does not fit a float")
        if not self.rule.reads_base:
            raise RuleError(
                f"rule {name!r} mixes in a client's model, which needs the version that it started "
                "from: make the rule with reads_base=True"
            )

    def _check_step(self, step: Step | None) -> None:
        if step is None:
            return
        if type(step.scale) is not float and not fits_a_float(step.scale):
            raise RuleError(f"rule {self.rule.name!r} returned a scale that does not fit a float")
        if step.direction.shape != (self._trained,):
            raise RuleError(
                f"rule {self.rule.name!r} returned a direction of shape {step.direction.shape}; "
                f"the model has {self._trained} elements that are trained"
            )

    def _statistics_weight(self, decision: Decision[Any]) -> float:
        """How much a client's statistics count: as the rule says, or as its step does."""
        weight = decision.weight
        if weight is None:
            step, mix = decision.step, decision.mix
            scale = mix if step is None else step.scale
            return 1.0 if scale is None else max(0.0, min(1.0, scale))
        if not 0 <= weight <= LARGEST_COUNT:  # nor NaN
            raise RuleError(
                f"rule {self.rule.name!r} gave a client the weight {weight}; "
                f"it must be from 0 to {LARGEST_COUNT}"
            )
        return weight

    def _next_task(self, client_id: str, client: ClientRecord) -> TrainTask:
        self._history.lease(self.version)
        self._number_at_work += 1
        return self._task_for(client_id, client)

    def _task_for(self, client_id: str, client: ClientRecord) -> TrainTask:
        """Make a client's task from the current version, which is leased to it."""
        task = TrainTask(
            client_id,
            self.version,
            self._history.current,
            math.floor(client.work.epochs),
            client.next_round,
            client.work.proximal_mu,
        )
        client.next_round += 1
        client.task = task if self._history.is_exact else task._replace(parameters=NOTHING)
        return task

    def _give_back(self, client: ClientRecord) -> None:
        """End a client's lease on the version it trained from."""
        if client.task is not None:
            version = client.task.version
            client.task = None
            self._number_at_work -= 1
            self._history.release(version)

    def _receipt(
        self,
        update: ClientUpdate,
        outcome: _Outcome,
        next_task: TrainTask | None = None,
        other_tasks: tuple[TrainTask, ...] = (),
    ) -> Receipt:
        reason, lag, delta_norm, figures = outcome
        return Receipt(
            update.client_id,
            reason is None,
            self.version,
            reason,
            lag,
            delta_norm,
            figures,
            next_task,
            other_tasks,
        )
