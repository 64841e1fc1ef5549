"""Who holds the places that a due execution waits for, word by word. XP-1, XP-2."""

from typing import Any

from attrs import evolve

from wfcore.model.execution import Execution
from wfcore.model.execution import ExecutionStatus as S
from wfcore.model.explanation import Line, Why
from wfcore.rules.explain.context import ExplanationContext
from wfcore.rules.explain.explanation import explain, is_due
from wfcore.rules.explain.queue import GroupAhead, Queue
from wfcore.testing import builders as make
from wfcore.testing.builders import NOW
from wfcore.time import later

DUE = Line(Why.DUE, "It is due: a worker takes it at once.")


def of(run: Execution, around: ExplanationContext | None = None) -> list[Line]:
    return list(explain(run, around or ExplanationContext(), NOW))


def holder(number: int, owner: str = "acc_1", worker: str = "w1", **fields: Any) -> Execution:
    fields = {"owner_id": owner, "workflow_owner_id": owner, "worker": worker, **fields}
    return make.execution(f"exec_{number}", status=S.RUNNING, **fields)


def queued(held: list[Execution], places: int, asker: str | None = "acc_1"):
    return of(make.execution("exec_mine"), ExplanationContext(queue=Queue(held, places, asker)))


def place(number: int) -> Line:
    text = f"A slot is taken by execution exec_{number} of 'Workflow wf_1'."
    return Line(Why.PLACES_TAKEN, text, execution_id=f"exec_{number}")


def test_a_full_queue_in_words():
    """XP-1, XP-2: how many places, whose; at most five executions by name."""
    mine, theirs = [holder(n) for n in range(6)], [holder(n, "acc_2") for n in (6, 7)]
    full = Line(
        Why.PLACES_TAKEN,
        "All 8 slots are taken: 6 by executions that you see, 2 by those of other accounts.",
    )
    assert queued(mine + theirs, 8) == [full, *map(place, range(5))]
    full = Line(Why.PLACES_TAKEN, "All 2 slots are taken: 2 by those of other accounts.")
    assert queued(theirs, 2) == [full]
    full = Line(Why.PLACES_TAKEN, "All 2 slots are taken: 2 by executions that you see.")
    assert queued(theirs, 2, asker=None) == [full, place(6), place(7)]
    assert queued(theirs, 3) == queued([], 1) == of(make.execution()) == [DUE]


def test_a_share_that_is_used_in_words():
    """XP-1: held by the account at every worker that has a place, of all places there are."""
    theirs = holder(3, "acc_2", workflow_owner_id="acc_1")
    held = [holder(1), holder(2), theirs, holder(4, worker="w2")]
    used = Line(
        Why.ACCOUNT_SHARE_USED,
        "The account uses 3 of 8 slots; the last free one is reserved for accounts that use none, "
        "while others have had work lately. It goes on when another execution ends or waits.",
    )
    own = [used, place(1), place(2), place(4)]
    more = [*held, *(holder(n, "acc_2", worker) for n, worker in ((5, "w2"), (6, "w2"), (7, "w1")))]
    assert queued(more, 4) == own
    assert queued(more, 5) == queued(held, 4) == [DUE]
    full = [holder(8, "acc_2", "w3") for _ in range(4)]
    assert queued([*more, *full], 4)[1:] == own[1:]


def test_a_full_group_in_words():
    """CC-2, XP-2: the limit, how many have not ended, and at most five of them by name."""
    waiting = make.execution("exec_mine", workflow_name="Payday")
    holders = [holder(n) for n in range(7)]

    def lines(held: int, limit: int, **fields: Any) -> list[Line]:
        return of(
            evolve(waiting, **fields), ExplanationContext(group=GroupAhead(held, limit, holders))
        )

    ahead = [
        Line(
            Why.LIMIT_REACHED,
            f"One of them is execution exec_{n}, RUNNING.",
            execution_id=f"exec_{n}",
        )
        for n in range(5)
    ]
    end = "not ended. It begins when there is room, after those that came before it."
    one = Line(Why.LIMIT_REACHED, f"Of 'Payday' at most 1 execution runs at once, and 1 has {end}")
    many = Line(
        Why.LIMIT_REACHED, f"Of 'Payday' at most 2 executions run at once, and 3 have {end}"
    )
    assert lines(1, 1) == [one, *ahead]
    assert lines(3, 2) == [many, *ahead]
    assert lines(1, 2) == lines(1, 1, fence=1) == [DUE]


def test_what_has_ended_is_not_due():
    """XP-1: neither is what nobody has to look at."""
    assert not is_due(make.execution(status=S.FAILED), NOW)
    assert not is_due(make.execution(due_at=None), NOW)
    assert is_due(make.execution(due_at=later(NOW, -1)), NOW)
