"""Conditions that a well-formed update must meet before the rule sees it."""

from asyncfeded.guards.staleness import bounded_staleness

__all__ = ["bounded_staleness"]
