"""What an update must pass, beyond being well-formed, before a rule sees it."""

from asyncfeded.guards.staleness import bounded_staleness

__all__ = ["bounded_staleness"]
