"""The pages of executions, as they are answered: who sees what in every state, what they say."""

import re
from html import unescape
from typing import Any

import httpx
from attrs import evolve

from tests.support.http_world import code
from wfcore.model.access import OPERATOR, Permission
from wfcore.model.execution import ExecutionStatus
from wfcore.model.workflow import LoopStep, Variable
from wfcore.ports.callbacks import CallbackAnswer
from wfcore.ports.runtime import LeftFile, StepEnd
from wfcore.rules.callback import DELAYS
from wfcore.usecases.executions.callbacks import settle_call, take_calls
from wfcore.usecases.workflows import workflows

from .conftest import Site
from .execution_case import FAILED, TOKEN, Runs, in_every_state, payout_steps

HOSTILE = "<img src=x onerror=alert(1)>\u202e😀"


class Reader:
    """Somebody who is signed in, and asks for pages."""

    def __init__(self, site: Site, name: str | None = "ann") -> None:
        self.site = site
        self.headers = site.do(site.world.sign_in(name)) if name else {}

    def get(self, path: str, **more: Any) -> httpx.Response:
        headers = {"Accept": "text/html", **self.headers, **more}
        return self.site.do(self.site.world.http.get(path, headers=headers))

    def post(self, path: str, **form: str) -> httpx.Response:
        headers = {**self.headers, "Origin": self.site.url, "Accept": "text/html"}
        return self.site.do(self.site.world.http.post(path, data=form, headers=headers))


def text_of(answer: httpx.Response) -> str:
    """What a page says, without markup."""
    return " ".join(re.sub(r"<[^>]*>", " ", answer.text).split())


ENDED = ("completed", "failed", "cancelled")
BEGUN = ("waiting", "running", *ENDED, "interrupted")


def _status(page: str, state: str) -> int:
    """What the owner is answered."""
    if page == "/output":
        return 200 if state in ENDED else 409
    return 200 if page != "/outputs/collect" or state in BEGUN else 404


PAGES = ("", "/steps/collect", "/steps/bank_limit", "/output", "/outputs/collect")


def test_what_became_of_a_callback_is_shown(site: Site):
    """Before the end, under way, after a failure, over; of the address the host alone. CB-5."""
    runs, world, told = (
        Runs(site, code("only")),
        site.world,
        "https://shop.example.org/s3cret?s3cret",
    )
    start = world.post(f"/api/v1/workflows/{runs.workflow}/executions", {"callbackUrl": told})
    id = site.do(start).json()["executionId"]

    def shown() -> str:
        page = Reader(site).get(f"/executions/{id}")
        assert "s3cret" not in page.text
        return text_of(page)

    def answered(status: int) -> str:
        (call,) = site.do(take_calls(world.services, 8))
        site.do(settle_call(world.services, call, CallbackAnswer(status)))
        world.clock.advance(DELAYS[0])
        return shown()

    assert "Callback to shop.example.org, at the end" in shown()
    runs.play(id)
    assert "on its way to shop.example.org" in shown()
    assert "to shop.example.org, attempt 1; last error: answered 503 · next" in answered(503)
    assert "✕ to shop.example.org, given up at attempt 2: answered 410" in answered(410)


def test_who_sees_which_page_in_which_state(site: Site):
    """Page × role × state: owners see, an approver, a share holder and a stranger get 404. AC-4."""
    people = {name: site.do(site.world.account(name)).id for name in ("carl", "dora", "eve")}
    runs = Runs(site, *payout_steps(approvers=("carl@example.org", "ann@example.org")))
    execute = Permission.EXECUTE
    site.do(
        workflows.share_workflow(
            site.world.services, OPERATOR, runs.workflow, people["dora"], execute
        )
    )
    ids = in_every_state(runs)
    assert {Reader(site).get(f"/executions/{id}").status_code for id in ids.values()} == {200}
    readers = {name: Reader(site, name) for name in ("ann", *people)}
    for state, id in ids.items():
        paths = {f"/executions/{id}{page}": _status(page, state) for page in PAGES}
        paths |= dict.fromkeys((f"/executions/{act}?id={id}" for act in ("cancel", "redrive")), 200)
        for path, status in paths.items():
            for name, reader in readers.items():
                expected = status if name == "ann" else 404
                assert reader.get(path).status_code == expected, (state, path, name)
            assert Reader(site, None).get(path).status_code == 401
    asked = site.do(site.world.get(f"/api/v1/approvals/execution/{ids['waiting']}")).json()
    approval = asked["approvals"][0]["id"]
    assert readers["carl"].get(f"/approvals/{approval}").status_code == 200


def test_the_list_shows_what_the_api_shows(site: Site):
    """The same rows in the same order, with the same status: one use case. 5.5."""
    runs = Runs(site)
    in_every_state(runs)
    shown = Reader(site).get("/executions").text
    ids = re.findall(r'<tr id="([^"]+)"', shown)
    items = site.do(site.world.get("/api/v1/executions")).json()["items"]
    assert ids == [item["executionId"] for item in items]
    counts = site.do(site.world.get("/api/v1/executions/counts")).json()
    assert counts == {"counts": dict.fromkeys(ExecutionStatus, 1), "atLeast": []}


def test_every_filter_is_in_the_address(site: Site):
    """Workflow, status, source, days and the end of an id narrow; a count is a link. R2."""
    runs, other = Runs(site), Runs(site, code("only"), name="Other")
    states = in_every_state(runs)
    alone, reader = other.start(), Reader(site)

    def rows(query: str) -> set[str]:
        return set(re.findall(r'<tr id="([^"]+)"', reader.get(f"/executions?{query}").text))

    assert rows("status=FAILED") == {states["failed"]}
    assert rows(f"workflow={other.workflow}") == {alone}
    assert rows("source=webhook") == set()
    assert rows("from=2001-01-01&to=2001-01-02") == set()
    assert rows("from=2001-01-01") == {*states.values(), alone}
    assert rows(f"workflow={other.workflow}&status=FAILED") == set()
    end = alone[-8:]
    assert rows(f"q={end}") == {id for id in (*states.values(), alone) if id.endswith(end)}
    of_one = f"workflow={runs.workflow}"
    assert f"{of_one}&amp;status=FAILED" in reader.get(f"/executions?{of_one}").text
    wrong = reader.get("/executions?status=LOST&from=yesterday")
    assert (wrong.status_code, "is not valid and was ignored" in wrong.text) == (200, True)
    assert reader.get(f"/executions?q={alone}").headers["location"] == f"/executions/{alone}"


def test_a_page_behind_another_repeats_no_row(site: Site):
    """Those that start between pages move nothing: no row of before is doubled or lost. PG-5."""
    runs, reader = Runs(site, code("only")), Reader(site)
    before = [runs.start() for _ in range(120)]
    path, seen = "/executions", list[str]()
    while path:
        text = reader.get(path).text
        seen += re.findall(r'<tr id="([^"]+)"', text)
        after = re.search(r'rel="next" href="([^"]+)"', text)
        path = unescape(after[1]) if after else ""
        for _ in range(50):
            runs.start()
    assert seen == before[::-1]


def test_an_empty_list_says_what_to_do(site: Site):
    """Without filters the curl that starts one, with real values; with them a way to clear them."""
    reader = Reader(site)
    workflow = Runs(site, code("only")).workflow
    empty = reader.get("/executions").text
    assert f"curl -X POST {site.url}/api/v1/workflows/{workflow}/executions" in empty
    assert "Clear the filters" in reader.get("/executions?status=FAILED").text


def test_a_list_loads_no_bodies(site: Site):
    """Neither outputs nor inputs come with a list. R1."""
    runs = Runs(site, code("only"), variables={"token": TOKEN})
    runs.play(runs.start(token="sesame-open"), {"only": StepEnd("body of the output")})
    page = Reader(site).get("/executions").text
    assert "body of the output" not in page
    assert "sesame-open" not in page


def test_a_failure_is_named_in_the_title_and_first(site: Site):
    """`✕ Payout run: fraud_model failed`; the first sentence says why, without ids. XP-1."""
    runs = Runs(site)
    page = Reader(site).get(f"/executions/{runs.play(runs.start(), FAILED)}")
    assert "<title>✕ Payout run: fraud_model failed" in page.text
    explained = page.text.partition('class="explain failed"')[2]
    assert "no score for P-1003" in explained.partition("</p>")[0]


def test_the_picture_is_of_the_definition_that_runs(site: Site):
    """Another definition is applied meanwhile: the execution shows its own, and its version."""
    runs = Runs(site, code("first"), code("second"))
    id, reader = runs.start(), Reader(site)
    Runs(site, code("other"))
    page = reader.get(f"/executions/{id}")
    assert re.findall(r'class="box none" aria-label="(\w+)', page.text) == ["first", "second"]
    assert "Version 1" in text_of(page)
    assert "other" in reader.get(f"/workflows/{runs.workflow}").text


def test_secrets_are_dots_and_masked(site: Site):
    """A secret input shows ••••, and is masked in outputs and errors, compared ones too. SC-1."""
    runs = Runs(site, code("only"), variables={"token": TOKEN, "note": Variable("note")})
    secret, other = "sesame-open-123", "sesame-shut-456"
    begun = [runs.start(token=one, note=f"{n}: {one}") for n, one in enumerate((secret, other))]
    told = runs.play(begun[0], {"only": StepEnd({"said": secret})})
    failed = runs.play(begun[1], {"only": StepEnd(None, error=f"no: {other}")})
    reader = Reader(site)
    pages = [f"/executions/{id}{page}" for id in (told, failed) for page in ("", "/steps/only")]
    pages += [f"/executions/{told}/compare/{failed}", f"/executions/{told}/outputs/only"]
    pages += [f"/executions/{failed}/compare/{told}"]
    for path in pages:
        text = reader.get(path).text
        assert secret not in text, path
        assert other not in text, path
    assert "••••" in reader.get(f"/executions/{told}").text


def test_hostile_text_stays_text(site: Site):
    """Names, outputs, errors and inputs with markup are inert, and long ones are cut. B9."""
    runs = Runs(
        site, code("only"), name="x <img src=x onerror=alert(1)>", variables={"v": Variable("v")}
    )
    good = runs.play(runs.start(v=HOSTILE), {"only": StepEnd({HOSTILE: [HOSTILE * 3]})})
    bad = runs.play(runs.start(v="x"), {"only": StepEnd(None, error=HOSTILE + "y" * 200_000)})
    reader = Reader(site)
    for path in ("", f"/{good}", f"/{good}/steps/only", f"/{bad}", f"/{bad}/steps/only",
                 f"/cancel?id={good}", f"/redrive?id={bad}", f"/{good}/compare/{bad}"):  # fmt: skip
        answer = reader.get(f"/executions{path}")
        assert answer.status_code == 200, path
        assert "<img" not in answer.text, path
        assert len(answer.content) < 200_000, path


def test_a_large_output_is_cut_and_downloaded_whole(site: Site):
    """The first 64 KB are shown, the rest comes with the download, never run by a browser."""
    runs, large = Runs(site, code("only")), "x" * 300_000
    id, reader = runs.play(runs.start(), {"only": StepEnd(large)}), Reader(site)
    page = reader.get(f"/executions/{id}/steps/only")
    assert "The first 64 KB" in page.text
    assert len(page.content) < 2 * 64 * 1024 + 20_000  # the output, and the result, which is equal
    whole = reader.get(f"/executions/{id}/outputs/only")
    assert (whole.text, whole.headers["content-disposition"][:10]) == (large, "attachment")
    assert whole.headers["content-security-policy"].startswith("sandbox")


def test_the_lines_of_a_step_are_searched(site: Site):
    """In whatever case; each further hit can be reached, and the words are in the address. R2."""
    runs, reader = Runs(site, code("only")), Reader(site)
    lines = [("stdout", f"row {n}\n" + "Refused <b>\n" * (n == 250)) for n in range(600)]
    id = runs.play(runs.start(), {"only": StepEnd("done", lines=tuple(lines))})
    path = f"/executions/{id}/steps/only"
    assert "row 199" in reader.get(path).text
    assert "Refused" not in reader.get(path).text
    found = reader.get(f"{path}?find=REFUSED")
    assert "Refused &lt;b&gt;" in found.text
    assert "row 250" not in found.text
    assert 'name="find" value="REFUSED"' in found.text
    next = unescape(re.findall(r'href="([^"#]+find=[^"#]+lines=[^"#]+)', found.text)[0])
    assert "No line contains it" in reader.get(next).text


def test_artifacts_are_links_in_a_sandbox(site: Site):
    """What a step left opens under `sandbox`; the page names its size and step. AR-1."""
    id, artifact = site.do(site.world.with_artifact("<b>report.txt"))
    reader = Reader(site)
    page = reader.get(f"/executions/{id}")
    link = f"/api/executions/{id}/artifacts/{artifact}/download"
    assert (link in page.text, "<b>report" in page.text) == (True, False)
    content = reader.get(link)
    assert (content.text, content.status_code) == ("hello", 200)
    assert content.headers["content-security-policy"].startswith("sandbox")


def test_the_page_of_a_step_lists_the_files_that_it_read(site: Site):
    """FI-3: by the path that the step saw, as links, and with their sizes."""
    runs, reader = Runs(site, code("fetch"), evolve(code("load"), files=("fetch",))), Reader(site)
    left = LeftFile("art_7", "<b>.csv", "exec/art_7", 2_048, "text/csv", "0" * 64, True)
    id = runs.play(runs.start(), {"fetch": StepEnd("done", files=(left,))})
    page = reader.get(f"/executions/{id}/steps/load?show=inputs").text
    assert "Files that it read" in page
    link = f'/api/executions/{id}/artifacts/art_7/download">fetch/&lt;b&gt;.csv</a>'
    assert link in page
    assert "2.0 kB" in page.partition(link)[2]
    assert "Files that it read" not in reader.get(f"/executions/{id}/steps/fetch?show=inputs").text


def test_rounds_are_a_grid_with_the_failed_first(site: Site):
    """Each round is a link in one picture; one that failed stands first, with its sign. 5.5."""
    loop = LoopStep("each", list(range(40)), "item", (code("one"),), max_parallel=9)
    runs = Runs(site, loop)
    id = runs.play(runs.start(), {"each.3.one": StepEnd(None, error="no")})
    reader = Reader(site)
    page = reader.get(f"/executions/{id}/steps/one").text
    assert re.findall(r"step=each.(\d+).one", page)[0] == "3"
    grid = page.partition('class="rounds"')[2]
    assert re.findall(r"<text[^>]*>([^<]*)</text></a>", grid)[0] == "✕"
    assert reader.get(f"/executions/{id}/steps/one/3").status_code == 200
    assert reader.get(f"/executions/{id}/steps/each.3.one").status_code == 200
    for wrong in (
        "/steps/one/99",
        "/steps/one/x",
        "/steps/none",
        "/steps/each/3",
        "/steps/one/3.1",
    ):
        assert reader.get(f"/executions/{id}{wrong}").status_code == 404, wrong


def test_a_running_loop_says_how_many_rounds_have_begun(site: Site):
    """Of how many, in place of its state. XP-3."""
    loop = LoopStep("each", list(range(40)), "item", (code("one"),))
    runs = Runs(site, loop)
    id = runs.play(runs.start(), stay=("each.2.one",))
    assert "3 of 40 rounds" in Reader(site).get(f"/executions/{id}").text.partition('id="steps"')[2]


def test_what_a_cancellation_stops_is_said_before(site: Site):
    """The preview names what is stopped and what will not run; then it is so. R6, EX-7."""
    runs, reader = Runs(site), Reader(site)
    id = runs.play(runs.start(), stay=("fraud_model",))
    preview = text_of(reader.get(f"/executions/cancel?id={id}"))
    assert "Stopped now: fraud_model" in preview
    assert "Will not run: review, pay" in preview
    done = reader.post("/executions/cancel", ids=id)
    assert (done.status_code, done.headers["location"]) == (303, f"/executions/{id}")
    assert site.do(site.world.get(f"/api/v1/executions/{id}")).json()["status"] == "CANCELLED"
    assert "It has already ended: " in text_of(reader.get(f"/executions/cancel?id={id}"))


def test_each_of_several_has_its_verdict(site: Site):
    """One has ended in between, one is unknown: the others are cancelled, and all is said. R7."""
    runs, reader = Runs(site), Reader(site)
    ids = [runs.play(runs.start(), stay=("collect",)) for _ in range(3)]
    reader.get("/executions/cancel?" + "&".join(f"id={id}" for id in ids))
    runs.finish(ids[1], "collect", StepEnd(None, error="no"))
    said = text_of(reader.post("/executions/cancel", ids=" ".join([*ids, "nothing"])))
    assert said.count("✓ Cancelled.") == 2
    assert "✕ Nothing was done: The execution is FAILED." in said
    assert "✕ It no longer exists" in said
    assert "at most 50" in reader.post("/executions/cancel", ids=" ".join(map(str, range(51)))).text


def test_a_redrive_says_what_it_keeps_and_is_made_once(site: Site):
    """Kept steps and the first to run are named; a second click starts nothing. EX-17."""
    runs, reader = Runs(site), Reader(site)
    id = runs.play(runs.start(), FAILED)
    preview = text_of(reader.get(f"/executions/redrive?id={id}"))
    assert "Kept as they are: collect" in preview
    assert "It begins at score , then review, pay" in preview
    first = reader.post("/executions/redrive", ids=id)
    made = first.headers["location"].removeprefix("/executions/")
    again = reader.post("/executions/redrive", ids=id)
    assert "It has been redriven in the meantime." in again.text
    total = site.do(site.world.get("/api/v1/executions")).json()["total"]
    assert total == 2
    view = site.do(site.world.get(f"/api/v1/executions/{made}")).json()
    assert (view["triggerSource"], view["redriveOf"]) == ("manual", id)
    assert id in reader.get(f"/executions/{made}").text
    assert f"/executions/{made}" in reader.get(f"/executions/{id}").text


def test_starting_anew_shows_the_inputs_in_the_form(site: Site):
    """Of the execution that is left; secrets stay out. EX-36."""
    declared = {"city": Variable("city"), "pin": Variable("pin", secret=True)}
    runs, reader = Runs(site, code("only"), variables=declared), Reader(site)
    id = runs.play(runs.start(city="Oslo & Co", pin="of-ann-1234"), {"only": StepEnd(1)})
    assert f"start?like={id}" in reader.get(f"/executions/{id}").text
    form = reader.get(f"/workflows/{runs.workflow}/start?like={id}").text
    assert 'value="Oslo &amp; Co"' in form
    assert "of-ann-1234" not in form


def test_a_get_changes_nothing(site: Site):
    """Every page, opened again and again: no new entry in the audit log, no event."""
    runs, reader = Runs(site), Reader(site)
    id = runs.play(runs.start(), FAILED)
    before = site.do(site.world.get(f"/api/v1/executions/{id}")).json()
    pages = (f"/{id}", f"/cancel?id={id}", f"/redrive?id={id}", f"/{id}/redrive")
    for path in (*pages, f"/{id}/steps/collect", ""):
        for _ in range(3):
            reader.get(f"/executions{path}")
    assert site.do(site.world.get(f"/api/v1/executions/{id}")).json() == before
    assert site.do(site.world.get("/api/v1/executions")).json()["total"] == 1


def test_two_executions_beside_each_other(site: Site):
    """Only what differs is marked, with what both say; a stranger's is 404. XP-4."""
    runs, reader = Runs(site), Reader(site)
    good, bad = runs.play(runs.start()), runs.play(runs.start(), FAILED)
    page = reader.get(f"/executions/{bad}/compare/{good}").text
    differs = re.findall(r'<tr class="differs"><th scope="row">(\w+)', page)
    assert differs == ["score", "fraud_model", "review"]
    assert f'placeholder="exec_…" value="{good}"' in reader.get(f"/executions/{bad}").text
    picked = reader.get(f"/executions/{bad}/compare?with={good}")
    assert picked.headers["location"] == f"/executions/{bad}/compare/{good}"
    eve = site.do(site.world.account("eve"))
    theirs = site.do(site.world.workflow(code("x"), owner=eve, name="theirs"))
    key = site.do(site.world.new_key(eve))
    start = site.world.post(
        f"/api/v1/workflows/{theirs}/executions",
        {},
        headers={"Authorization": f"Bearer {key.text}"},
    )
    other = site.do(start).json()["executionId"]
    assert reader.get(f"/executions/{bad}/compare/{other}").status_code == 404


async def _first(
    http: httpx.AsyncClient, path: str, headers: dict[str, str], kinds: int
) -> list[str]:
    """The first lines of a stream that name events or numbers."""
    found: list[str] = []
    async with http.stream("GET", path, headers=headers) as answer:
        async for line in answer.aiter_lines():
            if line.startswith(("event:", "id:", "data: ")):
                found.append(line)
            if len(found) >= kinds:
                break
    return found


def test_the_stream_says_that_and_not_what(site: Site):
    """A number and `changed`; at the end `end`; after the number seen nothing again."""
    runs, reader = Runs(site, code("only")), Reader(site)
    id = runs.play(runs.start(), {"only": StepEnd("private")})
    events = site.do(site.world.get(f"/api/v1/executions/{id}")).json()
    assert events["status"] == "COMPLETED"
    http, path = site.world.http, f"/executions/{id}/live"
    lines = site.do(_first(http, path, reader.headers, 4))
    number = lines[0].removeprefix("id: ")
    assert lines == [f"id: {number}", "event: changed", f"id: {number}", "event: end"]
    seen = {**reader.headers, "Last-Event-ID": number}
    assert site.do(_first(http, path, seen, 2)) == [f"id: {number}", "event: end"]
    assert reader.get("/executions/nothing/live").status_code == 404
