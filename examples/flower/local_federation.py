"""A Flower federation on this machine: one SuperLink, and some SuperNodes."""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from marked import end, ended_by_sigterm, kill, marked, start

PROGRAMS = Path(sys.executable).parent
"""Where pip has put Flower's programs: beside this Python."""
LOOPBACK = "127.0.0.1"
SUPERLINK = "superlink"
START_SECONDS = 120.0
TRIES = 5
"""A free port can be taken by another process before ours listens on it: then try another."""

Setting = str | int | float | bool


class FederationError(Exception):
    """A process of the federation did not do what it was asked to."""


@dataclass(frozen=True)
class Certificates:
    """The files of TLS: those of the authority and of the server."""

    authority: Path
    certificate: Path
    key: Path


@dataclass
class LocalFederation:
    """A SuperLink and SuperNodes; `folder` has their logs and Flower's own files."""

    folder: Path
    environment: Mapping[str, str]
    certificates: Certificates | None
    port: int = 0
    processes: dict[str, "subprocess.Popen[bytes]"] = field(default_factory=dict)

    @property
    def address(self) -> str:
        """Where the SuperLink listens."""
        return f"{LOOPBACK}:{self.port}"

    def start_node(
        self, name: str, settings: Mapping[str, Setting], key: Path | None = None
    ) -> None:
        """Start a SuperNode; its ClientApp finds `settings` in `context.node_config`."""
        command = ["flower-supernode", "--superlink", self.address, "--host", LOOPBACK]
        command += ["--port", str(free_port()), "--node-config", as_toml(settings)]
        if self.certificates is None:
            command += ["--insecure"]
        else:
            command += ["--root-certificates", str(self.certificates.authority)]
        if key is not None:
            command += ["--auth-supernode-private-key", str(key)]
        self.start(name, command)

    def start_superlink(self, port: int, options: Sequence[str] = ()) -> bool:
        """Start the SuperLink on a port; whether it listens there."""
        self.port = port
        command = ["flower-superlink", "--host", LOOPBACK, "--port", str(port), *options]
        command += ["--disable-runtime-dependency-installation"]
        connection = "insecure = true"
        if self.certificates is None:
            command += ["--insecure"]
        else:
            authority = str(self.certificates.authority)
            command += ["--ssl-ca-certfile", authority]
            command += ["--ssl-certfile", str(self.certificates.certificate)]
            command += ["--ssl-keyfile", str(self.certificates.key)]
            connection = f"root-certificates = {json.dumps(authority)}"
        lines = ["[superlink.local]", f'address = "{self.address}"', connection, ""]
        Path(self.environment["FLWR_HOME"], "config.toml").write_text("\n".join(lines))
        return _listens(self.start(SUPERLINK, command), port)

    def start(self, name: str, command: Sequence[str]) -> "subprocess.Popen[bytes]":
        """Start one of Flower's programs as a member of this federation, with a log of its own."""
        command = [str(PROGRAMS / command[0]), *command[1:]]
        log = self.folder / f"{name}.log"
        self.processes[name] = start(command, self.environment, self.mark_of(name), log)
        return self.processes[name]

    def mark_of(self, member: str) -> str:
        """The mark of a member's processes."""
        return f"{self.folder}:{member};"

    def log_of(self, member: str) -> str:
        """What a member has said."""
        return (self.folder / f"{member}.log").read_text(errors="replace")

    def kill(self, member: str) -> None:
        """End a member and its children at once, as a power cut does."""
        kill(self.mark_of(member))
        self.processes.pop(member).wait()

    def flwr(self, *arguments: str) -> str:
        """Call Flower's command line; return what it prints."""
        command = [str(PROGRAMS / "flwr"), *arguments]
        done = subprocess.run(
            command, env=dict(self.environment), capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise FederationError(f"{' '.join(command)}: {done.stderr or done.stdout}")
        return done.stdout

    def run(self, app: Path, settings: Mapping[str, Setting]) -> str:
        """Start the app of a folder; return the number of the run."""
        options = ["--run-config", as_toml(settings)] if settings else []
        printed = self.flwr("run", str(app), "local", *options, "--format", "json")
        return str(json.loads(printed)["run-id"])

    def status(self, run: str) -> str:
        """The status of a run, such as running or finished:failed."""
        printed = self.flwr("list", "local", "--run-id", run, "--format", "json")
        return str(json.loads(printed)["runs"][0]["status"])

    def server_app(self) -> int | None:
        """The process id of the ServerApp that is running, if there is any."""
        for process in marked(self.mark_of(SUPERLINK)):
            with suppress(OSError):
                if b"flwr-serverapp" in Path(f"/proc/{process}/cmdline").read_bytes():
                    return process
        return None

    def check(self) -> None:
        """Raise if a member has ended by itself."""
        for member, process in self.processes.items():
            if process.poll() is not None:
                last = "\n".join(self.log_of(member).splitlines()[-20:])
                raise FederationError(f"{member} has ended by itself:\n{last}")


@contextmanager
def local_federation(
    folder: Path,
    certificates: Certificates | None = None,
    options: Sequence[str] = (),
    variables: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[LocalFederation]:
    """Start a SuperLink; at the end, end it and every SuperNode that was started.

    An interrupt and SIGTERM end them, too. The SuperLink is given `options`, and every process the
    environment `variables`.
    """
    folder = folder.resolve()
    home = folder / "flower"
    home.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, **_variables(home), **variables}
    federation = LocalFederation(folder, environment, certificates)
    with ended_by_sigterm():
        try:
            for _ in range(TRIES):
                if federation.start_superlink(free_port(), options):
                    break
                federation.kill(SUPERLINK)
            else:
                said = federation.log_of(SUPERLINK)[-2000:]
                raise FederationError(f"the SuperLink does not start: {said}")
            yield federation
        finally:
            end(f"{folder}:")
            for process in federation.processes.values():
                process.wait()


def free_port() -> int:
    """A port of this machine that nobody listens on."""
    with socket.socket() as listening:
        listening.bind((LOOPBACK, 0))
        return int(listening.getsockname()[1])


def as_toml(settings: Mapping[str, Setting]) -> str:
    """Settings as Flower's programs read them: keys and values of TOML, with spaces between."""
    return " ".join(f"{name}={json.dumps(value)}" for name, value in settings.items())


def _variables(home: Path) -> dict[str, str]:
    """The environment of Flower's processes: they ask and tell nobody, and do not wait long."""
    return {
        "PATH": f"{PROGRAMS}{os.pathsep}{os.environ.get('PATH', '')}",
        "FLWR_HOME": str(home),
        "FLWR_TELEMETRY_ENABLED": "0",
        "FLWR_DISABLE_UPDATE_CHECK": "1",
        "FLWR_SUPEREXEC_TASK_POLL_INTERVAL": "0.05",
        "OMP_NUM_THREADS": "1",  # several clients share this machine's cores
        "PYTHONUNBUFFERED": "1",
    }


def _listens(process: "subprocess.Popen[bytes]", port: int) -> bool:
    """Wait until a process listens on a port; whether it does."""
    last = time.monotonic() + START_SECONDS
    while process.poll() is None and time.monotonic() < last:
        with suppress(OSError), socket.create_connection((LOOPBACK, port), timeout=1):
            return process.poll() is None
        time.sleep(0.1)
    return False
