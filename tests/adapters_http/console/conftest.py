"""Pages in a real browser: the distribution's Chromium, driven over loopback."""

import asyncio
import shutil
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Any, Final, TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from adapters_http.app import HttpConfig
from tests.support.distribution import missing
from tests.support.http_world import World, a_world
from tests.system.scenarios.process import until
from wfcore.model.access import OPERATOR
from wfcore.usecases.accounts.sessions import issue_login_link
from wfcore.usecases.audit.auditing import UNKNOWN

if TYPE_CHECKING:
    from .approval_case import Case

T = TypeVar("T")
PATIENCE = 60_000
"""So many ms may whatever is waited for take: what comes at all comes much sooner."""
expect.set_options(timeout=PATIENCE)
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
AXE = Path(__file__).parent / "node_modules/axe-core/axe.min.js"
LOOKS: Final = {1280: ("light", "dark"), 390: ("light",), 320: ("dark",)}
"""By the width of a page, in pixels, the colour schemes in which axe looks at it."""
QUIET = (
    *("--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-quic"),
    *("--no-first-run", "--disable-background-networking", "--disable-component-update"),
    "--disable-sync",
)
"""Chromium looks for nobody but the page."""


class Site:
    """A served console with its operator, in a thread, so that tests may drive a browser."""

    def __init__(self, folder: Path, config: HttpConfig | None = None, **parts: Any) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        self._stack = AsyncExitStack()
        world = a_world(folder, config or HttpConfig(console=True), **parts)
        self.world: World = self.do(self._stack.enter_async_context(world))
        self.world.clock.advance(int(time() * 1_000) - self.world.clock.now())
        self.url = self.world.url

    def do(self, work: Awaitable[T]) -> T:
        """Do something on the server's side."""
        return asyncio.run_coroutine_threadsafe(_awaited(work), self._loop).result(60)

    def link(self, account_id: str | None = None) -> str:
        """A link that signs somebody in, by default Ann."""
        id = account_id or self.world.ann.id
        token = self.do(issue_login_link(self.world.services, OPERATOR, id, UNKNOWN))
        return f"{self.url}/in/{token}"

    def close(self) -> None:
        self.do(self._stack.aclose())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _awaited(work: Awaitable[T]) -> T:
    return await work


@pytest.fixture(scope="session", autouse=True)
def drawn_before() -> None:
    """
    With its first examples Hypothesis imports parts of itself, which pytest parses. The thread of a
    `Site` imports as well, and CPython 3.11 fails if it parses twice at once (a `SystemError` about
    its recursion depth): so these parts are there before any site is.
    """

    @settings(max_examples=1, database=None)
    @given(st.from_regex("a"))
    def draw(value: str) -> None:
        assert value

    draw()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """For one module only: while it is open, no other loop may run in this thread."""
    if CHROMIUM is None:
        missing("needs Debian's chromium: apt-get install chromium")
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=list(QUIET))
        yield found
        found.close()


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path)
    yield made
    made.close()


@pytest.fixture
def context(browser: Browser, site: Site) -> Iterator[BrowserContext]:
    """A browser of its own: cookies, storage; every tab is held to B1 and B4."""
    made = watched(browser.new_context(viewport={"width": 1280, "height": 900}), site)
    yield made
    made.close()
    assert made.complaints == []  # type: ignore[attr-defined]


def watched(context: BrowserContext, site: Site) -> Any:
    """Note what pages complain about, and whom they ask but their own server."""
    complaints: list[str] = []

    def watch(page: Page) -> None:
        page.on("console", lambda said: _is_fault(said.text) and complaints.append(said.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on(
            "request",
            lambda request: (
                request.url.startswith((site.url, "blob:")) or complaints.append(request.url)
            ),
        )

    context.on("page", watch)
    context.set_default_timeout(PATIENCE)
    context.complaints = complaints  # type: ignore[attr-defined]
    return context


def _is_fault(text: str) -> bool:
    """Chromium says of every answer above 400 that it failed: that is for tests to judge."""
    return "Failed to load resource" not in text


@pytest.fixture
def page(context: BrowserContext) -> Page:
    return context.new_page()


@pytest.fixture
def signed_in(site: Site, page: Page) -> Page:
    """A tab in which Ann is signed in."""
    enter(site, page)
    return page


def enter(site: Site, page: Page, account_id: str | None = None) -> None:
    """Sign somebody in by a link, and open the inbox."""
    page.goto(site.link(account_id))
    page.get_by_role("button", name="Continue as").click()
    arrived(page)
    page.goto(f"{site.url}/inbox")


def arrived(page: Page) -> None:
    """Wait for the first page behind a link that signs in."""
    page.wait_for_url(lambda url: "/in/" not in url)


def until_true(page: Page, condition: str) -> None:
    """
    Wait for JavaScript to be true. Playwright's `wait_for_function` looks again inside the page,
    where the Content-Security-Policy of ours forbids `eval`.
    """
    until(lambda: page.evaluate(condition), what=condition)


def painted(page: Page) -> None:
    """Let the browser draw what has changed: it keeps the place of what is read as it draws."""
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


@pytest.fixture
def accessible() -> Callable[[Page], None]:
    """
    Fails for what axe finds against WCAG 2.2 AA, light and dark, wide and narrow. B3. A look at
    many rows takes a second, so not every width is seen in both schemes.
    """
    if not AXE.exists():
        missing("needs axe-core: npm ci --prefix tests/adapters_http/console")
    source = AXE.read_text()
    run = """axe.run(document, {runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]})
        .then(found => found.violations.map(one => one.id + ": " + one.nodes.map(
            node => node.target.join(" ") + " " + node.failureSummary).join("; ")))"""

    def judge(page: Page) -> None:
        before = page.viewport_size
        page.evaluate(source)
        for width, schemes in LOOKS.items():
            page.set_viewport_size({"width": width, "height": 900})
            for scheme in schemes:
                page.emulate_media(color_scheme=scheme)
                assert page.evaluate(run) == [], (page.url, width, scheme)
            wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
            assert wide <= 0, f"{page.url} scrolls sideways at {width} px"
        page.emulate_media(color_scheme="light")
        if before:
            page.set_viewport_size(before)

    return judge


@pytest.fixture
def case(site: Site) -> "Case":
    """Two hundred payouts that wait for Ann."""
    from .approval_case import Case

    return Case(site)


@pytest.fixture
def open_page(case: "Case", signed_in: Page) -> Page:
    """Ann, in front of the rows."""
    from .approval_case import show

    show(case, signed_in)
    return signed_in
