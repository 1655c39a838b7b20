"""An interrupt of a command, and what it leaves."""

OF_A_RUN = (
    "a run's folder holds its results so far: the last version in model.safetensors, and a "
    "summary.json that says finished: false"
)
OF_A_SWEEP = "the folder keeps the trials that were finished, in sweep.csv"


class Interrupted(BaseException):
    """Ctrl-C or SIGTERM; `left` says what is there, `command` goes on with it if one can."""

    def __init__(self, left: str, command: str | None) -> None:
        super().__init__(left)
        self.left = left
        self.command = command
