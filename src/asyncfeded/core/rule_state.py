"""The state of a rule, and the way back when a step could not be taken."""

from typing import Any

from asyncfeded.core.errors import RuleError
from asyncfeded.core.rule import AnyRule
from asyncfeded.core.state import RuleMemory, check
from asyncfeded.core.tree import check_tree, misfit
from asyncfeded.core.vectors import Vector, read_only


class RuleState:
    """The newest state of a rule, and the one after the last step that was taken.

    A step that is not finite is not taken. What the rule has kept since the last step may have
    spoiled it and would spoil every later step, so it is dropped. If the next step fails too, the
    state after the last step is itself spoiled (its momentum is too large to add, say), and the
    rule begins anew.
    """

    def __init__(self, rule: AnyRule, parameters: Vector) -> None:
        self._rule = rule
        self.now: Any = None
        self._after_last_step: Any = None
        self._failed_steps = 0
        self._begin(parameters)
        check_tree(rule.name, self.now)

    def step_taken(self, state: object) -> None:
        """Go on with the state that came with a step."""
        self.now = self._after_last_step = state
        self._failed_steps = 0

    def step_failed(self, parameters: Vector) -> None:
        """Go back, or begin anew from these parameters."""
        self._failed_steps += 1
        if self._failed_steps == 1:
            self.now = self._after_last_step
        else:
            self._begin(parameters)

    def client_left(self, client_id: str) -> None:
        """Tell the rule that a client leaves the federation."""
        if self._rule.on_leave is not None:
            now = self._rule.on_leave(self.now, client_id)
            self._after_last_step = self._rule.on_leave(self._after_last_step, client_id)
            self.now = now

    def saved(self) -> RuleMemory:
        """Both states as data."""
        for state in (self.now, self._after_last_step):
            check_tree(self._rule.name, state)
        return RuleMemory(self.now, self._after_last_step, self._failed_steps)

    def restore(self, memory: RuleMemory) -> None:
        """Go on where a server was saved."""
        for state in (memory.now, memory.after_last_step):
            try:
                check_tree(self._rule.name, state)
            except RuleError as error:
                check(False, str(error))
            problem = misfit(self.now, state)
            check(problem is None, f"rule {self._rule.name!r}: {problem}")
        check(memory.failed_steps >= 0, f"{memory.failed_steps} steps have failed")
        self.now, self._after_last_step = memory.now, memory.after_last_step
        self._failed_steps = memory.failed_steps

    def _begin(self, parameters: Vector) -> None:
        self.now = self._after_last_step = self._rule.init(read_only(parameters.copy()))
        self._failed_steps = 0
