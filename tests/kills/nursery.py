"""Starts processes of the command line quickly: it has imported everything, and forks.

It reads orders from its standard input, one JSON object a line, and answers each with the exit code
of the process, which is negative for a signal.
"""

import json
import os
import sys
from importlib import import_module
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any, Self

TESTS = Path(__file__).parent.parent
STEPS_FILE = "steps"


class Nursery:
    """A process that forks those that are to be killed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        found = os.pathsep.join([str(TESTS), *filter(None, [os.environ.get("PYTHONPATH")])])
        self._process = Popen(
            [sys.executable, "-m", "kills.nursery"],
            stdin=PIPE,
            stdout=PIPE,
            text=True,
            cwd=folder,
            env={**os.environ, "PYTHONPATH": found, "OMP_NUM_THREADS": "1"},
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()

    def run(self, *arguments: str, die_at: int | None = None) -> int:
        """Run a command to its end, or until it dies at a step."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        order = {"arguments": arguments, "die_at": die_at}
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def said(self) -> str:
        """What the last process has printed."""
        return (self.folder / "said").read_text()

    def steps(self) -> int:
        """How many steps the last process has made that came to its end."""
        return int((self.folder / STEPS_FILE).read_text())


def _carry_out(arguments: list[str], die_at: int | None) -> None:
    """Be the command, or a server in real time."""
    from asyncfeded.cli.main import main
    from kills import in_real_time
    from kills.dying import Steps

    said = os.open("said", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for stream in (1, 2):
        os.dup2(said, stream)
    sys.argv = ["asyncfeded", *arguments]
    steps = Steps(die_at, Path(STEPS_FILE).absolute())
    steps.begin()
    try:
        if arguments[0] == in_real_time.COMMAND:
            in_real_time.serve(Path(arguments[1]), int(arguments[2]))
        else:
            main()
    finally:
        steps.end()


def _of_child(order: dict[str, Any]) -> None:
    code = 1
    try:
        _carry_out(order["arguments"], order["die_at"])
        code = 0
    except SystemExit as ended:
        code = int(ended.code or 0)
    except BaseException:  # noqa: BLE001 - a child must not go on as its parent
        sys.excepthook(*sys.exc_info())
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _tend() -> None:
    from every_test import compile_everything

    compile_everything()
    import_module("kills.in_real_time")
    for name in ("cli.resume", "cli.run", "cli.goes_on", "experiment.run", "experiment.begun"):
        import_module(f"asyncfeded.{name}")
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            _of_child(json.loads(line))
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    _tend()
