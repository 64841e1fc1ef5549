"""Servers with their clients, on a stack of their own."""

import asyncio
import os
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from time import time_ns

import pytest
from attrs import evolve

from tests.support.nats_server import Broker, broker
from tests.support.postgres_server import Cluster, cluster, prepared
from tests.support.s3_server import Buckets
from wfcore.model.access import OPERATOR
from wfcore.usecases.accounts.sessions import issue_login_link
from wfcore.usecases.audit.auditing import UNKNOWN
from wfserver.compose import open_system
from wfserver.settings.record import settings_from

from .load import Load, furnish
from .scenarios import Chaos
from .site import Part, Servers, Stack, leftovers, opened, until

LONG_S = float(os.environ.get("CHAOS_S", "0"))
chaos_alone = pytest.mark.skipif(not LONG_S, reason="CHAOS_S=2 plays it; make chaos")
SEED = int(os.environ.get("CHAOS_SEED", str(time_ns() % 1_000_000)))
LEASE_S = 2 if LONG_S < 10 else 10


@pytest.fixture(scope="module")
def cluster_here() -> Iterator[Cluster]:
    """A server that may be killed: what it has committed is written."""
    yield from cluster(synchronous_commit="on", full_page_writes="on")


@pytest.fixture(scope="module")
def own_nats() -> Iterator[Broker]:
    yield from broker()


@pytest.fixture(scope="module")
def servers_here(cluster_here: Cluster, own_nats: Broker, buckets: Buckets) -> Servers:
    """What stacks stand on; each run gets a database of its own."""
    return Servers(cluster_here, "", own_nats, buckets)


@asynccontextmanager
async def site_of(
    folder: Path,
    stack: Stack,
    servers: Servers,
    *,
    plants: Sequence[str] = (),
    sql: str = "",
    ahead: Mapping[str, int] | None = None,
    lease_s: int = LEASE_S,
) -> AsyncIterator[Chaos]:
    """
    A stack with its clients, and an operator beside it. *sql*: what is done to its database; for
    the others see `chaos.site.opened`.
    """
    shared = Part.POSTGRES in stack.parts
    if shared:
        url = await asyncio.to_thread(prepared, servers.cluster, f"chaos_{folder.name[-12:]}")
        servers = evolve(servers, url=url)
    if sql:
        name = servers.url.partition("?")[0].rpartition("/")[2]
        await asyncio.to_thread(servers.cluster.execute, sql, name)
    outside = folder / "outside"
    outside.mkdir()
    outside.chmod(0o777)
    ledger = outside / "ledger"
    ledger.touch()
    ledger.chmod(0o666)
    environment = {
        "WFCORE_SEAL_KEY_FILE": str(folder / "seal.key"),
        "WFCORE_SIGNING_KEY": f"one:{'a' * 64}",
    }
    data = str(folder / ("operator" if shared else "one"))
    operator = settings_from(environment, data=data, store=servers.url or None)
    async with (
        open_system(operator) as system,
        opened(
            folder,
            stack,
            servers,
            {"WFCORE_LEASE": f"{lease_s}s", "WFCORE_INTERRUPTED_GRACE": "1s"},
            plants=plants,
            ahead=ahead,
        ) as site,
    ):
        people = await furnish(system.services, ledger)
        await site.start(*site.nodes)
        chance = Random(SEED)
        load = Load(people, site.fronts, chance)
        unhurried = bool(plants or sql) or lease_s >= 10
        link = await issue_login_link(system.services, OPERATOR, people.account.id, UNKNOWN)
        async with load.http, load.following(f"/in/{link}"):
            yield Chaos(site, load, system.services, chance, LONG_S, 2 * lease_s, unhurried)
    mark = f"WF_VAR_ledger={ledger}\0".encode()
    await until(lambda: not leftovers([mark]), "steps end with their servers")
