"""The address of a Ray: HOST:PORT, or auto for the one on this machine."""

from asyncfeded.core.errors import require


def check_address(name: str, address: object) -> None:
    """Refuse what can be no address; `name` is the argument's."""
    require(address is None or _is_address(address), name, "HOST:PORT or auto", address)


def _is_address(address: object) -> bool:
    if not isinstance(address, str):
        return False
    host, _, port = address.rpartition(":")
    is_port = port.isdecimal() and len(port) <= 5 and 0 < int(port) < 65536
    return address == "auto" or (bool(host) and "/" not in host and is_port)
