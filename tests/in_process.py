"""The command line in this process: quicker than a process of its own, where that is no point."""

import sys
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from subprocess import CompletedProcess
from unittest.mock import patch

from asyncfeded.cli.main import main


def asyncfeded_here(*arguments: str | Path) -> CompletedProcess[str]:
    """Run the command, and catch what it prints and its exit code."""
    command = ["asyncfeded", *map(str, arguments)]
    code: int | str | None = 0
    with (
        patch.object(sys, "argv", command),
        redirect_stdout(StringIO()) as output,
        redirect_stderr(StringIO()) as errors,
    ):
        try:
            main()
        except SystemExit as ended:
            code = ended.code
    return CompletedProcess(command, int(code or 0), output.getvalue(), errors.getvalue())
