"""Which place of the model is a task's own."""

CLIENTS = ("client-0", "client-1", "hospital")
ROUNDS = 200
PLACES = len(CLIENTS) * ROUNDS


def place(client: str, number: int) -> int:
    """The place that an update of a client's round of this number marks."""
    return CLIENTS.index(client) * ROUNDS + number
