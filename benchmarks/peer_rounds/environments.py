"""A virtual environment for each peer, made from its pinned requirements and kept."""

import os
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

REQUIREMENTS = Path(__file__).parent / "requirements"
STAMP = "requirements.sha256"


class EnvironmentFailedError(Exception):
    """An environment could not be made; the message is one line."""


def environment_python(peer: str, folder: Path) -> Path:
    """The interpreter of a peer's environment, which is made anew if its requirements changed."""
    requirements = REQUIREMENTS / f"{peer}.txt"
    digest = sha256(requirements.read_bytes()).hexdigest()
    environment = folder / peer
    python = environment / "bin" / "python"
    stamp = environment / STAMP
    if stamp.is_file() and stamp.read_text() == digest:
        return python
    print(f"making an environment for {peer} in {environment}", file=sys.stderr)
    _run([sys.executable, "-m", "venv", "--clear", str(environment)])
    install = [str(python), "-m", "pip", "install", "--quiet"]
    torch = next(line for line in requirements.read_text().splitlines() if line[:7] == "torch==")
    # torch brings what its build needs: a GPU build has more than the file lists. All other
    # packages are in the file, and what FedLab asks for beyond it is not wanted.
    _run([*install, torch], requirements)
    _run([*install, "--no-deps", "--requirement", str(requirements)], requirements)
    stamp.write_text(digest)
    return python


def _run(command: list[str], constraint: Path | None = None) -> None:
    # A variable rather than an option, because pip passes it on to the environments it builds in.
    pinned = {} if constraint is None else {"PIP_CONSTRAINT": str(constraint)}
    result = subprocess.run(
        command,
        env={**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1", **pinned},
        capture_output=True,
        text=True,
        check=False,
    )
    if result.returncode:
        lines = (result.stderr.strip() or result.stdout.strip()).splitlines()
        raise EnvironmentFailedError(lines[-1] if lines else f"exit code {result.returncode}")
