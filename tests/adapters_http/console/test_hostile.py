"""Hostile text through the templates: whatever names, messages and cells say, it stays text. B9."""

from html.parser import HTMLParser
from pathlib import Path

import pytest
from attrs import evolve
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from adapters_http.app import HttpConfig
from tests.support.http_world import World, a_world
from wfcore.model.access import OPERATOR, Account, ApiKey, PeopleGroups
from wfcore.model.approval import Approval
from wfcore.model.execution import Execution, ExecutionStatus, ReasonCode, StatusReason
from wfcore.model.passkey import Passkey
from wfcore.model.workflow import ApprovalStep, Column, ColumnType, GroupSpec, Workflow
from wfcore.testing import builders
from wfcore.testing.builders import NOW
from wfcore.usecases.approvals.approvals import read_approval

HOSTILE = (
    "<img src=x onerror=alert(1)>",
    "</script><script>alert(1)</script>",
    '"\' onmouseover=alert(1) x="',
    "{{ 7 * 7 }}{% raw %}",
    "\u202eevil\u2066",
    "&lt;b&gt;&#x3c;b",
    "javascript:alert(1)",
    "%(count)s {who} %s",
    "👩‍👩‍👧‍👧\ufeff",
    "W" * 10_000,
)
TEXT = st.lists(
    st.one_of(
        st.sampled_from(HOSTILE), st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
    ),
    min_size=1,
    max_size=3,
).map(lambda parts: "".join(parts).replace("\0", "") or "x")

Asked = tuple[str, dict[str, str]]


class Shape(HTMLParser):
    """The elements of a page with the names of their attributes, in order; never their text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[tuple[str, ...]] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, *(name for name, _ in attrs)))


@pytest.fixture
async def world(tmp_path: Path):
    async with a_world(tmp_path, HttpConfig(console=True)) as made:
        yield made


async def _written(world: World, id: str, text: str) -> None:
    """Let whatever people name, write or hand over say *text*."""
    async with world.services.store.unit() as unit:
        approval = await unit.get(Approval, id)
        assert approval is not None
        workflow = await unit.get(Workflow, approval.workflow_id)
        (group,) = approval.groups
        row = {**group.items[0], "t": text, "j": {text: text}}
        columns = tuple(evolve(one, title=text) for one in group.columns)
        entry = evolve(approval.history[0], by=text, comment=text)
        unit.put(
            evolve(
                approval,
                message=text,
                groups=(evolve(group, title=text, columns=columns, items=(row,)),),
                history=(entry,),
            )
        )
        assert workflow is not None
        unit.put(evolve(workflow, name=text))
        run = await unit.get(Execution, approval.execution_id)
        key = await unit.get(ApiKey, world.key.key.id)
        account = await unit.get(Account, world.ann.id)
        assert run is not None
        assert key is not None
        assert account is not None
        facts = {"t": text, text: [text]}
        review = evolve(run.step_results["review"], output=facts, error=text)
        results = {**run.step_results, "review": review}
        reason = StatusReason(ReasonCode.STEP_FAILED, "review")
        failed = {"status": ExecutionStatus.FAILED, "status_reason": reason, "error": text}
        facts = {"workflow_name": text, "variables": facts, "output": facts, **failed}
        unit.put(evolve(run, step_results=results, reference=text, **facts))
        unit.put(evolve(key, name=text))
        passkey = Passkey("id", text, "key", -7, "localhost", NOW, 0)
        unit.put(evolve(account, email=text, operator=True, passkeys=(passkey,)))
        groups = await unit.get(PeopleGroups, "all") or builders.people_groups()
        unit.put(evolve(groups, members={"finance": (f"member {text}",)}))
        for webhook in await unit.webhooks.of_workflow(workflow.id):
            unit.put(evolve(webhook, name=text, variable_mapping={text: text}))
        await unit.commit()


PAGES = (
    *("/inbox", "/inbox/decide?id={id}", "/approvals/{id}", "/executions", "/executions/{run}"),
    *("/executions/{run}/steps/review", "/executions/{run}/compare/{run}"),
    *("/executions/cancel?id={run}", "/executions/redrive?id={run}"),
    *("/workflows", "/workflows/{flow}", "/workflows/{flow}/start"),
    *(
        "/workflows/{flow}/versions",
        "/workflows/{flow}/sharing",
        "/workflows/{flow}/settings",
        "/workflows/{flow}/triggers",
    ),
    *("/workflows/{flow}/versions/1", "/operate/keys", "/operate/keys/{key}", "/operate/webhooks"),
    *("/operate/usage", "/operate/schedules", "/operate/audit", "/operate/people"),
    *("/operate/people/{who}", "/operate/notices", "/operate/secrets"),
    *("/overview", "/more", "/account", "/executions/{run}/redrive"),
    *("/operate/groups", "/operate/group/finance", "/operate/health"),
)


@pytest.fixture
async def asked(world: World) -> Asked:
    """An approval, and the headers of whoever looks at it."""
    columns = (
        Column("k", "Key", editable=False),
        Column("t", "T"),
        Column("j", "J", ColumnType.JSON),
    )
    rows = [{"k": "1", "t": "x", "j": {}}]
    step = ApprovalStep("review", "Look", groups=(GroupSpec("g", "G", rows, columns, "k"),))
    execution = await world.start(await world.workflow(step))
    await world.run()
    found = (await world.get(f"/api/v1/approvals/execution/{execution}")).json()
    session = await world.sign_in()
    return found["approvals"][0]["id"], {**session, "Accept": "text/html"}


@settings(
    max_examples=5,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(TEXT)
@example("".join(HOSTILE))
async def test_text_never_becomes_markup(world: World, asked: Asked, text: str):
    """Every page has the same elements for any text as for a plain one; no name ends a tag."""
    id, headers = asked

    approval = await read_approval(world.services, OPERATOR, id)
    ids = {"run": approval.execution_id, "flow": approval.workflow_id}
    ids |= {"id": id, "key": world.key.key.id, "who": world.ann.id}

    async def shapes(text: str) -> dict[str, list[tuple[str, ...]]]:
        await _written(world, id, text)
        made = {}
        for page in PAGES:
            answer = await world.http.get(page.format(**ids), headers=headers)
            assert answer.status_code == 200, page
            made[page] = Shape(answer.text).found
        return made

    assert await shapes(text) == await shapes("x" * len(text))


@pytest.mark.parametrize("formula", ["=1+1", "+1", "-1", "@x", "\t=1"])
async def test_a_spreadsheet_runs_no_cell(world: World, asked: Asked, formula: str):
    """A text that looks like a formula is marked as a text in the CSV; a number is not."""
    id, headers = asked
    await _written(world, id, formula)
    csv = await world.http.get(f"/approvals/{id}/rows/0", headers=headers)
    assert csv.headers["content-type"].startswith("text/csv")
    assert f"'{formula}" in csv.content.decode("utf-8-sig")
    assert (await world.http.get(f"/approvals/{id}/rows/1", headers=headers)).status_code == 404
