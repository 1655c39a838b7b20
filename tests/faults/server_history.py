"""A history of a durable server: many lives, each ended by a crash or a failure.

Everything that runs in production runs here: the loop, the server and its rule, the checkpoint with
its journal, its snapshots and its thread. The disk, the network, the clients and whose turn it is
are simulated.

What must hold, whatever fails: after a restart the server is, to the bit, the one that was given
exactly the signals in the journal; whatever a client was told is among them; no round counts twice,
and no version that a client was told comes back as another; time never goes back; versions are
held for clients at work only; a damaged folder is refused, or what it holds was never told; and
once nothing fails any more, every client goes on.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext

import numpy as np

from asyncfeded import Server
from asyncfeded.callbacks.checkpoint import OVER, Checkpoint, Writer
from asyncfeded.core.errors import FileError, StateError
from asyncfeded.core.messages import TrainTask
from asyncfeded.core.vectors import Vector
from asyncfeded.runtime.control import Run
from asyncfeded.runtime.evaluation import Evaluation, Pending
from asyncfeded.runtime.events import Evaluated, Event
from asyncfeded.runtime.loop import run
from asyncfeded.store.journal import Journal
from asyncfeded.store.sectors import SECTOR
from asyncfeded.store.signals import decoded
from faults import simulated_clients, simulated_disk, simulated_network
from faults.chance import Chance, InvariantError
from faults.noting import NotingGroup, NotingJournal
from faults.setups import AnySetup
from faults.shadow import Shadow, content_of, difference
from faults.simulated_clients import Clients, Message, client_of
from faults.simulated_disk import Crash, SimulatedDisk
from faults.simulated_network import SilentNetwork, SimulatedNetwork
from faults.turns import Turns

LIVES = 12
SIGNALS_OF_A_LIFE = 120
SIGNALS_UNTIL_ALL_GO_ON = 2_000
MOST_FAULTY_OPENINGS = 4
EVERY = (5.0, 20.0, 100.0)
LARGEST_JOURNALS = (20 * SECTOR, 100 * SECTOR)
ROT_SHARE = 0.3
SECONDS, EVALUATE_EVERY = 5_000.0, 50.0
NETWORK_RATES = {**simulated_clients.RATES, **simulated_network.RATES}
FLIPPED = "bit flipped in reading"


class ServerHistory:
    """One seed's history; the mutations of a test bring another disk."""

    def __init__(
        self,
        seed: int,
        trace: bool = False,
        make_disk: Callable[[Chance], SimulatedDisk] = SimulatedDisk,
    ) -> None:
        self.chance = Chance(seed, dict(NETWORK_RATES), trace)
        self._random = random = self.chance.random
        share = random.choice((0.02, 0.1, 0.5))
        disk_rates = {fault: share * rate for fault, rate in simulated_disk.RATES.items()}
        self.chance.rates.update(disk_rates)
        self._setup = AnySetup(random)
        self._groups = random.random() < 0.5
        self._disk = make_disk(self.chance)
        self._under_way: list[Message] = []
        names = [f"client-{number}" for number in range(random.randint(1, 6))]
        self._clients = Clients(
            self.chance, self._setup.size, self._setup.whole, self._under_way.append, names
        )
        # What is known: the records that may be in the journal, and what clients were told.
        self._shadow = Shadow(self._setup.new_server)
        self._contents: dict[int, bytes] = {}
        self._told_round: dict[str, int] = {}
        self._told_version: dict[int, bytes] = {}
        self._calm = self._ends = self._over = False
        self.chance.tell(self._setup)

    def run(self) -> None:
        """Go through all lives; raises an InvariantError if anything does not hold."""
        for _ in range(LIVES):
            self._begin_and_end()
            self._restart()
        self._calm = True
        while not self._over:
            self._begin_and_end()
            self._disk.restart(power_lost=self._random.random() < 0.5)

    # Lives --------------------------------------------------------------------------------

    def _begin_and_end(self) -> None:
        """One life, begun again if its beginning fails."""
        for attempt in range(MOST_FAULTY_OPENINGS + 1):
            self.chance.enabled = attempt < MOST_FAULTY_OPENINGS and not self._calm
            self._begun = False
            flipped = self.chance.faults[FLIPPED]
            self.chance.tell("-- life")
            try:
                self._live()
            except (Crash, FileError) as error:
                self.chance.tell(repr(error))
            except StateError as error:
                if self.chance.faults[FLIPPED] == flipped:
                    raise InvariantError(f"it refuses what a crash left: {error}") from error
            self.chance.enabled = True
            if self._begun:
                return
            self._disk.restart(power_lost=self._random.random() < 0.5)
        raise InvariantError("it does not begin, though nothing fails")

    def _restart(self) -> None:
        """End the server's process; messages to it may be lost."""
        self._disk.restart(power_lost=self._random.random() < 0.5)
        if self._random.random() < 0.5:
            self.chance.count("connections lost")
            self._under_way[:] = [m for m in self._under_way if isinstance(m, TrainTask)]
        for name in self._clients.server_restarts():
            # A world has deadlines for those whose last word it hears after their end.
            self._under_way[:] = [m for m in self._under_way if name != client_of(m)]

    def _live(self) -> None:
        """A process of the server, from the opening of its folder to its end."""
        self._signals_left = self._random.randrange(SIGNALS_OF_A_LIFE)
        self._turns = Turns(self.chance)
        self._disk.between = self._turns.perhaps
        self._journal = journal = NotingJournal(self._disk, self._random.randbytes, self._note)
        self._found = journal.number
        resume = not journal.is_new and journal.read_snapshot() != OVER
        if self._ends and not resume:
            self._over = self._begun = True
            return
        checkpoint = Checkpoint(self._disk.folder, self._random.choice(EVERY))
        checkpoint.largest_journal = self._random.choice(LARGEST_JOURNALS)
        with checkpoint.opened_on(self._disk, journal, resume) as saved:
            self._server = (
                self._setup.new_server() if saved is None else self._setup.restored(saved)
            )
            network = SimulatedNetwork(
                self.chance,
                self._clients,
                self._under_way,
                0.0 if saved is None else saved.seconds,
                self._before_signal,
                self._tell,
            )
            control = Run(self._server, SECONDS)
            kept = checkpoint.keeping_signals(network, self._server, self._writing)
            with kept as transport:
                resumed = None if saved is None else saved.state
                self._version, self._now = 0, 0.0
                for event in run(
                    self._server,
                    transport,
                    SECONDS,
                    _measured,
                    EVALUATE_EVERY,
                    control=control,
                    resumed=resumed,
                ):
                    checkpoint(event, control)
                    self._check(event)
        if not self._disk.is_down:
            self._over = True

    @contextmanager
    def _writing(self, journal: Journal) -> Iterator[Writer]:
        """The journal itself, or a thread that writes to it when chance lets it."""
        if not self._groups:
            self._writer: Writer = journal
            yield journal
            return
        with NotingGroup(self._journal, self._turns) as self._writer:
            yield self._writer

    # What happens in a life ---------------------------------------------------------------

    def _before_signal(self) -> bool:
        if not self._begun:
            self._begun = True
            self._check_restored()
        if self._calm:
            return self._goes_on()
        if self._disk.is_down:
            raise Crash
        self._signals_left -= 1
        if self._signals_left < 0:
            self.chance.count("process killed")
            raise Crash
        self._turns.perhaps()
        return True

    def _goes_on(self) -> bool:
        """Whether some client has not gone on yet, now that nothing fails."""
        if self._signals_left < SIGNALS_OF_A_LIFE:
            self._signals_left = SIGNALS_UNTIL_ALL_GO_ON
            self._goals = {client.name: client.tasks + 3 for client in self._clients.living}
        self._signals_left -= 1
        behind = [c.name for c in self._clients.living if c.tasks < self._goals[c.name]]
        if self._signals_left < SIGNALS_OF_A_LIFE:
            raise InvariantError(f"{behind} cannot go on")
        if behind:
            return True
        self._writer.commit()
        self._found = self._journal.number
        self._check_restored()
        # The run is over: what is left is to empty its folder, which may fail as all else.
        self._ends = self.chance.enabled = True
        self.chance.rates.update(simulated_disk.RATES)
        return False

    def _note(self, number: int, content: bytes) -> None:
        known = self._contents.setdefault(number, content)
        self._require(known == content, f"record {number} changes while it waits")

    def _tell(self, task: TrainTask) -> None:
        """A task leaves the server: it must never be taken back."""
        name = task.client_id
        self._told_round[name] = max(task.round, self._told_round.get(name, -1))
        parameters = task.parameters.tobytes()
        known = self._told_version.setdefault(task.version, parameters)
        self._require(known == parameters, f"version {task.version} was another before")

    # What must hold -----------------------------------------------------------------------

    def _check(self, event: Event) -> None:
        server = self._server
        held, at_work = server.stored_versions, len(server.at_work)
        if self._setup.keep != "everything" and held > at_work + 1:
            raise InvariantError(f"{held} versions for {at_work} at work")
        self._require(server.version >= self._version, "a version goes back")
        self._version = server.version
        if not isinstance(event, Evaluated):  # these come an interval late
            self._require(self._now <= event.seconds <= SECONDS, "time goes back")
            self._now = event.seconds

    def _check_restored(self) -> None:
        """Compare the server with one that was given exactly what is in the journal."""
        shadow = self._shadow
        self._require(shadow.number <= self._found, "records are lost that were read before")
        while shadow.number < self._found:
            shadow.handle(decoded(self._contents[shadow.number + 1]))
        self._contents.clear()
        self._require_told(shadow.server, "the journal forgets")
        found = difference(content_of(self._server), content_of(shadow.server))
        self._require(not found, f"after {shadow.number} signals: {found}")
        if self._disk.files and self._random.random() < ROT_SHARE:
            self._rot()

    def _require_told(self, server: Server, otherwise: str) -> None:
        """Whatever a client was told, the server must know."""
        clients = server.state().clients
        next_rounds = dict(zip(clients.names, clients.next_round.tolist(), strict=True))
        for name, told in self._told_round.items():
            known = next_rounds.get(name, 0)
            self._require(told < known, f"{otherwise}: {name} was told round {told}")
        newest = max(self._told_version, default=0)
        self._require(newest <= server.version, f"{otherwise}: version {newest} was told")

    def _require(self, holds: bool, otherwise: str) -> None:
        if not holds:
            raise InvariantError(otherwise)

    def _rot(self) -> None:
        """Flip a bit of a copy of the folder: it must be refused, or hold all that was told."""
        rotten = self._disk.copy()
        name = self._random.choice([name for name, file in rotten.files.items() if file.seen])
        content = rotten.files[name].seen
        place = self._random.randrange(len(content))
        content[place] ^= 1 << self._random.randrange(8)
        self.chance.count("bit flipped on the disk")
        self.chance.tell("  in", name, "at", place)
        try:
            journal = Journal(rotten, self._random.randbytes)
            server = self._replayed(rotten, journal)
        except StateError:
            return
        if journal.number == self._found:
            found = difference(content_of(server), content_of(self._shadow.server))
            self._require(not found, f"damage is believed: {found}")
        self._require_told(server, "damage is believed")

    def _replayed(self, disk: SimulatedDisk, journal: Journal) -> Server:
        """The server of a folder, with nobody who says anything."""
        checkpoint = Checkpoint(disk.folder)
        with checkpoint.opened_on(disk, journal, resume=True) as saved:
            assert saved is not None
            server, nobody = self._setup.restored(saved), SilentNetwork()
            with checkpoint.keeping_signals(nobody, server, nullcontext) as transport:
                for _ in run(server, transport, SECONDS, resumed=saved.state):
                    pass
        return server


def _measured(parameters: Vector, _: float) -> Pending:
    norm = float(np.linalg.norm(parameters))
    return lambda: Evaluation({"norm": norm})
