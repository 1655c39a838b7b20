"""The command line in a process of its own, as a user meets it."""

import subprocess
import sys
from pathlib import Path


def asyncfeded(*arguments: str | Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run the command and wait for it."""
    command = [sys.executable, "-m", "asyncfeded", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, timeout=120)
