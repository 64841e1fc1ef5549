"""Pages of authors without scripts: new workflows, tests, versions, shares, pause and deletion."""

import re
from html import unescape

from adapters_http.console.editing import renamed
from wfcore.model.access import Permission
from wfcore.usecases.workflows.triggers import triggers_of

from .authors import site as site
from .conftest import Site
from .test_editing import WRITTEN, applied, changed, form_of
from .test_executions import Reader, text_of
from .test_workflows import share

TESTS = "definition: this\nscenarios:\n  - {name: a, expect: {status: FAILED}}\n"


def scenarios_in(page: str) -> str:
    """The text in the field of the tests."""
    return unescape(re.findall(r'name="tests"[^>]*>\n?([^<]*)</textarea>', page)[0])


def test_a_new_workflow_begins_with_an_example_or_a_copy(site: Site):
    """Each with its tests; a copy has a name of its own, and only its first name changes. DF-21."""
    id, reader = applied(site), Reader(site)
    choice = reader.get("/workflows/new").text
    assert 'href="/workflows/new?example=payment-run"' in choice
    assert f'href="/workflows/new?copy={id}"' in choice
    shipped = reader.get("/workflows/new?example=payment-run").text
    assert form_of(shipped)[0].startswith("# A real review")
    assert "scenarios:" in scenarios_in(shipped)
    copied, _ = form_of(reader.get(f"/workflows/new?copy={id}").text)
    assert copied == changed("name: Payouts", "name: Copy of Payouts")
    assert reader.get("/workflows/new?example=none").status_code == 404
    assert reader.get("/workflows/new?copy=none").status_code == 404
    assert renamed('{"name": "a", "steps": []}', "a") == '{"name": "a", "steps": []}'
    assert renamed('{\n  "name": "a",\n', "a") == '{\n  "name": "Copy of a",\n'


def test_a_new_workflow_is_checked_tried_and_created(site: Site):
    """A name that is taken is a mistake at its line; what was typed stays. DF-21."""
    reader, form = Reader(site), {"text": WRITTEN, "tests": TESTS}
    played = reader.post("/workflows/new", **form, play="1")
    assert "1 of 1 not as expected" in played.text
    assert "collect ran and has no stub" in played.text
    made = reader.post("/workflows/new", **form, apply="1")
    path = made.headers["location"]
    again = reader.post("/workflows/new", **form, apply="1")
    assert again.status_code == 400
    assert "line 2: name" in text_of(again)
    assert (form_of(again.text)[0], scenarios_in(again.text)) == (WRITTEN, TESTS)
    edit = reader.get(f"{path}/edit").text
    assert (form_of(edit), scenarios_in(edit)) == ((WRITTEN, "1"), TESTS)


def test_tests_alone_are_a_version_and_their_mistakes_are_said(site: Site):
    """At their lines; then nothing is played. DF-11, DF-21."""
    id, reader = applied(site), Reader(site)
    path = f"/workflows/{id}/edit"
    wrong = TESTS.replace("expect:", "expects:")
    shown = reader.post(path, text=WRITTEN, version="1", tests=wrong, play="1")
    assert "line 3: scenarios[0].expects" in text_of(shown)
    saved = reader.post(path, text=WRITTEN, version="1", tests=TESTS, apply="1")
    assert saved.status_code == 303
    assert "scenarios:" in reader.get(f"/workflows/{id}/versions/2").text


def test_the_checker_answers_a_script(site: Site):
    """Mistakes, flow and names as parts of a document; for somebody with EDIT alone."""
    id, reader = applied(site), Reader(site)
    eve, bob = share(site, id, "eve", Permission.VIEW), share(site, id, "bob", Permission.EDIT)
    good = reader.post("/workflows/check", text=WRITTEN, workflow=id).text
    assert 'data-mistakes="0"' in good
    assert '"steps": ["collect"]' in good
    assert 'href="#step-collect"' in good
    wrong = bob.post("/workflows/check", text=changed("bash", "bsh"), workflow=id).text
    assert 'data-mistakes="1"' in wrong
    assert 'data-line="6"' in wrong
    assert eve.post("/workflows/check", text=WRITTEN, workflow=id).status_code == 403
    assert eve.post("/workflows/check", text=WRITTEN, workflow="wf_none").status_code == 404


def test_restoring_shows_its_change_first_and_only_follows_the_version_it_showed(site: Site):
    """409 behind a newer version; then the newest is the older one again. DF-23."""
    id, reader = applied(site), Reader(site)
    applied(site, changed("echo 1", "echo 2"))
    path = f"/workflows/{id}/versions/1"
    shown = reader.get(path).text
    assert '<span class="plus">+    source: &#34;echo 1&#34;' in shown
    assert "Restore it as version 3" in shown
    assert reader.post(f"{path}/restore", version="1").status_code == 409
    assert reader.post(f"{path}/restore", version="2").status_code == 303
    assert form_of(reader.get(f"/workflows/{id}/edit").text) == (WRITTEN, "3")
    rows = text_of(reader.get(f"/workflows/{id}/versions"))
    assert "Version 3" in rows
    assert "ann@example.org" in rows
    views = share(site, id, "vic", Permission.VIEW)
    assert "Restore it" not in views.get(path).text
    assert views.post(f"{path}/restore", version="3").status_code == 403


def test_owners_share_by_address(site: Site):
    """With somebody who is here, and no longer; others see no such page. AC-14."""
    id, reader = applied(site), Reader(site)
    site.do(site.world.account("bob"))
    path, bob = f"/workflows/{id}/sharing", Reader(site, "bob")
    nobody = reader.post(path, account="x@example.org", permission="VIEW")
    assert (nobody.status_code, "Nobody here has" in nobody.text) == (400, True)
    assert 'value="x@example.org"' in nobody.text
    assert reader.post(path, account="bob@example.org", permission="ALL").status_code == 400
    assert reader.post(path, account="bob@example.org", permission="EDIT").status_code == 303
    assert "may change it" in reader.get(path).text
    assert (bob.get(f"/workflows/{id}").status_code, bob.get(path).status_code) == (200, 403)
    assert reader.post(path, account="bob@example.org", permission="").status_code == 303
    assert bob.get(f"/workflows/{id}").status_code == 404


def test_a_workflow_rests_and_ends(site: Site):
    """Its triggers are paused together; it is deleted by its name, by the owner alone. SH-10."""
    cron = "triggers:\n  - {kind: SCHEDULE, cron: '0 7 * * 1'}\n"
    id, reader = applied(site, WRITTEN + cron), Reader(site)
    bob, path = share(site, id, "bob", Permission.EDIT), f"/workflows/{id}"

    async def paused() -> bool:
        async with site.world.services.store.view() as view:
            return all(one.trigger.pause is not None for one in await triggers_of(view, id))

    assert bob.post(f"{path}/pause", status="PAUSED").status_code == 303
    assert site.do(paused())
    assert "1 of 1 are paused" in text_of(reader.get(f"{path}/settings"))
    assert reader.post(f"{path}/pause", status="ACTIVE").status_code == 303
    assert not site.do(paused())
    assert bob.post(f"{path}/delete", name="Payouts").status_code == 403
    assert reader.post(f"{path}/delete", name="Payout").status_code == 400
    assert reader.post(f"{path}/delete", name="Payouts").headers["location"] == "/workflows"
    assert reader.get(path).status_code == 404
