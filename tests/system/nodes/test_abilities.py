"""What a node is able to do: it takes that and nothing else, and what nobody takes says why."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest
from attrs import evolve

from tests.support.postgres_server import emptied
from tests.wfserver.conftest import document, end, start
from wfcore import Engine, Principal, ensure_account, in_memory
from wfcore.errors import InvalidInput, NotFound, NotReady
from wfcore.model.access import OPERATOR, Scope
from wfcore.model.explanation import Why
from wfcore.model.workflow import Language
from wfcore.rules.execution.start import capabilities_with
from wfcore.time import HOUR, MINUTE, EpochMs
from wfcore.usecases.accounts import keys
from wfcore.usecases.executions.executions import read_execution
from wfcore.usecases.executions.explaining import explain_execution
from wfcore.usecases.nodes import NodeState, drain_node, known_nodes, list_nodes
from wfserver.serving.metrics import StoreGauges
from wfserver.settings.record import settings_from
from wfserver.settings.sharing import Role

from .conftest import LONG_MS, NEVER, AddNode, Node, command, opened
from .test_hints import LONG_S, Functions, hears

ON_GPU = command("greet", labels=["gpu"])


@asynccontextmanager
async def working(
    node: Node, *labels: str, lacking: tuple[Language, ...] = (), functions: Functions | None = None
) -> AsyncIterator[Engine]:
    """The node takes what fits these labels."""
    able = capabilities_with(labels, lacking)
    async with Engine(
        node.services, (functions or Functions()).runner(), able=able, stalled_ms=1
    ) as engine:
        async with asyncio.timeout(LONG_S):
            while engine.gauges()['wfcore_loop_up{loop="presence"}'] < 1:  # noqa: ASYNC110
                await asyncio.sleep(0.002)
        yield engine


async def ready(engine: Engine) -> None:
    """Wait until no round of a loop is under way, which is all that may be said against it."""
    while True:
        try:
            return engine.check()
        except NotReady as error:
            if not str(error).endswith(" is stuck"):
                raise
            await asyncio.sleep(0.002)


async def why(node: Node, execution_id: str) -> dict[Why, str]:
    told = await explain_execution(node.services, OPERATOR, execution_id)
    return {line.code: line.text for line in told.lines}


async def announced(node: Node, count: int) -> None:
    """Wait until so many nodes are on record."""
    async with asyncio.timeout(LONG_S):
        while len(await list_nodes(node.services)) < count:  # noqa: ASYNC110
            await asyncio.sleep(0.005)


async def test_a_step_runs_where_its_label_is(node: AddNode) -> None:
    """
    Without a node that carries its label an execution is PENDING and says so, to readiness it is
    no fault, and it begins with the first node that carries it.
    """
    plain, gpu = await node(), await node()
    async with working(plain) as engine, asyncio.timeout(LONG_S):
        await announced(plain, 1)
        run = await plain.start(ON_GPU)
        assert await plain.rests(await plain.start(command("greet"))) == "COMPLETED"
        told = await why(plain, run)
        assert "None offers label gpu." in told[Why.NOBODY_ABLE]
        assert Why.DUE not in told
        await ready(engine)
        async with working(gpu, "gpu", "eu-1"):
            assert await plain.rests(run) == "COMPLETED"
        assert (await read_execution(plain.services, OPERATOR, run)).fence == 1


async def test_a_language_that_is_missing_is_found_elsewhere(node: AddNode) -> None:
    """A node without a language leaves what needs it to others, and no execution fails for it."""
    without, full = await node(), await node()
    async with working(without, lacking=(Language.COMMAND,)):
        runs = [await without.start(command("greet")) for _ in range(4)]
        async with working(full):
            assert [await without.rests(run) for run in runs] == ["COMPLETED"] * 4


async def test_a_memory_store_keeps_for_the_able_too() -> None:
    """The rule is that of every store."""
    services = in_memory()
    node = Node(services, Principal(await ensure_account(services, "ann@example.org")))
    async with working(node):
        await announced(node, 1)
        run = await node.start(ON_GPU)
        assert Why.NOBODY_ABLE in await why(node, run)
    async with working(node, "gpu"):
        assert await node.rests(run) == "COMPLETED"


async def test_a_node_drains_when_an_operator_says_so(node: AddNode) -> None:
    """It ends what it runs and takes nothing new; others hear of it at once, and it can go back."""
    functions = Functions()
    operator, works = await node(**NEVER), await node(**NEVER)
    async with working(works, functions=functions) as engine, asyncio.timeout(LONG_S):
        await hears(works)
        await announced(operator, 1)
        (found,) = await list_nodes(operator.services)
        first = await operator.start(command("wait"))
        await functions.begun.wait()
        await drain_node(operator.services, OPERATOR, found.id)
        while engine._worker.free:  # noqa: ASYNC110
            await asyncio.sleep(0.005)
        second = await operator.start(command("greet"))
        functions.go_on.set()
        assert await operator.rests(first) == "COMPLETED"
        assert "nothing new" in (await why(operator, second))[Why.NOBODY_ABLE]
        await drain_node(operator.services, OPERATOR, found.id, draining=False)
        assert await operator.rests(second) == "COMPLETED"
    assert not await list_nodes(operator.services)
    with pytest.raises(NotFound):
        await drain_node(operator.services, OPERATOR, found.id)


def share_keys(first: Path, second: Path) -> None:
    """What all servers of a store need of the first one's data folder."""
    second.mkdir()
    for name in ("signing.key", "seal.key"):
        if (first / name).exists():
            (second / name).write_bytes((first / name).read_bytes())
            (second / name).chmod(0o600)


async def test_two_servers_with_two_roles(database: str, tmp_path: Path) -> None:
    """
    One server answers and leaves the work to the other, which answers nothing but probes: started
    at one, done by the other, and the caller who waits is woken.
    """
    url = await emptied(database)
    store = ("--store", url, "serve", "--port", "0")
    both = {role: tmp_path / role for role in ("api", "worker")}
    async with opened(url, both["api"], poll_ms=HOUR) as node:
        made = await keys.create_key(node.services, node.ann.account.id, "key", Scope.ordinary())
        say = {"kind": "code", "language": "command", "command": ["echo", "hello"]}
        first = await node.start({"name": "say", **say})
        flow = (await read_execution(node.services, OPERATOR, first)).workflow_id
    share_keys(both["api"], both["worker"])
    running = {
        role: start(*("--json", *store, "--role", role), data=data) for role, data in both.items()
    }
    try:
        urls = {role: document(running[role], both[role])["url"] for role in both}
        async with httpx.AsyncClient(timeout=LONG_MS / 1_000) as http:
            ask = {"headers": {"authorization": f"Bearer {made.text}"}, "json": {}}
            for _ in range(3):
                path = f"/api/v1/workflows/{flow}/executions?wait=50"
                told = await http.post(urls["api"] + path, **ask)
                assert told.status_code in (200, 202), told.text
                assert told.json()["status"] == "COMPLETED", told.text
            assert (await http.get(urls["worker"] + "/readyz")).status_code == 200
        async with opened(url, both["api"], poll_ms=HOUR) as node:
            known = {state: one for one, state in await known_nodes(node.services)}
        pids = {state: one.pid for state, one in known.items()}
        assert pids == {"serving": running["api"].pid, "taking": running["worker"].pid}
        addresses = [known[NodeState.SERVING].address, known[NodeState.TAKING].address]
        assert addresses == [urls["api"].removeprefix("http://"), ""]
        async with httpx.AsyncClient(timeout=LONG_MS / 1_000) as http:
            assert (await http.get(urls["worker"] + "/api/v1/executions")).status_code == 404
    finally:
        assert [end(process) for process in running.values()] == [0, 0]


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"WFCORE_ROLE": "api"}, "WFCORE_ROLE"),
        ({"WFCORE_ROLE": "both", "WFCORE_STORE": "postgresql://x"}, "WFCORE_ROLE"),
        ({"WFCORE_LABELS": "gpu,EU 1"}, "WFCORE_LABELS"),
        ({"WFCORE_STORE_DIRECT": "postgresql://x"}, "WFCORE_STORE_DIRECT"),
    ],
)
def test_settings_that_make_no_sense_are_refused(given: dict[str, str], field: str) -> None:
    """A server whose work nobody would do, and labels that no step can name, are named."""
    with pytest.raises(InvalidInput) as refused:
        settings_from(given)
    assert refused.value.field == field


def test_roles_and_labels_are_read() -> None:
    """Labels are told apart by commas or spaces; the option wins over the environment."""
    given = {
        "WFCORE_ROLE": "api",
        "WFCORE_LABELS": "gpu, eu-1 gpu",
        "WFCORE_STORE": "postgresql://x",
    }
    settings = settings_from(given, role="worker")
    assert (settings.role, settings.labels) == (Role.WORKER, ("eu-1", "gpu"))


async def test_gauges_count_nodes_by_what_they_are_up_to(node: AddNode) -> None:
    """
    Taking, draining, and gone without a word, for an hour; every server of the store says the same,
    also one that runs no steps.
    """
    one, two, serves = await node(), await node(), await node()
    async with working(one), working(two):
        await announced(serves, 2)
        first, _ = await list_nodes(serves.services)
        await drain_node(serves.services, OPERATOR, first.id)
        async with serves.services.store.unit() as unit:
            for name, ago in (("killed", 1), ("killed-long-ago", HOUR + MINUTE)):
                seen = EpochMs(serves.services.store.now() - ago)
                unit.put(evolve(first, id=name, seen_until=seen, version=0))
            await unit.commit()
        for each in (one, two, serves):
            found = await StoreGauges(each.services).read()
            told = {name: count for name, count in found.items() if "nodes" in name}
            assert told == {
                'wfcore_nodes{state="taking"}': 1,
                'wfcore_nodes{state="serving"}': 0,
                'wfcore_nodes{state="draining"}': 1,
                'wfcore_nodes{state="gone"}': 1,
            }
