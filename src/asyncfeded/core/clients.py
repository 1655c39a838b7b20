"""What the server knows of a client."""

from dataclasses import dataclass

from asyncfeded.core.messages import ClientUpdate, Refusal, TrainTask
from asyncfeded.core.rule import Work
from asyncfeded.core.validation import is_count


@dataclass(slots=True)
class ClientRecord:
    """A client that takes part.

    `work` is what it is to do in its next round, `task` what it does now (None while it waits
    for a synchronous round to end). `last_taken` and `last_delta_norm` are the base and the norm
    of its last update that was taken. A client that is not at work rests if it was set aside for
    another, and has left otherwise.
    """

    work: Work
    next_round: int = 0
    task: TrainTask | None = None
    last_taken: int | None = None
    last_delta_norm: float | None = None
    is_resting: bool = False


def protocol_fault(client: ClientRecord, update: ClientUpdate) -> Refusal | None:
    """Why an update does not answer the task that its client holds, if so."""
    if not is_count(update.version) or not (update.round is None or is_count(update.round)):
        return Refusal.VERSION_NOT_HELD
    holds = client.task is not None and update.version == client.task.version
    if update.round is None:
        if holds:
            return None
        taken = update.version == client.last_taken
        return Refusal.DUPLICATE if taken else Refusal.VERSION_NOT_HELD
    if client.task is not None and update.round == client.task.round:
        return None if holds else Refusal.VERSION_NOT_HELD
    earlier = 0 <= update.round < client.next_round
    return Refusal.DUPLICATE if earlier else Refusal.VERSION_NOT_HELD
