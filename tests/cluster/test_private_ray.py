"""A Ray of our own: who can reach it, and who cannot."""

import os
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest
import ray

from asyncfeded.cluster.private import LOOPBACK, check_that_only_this_machine_reaches
from asyncfeded.core.errors import ClusterError
from grpc_by_hand import grpc_status
from in_process import asyncfeded_here
from listening import command_line, descendants, socket_files, tcp_ports
from scripted import LONGEST_SECONDS

pytestmark = [
    pytest.mark.usefixtures("ray_here"),
    pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="reads Linux's /proc"),
]

JOIN_AND_RUN = """
import sys, ray
ray.init(address=sys.argv[1], log_to_driver=False, logging_level="ERROR")
print("the answer is", ray.get(ray.remote(lambda: 6 * 7).remote()))
"""

JOIN_OUR_WAY_AND_RUN = """
import sys, ray
from asyncfeded.cluster.session import ray_session
with ray_session(sys.argv[1]):
    print("the answer is", ray.get(ray.remote(lambda: 6 * 7).remote()))
"""

METHODS = (
    "/ray.rpc.NodeInfoGcsService/GetAllNodeInfo",
    "/ray.rpc.NodeManagerService/GetNodeStats",
    "/ray.rpc.ObjectManagerService/FreeObjects",
    "/ray.rpc.CoreWorkerService/GetCoreWorkerStats",
)
"""One harmless method of each of Ray's gRPC services."""

OK, UNKNOWN_METHOD, UNAUTHENTICATED = 0, 12, 16

RUNTIME_ENVIRONMENTS = "ray::RuntimeEnv"
"""Ray's one process that speaks HTTP: it installs what a task says that it needs."""

NO_TRACE = """
import os
before = dict(os.environ)
import ray
from asyncfeded.cluster.session import ray_session

tokens = set()
with ray_session():
    tokens.add(os.environ["RAY_AUTH_TOKEN"])
    assert ray.get(ray.remote(lambda: 1).remote()) == 1
    folder = ray._private.worker._global_node.get_session_dir_path()
    assert os.path.isdir(folder)
after = {name: os.environ[name] for name in os.environ if name != "RAY_CLIENT_MODE"}  # Ray's own
assert after == before, after.items() ^ before.items()
assert not os.path.exists(folder)

del os.environ["RAY_AUTH_TOKEN"], os.environ["RAY_AUTH_MODE"]
with ray_session():
    tokens.add(os.environ["RAY_AUTH_TOKEN"])
    assert ray.get(ray.remote(lambda: 1).remote()) == 1
assert len(tokens | {before["RAY_AUTH_TOKEN"]}) == 3, "every Ray has a token of its own"
assert "RAY_AUTH_TOKEN" not in os.environ
assert "RAY_AUTH_MODE" not in os.environ

# The user's own Ray after ours, without a token, as before.
ray.init(address="local", include_dashboard=False, logging_level="ERROR")
with ray_session():
    assert "RAY_AUTH_TOKEN" not in os.environ
    assert ray.get(ray.remote(lambda: 1).remote()) == 1
print("no trace")
"""


def script(text: str, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a script in a process that knows nothing of this one's Ray but what it is told."""
    environment = {name: value for name, value in os.environ.items() if "RAY_" not in name}
    # Without this Ray looks for 127.0.0.1 at this machine's other address.
    environment["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
    environment["RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO"] = "0"
    environment["RAY_NUM_REDIS_GET_RETRIES"] = "2"  # in place of 20, one second each
    return subprocess.run(
        [sys.executable, "-c", text, *arguments],
        env={**environment, **variables},
        capture_output=True,
        text=True,
        timeout=LONGEST_SECONDS,
    )


def address() -> str:
    return str(ray.get_runtime_context().gcs_address)


def with_a_worker() -> list[int]:
    """This process and Ray's, one that works among them."""
    assert ray.get(ray.remote(lambda: 1).remote()) == 1
    return descendants(os.getpid())


def test_every_port_is_on_the_loopback_interface() -> None:
    ports = tcp_ports(with_a_worker())
    this_process = Path("/proc/self/comm").read_text().strip()
    assert {"gcs_server", "raylet", this_process} <= {port.process for port in ports}
    assert int(address().rpartition(":")[2]) in {port.number for port in ports}
    assert {str(port.address) for port in ports} == {LOOPBACK}


def test_every_socket_file_is_in_a_folder_that_only_this_user_can_enter() -> None:
    files = socket_files(with_a_worker())
    assert {"raylet", "plasma_store"} <= {path.name for path in files}
    for path in files:
        assert any(parent.stat().st_mode & 0o777 == 0o700 for parent in path.parents), path


@pytest.mark.parametrize("variables", [{}, {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "f" * 64}])
def test_an_intruder_without_the_token_is_refused(variables: dict[str, str]) -> None:
    done = script(JOIN_AND_RUN, address(), **variables)
    assert done.returncode != 0
    assert "the answer is" not in done.stdout
    assert "Authentication token is missing or incorrect" in done.stderr


def test_whoever_has_the_token_joins_the_cluster_at_an_address() -> None:
    token = os.environ["RAY_AUTH_TOKEN"]
    done = script(JOIN_OUR_WAY_AND_RUN, address(), RAY_AUTH_MODE="token", RAY_AUTH_TOKEN=token)
    assert done.stdout == "the answer is 42\n", done.stderr


def test_every_port_asks_for_the_token() -> None:
    token = os.environ["RAY_AUTH_TOKEN"]
    ports = [p for p in tcp_ports(with_a_worker()) if p.process != RUNTIME_ENVIRONMENTS]
    assert len(ports) >= 5, "of this process, the GCS, two of the raylet, and a worker"
    for port in ports:
        refused = {grpc_status(LOOPBACK, port.number, method) for method in METHODS}
        assert refused == {UNAUTHENTICATED, UNKNOWN_METHOD}, port
        allowed = {grpc_status(LOOPBACK, port.number, method, token) for method in METHODS}
        assert allowed == {OK, UNKNOWN_METHOD}, port


def test_the_process_that_installs_packages_asks_for_the_token_too() -> None:
    (port,) = (p for p in tcp_ports(with_a_worker()) if p.process == RUNTIME_ENVIRONMENTS)
    url = f"http://{LOOPBACK}:{port.number}/get_runtime_envs_info"
    with pytest.raises(urllib.error.HTTPError, match="401"):
        urllib.request.urlopen(urllib.request.Request(url, data=b""))


def test_the_token_is_on_no_command_line_in_no_log_and_in_no_result(tmp_path: Path) -> None:
    token = os.environ["RAY_AUTH_TOKEN"]
    assert len(token) == 64
    run = ("run", "--clients", "2", "--seconds", "1", "--workers-on", "ray", "--out", str(tmp_path))
    done = asyncfeded_here(*run)
    assert done.returncode == 0, done.stderr
    assert token not in done.stdout + done.stderr
    processes = with_a_worker()
    assert not [line for line in map(command_line, processes) if token in line]
    (store,) = (path for path in socket_files(processes) if path.name == "plasma_store")
    logs = [path for path in (store.parent.parent / "logs").rglob("*") if path.is_file()]
    results = list(tmp_path.iterdir())
    assert {"raylet.out", "summary.json"} <= {path.name for path in logs + results}
    assert not [path for path in logs + results if token.encode() in path.read_bytes()]


def test_a_session_leaves_no_trace_in_the_users_process() -> None:
    of_the_user = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "the user's own"}
    done = script(NO_TRACE, **of_the_user)
    assert done.stdout == "no trace\n", done.stderr


@pytest.mark.parametrize("host", ["192.0.2.2", "127.0.1.1", "::1"])
def test_a_ray_that_chose_another_address_is_not_used(host: str) -> None:
    with pytest.raises(ClusterError, match=rf"ray must listen on 127.0.0.1 alone; it .* {host}: "):
        check_that_only_this_machine_reaches(f"{host}:6379")
