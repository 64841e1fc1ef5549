"""
`python -m bench [--seconds S] [--long] [PART …]`: ratios, all measured in this run on this machine.

Absolute figures depend on the machine and are printed for orientation; the ratios are what
this project promises. A row is printed as soon as it is measured; one that misses its promise is
marked, and the exit status is 1. With `--long` retention deletes as many executions as it promises
to, instead of a part of them, and the store of `growth` is as large as it promises.
"""

import argparse
import asyncio
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from bench import (
    console,
    contained,
    dispatch,
    given,
    growth,
    http,
    kit,
    largest,
    light,
    nodes,
    payloads,
    postgres,
    processes,
    readers,
    retention,
    scenarios,
    spawn,
    without,
    writer,
)
from bench.load import request
from bench.peers import doors, work
from bench.report import TURNS, Report, in_turns, in_turns_few
from bench.servers import Server
from tests.support.postgres_server import cluster
from wfcore.model.workflow import Language, Runtime

CLIENTS = 32
STEPS = 9


def http_rows(report: Report, seconds: float, folder: Path) -> None:
    seeded = http.seed(folder)
    with http.bare() as yardstick, http.http_alone(folder) as server:

        def rate(of: Server, ask: Callable[[], bytes]) -> Callable[[float], float]:
            return lambda part: http.measured(of, CLIENTS, part, ask).per_second

        posts = rate(yardstick, lambda: EMPTY_POST)
        gets = rate(yardstick, lambda: request("GET", "/"))
        for what, got, against, wanted in (
            ("status poll / bare endpoint", http.polls(server, seeded), gets, 0.5),
            ("durable start / bare", http.starts(seeded), posts, 0.22),
            ("webhook trigger / bare", http.triggers(seeded), posts, 0.18),
        ):
            report.ratio(what, *in_turns(seconds, rate(server, got), against), "req/s", wanted)

        def alone(ask: Callable[[], bytes]) -> Callable[[float], float]:
            return lambda part: http.measured(server, 1, part, ask).per_second

        what = f"a list of {http.LISTED} / status poll, one connection"
        both = in_turns(seconds, alone(http.lists(seeded)), alone(http.polls(server, seeded)))
        report.ratio(what, *both, "req/s", 0.25)

        def cpu(ask: Callable[[], bytes]) -> Callable[[], float]:
            return lambda: http.cpu_ms(server, seconds, ask)

        got, against = in_turns_few(cpu(http.lists(seeded)), cpu(http.polls(server, seeded)))
        what = "the same, CPU of the server"
        report.at_most(what, f"{got:.2f} ms", f"{against:.2f} ms", got / against, 4)


def processes_rows(report: Report, seconds: float, folder: Path) -> None:
    """What a second process on a second processor brings, clients included."""
    with processes.both(folder, CLIENTS) as rates:
        for what, (two, one) in rates.items():
            figures = in_turns(seconds, two, one)
            report.ratio(f"{what}, two of each / one", *figures, "/s", PROCESSES[what])


PROCESSES = {"status polls": 1.7, "light executions": 1.4}
"""Two processes on two processors, in relation to one on one of them."""


def writer_rows(report: Report, seconds: float) -> None:
    rates = in_turns(
        seconds,
        lambda part: asyncio.run(writer.transitions(part, CLIENTS)),
        lambda part: asyncio.run(writer.bare_group_commit(part, CLIENTS)),
    )
    report.ratio("durable transition / bare writer", *rates, "tx/s", 0.5)


WARM = {
    Language.PYTHON: 0.35,
    Language.JAVASCRIPT: 0.5,
    Language.TYPESCRIPT: 0.5,
    Language.RUBY: 0.25,
}
"""A step in a waiting interpreter, in relation to a bare spawn of the same."""
SCENARIOS = 100
"""How many scenarios of definitions `wfcore test` plays in a second."""
OVERHEAD_MS = 6.0
IDLE_MB = 60
KEPT = 1.2
USED = ("bash-1", "python-1")
"""What loads the code that executions need: a cipher, the shapes of records."""
ENGINE_MS = 3.0
SERVER_MS = 2.5
"""HTTP, claim, records, store and the channel to the step, without what starts and confines it."""


def spawn_rows(report: Report) -> Mapping[Language, spawn.Start]:
    found = asyncio.run(spawn.measure(20))
    for language, start in found.starts.items():
        what = f"{language} step / bare spawn"
        got, against = f"{start.step_ms:.1f} ms", f"{start.bare_ms:.1f} ms"
        if language in WARM:
            report.at_most(what, got, against, start.step_ms / start.bare_ms, WARM[language])
        else:
            over = start.step_ms - start.bare_ms
            report.most(f"{what}, beyond it", over, "ms", OVERHEAD_MS, against)
    report.ratio("Python steps / bare spawns", found.steps, found.spawns, "/s", 3)
    report.most(f"waiting interpreters, {found.level}, idle", found.idle_mb, "MB", 60)
    report.plain("waiting interpreters, just used", f"{found.waiting_mb:.0f} MB")
    return found.starts


def contained_rows(report: Report, seconds: float) -> None:
    """What steps cost the machine, with their isolation."""
    count = round(seconds * STEPS_A_SECOND)
    boxed = contained.bubblewrap_ms(count)
    if boxed is None:
        report.plain("isolation and Bash / bubblewrap and Bash", "bubblewrap is not installed")
    isolation_ms = 0.0
    for language, runtime in contained.KINDS:
        cost = asyncio.run(contained.cost(language, runtime, count))
        if cost is None:
            continue
        words = f"{cost.server_ms + cost.below_ms:.1f} CPU ms, {cost.server_ms:.1f} in the server"
        what = f"contained steps, {language}{f' on {runtime}' if runtime else ''}"
        report.plain(what, f"{cost.per_second:,.0f}/s", words)
        if boxed is not None and language is Language.BASH:
            what, got = "isolation and Bash / bubblewrap and Bash", f"{cost.below_ms:.1f} ms"
            report.at_most(what, got, f"{boxed:.1f} ms", cost.below_ms / boxed, BOXED)
        if language is Language.BASH:
            isolation_ms = cost.below_ms - contained.bash_ms(count)
        if language is Language.PYTHON:
            what, got = "Python step / a fork and Bash's isolation", f"{cost.below_ms:.1f} ms"
            against = contained.fork_ms(count) + isolation_ms
            report.at_most(what, got, f"{against:.1f} ms", cost.below_ms / against, FORKED)
        if runtime is Runtime.BUN and (found := contained.bun_ms(count)) is not None:
            (bare, boxed_bun), got = found, f"{cost.below_ms:.1f} ms"
            what = "isolation and Bun / bare Bun"
            report.at_most(what, got, f"{bare:.1f} ms", cost.below_ms / bare, BUN)
            if boxed_bun is not None:
                what = "isolation and Bun / bubblewrap and Bun"
                report.at_most(what, got, f"{boxed_bun:.1f} ms", cost.below_ms / boxed_bun, BOXED)


STEPS_A_SECOND = 50
BUN = 1.2
FORKED = 1.15
BOXED = 1.05
"""Bubblewrap makes namespaces for each program; it counts no memory, filters no calls, and knows no
Landlock."""


def kit_rows(report: Report) -> None:
    for name, per_second in kit.speeds().items():
        report.plain(f"values of {name} for tests", f"{per_second:,.0f} /s")
    report.ratio("scenarios of definitions", scenarios.per_second(1), SCENARIOS, "/s", 1)


def engine_rows(report: Report, seconds: float, folder: Path) -> None:
    """Steps by themselves, then executions of such steps."""
    starts = spawn_rows(report)
    seeded = http.seed(folder)
    report.most("time to readiness", http.readiness_s(folder), "s", 1)
    with http.whole(folder) as server:
        report.most("memory, idle", server.memory_mb(), "MB", IDLE_MB)
        for name in USED:
            http.executions(server, seeded, name, 1, 0.1)
        idle = server.memory_mb()
        alone: dict[str, float] = {}
        for name in ("bash-1", "bash-3", "python-1"):
            for clients in (1, 8, 32):
                done = http.executions(server, seeded, name, clients, seconds)
                alone.setdefault(name, done.p50_ms)
                report.plain(
                    f"executions, {name}, {clients} clients",
                    f"{done.per_second:,.0f}/s",
                    f"{done.cpu_ms:.1f} CPU ms each, p50 {done.p50_ms:.1f} ms",
                )
        done = http.executions(server, seeded, "bash-1", LIGHT_CLIENTS, seconds)
        what = f"the server's part of a Bash execution, {LIGHT_CLIENTS} clients"
        report.most(what, done.cpu_ms, "CPU ms", SERVER_MS, f"{done.per_second:,.0f}/s")
        for language in (Language.BASH, Language.PYTHON):
            what = f"one-step {language} execution, beyond a bare spawn"
            bare = starts[language].bare_ms
            report.plain(what, f"{alone[f'{language}-1'] - bare:.1f} ms", f"{bare:.1f} ms")
        engine, step = engine_ms(server, seeded, seconds)
        what = "engine, each further step, beyond the step"
        report.most(what, engine, "ms", ENGINE_MS, f"{step:.1f} ms")
        report.plain("memory, under the load", f"{server.memory_mb():.0f} MB")
        after = server.rested_mb(idle * KEPT)
        what = "memory after the load / idle, with all of its code loaded"
        report.at_most(what, f"{after:.0f} MB", f"{idle:.0f} MB", after / idle, KEPT)
        what = f"memory for {readers.CLIENTS:,} clients that read nothing, beyond idle"
        report.most(what, readers.slow_readers_mb(server, seeded), "MB", 63)


def light_rows(report: Report, seconds: float, folder: Path) -> None:
    """What a whole execution costs of which nothing leaves the engine."""
    seeded = http.seed(folder)
    with http.bare() as yardstick, http.whole(folder) as server:

        def rate(of: Server, ask: Callable[[], bytes]) -> Callable[[float], float]:
            return lambda part: http.measured(of, LIGHT_CLIENTS, part, ask).per_second

        posts = rate(yardstick, lambda: EMPTY_POST)
        rates = in_turns(seconds, rate(server, light.starts(seeded)), posts)
        found = light.measured(server, seeded, LIGHT_CLIENTS, seconds)
    delays = found.delays_ms
    what = f"light executions, {LIGHT_CLIENTS} clients / bare endpoint"
    report.ratio(what, *rates, "/s", 0.07)
    report.most("a light execution", found.cpu_ms, "CPU ms", 1.2)
    report.most("a light execution, one client, p50", found.p50_ms, "ms", 3)
    what, got = f"{http.LIGHT_STEPS} light steps in a row / one, p50", f"{found.row_ms:.1f} ms"
    report.at_most(what, got, f"{found.p50_ms:.1f} ms", found.row_ms / found.p50_ms, 6)
    slow, p50 = delays[-1], delays[len(delays) // 2]
    report.most(f"delay of 1 ms, slowest of {len(delays)}", slow, "ms", 100, f"p50 {p50:.1f} ms")


LIGHT_CLIENTS = 16
EMPTY_POST = request("POST", "/", body=b'{"inputs":{}}')


def store_rows(report: Report, seconds: float, folder: Path, long: bool) -> None:
    """What much stored costs a start, and how it goes once it is old."""
    wanted = retention.LONG if long else retention.SHORT
    seeded = http.seed(folder)
    none = http.readiness_s(folder)
    retention.filled(folder, seeded, wanted)
    many = http.readiness_s(folder, WFCORE_KEEP_EXECUTIONS="365d")
    what = f"readiness with {wanted:,} executions / with none"
    report.at_most(what, f"{many:.2f} s", f"{none:.2f} s", many / none, 1.5)
    found = retention.measured(folder, seeded, wanted, seconds)
    minutes = retention.LONG / found.per_second / 60
    what = f"{retention.LONG:,} old executions gone, from {wanted:,}"
    report.most(what, minutes, "min", 10, f"{found.per_second:,.0f}/s")
    usual, beside = found.usual_ms, found.beside_ms
    what = "starts beside retention, p99 / usual"
    report.at_most(what, f"{beside:.1f} ms", f"{usual:.1f} ms", beside / usual, 2)
    sizes = f"{found.bytes_before / 1e6:,.0f} MB", f"{found.bytes_after / 1e6:,.0f} MB"
    report.plain("database before and after retention", sizes[1], sizes[0])
    report.most("its room given back beside starts, after", found.shrinking_s, "s", 60)


def engine_ms(server: Server, seeded: http.Seeded, seconds: float) -> tuple[float, float]:
    """
    What two more steps add, halved, beyond what such a step takes without an engine, and the
    latter; in turns, so that a busy moment meets all of them, the turn in the middle.
    """

    def p50(name: str) -> float:
        return http.executions(server, seeded, name, 1, seconds / TURNS).p50_ms

    def turn() -> tuple[float, float]:
        step = asyncio.run(spawn.step_ms(Language.BASH, STEPS))
        return (p50("bash-3") - p50("bash-1")) / 2 - step, step

    return sorted(turn() for _ in range(TURNS))[TURNS // 2]


def largest_rows(report: Report, folder: Path) -> None:
    what = "10,000 edited rows approved: longest turn of the event loop"
    report.most(what, largest.held_ms(folder), "ms", 100)


def without_rows(report: Report, seconds: float, folder: Path) -> None:
    """What each cleverness buys; not one of the parts that are measured without being asked for."""
    for name in without.PARTS:
        for load, found in without.measured(name, seconds / 6, folder / name):
            what = f"{load} without {name}: CPU, rate"
            report.plain(
                what, f"{found.cpu:.2f}, {found.rate:.2f}", f"{found.cpu_us:.0f} CPU µs with"
            )


def payloads_rows(report: Report, folder: Path) -> None:
    """What looking costs beside large outputs, on both stores. ST-7."""
    with postgres.server() as made:
        for name, where in (("SQLite", None), ("PostgreSQL", made)):
            place = folder / name
            place.mkdir(parents=True)
            found = payloads.figures(where, place)
            for what in ("poll", "list", "cancel"):
                large, small = found[f"{what} large"], found[f"{what} small"]
                row = f"{name}: {what} beside 15 outputs of 4 MB / 4 bytes"
                against = f"{small:.2f} ms of CPU"
                report.at_most(row, f"{large:.2f} ms", against, large / small, 1.5)
            start, raw = found["start large"], found["bytes"]
            row = f"{name}: start with them, to a delay / their bytes"
            report.at_most(row, f"{start:,.0f} ms", f"{raw:,.0f} ms of CPU", start / raw, 3)
            report.most(f"{name}: memory for looks, beyond idle", found["looks MB"], "MB", 150)
            report.most(f"{name}: memory for the start, beyond idle", found["start MB"], "MB", 150)
            code = found["code large"]
            row = f"{name}: a code step that is given them / their bytes"
            report.at_most(row, f"{code:,.0f} ms", f"{raw:,.0f} ms of CPU", code / raw, 1)
            report.most(f"{name}: memory for that step, beyond idle", found["code MB"], "MB", 150)


def restate_rows(report: Report, folder: Path) -> None:
    """
    The same light work beside Restate, which is installed from the registries: with a service in
    Python, and with one in JavaScript.
    """
    if not (shutil.which("node") and shutil.which("npm")):
        report.plain("light executions / Restate's", "node and npm are not installed")
        return
    services = doors.python_service, doors.javascript_service
    with doors.beside_restate(folder, *services) as found:
        turns = [work.in_turn(found) for _ in range(RESTATE_TURNS)]
        for door, wanted in zip(found[1:], (2, 1.5), strict=True):
            middle = sorted(turns, key=partial(_faster, found[0].title, door.title))
            ours, its = (middle[len(turns) // 2][one.title] for one in (found[0], door))
            both = ours["per_second"], its["per_second"]
            report.ratio(f"light executions / {door.title}", *both, "/s", wanted)
            for what, name, most in (
                ("CPU of one", "cpu_ms", 0.8),
                ("approval → end", "approval_ms", 0.8),
            ):
                got, against = f"{ours[name]:.2f} ms", f"{its[name]:.2f} ms"
                report.at_most(f"{what} / the same", got, against, ours[name] / its[name], most)


RESTATE_TURNS = 3


def _faster(ours: str, its: str, turn: Mapping[str, Mapping[str, float]]) -> float:
    return turn[ours]["per_second"] / turn[its]["per_second"]


def given_rows(report: Report, folder: Path) -> None:
    """The begin of a step beside many large files, which are not copied."""
    with_files, without = given.begins_ms(folder)
    what = "a step that reads 200 files of 1 MB begins / one that reads none"
    report.at_most(what, f"{with_files:.1f} ms", f"{without:.1f} ms", with_files / without, 1.2)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument(
        "parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; all of them"
    )
    parser.add_argument("--seconds", type=float, default=3.0, help="for a rate")
    parser.add_argument("--long", action="store_true", help=f"{retention.LONG:,} old executions")
    asked = parser.parse_args()
    if unknown := set(asked.parts) - set(PARTS):
        parser.error(f"no such part: {', '.join(sorted(unknown))}")
    report = Report()
    with tempfile.TemporaryDirectory() as folder:
        for name in asked.parts or [name for name in PARTS if name not in ON_DEMAND]:
            PARTS[name](report, asked, Path(folder, name))
    return 0 if report.kept else 1


def console_rows(report: Report, folder: Path) -> None:
    """Pages over a million executions, ten thousand open and as many decided approvals."""
    times, megabytes = console.unopened(folder)
    report.most("start with pages that nobody opens, of one without", times, "times", 1.1)
    report.most("memory of pages that nobody opens", megabytes, "MB", 1)
    found = console.filled(folder)
    for what, cpu_ms, ms in console.measured(folder, found):
        report.most(what, cpu_ms, "CPU ms", console.MOST_MS, f"{ms:.1f} ms")


def inbox_rows(report: Report, folder: Path) -> None:
    """Views of the inbox over ten thousand open and as many decided approvals, in both stores."""
    with contextmanager(cluster)() as server:
        server.execute("CREATE DATABASE inbox")
        for name, store in (("file", None), ("PostgreSQL", server.url("inbox"))):
            data, env = folder / name, {"WFCORE_STORE": store} if store else {}
            found = console.waited(data, store)
            for what, cpu_ms, ms in console.measured(data, found, console.inbox, **env):
                report.most(f"{what}, {name}", cpu_ms, "CPU ms", console.MOST_MS, f"{ms:.1f} ms")


def growth_rows(report: Report, folder: Path, long: bool) -> None:
    """What everyday work takes with millions stored, in relation to few."""
    fresh_kb, kept_kb = growth.kept_kb(folder / "kept")
    report.most("disk of an execution of three steps", kept_kb, "KB", 1.2)
    report.plain("disk of one that has just ended", f"{fresh_kb:.1f} KB")
    few = growth.filled(folder / "few", growth.FEW)
    many = growth.filled(folder / "many", growth.LONG if long else growth.USUAL)
    for row in growth.measured(few, many):
        figures = f"{row.many_ms:.2f} ms", f"{row.few_ms:.2f} ms"
        report.at_most(row.what, *figures, row.many_ms / row.few_ms, row.most)


def postgres_rows(report: Report, seconds: float, long: bool) -> None:
    """The store on PostgreSQL beside the one in a file."""
    with postgres.server() as made:
        both = in_turns_few(
            lambda: postgres.starts(made, seconds / 3), lambda: postgres.starts(None, seconds / 3)
        )
        report.ratio("starts on PostgreSQL / SQLite", *both, "/s", 0.5)
        locked = postgres.lock_waits(made, seconds)
        what = f"its sessions that wait for a lock, {CLIENTS} clients at two servers"
        report.most(what, locked, "%", 5)
        both = in_turns_few(
            lambda: postgres.drained(made, DRAINED), lambda: postgres.drained(None, DRAINED)
        )
        report.ratio("executions drained on PostgreSQL / SQLite", *both, "/s", 0.5)
        rate = postgres.admissions(made, seconds)
        report.ratio("admissions of one key on PostgreSQL", rate, ADMISSIONS, "/s", 1)
        waiting = postgres.LONG if long else postgres.SHORT
        found = postgres.claims(made, waiting)
        what = f"a claim on PostgreSQL with {waiting:,} waiting / with few"
        got, against = f"{found.full_ms:.2f} ms", f"{found.empty_ms:.2f} ms"
        report.at_most(what, got, against, found.full_ms / found.empty_ms, 2)
        each = postgres.cost(made, DRAINED)
        report.plain("CPU of an execution, its step apart", f"{each.here_ms:.1f} ms")
        report.plain("the same, in PostgreSQL", f"{each.database_ms:.1f} ms")
        report.plain("log of PostgreSQL for an execution", f"{each.wal / 1_024:.1f} KiB")
        for number, most in ((1, 2), (2, 3)):
            idle = postgres.idle_transactions(made, number, IDLE_S)
            what = f"transactions of an idle server, {number} on PostgreSQL, each"
            report.most(what, idle, "/s", most)
        both = postgres.beside_listeners(made, seconds)
        report.ratio("starts on PostgreSQL, hints heard / unheard", *both, "/s", 0.9)
        woken = nodes.woken(made)
        report.most("end of a step → ?wait at another server, p99", woken.wait_ms, "ms", 50)
        report.most("the same → end of a stream of events, p99", woken.stream_ms, "ms", 50)
        report.most("cancellation → end at another server, p99", woken.cancel_ms, "ms", 50)
        report.most("cancellation → callback of another server, p99", woken.callback_ms, "ms", 50)


def starting_rows(report: Report, folder: Path) -> None:
    """What starts a process: a server again after kill -9, and a command."""
    with postgres.server() as made:
        url = asyncio.run(postgres.new_database(made))
        on_file, on_postgres = folder / "file", folder / "postgres"
        in_file, in_database = http.seed(on_file), http.seed(on_postgres, url)
        again, yardstick = in_turns_few(
            lambda: http.again_s(on_postgres, in_database, WFCORE_STORE=url),
            lambda: http.again_s(on_file, in_file),
        )
    what, got = "ready again after kill -9 on PostgreSQL / SQLite", f"{again:.2f} s"
    report.at_most(what, got, f"{yardstick:.2f} s", again / yardstick, 1.5)
    listed, bare = http.command_ms(on_file, "execution", "list")
    got, against = f"{listed:.0f} ms", f"{bare:.0f} ms of CPU"
    report.at_most("`wfcore execution list` / a bare interpreter", got, against, listed / bare, 3)


def dispatch_rows(report: Report) -> None:
    """Executions that NATS hands from the server that accepts them to the one that works."""
    with postgres.server() as made, dispatch.nats() as broker:
        found = dispatch.measured(made, broker)
        report.most("accepted → begun elsewhere, by NATS, p99", found.plugged_ms, "ms", 50)
        report.most("transactions of an idle node that sweeps, with NATS", found.idle, "/s", 3)
        report.plain("accepted → begun elsewhere, NATS away, p99", f"{found.unplugged_ms:.0f} ms")
        what, most = "the same, and no hint is heard, p99", postgres.SHARED.poll_ms + LOOKING_MS
        report.most(what, found.unheard_ms, "ms", most)
        report.most("the same, NATS back, p99", found.again_ms, "ms", 50)


LOOKING_MS = 500
"""What a look at the store finds takes so long to begin at most."""
IDLE_S = 21
"""Three sweeps of a server that shares its database."""
DRAINED = 960
"""So many that the start of an engine, and of its connections, is not most of it."""
ADMISSIONS = 3_000


ON_DEMAND = ("without", "console", "inbox", "growth", "restate")
"""Parts that run only when they are named."""
PARTS: Mapping[str, Callable[[Report, argparse.Namespace, Path], None]] = {
    "http": lambda report, asked, folder: http_rows(report, asked.seconds, folder),
    "payloads": lambda report, asked, folder: payloads_rows(report, folder),
    "processes": lambda report, asked, folder: processes_rows(report, asked.seconds, folder),
    "writer": lambda report, asked, folder: writer_rows(report, asked.seconds),
    "kit": lambda report, asked, folder: kit_rows(report),
    "contained": lambda report, asked, folder: contained_rows(report, asked.seconds),
    "engine": lambda report, asked, folder: engine_rows(report, asked.seconds, folder),
    "restate": lambda report, asked, folder: restate_rows(report, folder),
    "given": lambda report, asked, folder: given_rows(report, folder),
    "light": lambda report, asked, folder: light_rows(report, asked.seconds, folder),
    "store": lambda report, asked, folder: store_rows(report, asked.seconds, folder, asked.long),
    "postgres": lambda report, asked, folder: postgres_rows(report, asked.seconds, asked.long),
    "starting": lambda report, asked, folder: starting_rows(report, folder),
    "dispatch": lambda report, asked, folder: dispatch_rows(report),
    "largest": lambda report, asked, folder: largest_rows(report, folder),
    "console": lambda report, asked, folder: console_rows(report, folder),
    "inbox": lambda report, asked, folder: inbox_rows(report, folder),
    "growth": lambda report, asked, folder: growth_rows(report, folder, asked.long),
    "without": lambda report, asked, folder: without_rows(report, asked.seconds, folder),
}


if __name__ == "__main__":
    sys.exit(main())
