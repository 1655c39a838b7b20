"""An interrupt of a command that can go on."""


class Interrupted(BaseException):
    """Ctrl-C or SIGTERM; `command` goes on with what was interrupted."""

    def __init__(self, command: str) -> None:
        super().__init__(command)
        self.command = command
