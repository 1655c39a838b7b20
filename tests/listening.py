"""Which sockets the processes of a test listen on, read off /proc."""

import ipaddress
from pathlib import Path
from typing import NamedTuple

PROC = Path("/proc")
LISTENING = "0A"
"""The state of a listening TCP socket in /proc/net/tcp."""
ACCEPTS_CONNECTIONS = "00010000"
"""The flag of a listening Unix socket in /proc/net/unix."""


class Port(NamedTuple):
    """A TCP port that somebody listens on."""

    process: str
    address: ipaddress.IPv4Address | ipaddress.IPv6Address
    number: int


def descendants(process: int) -> list[int]:
    """This process and everything that it has started."""
    children: dict[int, list[int]] = {}
    for path in PROC.glob("[0-9]*"):
        status = _text(path / "stat").rpartition(")")[2].split()
        if status:
            children.setdefault(int(status[1]), []).append(int(path.name))
    found = [process]
    for one in found:
        found += children.get(one, [])
    return found


def command_line(process: int) -> str:
    return _text(PROC / str(process) / "cmdline")


def tcp_ports(processes: list[int]) -> list[Port]:
    """The TCP ports that these processes listen on."""
    owners = _socket_owners(processes)
    found = []
    for table in ("tcp", "tcp6"):
        for line in _text(PROC / "net" / table).splitlines()[1:]:
            fields = line.split()
            if fields[3] == LISTENING and fields[9] in owners:
                address, _, port = fields[1].partition(":")
                found.append(Port(owners[fields[9]], _address(address), int(port, 16)))
    return found


def socket_files(processes: list[int]) -> list[Path]:
    """The files of the Unix sockets that these processes listen on."""
    owners = _socket_owners(processes)
    lines = [line.split() for line in _text(PROC / "net" / "unix").splitlines()[1:]]
    return [
        Path(fields[7])
        for fields in lines
        if len(fields) == 8
        and fields[3] == ACCEPTS_CONNECTIONS
        and fields[6] in owners
        and fields[7].startswith("/")
    ]


def _socket_owners(processes: list[int]) -> dict[str, str]:
    """The name of a process by the inode of each of its sockets."""
    owners = {}
    for process in processes:
        folder = PROC / str(process)
        name = _text(folder / "comm").strip()
        for path in (folder / "fd").glob("*"):
            try:
                link = str(path.readlink())
            except OSError:
                continue  # it was closed meanwhile
            if link.startswith("socket:["):
                owners[link[len("socket:[") : -1]] = name
    return owners


def _address(words: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """An address as the kernel prints it: words of four bytes, each with its bytes reversed."""
    raw = bytes.fromhex(words)
    packed = b"".join(raw[at : at + 4][::-1] for at in range(0, len(raw), 4))
    address = ipaddress.ip_address(packed)
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""
