"""Power cuts at any moment of a real run: nothing acknowledged is lost, and nothing is half."""

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from time import monotonic

import pytest

from tests.proofs.record import note

from . import power, tracing
from .tracing import Planted

CUTS = int(os.environ.get("POWER_CUTS", "300"))
SEED = int(os.environ.get("POWER_CUTS_SEED", "1"))
WORKLOAD = str(Path(__file__).with_name("workload.py"))
CHECKPOINTS: Planted = (
    "adapters_store.sqlite.connection",
    '"PRAGMA wal_autocheckpoint = 4000"',
    '"PRAGMA wal_autocheckpoint = 60"',
)
"""Often enough that a short run has many, and that the log begins anew many times."""


def recorded(folder: Path, rounds: int, *planted: Planted) -> Sequence[tracing.Call]:
    """What a run of the workload wrote and flushed."""
    (folder / "run").mkdir()
    path = str(folder / "run" / "wfcore.db")
    changed = [CHECKPOINTS, *planted]
    return tracing.run(folder / "record", WORKLOAD, path, str(rounds), planted=changed)


def play(record: Sequence[tracing.Call], cuts: int, seed: int) -> int:
    """So many cuts, spread over the moments of the run; how many of them cost unflushed bytes."""
    chance = Random(seed)
    total = sum(1 for _ in power.moments(record))
    chosen = sorted(chance.choices(range(total), k=cuts))
    costly = 0
    with medium() as again:
        for at, moment in enumerate(power.moments(record)):
            while chosen and chosen[0] == at:
                chosen.pop(0)
                costly += any(file.since for file in moment.files.values())
                power.cut(moment, chance, again)
                try:
                    power.judge(moment, again)
                except BaseException as error:
                    error.add_note(f"seed {seed}, moment {at} of {total}, {len(chosen)} cuts left")
                    raise
    return costly


@contextmanager
def medium() -> Iterator[Path]:
    """A folder for what is left; in memory where that can be had, as it is flushed often."""
    memory = Path("/dev/shm")
    with TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        yield Path(folder)


def test_no_power_cut_costs_what_was_acknowledged(tmp_path: Path) -> None:
    """After every cut our own code opens the database, whole, with all it has told."""
    record = recorded(tmp_path, 30)
    flushed = [call.file for call in record if call.name in tracing.FLUSHES]
    acks = [call for call in record if call.name == "write" and b"ack" in call.texts[0]]
    assert len(acks) == 90
    assert sum(file.endswith("-wal") for file in flushed) < len(acks), "no commits were gathered"
    assert sum(file.endswith("wfcore.db") for file in flushed) > 5, "there were no checkpoints"
    since = monotonic()
    costly = play(record, CUTS, SEED)
    note("power cuts", SEED, since, {"cuts": CUTS, "that cost unflushed bytes": costly})
    assert costly > CUTS / 2


LOST = {
    "no flush at commit": (
        ("adapters_store.sqlite.connection", "synchronous = FULL", "synchronous = NORMAL"),
        r"acknowledged and lost|is lost|delete wfcore.db-commit|assert \d",
    ),
    "noted before it is durable": (
        (
            "adapters_store.sqlite.writer",
            '    cursor.execute("COMMIT")\n    return beat',
            '    NOTE(beat or 0)\n    cursor.execute("COMMIT")\n    return beat',
        ),
        r"delete wfcore.db-commit",
    ),
    "told before it is durable": (
        (
            "adapters_store.sqlite.writer",
            "                done = self._carry_out(batch)\n",
            "                for _, future in batch:\n"
            "                    self._loop.call_soon_threadsafe(\n"
            "                        lambda f=future: f.done() or f.set_result(None))\n"
            "                done = self._carry_out(batch)\n",
        ),
        r"acknowledged and lost|is lost|assert \d",
    ),
}
NOTE: Planted = (
    "adapters_store.sqlite.writer",
    "        self._file = file\n",
    "        self._file = file\n        global NOTE\n        NOTE = file.note\n",
)


@pytest.mark.parametrize("name", LOST)
def test_a_planted_defect_is_found(tmp_path: Path, name: str) -> None:
    """The cuts bite: each of these loses something, or refuses a whole database, in some cut."""
    planted, told = LOST[name]
    record = recorded(tmp_path, 12, planted, NOTE)
    with pytest.raises(BaseException) as found:
        play(record, 1_000, SEED)
    assert re.search(told, f"{found.value}")
