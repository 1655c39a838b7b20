"""Why a client's round was lost on Flower: the reasons that the log and the summary count by."""

from enum import StrEnum


class Fault(StrEnum):
    """Why no usable reply came to a message."""

    NODE_UNAVAILABLE = "node_unavailable"
    """The node died or went away: Flower has not heard of it for some time."""
    EXPIRED = "expired"
    """No reply came in the time that the client was allowed."""
    NOT_SENT = "not_sent"
    """Flower did not take the message."""
    APP_NOT_LOADED = "app_not_loaded"
    """The ClientApp cannot be loaded on the node."""
    APP_RAISED = "app_raised"
    """The ClientApp raised."""
    APP_CRASHED = "app_crashed"
    """The ClientApp's process ended."""
    MESSAGE_LOST = "message_lost"
    """Flower has lost the message or its reply, or these had expired there."""
    REFUSED_BY_NODE = "refused_by_node"
    """The node refused the message: a modifier or its rules on apps did."""
    ERROR_REPLY = "error_reply"
    """The reply is an error without a known code."""


_OF_CODES = {
    1: Fault.APP_NOT_LOADED,
    2: Fault.APP_RAISED,
    3: Fault.MESSAGE_LOST,
    4: Fault.MESSAGE_LOST,
    5: Fault.NODE_UNAVAILABLE,
    6: Fault.REFUSED_BY_NODE,
    7: Fault.REFUSED_BY_NODE,
    8: Fault.APP_CRASHED,
}
"""Flower's `ErrorCode`, which is no part of its public names."""


def fault_of(code: int) -> Fault:
    """What an error reply of this code means."""
    return _OF_CODES.get(code, Fault.ERROR_REPLY)
