"""The queue of an execution that is due and not claimed: who holds the slots. XP-1, XP-2."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from attrs import frozen

from wfcore.model.execution import Execution, ExecutionStatus
from wfcore.model.explanation import Line, Why
from wfcore.model.node import Node
from wfcore.rules.auth.access import sees_execution
from wfcore.rules.phrase import phrase
from wfcore.time import MINUTE, DurationMs, EpochMs

_NAMED = 5


@frozen
class Queue:
    """
    The executions that workers hold now. `places`: the slots of each worker. `nodes`: the workers
    that are alive and have announced themselves.

    `asker`: the account that the explanation is for (None: the operator, who sees everything).
    """

    held: Sequence[Execution]
    places: int
    asker: str | None = None
    nodes: Sequence[Node] = ()


@frozen
class GroupAhead:
    """
    The full concurrency group of an execution that is not claimed yet: `held` executions, of at
    most `limit`.

    `holders`: some of the held executions. `asker`: as in `Queue`.
    """

    held: int
    limit: int
    holders: Sequence[Execution] = ()
    asker: str | None = None


def in_the_group(run: Execution, ahead: GroupAhead | None) -> Iterator[Line]:
    """
    Lines that say that *run* waits for other executions of its concurrency group to end; none if
    *run* does not wait. CC-2.
    """
    if run.fence > 0 or ahead is None or ahead.held < ahead.limit:
        return
    yield Line(Why.LIMIT_REACHED, _full(run.workflow_name, ahead))
    for one in _visible(ahead.holders, ahead.asker)[:_NAMED]:
        text = phrase(
            "One of them is {execution}, {status}.",
            execution=f"execution {one.id}",
            status=one.status,
        )
        yield Line(Why.LIMIT_REACHED, text, execution_id=one.id)


def _full(workflow: str, ahead: GroupAhead) -> str:
    facts = {"workflow": workflow, "limit": ahead.limit, "held": ahead.held}
    if ahead.held == 1:
        return phrase(
            "Of '{workflow}' at most {limit} execution runs at once, and {held} has not ended. "
            "It begins when there is room, after those that came before it.",
            **facts,
        )
    if ahead.limit == 1:
        return phrase(
            "Of '{workflow}' at most {limit} execution runs at once, and {held} have not ended. "
            "It begins when there is room, after those that came before it.",
            **facts,
        )
    return phrase(
        "Of '{workflow}' at most {limit} executions run at once, and {held} have not ended. "
        "It begins when there is room, after those that came before it.",
        **facts,
    )


NOBODY_FOR = DurationMs(5 * MINUTE)
"""
How long an execution waits for a node that is able to run it before people get a notice. NT-9.
"""


def working(nodes: Iterable[Node], now: EpochMs) -> list[Node]:
    """The *nodes* that are alive and take executions. *now*: the store's time."""
    return [node for node in nodes if node.places and node.seen_until >= now]


def waits_for_a_node(run: Execution, nodes: Sequence[Node], now: EpochMs) -> bool:
    """
    Whether *run* has been due for `NOBODY_FOR` and none of the live *nodes* would take it. False if
    there are no nodes: that concerns the service, and not each execution.
    """
    late = run.due_at is not None and run.due_at <= now - NOBODY_FOR
    waits = run.status is ExecutionStatus.PENDING and run.worker is None
    return late and waits and bool(nodes) and not any(node.takes(run) for node in nodes)


def in_the_queue(run: Execution, queue: Queue | None) -> Iterator[Line]:
    """
    The lines about the cause that keeps the due *run* from being claimed. They name only executions
    that the caller sees. XP-2.
    """
    if queue is not None and queue.nodes and not any(node.takes(run) for node in queue.nodes):
        yield Line(Why.NOBODY_ABLE, _lacking(run, queue.nodes))
        return
    workers = Counter(one.worker for one in queue.held) if queue else Counter[str | None]()
    if queue is None or not workers:
        yield _DUE
        return
    free = {worker: queue.places - count for worker, count in workers.items()}
    if max(free.values()) <= 0:
        text = phrase(
            "All {count} slots are taken: {takers}.", count=workers.total(), takers=_takers(queue)
        )
        yield Line(Why.PLACES_TAKEN, text)
        yield from _each(queue)
    elif all(_is_kept(run, queue, worker, left) for worker, left in free.items()):
        mine = sum(one.owner_id == run.owner_id for one in queue.held)
        text = phrase(
            "The account uses {mine} of {all} slots; the last free one "
            "is reserved for accounts that use none, while others have had work lately. It goes on "
            "when another execution ends or waits.",
            mine=mine,
            all=queue.places * len(workers),
        )
        yield Line(Why.ACCOUNT_SHARE_USED, text)
        yield from _each(queue, run.owner_id)
    else:
        yield _DUE


def _lacking(run: Execution, nodes: Sequence[Node]) -> str:
    """The abilities that the execution needs, and the abilities that no running worker offers."""
    taking = [node for node in nodes if not node.draining]
    if not taking:
        return phrase(
            "Every running worker is draining and takes nothing new (wfcore nodes drain)."
        )
    offered = {word for node in taking for word in node.able or ()}
    missing = [word for word in run.capabilities if word not in offered]
    needs = words_of(run.capabilities)
    if missing:
        return phrase(
            "No running worker offers everything that it needs: {needs}. None offers {missing}. "
            "It begins once one that does is running.",
            needs=needs,
            missing=words_of(missing),
        )
    return phrase(
        "No running worker offers everything that it needs: {needs}. "
        "No single one offers all of it. It begins once one that does is running.",
        needs=needs,
    )


def words_of(capabilities: Sequence[str]) -> str:
    """The abilities that an execution needs of a node, for people: `language ruby, label gpu`."""
    return ", ".join(word.replace(":", " ") for word in capabilities)


_DUE = Line(Why.DUE, phrase("It is due: a worker takes it at once."))


def _is_kept(run: Execution, queue: Queue, worker: str | None, free: int) -> bool:
    """
    Whether the worker has no free slot, or only one that is kept for other accounts. See
    `ports.Slots`.
    """
    held = sum((one.worker, one.owner_id) == (worker, run.owner_id) for one in queue.held)
    return free <= 0 or (held > 0 and free == 1)


def _visible(runs: Sequence[Execution], asker: str | None) -> list[Execution]:
    return [one for one in runs if asker is None or sees_execution(one, asker)]


def _takers(queue: Queue) -> str:
    """The slots that each account holds; other accounts appear only as a number."""
    own = len(_visible(queue.held, queue.asker))
    others = len(queue.held) - own
    if not others:
        return phrase("{own} by executions that you see", own=own)
    if not own:
        return phrase("{others} by those of other accounts", others=others)
    return phrase(
        "{own} by executions that you see, {others} by those of other accounts",
        own=own,
        others=others,
    )


def _each(queue: Queue, owner_id: str | None = None) -> Iterator[Line]:
    """Some of the holders, so that the caller can open or cancel one."""
    shown = [one for one in _visible(queue.held, queue.asker) if owner_id in (None, one.owner_id)]
    for one in shown[:_NAMED]:
        text = phrase(
            "A slot is taken by {execution} of '{workflow}'.",
            execution=f"execution {one.id}",
            workflow=one.workflow_name,
        )
        yield Line(Why.PLACES_TAKEN, text, execution_id=one.id)
