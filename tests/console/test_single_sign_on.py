"""Signing in with an identity provider: a real one on loopback, and every way it may lie. SE-9."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from starlette.responses import HTMLResponse, JSONResponse

from adapters_http.app import HttpConfig
from adapters_http.config import SignOn
from adapters_runtime.oidc import OidcProvider
from http_world import World, a_world
from oidc_provider import CLIENT, KEY, OTHER_KEY, SECRET, Provider, a_provider
from wfcore.errors import NotFound
from wfcore.model.access import AccountStatus, Plan, SignOnTerms
from wfcore.testing import IdentityProviderContract
from wfcore.testing.builders import NOW
from wfcore.time import HOUR, MINUTE
from wfcore.usecases.accounts import accounts
from wfcore.usecases.accounts.accounts import find_account
from wfcore.usecases.audit.auditing import read_audit

HTML = {"Accept": "text/html"}


class Company(SimpleNamespace):
    """The server, the provider, and one browser."""

    world: World
    provider: Provider

    async def depart(self, next: str = "/inbox?view=agreed") -> str:
        """The address at the provider that the button leads to."""
        left = await self.world.http.get("/sign-in/provider", params={"next": next})
        assert left.status_code == 303
        return left.headers["location"]

    async def agree(self, address: str) -> str:
        """The way back that the provider sends the browser."""
        async with httpx.AsyncClient() as browser:
            return (await browser.get(address)).headers["location"]

    async def sign_in(self) -> httpx.Response:
        """All of it, as a browser does."""
        return await self.world.http.get(await self.agree(await self.depart()))

    async def is_in(self) -> bool:
        return (await self.world.http.get("/inbox")).status_code == 200


@pytest.fixture
def terms() -> SignOnTerms:
    return SignOnTerms()


@pytest.fixture
async def company(tmp_path: Path, terms: SignOnTerms) -> AsyncIterator[Company]:
    clock = SimpleNamespace(now=lambda: 0)
    async with a_provider(lambda: clock.now()) as provider:
        asking = OidcProvider(provider.issuer, CLIENT, SECRET, lambda: clock.now())
        sign_on = SignOn(asking, "Example Corp", terms)
        async with a_world(tmp_path, HttpConfig(console=True, sign_on=sign_on)) as world:
            clock.now = world.clock.now
            yield Company(world=world, provider=provider)


async def test_there_and_back(company: Company):
    """The button leads there, the way back signs in, to the page that was wanted. SE-5, SE-9."""
    form = await company.world.http.get("/inbox?view=agreed", headers=HTML)
    assert "Sign in with Example Corp" in form.text
    assert "/sign-in/provider?next=/inbox%3Fview%3Dagreed" in form.text
    address = await company.depart()
    asked = parse_qs(urlsplit(address).query)
    assert {"state", "nonce", "code_challenge"} <= set(asked)
    kept = company.world.http.cookies["wfcore_sign_on"]
    back = await company.world.http.get(await company.agree(address))
    assert (back.status_code, back.headers["location"]) == (303, "/inbox?view=agreed")
    gone, session = back.headers.get_list("set-cookie")
    assert {"HttpOnly", "SameSite=Lax"} <= set(session.split("; "))
    assert gone.startswith("wfcore_sign_on=;")
    assert await company.is_in()
    entries = await read_audit(company.world.services, company.world.clock.now(), None, 99)
    (created,) = [one for one in entries if one.event == "session.create"]
    assert (created.account_id, created.details) == (company.world.ann.id, {"by": "oidc"})
    for secret in (kept, *asked["state"], *asked["nonce"], SECRET):
        assert secret not in repr(entries)


LIES = {
    "another nonce": {"nonce": "x"},
    "no nonce": {"nonce": None},
    "another audience": {"aud": "other"},
    "several audiences, for another": {"aud": [CLIENT, "other"], "azp": "other"},
    "another issuer": {"iss": "http://127.0.0.1:1"},
    "expired": {"exp": 1},
    "not yet": {"nbf": 4_000_000_000},
    "not verified": {"email_verified": False},
    "says nothing of it": {"email_verified": None},
    "verified as text": {"email_verified": "true"},
    "no email": {"email": None},
    "nobody here": {"email": "bob@example.org"},
    "nobody at all": {"email": "@example.org"},
    "a look-alike": {"email": "an\N{KELVIN SIGN}@example.org"},
    "a blank of another script": {"email": "ank@example.org\u00a0"},
}


async def test_a_token_that_is_not_right_signs_nobody_in(company: Company):
    """Whatever is wrong with it, the page says so; the same person with a right one is in. SE-9."""
    await accounts.create_account(company.world.services, "ank@example.org")
    for lie, claims in LIES.items():
        company.provider.claims = claims
        refused = await company.sign_in()
        assert (refused.status_code, 'role="alert"' in refused.text) == (403, True), lie
        assert not await company.is_in(), lie
    company.provider.claims = {}
    assert (await company.sign_in()).status_code == 303
    with pytest.raises(NotFound):
        await find_account(company.world.services, "bob@example.org")


async def test_a_token_of_another_key_signs_nobody_in(company: Company):
    """
    One that the provider does not publish, under either name; a new published one does, if all is
    right that it has signed.
    """
    company.provider.key = OTHER_KEY
    assert (await company.sign_in()).status_code == 403
    company.provider.key = evolve_kid()
    assert (await company.sign_in()).status_code == 403
    assert not await company.is_in()
    company.provider.key, company.provider.published = OTHER_KEY, [KEY, OTHER_KEY]
    company.provider.claims = {"nonce": "x"}
    assert (await company.sign_in()).status_code == 403
    company.provider.claims = {}
    assert (await company.sign_in()).status_code == 303
    assert await company.is_in()


def evolve_kid():
    """The second key under the first one's name."""
    from joserfc.jwk import RSAKey

    return RSAKey.import_key({**OTHER_KEY.as_dict(private=True), "kid": KEY.kid})


async def test_a_way_back_works_once(company: Company):
    """A code that was redeemed is refused by the provider, and the cookie is gone anyway."""
    address = await company.depart()
    kept = company.world.http.cookies["wfcore_sign_on"]
    back = await company.agree(address)
    assert (await company.world.http.get(back)).status_code == 303
    company.world.http.cookies.clear()
    assert (await company.world.http.get(back)).status_code == 403
    again = await company.world.http.get(back, headers={"Cookie": f"wfcore_sign_on={kept}"})
    assert again.status_code == 403
    assert not await company.is_in()


async def test_a_way_back_belongs_to_the_browser_that_left(company: Company):
    """Neither without the cookie, nor with that of another attempt, a forged or an old one."""
    mine = await company.agree(await company.depart())
    kept = company.world.http.cookies["wfcore_sign_on"]
    other = await company.agree(await company.depart())
    asked = len(company.provider.asked)
    company.world.http.cookies.clear()
    for cookie, back in ((None, mine), (kept, other), (f"{kept}x", mine), ("x.y", mine)):
        headers = {"Cookie": f"wfcore_sign_on={cookie}"} if cookie else {}
        refused = await company.world.http.get(back, headers=headers)
        assert (refused.status_code, "begin again" in refused.text) == (403, True)
    company.world.clock.advance(10 * MINUTE)
    late = await company.world.http.get(mine, headers={"Cookie": f"wfcore_sign_on={kept}"})
    assert (late.status_code, "took too long" in late.text) == (403, True)
    assert company.provider.asked[asked:] == [], "the provider was not shown the code"


async def test_who_declines_there_is_told(company: Company):
    """An `error` instead of a code is a sentence at the form."""
    company.provider.denies = True
    refused = await company.sign_in()
    assert (refused.status_code, "not completed" in refused.text) == (403, True)


async def test_a_blocked_account_stays_out(company: Company):
    """What blocks the account blocks this way in. AC-1."""
    services = company.world.services
    await accounts.set_account(services, company.world.ann.id, status=AccountStatus.LOCKED)
    assert (await company.sign_in()).status_code == 403
    assert not await company.is_in()


async def test_a_provider_that_is_away_is_503(company: Company):
    """Nothing is lost, and the next click works again once it answers."""
    company.provider.broken = True
    left = await company.world.http.get("/sign-in/provider", headers=HTML)
    assert (left.status_code, "does not answer" in left.text) == (503, True)
    company.provider.broken = False
    assert (await company.sign_in()).status_code == 303


DISCOVERY = "/.well-known/openid-configuration"
ODD = {
    "a page": (DISCOVERY, HTMLResponse("<p>Welcome")),
    "no object": (DISCOVERY, JSONResponse([1, 2])),
    "nothing of use": (DISCOVERY, {}),
    "no address": (DISCOVERY, {"authorization_endpoint": 5, "token_endpoint": None}),
    "no keys": ("/keys", JSONResponse({})),
    "half a key": ("/keys", JSONResponse({"keys": [{"kty": "RSA"}]})),
}


async def test_a_provider_that_makes_no_sense_is_503(company: Company):
    """Whatever stands where it should say who it is, a client's click is no defect of ours."""
    issuer = company.provider.issuer
    for what, (path, answer) in ODD.items():
        said = {"issuer": issuer, "jwks_uri": f"{issuer}/keys"}
        odd = JSONResponse({**said, **answer}) if isinstance(answer, dict) else answer
        company.provider.odd = {path: odd}
        left = await company.world.http.get("/sign-in/provider", headers=HTML)
        assert (left.status_code, "does not answer" in left.text) == (503, True), what
    company.provider.odd = {}
    assert (await company.sign_in()).status_code == 303


@pytest.mark.parametrize("said", [[1], {}, "text", {"id_token": 5}, {"id_token": "a.b.c"}, None])
async def test_tokens_that_make_no_sense_sign_nobody_in(company: Company, said: object):
    """A page in their place, or anything that is no token: a sentence at the form."""
    company.provider.odd = {"/token": JSONResponse(said) if said else HTMLResponse("<p>no")}
    assert (await company.sign_in()).status_code == 403
    assert not await company.is_in()


async def test_a_long_way_to_the_page_that_was_wanted(company: Company):
    """Browsers drop cookies over 4 KB: a page that fits into none is left out, not the sign-in."""
    address = await company.depart("/inbox?workflow=" + "x" * 5_000)
    assert len(company.world.http.cookies["wfcore_sign_on"]) < 4_000
    back = await company.world.http.get(await company.agree(address))
    assert (back.status_code, back.headers["location"]) == (303, "/inbox")


async def test_clicks_at_once_ask_the_provider_once(company: Company):
    """Whoever opens the way in again and again makes nobody else work for it."""
    clicks = [company.world.http.get("/sign-in/provider") for _ in range(8)]
    assert {one.status_code for one in await asyncio.gather(*clicks)} == {303}
    assert company.provider.asked.count("discovery") == 1


async def test_what_the_provider_says_is_asked_once_an_hour(company: Company):
    """Not with every sign-in; and an impostor under the same address is none. SE-9."""
    for _ in range(3):
        assert (await company.sign_in()).status_code == 303
    assert company.provider.asked.count("discovery") == 1
    company.world.clock.advance(HOUR)
    company.provider.issuer += "/other"
    assert (await company.world.http.get("/sign-in/provider")).status_code == 503
    assert company.provider.asked.count("discovery") == 2


@pytest.mark.parametrize(
    "terms", [SignOnTerms(create=True), SignOnTerms(frozenset({"example.org"}), create=True)]
)
async def test_an_account_is_made_where_the_settings_say_so(company: Company):
    """On the plan FREE, without a password, once; of an allowed domain only. SE-9."""
    company.provider.claims = {"email": "Bob@Example.org"}
    for _ in range(2):
        assert (await company.sign_in()).status_code == 303
    bob = await find_account(company.world.services, "bob@example.org")
    assert (bob.plan, bob.password_hash, bob.operator) == (Plan.FREE, None, False)


@pytest.mark.parametrize("terms", [SignOnTerms(frozenset({"example.com"}), create=True)])
async def test_other_domains_are_not_admitted(company: Company):
    """Neither a subdomain nor an address that only contains the domain."""
    for email in ("ann@example.org", "ann@x.example.com", "ann@example.com@example.org"):
        company.provider.claims = {"email": email}
        refused = await company.sign_in()
        assert (refused.status_code, "not admitted" in refused.text) == (403, True), email


async def test_without_settings_there_is_no_such_page(tmp_path: Path):
    """404, and no button. SE-9."""
    async with a_world(tmp_path, HttpConfig(console=True)) as world:
        for path in ("/sign-in/provider", "/sign-in/back?code=x&state=y"):
            assert (await world.http.get(path, headers=HTML)).status_code == 404
        assert "/sign-in/provider" not in (await world.http.get("/sign-in")).text


class Office(SimpleNamespace):
    """The provider as the shipped contract wants it."""

    made: Provider
    email = "ann@example.org"
    secret = SECRET

    async def agree(self, address: str) -> str:
        async with httpx.AsyncClient() as browser:
            return (await browser.get(address)).headers["location"]

    def is_away(self) -> None:
        self.made.broken = True


class TestOidcProvider(IdentityProviderContract):
    """OpenID Connect keeps what any identity provider promises."""

    @pytest.fixture
    async def company(self) -> AsyncIterator[Office]:
        async with a_provider(lambda: NOW) as made:
            yield Office(made=made)

    @pytest.fixture
    def provider(self, company: Office) -> OidcProvider:
        return OidcProvider(company.made.issuer, CLIENT, SECRET, lambda: NOW)
