"""
What the planner asks for: actions on steps, and what the execution waits for. See
`rules.execution.plan`.
"""

from collections.abc import Mapping
from typing import TypeAlias

from attrs import frozen

from wfcore.model.execution import ENDED, StepResult
from wfcore.model.json import Json
from wfcore.model.workflow import LoopStep, Step, lists_of, walk
from wfcore.time import EpochMs


@frozen
class Node:
    """A step of the definition within one run. The keys of its frame begin with `prefix`."""

    step: Step
    prefix: str = ""

    @property
    def key(self) -> str:
        return self.prefix + self.step.name

    def accounts_for(self, results: Mapping[str, StepResult]) -> int:
        """
        How many steps its end accounts for: the step, and those inside that were not counted yet.
        FL-8.
        """
        if self.prefix:
            return 1
        counted = (results[name] for name in _held(self.step) if name in results)
        size = sum(1 for _ in walk((self.step,)))
        return size - sum(one.steps for one in counted if one.status in ENDED)


def _held(step: Step) -> tuple[str, ...]:
    """
    Names of the steps inside it that have a result of their own, which steps in loops have not.
    """
    if isinstance(step, LoopStep):
        return ()
    inside = (one for _, steps in lists_of(step) for one in steps)
    return tuple(name for one in inside for name in (one.name, *_held(one)))


@frozen
class Failure:
    """A step that failed for good. `through`: the containers that fail with it, innermost first."""

    key: str
    error: str
    timed_out: bool = False
    through: tuple[Node, ...] = ()


@frozen
class Begin:
    """Begin this step now, or begin it again if it has a result."""

    at: Node


@frozen
class Skip:
    """The step's `when` is false."""

    at: Node


@frozen
class Refuse:
    """The step cannot begin because its `when` could not be evaluated."""

    at: Node
    error: str


@frozen
class Complete:
    """Every step in the container has ended, or the delay is over."""

    at: Node
    output: Json


@frozen
class Judge:
    """
    An attempt failed in a way that no worker reports. Retry it, or (`permanent`) fail the step.
    """

    at: Node
    error: str
    timed_out: bool = False
    permanent: bool = False


@frozen
class Fail:
    """
    A step inside this container failed for good. With `continueOnError` the failure ends here.
    """

    at: Node
    cause: Failure


@frozen
class Break:
    """This failure ends the execution."""

    cause: Failure


Action: TypeAlias = Begin | Skip | Refuse | Complete | Judge | Fail | Break


@frozen
class Plan:
    """
    The actions to take now, and what the execution waits for once they are taken.

    `until`: when something continues by itself. `deadline`: when something that waits times out.
    `question`: the first step that waits for a decision, and its approval. `done`: every step has
    ended.
    """

    actions: tuple[Action, ...] = ()
    done: bool = False
    until: EpochMs | None = None
    deadline: EpochMs | None = None
    children: int = 0
    question: tuple[str, str] | None = None
