"""
`python -m bench console`: how long pages take in a store that holds much.

1,000,000 ended executions are copies, made by SQL, of two that use cases made; 10,000 open
approvals are made by use cases, which takes some minutes. Each page is asked for over a connection
that stays open; the median of `TIMES` is held to 80 ms.
"""

import asyncio
import http.client
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from itertools import combinations
from pathlib import Path
from statistics import median

from attrs import frozen

from bench.http import whole
from bench.retention import DATABASE
from wfcore.model.access import Plan, Principal
from wfcore.model.json import Json
from wfcore.model.workflow import ApprovalStep, CodeStep, Definition, GroupSpec, Language
from wfcore.ports.runtime import StepEnd
from wfcore.usecases.accounts import accounts
from wfcore.usecases.accounts.sessions import issue_login_link
from wfcore.usecases.audit.auditing import UNKNOWN
from wfcore.usecases.executions import starting, worker
from wfcore.usecases.services import Services
from wfcore.usecases.workflows import workflows
from wfserver.compose import open_system
from wfserver.settings import settings_from

EXECUTIONS, APPROVALS = 1_000_000, 10_000
LARGE, ROWS = 200, 1_000
"""Further approvals, each of so many rows: lists must not read these. Decision 195."""
FAILED_OF = 50
"""One of so many executions has failed."""
FAILED, AT_ONCE = StepEnd(error="no"), 50
TIMES = 15
MOST_MS = 80.0


@frozen
class Filled:
    """
    What pages are asked for: a link that signs in, a workflow, one that asks about many rows,
    executions and an approval.
    """

    link: str
    workflow_id: str
    large: str
    done: str
    waiting: str


def unopened(data: Path) -> tuple[float, float]:
    """
    What pages cost a server of which nobody opens one: how many times as long its start takes as
    without them, and how many MB more it holds, idle. Both started in turns.
    """
    took: dict[str, list[float]] = {"1": [], "0": []}
    held: dict[str, list[float]] = {"1": [], "0": []}
    for _ in range(TIMES):
        for pages_too in took:
            with whole(data, WFCORE_CONSOLE=pages_too) as server:
                took[pages_too].append(server.ready_s)
                held[pages_too].append(server.memory_mb())
    return median(took["1"]) / median(took["0"]), median(held["1"]) - median(held["0"])


def fill(data: Path, executions: int = EXECUTIONS, approvals: int = APPROVALS) -> Filled:
    """A store of so many ended executions, and so many that wait at an approval."""
    found = asyncio.run(_models(data, approvals))
    with closing(sqlite3.connect(data / DATABASE, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("BEGIN IMMEDIATE")
        _copy(connection, found.done, executions * (FAILED_OF - 1) // FAILED_OF, "c")
        _copy(connection, _failed(connection), executions // FAILED_OF, "f")
        connection.execute("COMMIT")
    return found


def _failed(connection: sqlite3.Connection) -> str:
    sql = "SELECT id FROM executions WHERE status = 'FAILED' LIMIT 1"
    return str(connection.execute(sql).fetchone()[0])


async def _models(data: Path, approvals: int) -> Filled:
    async with open_system(settings_from({}, data=str(data))) as system:
        services = system.services
        account = await accounts.create_account(services, "bench@example.org", Plan.ENTERPRISE)
        who = Principal(account)
        code = tuple(CodeStep(f"s{n}", Language.BASH, ":") for n in range(3))
        plain = await workflows.apply_workflow(services, account.id, Definition("plain", code, ()))
        asks = Definition("asks", (ApprovalStep("review", "Look"),), ())
        asking = await workflows.apply_workflow(services, account.id, asks)
        rows: Json = [{"id": n, "payee": f"Somebody {n}", "amount": n / 4} for n in range(ROWS)]
        step = ApprovalStep("review", "Look", groups=(GroupSpec("rows", "Rows", rows, ()),))
        large = await workflows.apply_workflow(
            services, account.id, Definition("large", (step,), ())
        )
        made = [await _ended(services, who, plain.id, one) for one in (StepEnd(), FAILED)]
        for _ in range(LARGE // AT_ONCE):
            await _waiting(services, who, large.id)
        waiting = [
            await _waiting(services, who, asking.id) for _ in range(-(-approvals // AT_ONCE))
        ]
        token = await issue_login_link(services, account.id, UNKNOWN)
        return Filled(f"/in/{token}", plain.id, large.id, made[0], waiting[0])


async def _ended(services: Services, who: Principal, workflow_id: str, end: StepEnd) -> str:
    id = (await starting.start_execution(services, who, workflow_id, {})).execution_id
    (lease,) = await worker.claim(services, "bench", 1)
    jobs = (await worker.begin(services, lease)).jobs
    while jobs:
        jobs = (await worker.complete_step(services, lease, jobs[0].step_name, end)).jobs
    return id


async def _waiting(services: Services, who: Principal, workflow_id: str) -> str:
    """Some that wait, made by use cases: what an approval holds is sealed for its own id."""
    starts = (starting.start_execution(services, who, workflow_id, {}) for _ in range(AT_ONCE))
    ids = [one.execution_id for one in await asyncio.gather(*starts)]
    leases = await worker.claim(services, "bench", AT_ONCE)
    await asyncio.gather(*(worker.begin(services, lease) for lease in leases))
    return ids[0]


def _copy(connection: sqlite3.Connection, model: str, wanted: int, mark: str) -> None:
    """So many copies of an execution, a second apart, each with an id of its own."""
    for table, key in (("executions", "id"), ("step_results", "execution_id")):
        columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
        id = f"'exec_{mark}' || printf('%017x', n)"
        body = f"json_set(body, '$.id', {id}, '$.accepted_at', accepted_at - 1000 * n)"
        changed = {key: id}
        if table == "executions":
            ages = {name: f"{name} - 1000 * n" for name in ("accepted_at", "completed_at")}
            changed |= {**ages, "body": body}
        picked = ", ".join(changed.get(name, name) for name in columns)
        connection.execute(
            f"""WITH RECURSIVE numbers (n) AS
            (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ?)
            INSERT INTO {table} ({", ".join(columns)}) SELECT {picked} FROM numbers, {table}
            WHERE {key} = ?""",
            (wanted, model),
        )


def pages(found: Filled) -> Iterator[tuple[str, str]]:
    """What is asked for, by what people call it."""
    yield "executions", "/executions"
    for name in ("COMPLETED", "FAILED", "CANCELLED", "RUNNING", "AWAITING_APPROVAL"):
        yield f"executions, {name}", f"/executions?status={name}"
    yield "executions of a workflow", f"/executions?workflow={found.workflow_id}"
    yield "executions by webhook", "/executions?source=webhook"
    yield "executions until a day long ago", "/executions?to=2001-01-01"
    yield "executions by the end of an id", "/executions?q=zzzzzz"
    rare = {"workflow": found.workflow_id, "status": "FAILED", "source": "webhook"}
    rare |= {"from": "2020-01-01", "q": "zzzzzz"}
    for two in combinations(rare, 2):
        asked = "&".join(f"{name}={rare[name]}" for name in two)
        yield f"executions by {' and '.join(two)}", f"/executions?{asked}"
    yield "workflows", "/workflows"
    yield "a workflow", f"/workflows/{found.workflow_id}"
    yield "an execution that ended", f"/executions/{found.done}"
    yield "an execution that waits", f"/executions/{found.waiting}"
    yield "inbox", "/inbox"
    yield f"inbox, {ROWS:,} rows each", f"/inbox?workflow={found.large}"


def measured(data: Path, found: Filled) -> Iterator[tuple[str, float]]:
    """The median of each page in ms."""
    with whole(data, WFCORE_KEEP_EXECUTIONS="365d") as server:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        headers = {"Origin": f"http://127.0.0.1:{server.port}", "Accept": "text/html"}
        connection.request("POST", found.link, headers=headers)
        answer = connection.getresponse()
        answer.read()
        cookie = (answer.getheader("set-cookie") or "").partition(";")[0]
        for what, path in pages(found):
            yield what, median(_ms(connection, path, cookie) for _ in range(TIMES))


def _ms(connection: http.client.HTTPConnection, path: str, cookie: str) -> float:
    began = time.perf_counter()
    connection.request("GET", path, headers={"Cookie": cookie, "Accept": "text/html"})
    answer = connection.getresponse()
    answer.read()
    if answer.status != 200:
        raise AssertionError(f"{path}: {answer.status}")
    return (time.perf_counter() - began) * 1_000
