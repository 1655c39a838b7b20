"""The command line as a user meets it, in this process or in a process of its own."""

import os
import signal
import sys
from collections.abc import Callable, Mapping
from contextlib import chdir, nullcontext, redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from subprocess import PIPE, CompletedProcess, Popen, run
from unittest.mock import patch

from waiting import LONGEST_SECONDS


def asyncfeded(*arguments: str | Path, cwd: Path | None = None) -> CompletedProcess[str]:
    """Run the command in a process of its own and wait for it.

    To start Python with torch takes seconds: use this only where the process is the point.
    """
    command = [sys.executable, "-m", "asyncfeded", *map(str, arguments)]
    return run(command, capture_output=True, text=True, cwd=cwd, timeout=LONGEST_SECONDS)


def start_asyncfeded(
    *arguments: str | Path, cwd: Path | None = None, environment: Mapping[str, str] | None = None
) -> Popen[str]:
    """Start the command in a process group of its own, which an interrupt reaches."""
    return Popen(
        [sys.executable, "-m", "asyncfeded", *map(str, arguments)],
        stdout=PIPE,
        stderr=PIPE,
        text=True,
        start_new_session=True,
        cwd=cwd,
        env={**os.environ, **(environment or {})},
        # Tests in the background may have been told to ignore interrupts; the command is not.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def asyncfeded_here(*arguments: str | Path, cwd: Path | None = None) -> CompletedProcess[str]:
    """Run the command in this process, which has imported everything already.

    An error that the command line does not catch is raised here, with its traceback.
    """
    from asyncfeded.cli.main import main

    command = ["asyncfeded", *map(str, arguments)]
    output, errors = StringIO(), StringIO()
    with (
        patch.object(sys, "argv", command),
        nullcontext() if cwd is None else chdir(cwd),
        redirect_stdout(output),
        redirect_stderr(errors),
    ):
        code = _exit_code_of(main)
    return CompletedProcess(command, code, output.getvalue(), errors.getvalue())


def _exit_code_of(main: Callable[[], None]) -> int:
    try:
        main()
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    return 0
