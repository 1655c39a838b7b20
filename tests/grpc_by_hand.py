"""One gRPC call written out in bytes, so that a test can send what Ray's own client would not."""

import re
import socket

HEADERS, DATA, SETTINGS = 1, 0, 4
END_STREAM, END_HEADERS = 1, 4
EMPTY_MESSAGE = bytes(5)
"""Not compressed, of length 0."""
STATUS = re.compile(rb"grpc-status(?:\x01(\d)|\x02(\d\d))")
"""A header's value is its length and then its text."""
LONGEST_SECONDS = 600


def grpc_status(host: str, port: int, method: str, token: str | None = None) -> int:
    """Call a method with an empty message; return the status that the server answers."""
    headers = (
        b"\x83\x86"  # :method POST and :scheme http, by their numbers in HTTP/2's table
        + (b"\x04" + _text(method))  # :path
        + (b"\x01" + _text("localhost"))  # :authority
        + (b"\x0f\x10" + _text("application/grpc"))  # content-type
        + (b"\x00" + _text("te") + _text("trailers"))
    )
    if token is not None:
        headers += b"\x00" + _text("authorization") + _text(f"Bearer {token}")
    request = (
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
        + _frame(SETTINGS, 0, 0, b"")
        + _frame(HEADERS, END_HEADERS, 1, headers)
        + _frame(DATA, END_STREAM, 1, EMPTY_MESSAGE)
    )
    answer = b""
    with socket.create_connection((host, port), LONGEST_SECONDS) as connection:
        connection.sendall(request)
        while (found := STATUS.search(answer)) is None:
            received = connection.recv(65536)
            assert received, f"port {port} speaks no gRPC: {answer!r}"
            answer += received
    return int(found[1] or found[2])


def _frame(kind: int, flags: int, stream: int, body: bytes) -> bytes:
    return len(body).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + body


def _text(text: str) -> bytes:
    assert len(text) < 127
    return bytes([len(text)]) + text.encode()
