"""A page of another origin in a real browser: it gets what the operator allows."""

from pathlib import Path

from playwright.sync_api import Browser

from adapters_http.app import HttpConfig

from .conftest import Site

CALL = """async ([url, key]) => {
    const headers = {Authorization: `Bearer ${key}`, "Idempotency-Key": "1"};
    try {
        const answer = await fetch(url, {headers});
        return [answer.status, answer.headers.get("X-Request-Id") !== null];
    } catch (error) {
        return error.name;
    }
}"""


def test_pages_of_a_named_origin_call_the_api(browser: Browser, tmp_path: Path) -> None:
    """With a key, and reading what the answer says; a server that names nobody is not read."""
    sites = [Site(tmp_path / "page")]
    try:
        elsewhere = sites[0].url
        for name, origins in (("open", (elsewhere,)), ("closed", ())):
            sites.append(Site(tmp_path / name, HttpConfig(cors_origins=origins)))
        page = browser.new_page()
        page.goto(f"{elsewhere}/healthz")
        said = [
            page.evaluate(CALL, [f"{one.url}/api/v1/workflows", one.world.key.text])
            for one in sites[1:]
        ]
        page.close()
    finally:
        for site in sites:
            site.close()
    assert said == [[200, True], "TypeError"]
