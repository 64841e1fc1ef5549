"""
Large values of executions: outputs and items that heads leave out, read on demand.

A head (`execution_rows.HEAD`) has the place and the length of each large value. Cells are read in
pieces of some megabytes, over the connections of lists, and are opened and decoded in a thread, so
that the event loop goes on meanwhile. Small values are read in the event loop, as single records
are. ST-7.
"""

import asyncio
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, cast

from adapters_store.sql.cache import ENTRY_BYTES, KnownRecord
from adapters_store.sql.cells import ASIDE, SEALED, Cells, cost_of, text_of, value_of
from adapters_store.sql.execution_rows import FETCH, known_of
from adapters_store.sql.kinds import Fetch
from adapters_store.sql.queries import query
from adapters_store.sql.unit_of_work import SqlUnitOfWork
from wfcore.errors import Stale, StoreUnavailable
from wfcore.model.execution import Execution, StepResult, Unread, evolve, left_out

Values = dict[tuple[int, str], Any]
"""Values by position and column; the output of the execution is at the position `_ITS_OWN`."""

_PIECE = 4 << 20
"""The characters of cells that are read at once."""
_ITS_OWN = -1
_TRIES = 20
_COLUMNS = SEALED["step_results"].columns

OUTPUT = "SELECT version, NULL, output, NULL FROM executions WHERE id = ?"
STEPS = """SELECT r.version, s.position, s.output, s.items FROM executions r
    LEFT JOIN step_results s ON s.execution_id = r.id AND s.position BETWEEN ? AND ?
    WHERE r.id = ?"""


async def head(unit: SqlUnitOfWork, fetch: Fetch[Execution], id: str) -> Execution | None:
    """The execution; large values may be left out."""
    known = await _known(unit, fetch, id)
    return cast("Execution | None", known and known.light)


async def whole(unit: SqlUnitOfWork, fetch: Fetch[Execution], id: str) -> Execution | None:
    """The execution with all its values. Raises `StoreUnavailable`."""
    for _ in range(_TRIES):
        known = await _known(unit, fetch, id)
        if known is None:
            return None
        try:
            return await filled(unit, known.record)
        except Stale:
            if id in unit.stored_at:
                raise
    raise StoreUnavailable(detail="an execution changed as often as it was read")


async def _known(unit: SqlUnitOfWork, fetch: Fetch[Execution], id: str) -> KnownRecord | None:
    key = fetch.table, (id,)
    if key in unit.pending:
        return unit.pending[key][1]
    run = await unit.reads.one(fetch, (id,))
    if run is None:
        return None
    known = unit.reads.cache.entries.get(key)
    if known is None or known.record is not run:
        known = KnownRecord(run.version, run, ENTRY_BYTES)
    unit.read[id] = known
    return known


async def filled(
    unit: SqlUnitOfWork, run: Execution, keys: Collection[str | None] | None = None
) -> Execution:
    """
    *run* with the unread values of the steps in *keys*, or of all steps and the execution. A None
    in *keys* stands for the output of the execution. Raises `Stale` if another version is stored.
    """
    missing = [one for one in _left_out(run) if keys is None or one.key in keys]
    if not missing:
        return run
    known = known_of(unit, run) or KnownRecord(run.version, run, ENTRY_BYTES)
    values = _values_of(known.record, missing)
    more = [one for one in missing if not _is_in(values, one)]
    cells = Cells(unit.sealer, FETCH.table, (run.id,))
    for part in _pieces(more, apart=keys is not None):
        values |= await _read(unit, run, part, cells)
    if more and run.id not in unit.stored_at:
        _keep(unit, known, _with(known.record, values), cells.cost)
    return _with(run, values)


async def texts(unit: SqlUnitOfWork, run: Execution, keys: Collection[str]) -> Mapping[str, bytes]:
    """
    The unread outputs of the steps *keys* of *run*, as JSON text by key. Large outputs are neither
    decoded nor cached. Raises `Stale` if another version is stored.
    """
    missing = [one for one in _left_out(run) if one.key in keys]
    known = known_of(unit, run)
    small = [one for one in missing if one.size <= ASIDE]
    values = _values_of(known.record, small) if known else {}
    found = {at: text_of(value).encode() for at, value in values.items()}
    more = [one for one in missing if not _is_in(values, one)]
    cells = Cells(unit.sealer, FETCH.table, (run.id,))
    for part in _pieces(more, apart=True):
        found |= await _read(unit, run, part, cells, str.encode)
    return {one.key: found[_place(one), "output"] for one in missing if one.key is not None}


def _keep(unit: SqlUnitOfWork, known: KnownRecord, record: Execution, cost: int) -> None:
    """
    Keep *record*, for which more values were read, in the unit; and in the cache, unless the cached
    record has changed meanwhile.
    """
    bare, cache, key = known.alone, unit.reads.cache, ("executions", (record.id,))
    fuller = KnownRecord(
        known.version,
        record,
        known.size + cost,
        head=known.head,
        bare=bare.record,
        bare_size=bare.size,
        bare_head=bare.head,
    )
    unit.read[record.id] = fuller
    if cache.entries.get(key) is known:
        fuller.seen = known.seen
        cache.keep(*key, fuller)


def _all(run: Execution) -> Mapping[str, StepResult]:
    return {**run.put_aside, **run.step_results} if run.put_aside else run.step_results


def _left_out(run: Execution) -> Iterator[Unread]:
    yield from left_out(run).values()
    for result in _all(run).values():
        if found := left_out(result):
            yield next(iter(found.values()))  # a row is read as a whole


def _values_of(known: Execution, missing: Sequence[Unread]) -> Values:
    """The values of *missing* that *known* has already."""
    found: Values = {}
    results = _all(known)
    for one in missing:
        record = known if one.key is None else results.get(one.key)
        if record is not None and not left_out(record):
            names = ("output",) if one.key is None else _COLUMNS
            found |= {(_place(one), name): getattr(record, name) for name in names}
    return found


def _place(one: Unread) -> int:
    return _ITS_OWN if one.key is None else one.place


def _is_in(values: Values, one: Unread) -> bool:
    return (_place(one), "output") in values


def _pieces(missing: Sequence[Unread], *, apart: bool) -> Iterator[Sequence[Unread]]:
    """
    *missing* in the order of the rows, in pieces. *apart*: a piece has no gap, so that rows between
    the missing values are not read.
    """
    part: list[Unread] = []
    size = 0
    for one in sorted(missing, key=_place):
        size += one.size
        far = bool(part) and (part[0].key is None or (apart and one.place > part[-1].place + 1))
        if part and (far or size > _PIECE):
            yield part
            part, size = [], one.size
        part.append(one)
    if part:
        yield part


async def _read(
    unit: SqlUnitOfWork,
    run: Execution,
    part: Sequence[Unread],
    cells: Cells,
    value: Callable[[str], Any] = value_of,
) -> Values:
    """The values of *part*, each made from its JSON text by *value*. Raises `Stale`."""
    if part[0].key is None:
        wanted = query(OUTPUT, run.id)
    else:
        wanted = query(STEPS, part[0].place, part[-1].place, run.id)
    few = sum(one.size for one in part) <= ASIDE
    rows = await (unit.reads.few(wanted) if few else unit.reads.rows(wanted))
    if not rows or rows[0][0] != unit.stored_at.get(run.id, run.version):
        raise Stale("executions", run.id)
    decode = partial(_decoded, {_place(one) for one in part}, value)
    read = partial(unit.reads.read, FETCH.table, decode, rows, (run.id,), cells)
    return read() if few else await asyncio.to_thread(read)


def _decoded(
    places: Collection[int], value: Callable[[str], Any], rows: Any, cells: Cells
) -> Values:
    """The values of *rows* at *places*; *rows* is emptied on the way."""
    found: Values = {}
    while rows:
        _, position, *texts = rows.pop()
        own = position is None
        place = _ITS_OWN if own else position
        if place not in places:
            continue
        for column, cell in zip(_COLUMNS, texts, strict=True):
            if cell is None:
                found[place, column] = None
            elif own:
                found[place, column] = value(_opened(cells, cell, column))
            else:
                text = _opened(cells, cell, column, "step_results", position)
                found[place, column] = value(text)
    return found


def _opened(cells: Cells, cell: str, column: str, *where: Any) -> str:
    before = cells.cost
    text = cells.opened(cell, column, *where)
    if cells.cost == before:  # it is stored in clear
        cells.cost += cost_of(text)
    return text


def _with(run: Execution, values: Values) -> Execution:
    """*run* with *values* in place of values that were not read."""

    def full(result: StepResult) -> StepResult:
        missing = left_out(result)
        known = {
            name: values[one.place, name]
            for name, one in missing.items()
            if (one.place, name) in values
        }
        return evolve(result, **known) if known else result

    if left_out(run) and (_ITS_OWN, "output") in values:
        run = evolve(run, output=values[_ITS_OWN, "output"])
    steps = {name: full(one) for name, one in run.step_results.items()}
    if not run.put_aside:
        return evolve(run, step_results=steps)
    aside = {name: full(one) for name, one in run.put_aside.items()}
    return evolve(run, step_results=steps, put_aside=aside)
