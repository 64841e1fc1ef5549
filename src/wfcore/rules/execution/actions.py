"""What the planner says: moves at places, and what is waited for. See `rules.execution.plan`."""

from typing import TypeAlias

from attrs import frozen

from wfcore.model.json import Json
from wfcore.model.workflow import Step
from wfcore.time import EpochMs


@frozen
class Node:
    """A step in one run: keys of its frame begin with `prefix`."""

    step: Step
    prefix: str = ""

    @property
    def key(self) -> str:
        return self.prefix + self.step.name


@frozen
class Failure:
    """A step that failed for good; `through`: what it is in fails with it, innermost first."""

    key: str
    error: str
    timed_out: bool = False
    through: tuple[Node, ...] = ()


@frozen
class Begin:
    """Start this step now (again, where it has a result)."""

    at: Node


@frozen
class Skip:
    """Its `when` is false."""

    at: Node


@frozen
class Refuse:
    """The step cannot begin: its `when` failed."""

    at: Node
    error: str


@frozen
class Complete:
    """Everything in it has ended, or its time has come."""

    at: Node
    output: Json


@frozen
class Judge:
    """An attempt that no worker reports has failed: another one, or (`permanent`) the end."""

    at: Node
    error: str
    timed_out: bool = False
    permanent: bool = False


@frozen
class Fail:
    """What this one holds failed; with `continueOnError` no more than that ends."""

    at: Node
    cause: Failure


@frozen
class Break:
    """With this failure the execution ends."""

    cause: Failure


Action: TypeAlias = Begin | Skip | Refuse | Complete | Judge | Fail | Break


@frozen
class Plan:
    """
    What to do now, and what is waited for after it.

    `until`: when something goes on by itself. `deadline`: when the time of something is up that
    waits. `question`: the first step that asks people, and its approval. `done`: every step has
    ended.
    """

    actions: tuple[Action, ...] = ()
    done: bool = False
    until: EpochMs | None = None
    deadline: EpochMs | None = None
    children: int = 0
    question: tuple[str, str] | None = None
