"""Versions of a workflow as they were written, and a text that is checked, compared and kept."""

import re
from html import unescape
from pathlib import Path

import pytest

from adapters_http.app import HttpConfig
from adapters_http.console import editing
from wfcore.model.access import OPERATOR, Permission
from wfcore.model.workflow import Definition, Variable
from wfcore.rules.definition import changes
from wfcore.usecases.accounts.groups import create_group
from wfcore.usecases.workflows import workflows
from wfcore.usecases.workflows.state import set_state
from wfserver.definitions.read import checked

from .conftest import Site
from .test_executions import Reader, text_of
from .test_workflows import share

WRITTEN = """\
# Payouts of a month; ask Ann before you change the limit.
name: Payouts
steps:
  - name: collect
    kind: code
    language: bash
    source: "echo 1"
"""


def read(text: bytes) -> Definition:
    """As the server reads a text."""
    return checked(text, "")


@pytest.fixture
def edited(tmp_path: Path):
    """A console in which workflows may be changed."""
    site = Site(tmp_path, HttpConfig(console=True, read_definition=read))
    yield site
    site.close()


def applied(site: Site, text: str = WRITTEN) -> str:
    """The workflow of Ann's that the text says; its id."""
    services, ann = site.world.services, site.world.ann
    definition = checked(text.encode(), "")
    done = workflows.apply_workflow(services, ann.id, definition, source=text)
    return site.do(done).id


def form_of(page: str) -> tuple[str, str]:
    """The text in the field, and the version that it began with."""
    text = unescape(re.findall(r"<textarea[^>]*>\n?([^<]*)</textarea>", page)[0])
    return text, re.findall(r'name="version" value="(\d+)"', page)[0]


def changed(old: str, new: str, text: str = WRITTEN) -> str:
    assert old in text
    return text.replace(old, new)


def test_versions_are_shown_as_they_were_written(edited: Site):
    """With comments, byte by byte, and what each changed; one that is not there is 404. G13."""
    id = applied(edited)
    applied(edited, changed("echo 1", "echo 2"))
    reader = Reader(edited)
    first = reader.get(f"/workflows/{id}/versions/1")
    assert unescape(re.findall(r'<pre id="source"[^>]*>([^<]*)</pre>', first.text)[0]) == WRITTEN
    second = reader.get(f"/workflows/{id}/versions/2").text
    assert re.findall(r'<span class="minus">-(.*)', second) == ["    source: &#34;echo 1&#34;"]
    assert re.findall(r'<span class="plus">\+(.*)', second) == ["    source: &#34;echo 2&#34;"]
    for number in ("0", "3", "x", "99999999999999999999"):
        assert reader.get(f"/workflows/{id}/versions/{number}").status_code == 404
    assert f'href="/workflows/{id}/versions/1"' in reader.get(f"/workflows/{id}/versions").text


def test_long_texts_are_compared_within_a_bound(monkeypatch: pytest.MonkeyPatch):
    """What is too long is replaced as a whole; what lies around it stays out, and counts. G13."""
    monkeypatch.setattr(changes, "MOST_COMPARED", 14)
    around = [f"same {number}" for number in range(20)]
    mine = "\n".join([*around, "a", *around])
    assert changes.diff(mine, mine.replace("\na\n", "\nb\n")) == [
        ("@", "@ -18,7 +18,7 @@"),
        *((" ", line) for line in around[-3:]),
        ("-", "a"),
        ("+", "b"),
        *((" ", line) for line in around[:3]),
    ]
    old, new = ["x", "y", *"abcdefg"], ["x", "z", *"gfedcba"]
    monkeypatch.setattr(changes, "SequenceMatcher", None)
    assert changes.diff("\n".join(old), "\n".join(new)) == [
        ("@", "@ -1,9 +1,9 @@"),
        *(("-", line) for line in old),
        *(("+", line) for line in new),
    ]


def test_a_built_definition_is_shown_as_json(edited: Site):
    """What a program built has no text; the default of a secret is masked, and not edited here."""
    id = edited.do(
        edited.world.workflow(
            variables={"token": Variable("token", secret=True, has_default=True, default="k4nary")}
        )
    )
    reader = Reader(edited)
    for path in (f"/workflows/{id}/versions/1", f"/workflows/{id}/edit"):
        answer = reader.get(path)
        assert answer.status_code == 200
        assert "k4nary" not in answer.text
    assert "this is the definition as JSON" in text_of(reader.get(f"/workflows/{id}/versions/1"))
    assert "<textarea" not in reader.get(f"/workflows/{id}/edit").text


def test_a_text_is_checked_compared_and_applied(edited: Site):
    """Nothing is stored before the change was shown; then it is the next version, as typed."""
    id, reader = applied(edited), Reader(edited)
    path = f"/workflows/{id}/edit"
    text, version = form_of(reader.get(path).text)
    assert (text, version) == (WRITTEN, "1")
    mine = changed("echo 1", "echo 3")
    looked = reader.post(path, text=mine.replace("\n", "\r\n"), version=version)
    assert looked.status_code == 200
    assert '<span class="plus">+    source: &#34;echo 3&#34;' in looked.text
    assert "Apply as version 2" in looked.text
    assert reader.get(f"/workflows/{id}/versions/2").status_code == 404
    done = reader.post(path, text=mine, version=version, apply="1")
    assert done.headers["location"] == f"/workflows/{id}"
    assert form_of(reader.get(path).text) == (mine, "2")


def test_mistakes_are_said_by_line_and_path(edited: Site):
    """By the checker's own words; what was typed stays, and nothing is stored. DF-9."""
    id, reader = applied(edited), Reader(edited)
    wrong = changed("language: bash", "language: cobol") + "  - name: collect\n    kind: nothing\n"
    answer = reader.post(f"/workflows/{id}/edit", text=wrong, version="1", apply="1")
    assert answer.status_code == 400
    shown = text_of(answer)
    assert "line 6: steps[0].language" in shown
    assert form_of(answer.text)[0] == wrong
    other = reader.post(f"/workflows/{id}/edit", text=changed("Payouts\n", "Others\n"), version="1")
    assert "must stay &#39;Payouts&#39;" in other.text
    assert reader.get(f"/workflows/{id}/versions/2").status_code == 404


def test_the_second_editor_cannot_overwrite_the_first(edited: Site):
    """409: both changes are shown, the text is kept; sent again it goes on the newest version."""
    id = applied(edited)
    ann, bob = Reader(edited), share(edited, id, "bob", Permission.EDIT)
    path = f"/workflows/{id}/edit"
    hers, his = changed("echo 1", "echo ann"), changed("of a month", "of a year")
    assert ann.post(path, text=hers, version="1", apply="1").status_code == 303
    lost = bob.post(path, text=his + "output: 1\n", version="1", apply="1")
    assert lost.status_code == 409
    assert '<span class="plus">+    source: &#34;echo ann&#34;' in lost.text
    assert '<span class="plus">+output: 1' in lost.text
    kept, version = form_of(lost.text)
    assert (kept, version) == (his + "output: 1\n", "2")
    assert ann.get(f"/workflows/{id}/versions/3").status_code == 404
    assert bob.post(path, text=kept, version=version, apply="1").status_code == 303
    assert ann.get(f"/workflows/{id}/versions/3").status_code == 200


def test_who_is_overtaken_while_it_is_stored_overwrites_nothing(
    edited: Site, monkeypatch: pytest.MonkeyPatch
):
    """409 as before it: the text is kept, beside what was stored in between. DF-1."""
    id, reader, store = applied(edited), Reader(edited), editing.edit_workflow
    hers, his = changed("echo 1", "echo ann"), changed("of a month", "of a year") + "output: 1\n"

    async def overtaken(services, who, id, definition, text, version, origin, tests):
        await store(services, who, id, read(hers.encode()), hers, version, origin, tests)
        return await store(services, who, id, definition, text, version, origin, tests)

    monkeypatch.setattr(editing, "edit_workflow", overtaken)
    lost = reader.post(f"/workflows/{id}/edit", text=his, version="1", apply="1")
    assert (lost.status_code, *form_of(lost.text)) == (409, his, "2")
    assert '<span class="plus">+    source: &#34;echo ann&#34;' in lost.text


def test_the_editor_says_which_state_it_drops(edited: Site):
    """Before it is applied, by name; a value of another type is a mistake with its line. SV-5."""
    text = changed("steps:", "state:\n  cursor: {type: string}\nsteps:")
    id = applied(edited, text)
    edited.do(set_state(edited.world.services, OPERATOR, id, {"cursor": "c"}))
    reader = Reader(edited)
    form = {"version": "1", "text": WRITTEN}
    shown = reader.post(f"/workflows/{id}/edit", **form)
    assert "applying drops their values: cursor" in text_of(shown)
    other = {**form, "text": changed("string", "array", text), "apply": "1"}
    refused = reader.post(f"/workflows/{id}/edit", **other)
    assert (refused.status_code, "its stored value is not an array" in refused.text) == (400, True)
    assert reader.post(f"/workflows/{id}/edit", **form, apply="1").status_code == 303


def test_the_editor_says_which_group_of_the_server_it_hides(edited: Site):
    """Beside the mistakes, before it is applied. AP-49."""
    edited.do(create_group(edited.world.services, OPERATOR, "finance", ["ann@example.org"]))
    text = changed("steps:", "approverGroups: {finance: [tax@example.org]}\nsteps:")
    id = applied(edited)
    shown = Reader(edited).post(f"/workflows/{id}/edit", version="1", text=text)
    assert "this server has a group finance, too" in text_of(shown)


def test_comments_alone_make_no_version(edited: Site):
    """DF-1: the same definition again changes nothing, and the page says so."""
    id, reader = applied(edited), Reader(edited)
    answer = reader.post(
        f"/workflows/{id}/edit", text=changed("a month", "a year"), version="1", apply="1"
    )
    assert "It says the same as version 1" in answer.text
    assert reader.get(f"/workflows/{id}/versions/2").status_code == 404


def test_who_may_change_a_workflow(edited: Site):
    """EDIT; with EXECUTE the page shows no such button and the form is 403, strangers get 404."""
    id = applied(edited)
    people = {one: share(edited, id, one.value.lower(), one) for one in Permission}
    edited.do(edited.world.account("eve"))
    path = f"/workflows/{id}/edit"
    found = {one: reader.get(path).status_code for one, reader in people.items()}
    assert found == {Permission.VIEW: 403, Permission.EXECUTE: 403, Permission.EDIT: 200}
    assert Reader(edited, "eve").get(path).status_code == 404
    form = {"text": WRITTEN, "version": "1", "apply": "1"}
    assert people[Permission.EXECUTE].post(path, **form).status_code == 403
    assert "Change…" not in people[Permission.EXECUTE].get(f"/workflows/{id}").text
    assert "Change…" in people[Permission.EDIT].get(f"/workflows/{id}").text


def test_editing_can_be_turned_off(tmp_path: Path):
    """`console_edits=False`: no button, and no such page."""
    config = HttpConfig(console=True, console_edits=False, read_definition=read)
    site = Site(tmp_path, config)
    try:
        id, reader = applied(site), Reader(site)
        assert "Change…" not in reader.get(f"/workflows/{id}").text
        assert reader.get(f"/workflows/{id}/edit").status_code == 404
        form = {"text": WRITTEN, "version": "1", "apply": "1"}
        assert reader.post(f"/workflows/{id}/edit", **form).status_code == 404
        assert reader.get(f"/workflows/{id}/versions/1").status_code == 200
    finally:
        site.close()
