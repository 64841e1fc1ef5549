"""A canary in every place where a secret may come in; no page of the table shows one."""

from attrs import evolve

from adapters_http.console.routes import PAGES
from adapters_http.route import Auth
from tests.support.http_world import code, review
from wfcore.model.access import OPERATOR
from wfcore.model.trigger import Schedule
from wfcore.model.workflow import Variable
from wfcore.usecases.accounts import accounts
from wfcore.usecases.workflows import workflows

from .conftest import Site
from .execution_case import Runs, give_calendar
from .test_executions import Reader
from .test_operating import operator

ELSEWHERE = ("/live", "/static/{hash}/{name}", "/state", "/rows/live")
"""Streams, and files that are the same for all."""
CANARIES = ("c4nary-default", "c4nary-named", "c4nary-hook-secret-0123456789", "c4nary-typed")


def filled(site: Site) -> dict[str, dict[str, str]]:
    """A store with every canary in it; the parameters of paths, by how the path begins."""
    give_calendar(site)
    world = site.world
    services, ann = world.services, world.ann
    default, named, hook_secret, typed = CANARIES
    token = Variable("token", secret=True, has_default=True, default=default)
    runs = Runs(site, code("collect"), review(), variables={"token": token},
                triggers=(Schedule("0 9 * * *"),))  # fmt: skip
    ended = runs.play(runs.start(token=typed))
    written = f"variables: {{token: {{secret: true, default: {default}}}}}\n"
    definition = site.do(workflows.read_workflow(services, OPERATOR, runs.workflow)).definition
    again = evolve(definition, description="second")
    site.do(workflows.apply_workflow(services, ann.id, again, source=written))
    site.do(accounts.set_secret(services, OPERATOR, ann.id, "BANK", named))
    hook = site.do(world.webhook(runs.workflow, api_key_id=None, secret=hook_secret))
    answer = site.do(world.get(f"/api/v1/approvals/execution/{ended}")).json()
    return {
        "/executions": {"id": ended, "name": "collect", "round": "0", "other": ended},
        "/workflows": {"id": runs.workflow, "number": "2"},
        "/approvals": {"id": answer["approvals"][0]["id"], "name": "x", "aid": "x"},
        "/operate/keys": {"id": world.key.key.id},
        "/operate/webhooks": {"id": hook},
        "/operate/people": {"id": ann.id},
        "/operate/notices": {"id": "ntc_1"},
    }


def test_no_page_shows_a_secret(site: Site):
    """Every page that is read, as its owner and as an operator: none of the canaries, no key."""
    known = filled(site)
    readers = (Reader(site), operator(site)[1])
    secrets = (*CANARIES, site.world.key.text, site.world.key.callback_secret or "", "$argon2")
    seen = 0
    for route in PAGES:
        if route.method != "GET" or route.auth is not Auth.PAGE or route.path.endswith(ELSEWHERE):
            continue
        begin = next((one for one in known if route.path.startswith(f"{one}/")), "")
        path = route.path.format_map({**dict.fromkeys(route.names, "x"), **known.get(begin, {})})
        for reader in readers:
            answer = reader.get(path)
            assert answer.status_code < 500, path
            seen += answer.status_code == 200
            for secret in secrets:
                assert secret not in answer.text, (path, secret)
    assert seen > 40
