"""The parts that can be left out of a server, each replaced by its plain form."""

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs
from attrs import frozen

from adapters_http import dispatch
from adapters_http.responses import ResponseCache
from adapters_store.sql import execution_rows
from adapters_store.sql.cache import RecordCache
from adapters_store.sqlite import writer
from adapters_store.sqlite.batcher import Batcher
from adapters_store.sqlite.reads import SqliteReads
from adapters_store.sqlite.statements import Writes, perform
from adapters_store.sqlite.writer import Writer
from bench import writer as transitions
from wfcore.model import execution
from wfcore.rules.auth import api_key
from wfcore.rules.execution import fold, fold_steps, start
from wfserver.serving import memory


def _group_commit() -> None:
    """Each unit of work has a transaction and a flush of its own."""
    together = Writer._carry_out

    def apart(self: Writer, batch: Sequence[Any]) -> Any:
        *others, last = [together(self, [job]) for job in batch]
        for done in others:
            self._report(done)
        return last

    Writer._carry_out = apart  # type: ignore[method-assign]


def _waiting_for_company() -> None:
    """Each job goes to the writer in the turn in which it came."""
    writer.QUIET_TURNS = 0


def _statements_of_many_rows() -> None:
    """Each row is a statement."""

    def one_by_one(cursor: Any, units: Sequence[Writes]) -> bool:
        for unit in units:
            perform(cursor, unit.writes)
        return True

    writer.perform_together = one_by_one  # type: ignore[assignment]


def _decoded_records() -> None:
    """Every record is read and decoded again."""
    RecordCache.keep = lambda self, table, key, known: None  # type: ignore[method-assign]


def _following_own_commits() -> None:
    """A commit of this process is treated as one of another process."""
    committed = SqliteReads.committed
    SqliteReads.committed = lambda self, beat, *_: committed(self, beat, (), False)  # type: ignore[method-assign]


def _one_snapshot_a_turn() -> None:
    """Each read has a transaction of its own."""
    one = SqliteReads._one

    def alone(self: SqliteReads, fetch: Any, key: Any) -> Any:
        self._next_turn()
        return one(self, fetch, key)

    SqliteReads._one = alone  # type: ignore[method-assign]


def _only_changed_steps() -> None:
    """All results of an execution's steps are written with every transition."""
    execution_rows.known_of = lambda unit, record: None


def _heads_that_stay() -> None:
    """Every column that an index looks at is written, whether it has changed or not."""
    head = execution_rows._head
    execution_rows._head = lambda run, base, *rest: head(run, None, *rest)


def _own_evolve() -> None:
    """`attrs.evolve`, which runs the whole `__init__`."""
    for module in (execution, execution_rows, fold, fold_steps, start, transitions):
        module.evolve = attrs.evolve  # type: ignore[attr-defined]


def _encoded_answers() -> None:
    """Every status is made and encoded again."""
    ResponseCache.known = lambda self, id, state: None  # type: ignore[method-assign]
    ResponseCache.keep = lambda self, id, state, body: body  # type: ignore[method-assign]


def _whole_answers() -> None:
    """Each answer is two messages to the transport, which writes both."""
    vars(dispatch)["WHOLE"] = "taken by nobody"


def _batched_counts() -> None:
    """Each request is counted by itself."""
    batched = Batcher.add

    def at_once(self: Batcher[Any], item: Any) -> None:
        batched(self, item)
        if self.quiet_turns != writer.QUIET_TURNS:
            self.flush()

    Batcher.add = at_once  # type: ignore[method-assign]


def _frozen_memory() -> None:
    """Garbage is collected as usual."""
    memory.settle_memory = lambda: None
    transitions.settle_memory = lambda: None  # type: ignore[attr-defined]


def _remembered_keys() -> None:
    """The key that a request carries is found, verified and hashed each time."""
    api_key.presented = api_key.presented.__wrapped__  # type: ignore[assignment]


@frozen
class Part:
    """A part, how it is left out, and under which loads."""

    without: Callable[[], None]
    loads: Sequence[str]


ALL = ("poll", "start", "transition")
PARTS: Mapping[str, Part] = {
    "group commit": Part(_group_commit, ("start", "transition")),
    "waiting for company": Part(_waiting_for_company, ("start", "transition")),
    "statements of many rows": Part(_statements_of_many_rows, ("start", "transition")),
    "decoded records": Part(_decoded_records, ALL),
    "following own commits": Part(_following_own_commits, ALL),
    "one snapshot a turn": Part(_one_snapshot_a_turn, ALL),
    "only changed steps": Part(_only_changed_steps, ("transition",)),
    "heads that stay": Part(_heads_that_stay, ("transition",)),
    "own evolve": Part(_own_evolve, ("start", "transition")),
    "encoded answers": Part(_encoded_answers, ("poll",)),
    "whole answers": Part(_whole_answers, ("poll", "start")),
    "batched counts": Part(_batched_counts, ("poll",)),
    "remembered keys": Part(_remembered_keys, ("poll", "start")),
    "frozen memory": Part(_frozen_memory, ALL),
}


def leave_out() -> None:
    """Replace the part that the environment names."""
    if name := os.environ.get("WITHOUT"):
        PARTS[name].without()
