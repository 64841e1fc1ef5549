"""The facts that an explanation of an execution uses, besides the execution itself. XP-2."""

from collections.abc import Sequence

from attrs import frozen

from wfcore.model.approval import Approval
from wfcore.model.execution import Execution
from wfcore.model.notice import Notice
from wfcore.model.workflow import Definition
from wfcore.rules.explain.queue import GroupAhead, Queue


@frozen
class ExplanationContext:
    """
    Facts around an execution that the caller may see. A fact that is unknown stays at its default.

    `approvals`: the approvals of the execution. `children`: the executions that it started.
    `mails`: the mails that its steps wait for.
    `serving`: whether a server is running that would do the work.
    """

    definition: Definition | None = None
    approvals: Sequence[Approval] = ()
    children: Sequence[Execution] = ()
    mails: Sequence[Notice] = ()
    queue: Queue | None = None
    group: GroupAhead | None = None
    serving: bool | None = None
