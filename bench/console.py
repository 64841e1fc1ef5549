"""
`python -m bench console`: how long pages take in a store that holds much.

1,000,000 ended executions are copies of two (`bench.fill`). 10,000 open approvals, a quarter agreed
to by the reader and a quarter by another person, and 10,000 decided ones are made by use cases,
which takes some minutes. Each page is requested `TIMES` times over one connection; the CPU time of
the server for one request is held to 80 ms. `python -m bench inbox`: the views of the inbox alone,
without the executions, over a file and over PostgreSQL.
"""

import asyncio
import http.client
import time
from collections.abc import Callable, Iterator
from itertools import combinations
from pathlib import Path
from statistics import median

from attrs import frozen

from bench.fill import WAITING_AT_ONCE, ended, fill, waiting
from bench.http import whole
from wfcore.model.access import OPERATOR, Principal, Tier
from wfcore.model.approval import DecisionSource
from wfcore.model.json import Json
from wfcore.model.page import PageRequest
from wfcore.model.workflow import ApprovalStep, CodeStep, Definition, GroupSpec, Language
from wfcore.ports.records import ApprovalFilter
from wfcore.ports.runtime import StepEnd
from wfcore.rules.approval.machine import Approve
from wfcore.usecases.accounts import accounts
from wfcore.usecases.accounts.sessions import issue_login_link
from wfcore.usecases.approvals.approvals import list_approvals
from wfcore.usecases.approvals.deciding import Decide, decide_approval
from wfcore.usecases.approvals.reviewing import Tab
from wfcore.usecases.audit.auditing import UNKNOWN
from wfcore.usecases.services import Services
from wfcore.usecases.workflows import workflows
from wfserver.compose import open_system
from wfserver.settings.record import settings_from

EXECUTIONS, APPROVALS = 1_000_000, 10_000
EACH = 4
"""One part in so many of the open approvals is agreed to by the reader, and one by the other."""
LARGE, ROWS = 200, 1_000
"""Further approvals, each of so many rows: lists must not read these."""
FAILED_OF = 50
"""One of so many executions has failed."""
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


def filled(data: Path, executions: int = EXECUTIONS, approvals: int = APPROVALS) -> Filled:
    """A store of so many ended executions, and so many that wait at an approval."""
    found, failed = asyncio.run(_models(data, approvals))
    models = [found.done] * (FAILED_OF - 1) + [failed]
    fill(data, models, executions, round(time.time() * 1_000), 1_000)
    return found


def waited(data: Path, store: str | None = None) -> Filled:
    """The same approvals without the old executions, in the database *store*, or in a file."""
    found, _ = asyncio.run(_models(data, APPROVALS, store))
    return found


async def _models(data: Path, approvals: int, store: str | None = None) -> tuple[Filled, str]:
    """What pages are asked for, and an execution that failed."""
    async with open_system(settings_from({}, data=str(data), store=store)) as system:
        services = system.services
        account = await accounts.create_account(services, "bench@example.org", Tier.ENTERPRISE)
        who = Principal(account)
        code = tuple(CodeStep(f"s{n}", Language.BASH, ":") for n in range(3))
        plain = await workflows.apply_workflow(services, account.id, Definition("plain", code, ()))
        other = Principal(await accounts.create_account(services, "other@example.org", Tier.FREE))
        both = (account.email, other.account.email)
        look = ApprovalStep("review", "Look", approvers=both, required_approvals=2)
        asks = Definition("asks", (look,), ())
        asking = await workflows.apply_workflow(services, account.id, asks)
        rows: Json = [{"id": n, "payee": f"Somebody {n}", "amount": n / 4} for n in range(ROWS)]
        step = ApprovalStep("review", "Look", groups=(GroupSpec("rows", "Rows", rows, ()),))
        large = await workflows.apply_workflow(
            services, account.id, Definition("large", (step,), ())
        )
        done = await ended(services, who, plain.id, StepEnd())
        failed = await ended(services, who, plain.id, StepEnd(error="no"))
        for _ in range(LARGE // WAITING_AT_ONCE):
            await waiting(services, who, large.id)
        turns = -(-approvals // WAITING_AT_ONCE)
        for _ in range(turns):
            await waiting(services, who, asking.id)
            await _approve(services, who, other)
        for turn in range(turns):
            waits = await waiting(services, who, asking.id)
            if turn % EACH < len(both):
                await _approve(services, (who, other)[turn % EACH])
        token = await issue_login_link(services, OPERATOR, account.id, UNKNOWN)
        return Filled(f"/in/{token}", plain.id, large.id, done, waits), failed


async def _approve(services: Services, *people: Principal) -> None:
    """Each of *people* approves the newest approvals, as many as `waiting` opens."""
    newest = PageRequest(size=WAITING_AT_ONCE)
    for who in people:
        found = await list_approvals(services, who, newest, ApprovalFilter())
        for one in found.rows:
            await decide_approval(services, who, Decide(one.id, Approve(), DecisionSource.API))


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
    yield "overview", "/overview"
    yield "overview by the day", "/overview?by=day"
    yield from inbox(found)


def inbox(found: Filled) -> Iterator[tuple[str, str]]:
    """Each view of the inbox, with and without a search."""
    for view in Tab:
        yield f"inbox, {view}", f"/inbox?view={view}"
        for name, text in (("each", "look"), ("none", "zzzzzz")):
            yield f"inbox, {view}, a text that {name} has", f"/inbox?view={view}&q={text}"
    yield "a search that finds nothing", "/search?q=zzzzzz"
    yield f"inbox, {ROWS:,} rows each", f"/inbox?workflow={found.large}"


Pages = Callable[[Filled], Iterator[tuple[str, str]]]


def measured(
    data: Path, found: Filled, asked: Pages = pages, **env: str
) -> Iterator[tuple[str, float, float]]:
    """
    Of each page: the server's CPU time for one request and the median until it came, in ms. CPU
    time is that of a machine that does nothing else: what others do to its caches is taken off.
    """
    quickest = min(_yardstick_s() for _ in range(100))
    with whole(data, WFCORE_KEEP_EXECUTIONS="365d", **env) as server:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        headers = {"Origin": f"http://127.0.0.1:{server.port}", "Accept": "text/html"}
        connection.request("POST", found.link, headers=headers)
        answer = connection.getresponse()
        answer.read()
        cookie = (answer.getheader("set-cookie") or "").partition(";")[0]

        def cost(path: str) -> tuple[float, float]:
            before = server.cpu_s()
            taken = median(_ms(connection, path, cookie) for _ in range(TIMES))
            spent_ms = (server.cpu_s() - before) * 1_000 / TIMES
            now = median(_yardstick_s() for _ in range(TIMES))
            return spent_ms * min(quickest / now, 1), taken

        for what, path in asked(found):
            yield what, *min(cost(path) for _ in range(3))


def _yardstick_s() -> float:
    """CPU seconds for a piece of work that is always the same."""
    before = time.process_time()
    for number in range(100_000):
        str(number)
    return time.process_time() - before


def _ms(connection: http.client.HTTPConnection, path: str, cookie: str) -> float:
    began = time.perf_counter()
    connection.request("GET", path, headers={"Cookie": cookie, "Accept": "text/html"})
    answer = connection.getresponse()
    answer.read()
    if answer.status != 200:
        raise AssertionError(f"{path}: {answer.status}")
    return (time.perf_counter() - began) * 1_000
