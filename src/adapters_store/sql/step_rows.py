"""
The results of an execution's steps as rows: the rows that a change writes, and the cells of these
rows.

A value that was not read stays in its row. If the row moves, or belongs to another execution, the
writer copies the cell: it opens the cell and seals it for its new place, one cell at a time,
without decoding. ST-7, decision 261.
"""

# ruff: noqa: S608 - only constant text of this package is put together

import logging
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from operator import eq
from typing import Any

from attrs import define, field

from adapters_store.sql.cache import KnownRecord
from adapters_store.sql.cells import EMPTY, SEALED, Cells, cost_of, sealed, sealed_later, text_of
from adapters_store.sql.statement import Later, Write, insert
from wfcore.errors import NotRead, Unreadable
from wfcore.model.execution import (
    Execution,
    StepResult,
    Unread,
    evolve,
    leaving_out,
    left_out,
)
from wfcore.ports.system import Sealer
from wfcore.wire.records import writer_of

log = logging.getLogger("wfcore.store")

LARGE = 1_024
"""The most characters of JSON of a value in a head; heads leave a longer value out."""
SAYS_SO = '{"apart"'
"""
The beginning of the body of a row with large values; the body begins with the sizes of these
values.
"""

_COLUMNS = ("execution_id", "position", "body", "output", "items")
PUT_STEP = insert(
    "step_results",
    _COLUMNS,
    """ ON CONFLICT (execution_id, position) DO UPDATE
    SET body = excluded.body, output = excluded.output, items = excluded.items""",
)
COPY_STEP = f"INSERT INTO step_results ({', '.join(_COLUMNS)}) VALUES (?, ?, ?, ?, ?)"
"""
The insertion of a copied row. Copies are written one by one, so they need a text apart from
`PUT_STEP`, which writes many rows in one statement.
"""
_COPIED = """SELECT s.{} FROM executions r JOIN step_results s ON s.execution_id = r.id
    WHERE r.id = ? AND r.version = ? AND s.position = ?"""
CUT_STEPS = "DELETE FROM step_results WHERE execution_id = ? AND position >= ?"
DROP_STEPS = "DELETE FROM step_results WHERE execution_id = ?"
PLACE_STEPS = """UPDATE step_results SET position = -1 - position
    WHERE execution_id = ? AND position < 0"""
"""
The update that moves copies to their positions. Copies within an execution wait at negative
positions until the earlier rows are deleted.
"""

STEP_APART = SEALED["step_results"].columns
_write_step = writer_of(StepResult, STEP_APART)

VersionOf = Callable[[str], int | None]
"""
A function from the id of an execution to the version at which the execution is stored when the unit
writes; None: unknown.
"""


def is_aside(name: str) -> bool:
    """Whether *name* is the name of a result of an earlier round; keys of steps have no slash."""
    return "/" in name


def all_results(run: Execution) -> Mapping[str, StepResult]:
    """
    The results that have rows. Results of earlier rounds come first, because they do not change.
    """
    return {**run.put_aside, **run.step_results} if run.put_aside else run.step_results


def divided(run: Execution, results: Mapping[str, StepResult]) -> Any:
    """The two fields of an execution that hold *results*."""
    if not run.put_aside:
        return {"step_results": results}
    return {
        "step_results": {name: one for name, one in results.items() if not is_aside(name)},
        "put_aside": {name: one for name, one in results.items() if is_aside(name)},
    }


def body_of(apart: Mapping[str, int], body: Mapping[str, Any]) -> str:
    """The body of a row, which begins with the sizes of its large values if it has any."""
    return text_of({"apart": apart, **body} if apart else body)


def unread(id: str, name: str | None, position: int, apart: Mapping[str, int]) -> Any:
    """The placeholders of large values, by column; *apart*: their sizes."""
    return {column: Unread(id, name, position, size) for column, size in apart.items()}


@define
class Steps:
    """
    The writes of the step results of *run*. `results`: the results after the writes; `bare`: these
    results without large values; `grown`, `bare_grown`: the bytes by which they grow. *keeps*: rows
    may keep their large values; if not, all rows are written anew, and cells are copied.
    """

    run: Execution
    sealer: Sealer | None
    version_of: VersionOf
    keeps: bool = True
    copies: list[Write] = field(factory=list)
    writes: list[Write] = field(factory=list)
    results: dict[str, StepResult] = field(factory=dict)
    bare: dict[str, StepResult] = field(factory=dict)
    grown: int = 0
    bare_grown: int = 0

    @property
    def in_order(self) -> Iterator[Write]:
        """The writes in order: each cell is copied before its row is deleted."""
        yield from self.copies
        if self.run.version and not self.keeps:
            yield DROP_STEPS + " AND position >= 0" * bool(self.copies), (self.run.id,), None
            if self.copies:
                yield PLACE_STEPS, (self.run.id,), None
        yield from self.writes

    def forget(self, name: str, old: StepResult, bare: StepResult, kept: Collection[str]) -> None:
        """Subtract the size of a row that changes, except for the values in the columns *kept*."""
        apart = {column: one.size for column, one in left_out(bare).items()}
        self.grown -= _cost(name, old, apart, kept)
        self.bare_grown -= _cost(name, bare, apart, kept)

    def leave(self, name: str, old: StepResult, bare: StepResult) -> None:
        """Take over the result of a row that does not change."""
        self.results[name], self.bare[name] = old, bare

    def write(
        self, name: str, result: StepResult, old: StepResult | None, bare: StepResult | None
    ) -> None:
        """
        Write the row at the next position. *old*, *bare*: the known result of this row, with and
        without large values.
        """
        place, run = len(self.results), self.run
        kept = _kept(result, old, bare) if self.keeps else {}
        copied = {} if self.keeps else left_out(result)
        for one in () if copied else left_out(result).values():
            if one not in kept.values() or not _is_at(one, run, place):
                raise NotRead(one.execution_id, one.key)
        elsewhere = {**kept, **copied}
        texts = {
            column: text_of(getattr(result, column))
            for column in STEP_APART
            if column not in elsewhere
        }
        apart = {column: one.size for column, one in elsewhere.items()}
        apart |= _sizes(texts, bool(elsewhere))
        body = body_of(apart, {"name": name, **_write_step(result)})
        cells: dict[str, Any] = {
            column: sealed_later(self.sealer, text, "step_results", column, run.id, place)
            for column, text in texts.items()
        }
        if copied:
            cells |= {column: self._copy(column, one, place) for column, one in copied.items()}
            at = -1 - place if run.version else place
            values = (run.id, at, body, *(cells[column] for column in STEP_APART))
            self.copies.append((COPY_STEP, values, None))
            self.results[name] = leaving_out(result, **unread(run.id, name, place, apart))
        else:
            self.writes.append(_put_step(run.id, place, body, cells))
            self.results[name] = _with_values(result, old, kept)
        self.bare[name] = leaving_out(result, **unread(run.id, name, place, apart))
        if old is not None and bare is not None:
            self.forget(name, old, bare, kept)
        self.grown += cost_of(body) + sum(map(cost_of, texts.values()))
        here = (text for column, text in texts.items() if column not in apart)
        self.bare_grown += cost_of(body) + sum(map(cost_of, here))

    def _copy(self, column: str, one: Unread, place: int) -> Later:
        """The value that copies the cell *one* to the position *place* of this execution."""
        here = one.execution_id == self.run.id
        version = self.run.version + 1 if here else self.version_of(one.execution_id)
        if one.key is None or version is None:
            raise NotRead(one.execution_id, one.key)
        return Later(
            partial(_resealed, self.sealer, column, one, (self.run.id, place)),
            (_COPIED.format(column), (one.execution_id, version, one.place)),
            ("executions", one.execution_id),
        )


def _resealed(
    sealer: Sealer | None, column: str, one: Unread, to: tuple[str, int], cell: str
) -> str:
    """The cell of *one*, sealed for another place. Raises `Unreadable`."""
    cells = Cells(sealer, "executions", (one.execution_id,))
    try:
        text = cells.opened(cell, column, "step_results", one.place)
    except ValueError as error:
        about = {"kind": "executions", "id": one.execution_id, "error": type(error).__name__}
        log.error("a record cannot be read", extra=about)
        raise Unreadable("executions", one.execution_id) from None
    return sealed(sealer, text, "step_results", column, *to)


def step_writes(
    run: Execution,
    base: KnownRecord | None,
    sealer: Sealer | None,
    version_of: VersionOf,
    *,
    keeps: bool,
) -> Steps:
    """
    The writes of the changed step results. All step results are written if their order does not
    continue the stored order, or if the stored results are unknown. *keeps*: rows may keep their
    values; unread values then stay.
    """
    before = {} if base is None else all_results(base.record)
    small = {} if base is None else all_results(base.least)
    after, found = all_results(run), Steps(run, sealer, version_of, keeps)
    moves = any(not _is_at(one, run, at) for at, one in _places(after))
    if keeps and base is None and not moves and any(_places(after)):
        found.writes.append((CUT_STEPS, (run.id, len(after)), None))
    elif moves or base is None or not _goes_on(before, after):
        found.keeps = False
        for name, old in before.items():
            found.forget(name, old, small[name], ())
        before, small = {}, {}
    for name, result in after.items():
        known, bare = before.get(name), small.get(name)
        if known is not None and bare is not None and (result is known or result is bare):
            found.leave(name, known, bare)
        else:
            found.write(name, result, known, bare)
    return found


def _places(results: Mapping[str, StepResult]) -> Iterator[tuple[int, Unread]]:
    """The unread values, each with the position that its row will have."""
    for position, result in enumerate(results.values()):
        for one in left_out(result).values():
            yield position, one


def _is_at(one: Unread, run: Execution, position: int) -> bool:
    return (one.execution_id, one.place) == (run.id, position)


def _kept(result: StepResult, old: StepResult | None, bare: StepResult | None) -> dict[str, Unread]:
    """The large values that the row has already: unread values, and unchanged values."""
    same = {} if old is None or bare is None else left_out(bare)
    return {**left_out(result)} | {
        column: one for column, one in same.items() if _value(result, column) is _value(old, column)
    }


def _value(result: StepResult | None, column: str) -> Any:
    """A value of a result, or its placeholder."""
    return result.__dict__[column]


def _with_values(
    result: StepResult, old: StepResult | None, kept: Mapping[str, Unread]
) -> StepResult:
    """*result* with its unread values, as far as *old* has them."""
    if old is None:
        return result
    known = {
        column: _value(old, column)
        for column in left_out(result)
        if column in kept and column not in left_out(old)
    }
    return evolve(result, **known) if known else result


def _sizes(texts: Mapping[str, str], beside: bool) -> dict[str, int]:
    """
    The sizes of all values that are not null; empty unless one of *texts* is large, or a large
    value is *beside* them.
    """
    if not beside and all(len(text) <= LARGE for text in texts.values()):
        return {}
    return {column: len(text) for column, text in texts.items() if text not in EMPTY}


def _put_step(id: str, place: int, body: str, cells: Mapping[str, Any]) -> Write:
    """The write of the body and of *cells* of a row; other cells of the row stay."""
    if len(cells) == len(STEP_APART):
        return PUT_STEP, (id, place, body, *(cells[column] for column in STEP_APART)), None
    changed = "".join(f", {column} = ?" for column in cells)
    sql = f"""UPDATE step_results SET body = ?{changed}
        WHERE execution_id = ? AND position = ? RETURNING 1"""
    return sql, (body, *cells.values(), id, place), ("executions", id)


def _cost(name: str, result: StepResult, apart: Mapping[str, int], without: Collection[str]) -> int:
    """
    The approximate bytes of a row and of its values that were read; the columns *without* are not
    counted.
    """
    left = {*left_out(result), *without}
    values = (getattr(result, column) for column in STEP_APART if column not in left)
    texts = (body_of(apart, {"name": name, **_write_step(result)}), *map(text_of, values))
    return sum(map(cost_of, texts))


def _goes_on(known: Mapping[str, StepResult], results: Mapping[str, StepResult]) -> bool:
    """Whether *results* begins with the names of *known*."""
    return len(known) <= len(results) and all(map(eq, known, results))
