"""The largest decision: how long one approve keeps everybody else from the event loop."""

import asyncio
import json
import time
from collections.abc import MutableMapping
from pathlib import Path
from typing import Any

from adapters_http.app import create_app
from wfcore.model.access import Principal, Scope, Tier
from wfcore.model.json import JsonObject
from wfcore.model.workflow import (
    ApprovalStep,
    CodeStep,
    Column,
    ColumnType,
    Definition,
    GroupSpec,
    Language,
)
from wfcore.ports.runtime import StepEnd
from wfcore.rules.limits import MAX_APPROVAL_ROWS
from wfcore.usecases.accounts import accounts, keys
from wfcore.usecases.approvals import approvals
from wfcore.usecases.executions import starting, worker
from wfcore.usecases.workflows import workflows
from wfserver.compose import System, open_system
from wfserver.settings.record import settings_from

WORDS = tuple(f"c{number}" for number in range(6))
PIECE = 65_536


def rows() -> list[JsonObject]:
    """As many as an approval may have, of nine columns."""
    return [
        {"id": n, **dict.fromkeys(WORDS, f"value {n}"), "amount": n * 1.5, "ok": True}
        for n in range(MAX_APPROVAL_ROWS)
    ]


def held_ms(data: Path) -> float:
    """The longest turn of the loop while one approve of edited rows is answered, in CPU ms."""
    return asyncio.run(_held_ms(data))


async def _held_ms(data: Path) -> float:
    async with open_system(settings_from({}, data=str(data))) as system:
        key, approval = await _asked(system)
        edited = rows()
        edited[7]["c1"] = "edited"
        body = json.dumps({"editedItems": {"rows": edited}}).encode()
        turns = asyncio.create_task(_longest_turn())
        await asyncio.sleep(0)
        status = await _post(system, f"/api/v1/approvals/{approval}/approve", key, body)
        assert status == 200, status
        turns.cancel()
        return await turns * 1_000


async def _asked(system: System) -> tuple[str, str]:
    """A key, and the id of an open approval of all these rows."""
    services = system.services
    account = await accounts.create_account(services, "rows@example.org", Tier.ENTERPRISE)
    key = await keys.create_key(services, account.id, "key", Scope.ordinary())
    numbers = {"id": ColumnType.NUMBER, "amount": ColumnType.NUMBER, "ok": ColumnType.BOOLEAN}
    kinds = {**numbers, **dict.fromkeys(WORDS, ColumnType.STRING)}
    columns = tuple(Column(name, name, kind, name != "id") for name, kind in kinds.items())
    group = GroupSpec("rows", "Rows", "{{ steps.collect.output }}", columns, row_key="id")
    steps = (
        CodeStep("collect", Language.BASH, "true"),
        ApprovalStep("review", "Look", groups=(group,)),
    )
    definition = Definition("rows", steps, ())
    workflow = await workflows.apply_workflow(services, account.id, definition)
    who = Principal(account)
    started = await starting.start_execution(services, who, workflow.id, {})
    (lease,) = await worker.claim(services, "bench", 1)
    await worker.begin(services, lease)
    await worker.complete_step(services, lease, "collect", StepEnd(output=rows()))
    (approval,) = await approvals.approvals_of(services, who, started.execution_id)
    return key.text, approval.id


async def _longest_turn() -> float:
    """In seconds of this thread's own time, until cancelled."""
    longest, began = 0.0, time.thread_time()
    try:
        while True:
            await asyncio.sleep(0)
            now = time.thread_time()
            longest, began = max(longest, now - began), now
    except asyncio.CancelledError:
        return longest


async def _post(system: System, path: str, key: str, body: bytes) -> int:
    """The status of one request to the application itself: no client takes time of the loop."""
    pieces = [body[at : at + PIECE] for at in range(0, len(body), PIECE)]
    seen: list[int] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": pieces.pop(0), "more_body": bool(pieces)}

    async def send(message: MutableMapping[str, Any]) -> None:
        seen.append(message.get("status", 0))

    scope = {
        "type": "http", "http_version": "1.1", "method": "POST", "path": path, "scheme": "http",
        "query_string": b"", "root_path": "", "server": ("localhost", 80),
        "client": ("127.0.0.1", 1), "raw_path": path.encode(),
        "headers": [(b"host", b"localhost"), (b"authorization", b"Bearer " + key.encode()),
                    (b"content-length", b"%d" % len(body))],
    }  # fmt: skip
    await create_app(system.services)(scope, receive, send)
    return seen[0]
