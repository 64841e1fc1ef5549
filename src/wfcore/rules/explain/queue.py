"""Why an execution that is due has not been claimed: what holds the slots. XP-1, XP-2."""

from collections import Counter
from collections.abc import Iterator, Sequence

from attrs import frozen

from wfcore.model.execution import Execution
from wfcore.model.explanation import Line, Why
from wfcore.rules.auth.access import sees_execution

_NAMED = 5


@frozen
class Queue:
    """
    The executions that workers hold now; each worker has so many slots (`places`).

    `asker`: the account that asks (None: the operator, who sees everything).
    """

    held: Sequence[Execution]
    places: int
    asker: str | None = None


@frozen
class GroupAhead:
    """
    What fills the concurrency group of an execution that is not claimed yet: so many, of so many.

    `holders`: some of them. `asker`: as in `Queue`.
    """

    held: int
    limit: int
    holders: Sequence[Execution] = ()
    asker: str | None = None


def in_the_group(run: Execution, ahead: GroupAhead | None) -> Iterator[Line]:
    """Says that *run* waits for others of its concurrency group to end, if it does. CC-2."""
    if run.fence > 0 or ahead is None or ahead.held < ahead.limit:
        return
    runs = "1 execution runs" if ahead.limit == 1 else f"{ahead.limit} executions run"
    ended = "1 has" if ahead.held == 1 else f"{ahead.held} have"
    text = (
        f"Of '{run.workflow_name}' at most {runs} at once, and {ended} not ended. "
        "It begins when there is room, after those that came before it."
    )
    yield Line(Why.LIMIT_REACHED, text)
    for one in _visible(ahead.holders, ahead.asker)[:_NAMED]:
        yield Line(
            Why.LIMIT_REACHED, f"One of them is {one.id}, {one.status}.", execution_id=one.id
        )


def in_the_queue(run: Execution, queue: Queue | None) -> Iterator[Line]:
    """What keeps *run*, which is due, from being claimed. Names only what the caller sees. XP-2."""
    workers = Counter(one.worker for one in queue.held) if queue else Counter[str | None]()
    if queue is None or not workers:
        yield _DUE
        return
    free = {worker: queue.places - count for worker, count in workers.items()}
    if max(free.values()) <= 0:
        text = f"All {workers.total()} places are taken: {_takers(queue)}."
        yield Line(Why.PLACES_TAKEN, text)
        yield from _each(queue)
    elif all(_is_kept(run, queue, worker, left) for worker, left in free.items()):
        mine = sum(one.owner_id == run.owner_id for one in queue.held)
        text = (
            f"The account holds {mine} of {queue.places * len(workers)} places; the last free one "
            "is kept for accounts that hold none, while others have had work lately. It goes on "
            "when another execution ends or rests."
        )
        yield Line(Why.ACCOUNT_SHARE_USED, text)
        yield from _each(queue, run.owner_id)
    else:
        yield _DUE


_DUE = Line(Why.DUE, "It is due: a worker takes it at once.")


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
    """How many slots each account holds; of other accounts only the number is told."""
    own = len(_visible(queue.held, queue.asker))
    others = len(queue.held) - own
    parts = {f"{own} by executions that you see": own}
    parts[f"{others} by those of other accounts"] = others
    return ", ".join(part for part, count in parts.items() if count)


def _each(queue: Queue, owner_id: str | None = None) -> Iterator[Line]:
    """Some of the holders, so that the caller can look at one or cancel it."""
    shown = [one for one in _visible(queue.held, queue.asker) if owner_id in (None, one.owner_id)]
    for one in shown[:_NAMED]:
        text = f"A place is taken by {one.id} of '{one.workflow_name}'."
        yield Line(Why.PLACES_TAKEN, text, execution_id=one.id)
