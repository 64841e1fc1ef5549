"""The page of one redrive: its plan, other inputs, and what is refused."""

import re
from collections.abc import Callable

import httpx
import pytest
from playwright.sync_api import Page, expect

from tests.support.http_world import code
from wfcore.model.workflow import Variable, VariableType
from wfcore.ports.runtime import StepEnd

from .conftest import Site
from .execution_case import FAILED, VARIABLES_OF_A_FORM, Runs
from .test_executions import Reader, text_of


def test_the_plan_of_a_redrive_is_shown_and_carried_out(site: Site):
    """From any step, with what runs again; a plan that has changed is shown anew. EX-35."""
    runs, reader = Runs(site), Reader(site)
    id = runs.play(runs.start(), FAILED)
    page = reader.get(f"/executions/{id}/redrive")
    assert "Begins at score, version 1" in text_of(page)
    assert "collect ✓ kept 1 time score ↻ runs again 1 time" in text_of(page)
    digest = re.search(r'name="digest" value="(\w+)"', page.text)[1]
    other = reader.get(f"/executions/{id}/redrive?from=collect")
    assert "collect ↻ runs again 1 time" in text_of(other)
    stale = reader.post(f"/executions/{id}/redrive", digest=digest, start="collect")
    assert stale.status_code == 409
    assert "The plan of this redrive has changed" in text_of(stale)
    jump = reader.get(f"/executions/{id}/redrive?from=pay")
    assert jump.status_code == 409
    assert "score has no result to keep" in text_of(jump)
    made = reader.post(f"/executions/{id}/redrive", digest=digest)
    new = made.headers["location"].removeprefix("/executions/")
    assert site.do(site.world.get(f"/api/v1/executions/{new}")).json()["redriveOf"] == id
    assert reader.post(f"/executions/{id}/redrive", digest=digest).status_code == 409


def test_a_completed_execution_offers_its_steps(site: Site):
    """It is redriven from one of them only. EX-35."""
    runs, reader = Runs(site, code("only")), Reader(site)
    id = runs.play(runs.start(), {"only": StepEnd(1)})
    page = reader.get(f"/executions/{id}/redrive")
    assert page.status_code == 200
    assert "where it stopped" not in page.text
    assert 'name="digest"' not in page.text
    assert "only ↻ runs again" in text_of(reader.get(f"/executions/{id}/redrive?from=only"))


def test_a_redrive_with_other_inputs_shows_its_plan_first(site: Site):
    """Only fields that were changed replace inputs; without a digest nothing starts. EX-35."""
    declared = {
        "city": Variable("city", default="Rome"),
        "rate": Variable("rate", VariableType.NUMBER),
        "pin": Variable("pin", secret=True),
    }
    runs, reader = Runs(site, code("only"), variables=declared), Reader(site)
    begun = runs.start(city="Oslo & Co", rate=1.5, pin="of-ann-1234", extra="kept")
    id = runs.play(begun, {"only": StepEnd(error="no")})
    path = f"/executions/{id}/redrive"
    page = reader.get(path)
    assert 'value="Oslo &amp; Co"' in page.text
    assert "of-ann-1234" not in page.text
    same = {"inputs.city": "Oslo & Co", "inputs.rate": "1.5", "inputs.pin": ""}
    assert digest_in(reader.post(path, **same)) == digest_in(page)
    changed = same | {"inputs.city": "Bergen", "inputs.pin": "new-pin-5678"}
    planned = reader.post(path, **changed)
    assert planned.status_code == 200
    assert "pin must be typed again" in text_of(planned)
    assert "new-pin-5678" not in planned.text
    assert site.do(site.world.get("/api/v1/executions")).json()["total"] == 1
    digest = digest_in(planned)
    forgotten = reader.post(path, digest=digest, **changed | {"inputs.pin": ""})
    assert "The plan of this redrive has changed" in text_of(forgotten)
    made = reader.post(path, digest=digest, **changed).headers["location"].split("/")[-1]
    view = site.do(site.world.get(f"/api/v1/executions/{made}")).json()
    assert view["inputs"] == {"city": "Bergen", "rate": 1.5, "pin": "***", "extra": "kept"}


@pytest.mark.parametrize(
    ("field", "text", "problem"),
    [
        ("rate", "many", "rate must be a number"),
        ("rate", "", "rate needs a value, or stays as it was"),
        ("city", "", "city needs a value, or stays as it was"),
    ],
)
def test_an_input_that_does_not_fit_is_named_beside_its_field(
    site: Site, field: str, text: str, problem: str
):
    """Before any plan, with what was typed. EX-35."""
    declared = {
        "city": Variable("city", required=True),
        "rate": Variable("rate", VariableType.NUMBER),
    }
    runs, reader = Runs(site, code("only"), variables=declared), Reader(site)
    id = runs.play(runs.start(city="Oslo", rate=1.5), {"only": StepEnd(error="no")})
    answer = reader.post(f"/executions/{id}/redrive", **{f"inputs.{field}": text})
    assert answer.status_code in (400, 409)
    assert problem in text_of(answer)
    assert 'aria-invalid="true"' in answer.text
    assert 'name="digest"' not in answer.text


def test_the_newest_version_asks_for_its_new_inputs(site: Site):
    """The fields are those of the definition with which it would run. EX-35."""
    runs, reader = Runs(site, code("only")), Reader(site)
    id = runs.play(runs.start(), {"only": StepEnd(error="no")})
    more = {"city": Variable("city", required=True)}
    site.do(site.world.workflow(code("only"), name="Payout run", variables=more))
    path = f"/executions/{id}/redrive"
    assert "inputs.city" not in reader.get(path).text
    missing = reader.get(f"{path}?newest=1")
    assert "city is required" in text_of(missing)
    planned = reader.post(path, newest="1", **{"inputs.city": "Oslo"})
    made = reader.post(path, newest="1", digest=digest_in(planned), **{"inputs.city": "Oslo"})
    assert made.status_code == 303


def test_everybody_reads_the_form_and_its_plan(
    site: Site, signed_in: Page, accessible: Callable[[Page], None]
):
    """With inputs, and a secret that must be typed again. B3."""
    runs = Runs(site, code("only"), variables=VARIABLES_OF_A_FORM)
    id = runs.play(runs.start(), {"only": StepEnd(error="no")})
    signed_in.goto(f"{runs.url(id)}/redrive")
    signed_in.get_by_text("Other inputs…").click()
    signed_in.locator('[name="inputs.token"]').fill("another")
    signed_in.get_by_role("button", name="Show the plan").click()
    expect(signed_in.get_by_text("must be typed again")).to_be_visible()
    accessible(signed_in)


def digest_in(page: httpx.Response) -> str:
    found = re.search(r'name="digest" value="(\w+)"', page.text)
    assert found, text_of(page)
    return found[1]
