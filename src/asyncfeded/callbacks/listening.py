"""Check an address to listen on before a run begins; an error is one clear line."""

import errno
import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager

from asyncfeded.core.arguments import require_whole
from asyncfeded.core.errors import SettingError, require

LARGEST_PORT = 65535
ANY_FREE = 0
"""The port that stands for any that is free."""


def check_listening(host: object, port: object) -> None:
    """Refuse an address that this process cannot listen on."""
    require(isinstance(host, str) and bool(host), "host", "a name or an address", host)
    require_whole("port", port)
    assert isinstance(host, str)
    assert isinstance(port, int)
    require(0 <= port <= LARGEST_PORT, "port", f"from 0 to {LARGEST_PORT}", port)
    with listening_errors(host, port):
        infos = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, address = infos[0]
        with closing(socket.socket(family, kind, protocol)) as trial:
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the server itself does
            trial.bind(address)


@contextmanager
def listening_errors(host: str, port: int) -> Iterator[None]:
    """Turn an error into one line: why this process cannot listen there, and what to do."""
    try:
        yield
    except (OSError, UnicodeError) as error:
        number = error.errno if isinstance(error, OSError) else None
        reason = getattr(error, "strerror", None) or error
        if number == errno.EADDRINUSE:
            text = (
                f"port must be one that is free on {host!r}; given {port}, which is in use: choose "
                "another, or 0 for any that is free"
            )
        elif number == errno.EACCES:
            text = f"port must be one that this user may listen on; given {port}: choose another"
        else:
            text = (
                f"host must be an address of this machine, such as 127.0.0.1; given {host!r}: "
                f"{reason}"
            )
        raise SettingError(text) from None


def url_of(host: str, port: int) -> str:
    """How a browser or Prometheus finds what listens there."""
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
