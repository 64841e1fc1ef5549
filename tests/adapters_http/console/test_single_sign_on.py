"""Signing in with an identity provider: a real one on loopback, and every way it may lie. SE-9."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from starlette.responses import HTMLResponse, JSONResponse, Response

from adapters_http.app import HttpConfig
from adapters_http.browsers import MOST_ATTEMPTS
from adapters_http.config import SignOn
from adapters_runtime.oidc import OidcProvider
from tests.support.http_world import World, a_world
from tests.support.oidc_provider import CLIENT, HABITS, KEY, OTHER_KEY, SECRET, Provider, a_provider
from wfcore.errors import NotFound
from wfcore.model.access import OPERATOR, AccountStatus, SignOnTerms, Tier
from wfcore.testing import IdentityProviderContract
from wfcore.testing.builders import NOW
from wfcore.time import HOUR, MINUTE
from wfcore.usecases.accounts import accounts
from wfcore.usecases.accounts.accounts import find_account
from wfcore.usecases.accounts.groups import create_group, list_groups
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

    def kept(self) -> tuple[str, str]:
        """Name and value of the one cookie of a sign-in that has not ended."""
        ((name, value),) = [
            (name, value)
            for name, value in self.world.http.cookies.items()
            if name.startswith("wfcore_sign_on")
        ]
        return name, value

    async def is_in(self) -> bool:
        return (await self.world.http.get("/inbox")).status_code == 200


@pytest.fixture
def terms() -> SignOnTerms:
    return SignOnTerms()


@pytest.fixture
def trusts_email() -> bool:
    return False


@pytest.fixture
async def company(tmp_path: Path, terms: SignOnTerms, trusts_email: bool) -> AsyncIterator[Company]:
    clock = SimpleNamespace(now=lambda: 0)
    async with a_provider(lambda: clock.now()) as provider:
        of_us = provider.issuer, CLIENT, SECRET, lambda: clock.now()
        reads = bool(terms.groups)
        asking = OidcProvider(*of_us, trusts_email=trusts_email, reads_groups=reads)
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
    name, kept = company.kept()
    back = await company.world.http.get(await company.agree(address))
    assert (back.status_code, back.headers["location"]) == (303, "/inbox?view=agreed")
    gone, session = back.headers.get_list("set-cookie")
    assert {"HttpOnly", "SameSite=Lax"} <= set(session.split("; "))
    assert gone.startswith(f"{name}=;")
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
    "not verified, as text": {"email_verified": "false"},
    "verified as another text": {"email_verified": "yes"},
    "verified by a number": {"email_verified": 2},
    "a domain that is not theirs": {"email_verified": None, "xms_edov": False},
    "not verified, in a domain of theirs": {"email_verified": False, "xms_edov": True},
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
    name, kept = company.kept()
    back = await company.agree(address)
    assert (await company.world.http.get(back)).status_code == 303
    company.world.http.cookies.clear()
    assert (await company.world.http.get(back)).status_code == 403
    again = await company.world.http.get(back, headers={"Cookie": f"{name}={kept}"})
    assert again.status_code == 403
    assert not await company.is_in()


async def test_a_way_back_belongs_to_the_browser_that_left(company: Company):
    """Neither without the cookie, nor with that of another attempt, a forged or an old one."""
    mine = await company.agree(await company.depart())
    name, kept = company.kept()
    other = await company.agree(await company.depart())
    asked = len(company.provider.asked)
    company.world.http.cookies.clear()
    state = parse_qs(urlsplit(other).query)["state"][0]
    swapped = f"{name[:-12]}{state[:12]}"
    for cookie, back in (
        (None, mine),
        (f"{name}={kept}", other),
        (f"{swapped}={kept}", other),
        (f"{name}={kept}x", mine),
        (f"{name}=x.y", mine),
    ):
        headers = {"Cookie": cookie} if cookie else {}
        refused = await company.world.http.get(back, headers=headers)
        assert (refused.status_code, "begin again" in refused.text) == (403, True)
    company.world.clock.advance(10 * MINUTE)
    late = await company.world.http.get(mine, headers={"Cookie": f"{name}={kept}"})
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
    await accounts.set_account(
        services, OPERATOR, company.world.ann.id, status=AccountStatus.LOCKED
    )
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


@pytest.mark.parametrize("habit", sorted(HABITS))
async def test_providers_vouch_in_their_own_ways(company: Company, habit: str):
    """Each by its habits; Entra ID alone says nothing of an email, and signs nobody in. SE-9."""
    company.provider.behave_like(habit)
    status = (await company.sign_in()).status_code
    assert (status, await company.is_in()) == ((403, False) if habit == "Entra ID" else (303, True))


@pytest.mark.parametrize("trusts_email", [True])
@pytest.mark.parametrize("habit", sorted(HABITS))
async def test_an_issuer_that_is_trusted_need_not_say_it(company: Company, habit: str):
    """Where the operator trusts it, every provider signs in; one that says no is believed. SE-9."""
    company.provider.behave_like(habit)
    assert (await company.sign_in()).status_code == 303
    company.world.http.cookies.clear()
    claims, told = company.provider.claims, company.provider.userinfo
    for said in (False, "false", "no"):
        company.provider.claims = {**claims, "email_verified": said}
        assert (await company.sign_in()).status_code == 403
    company.provider.claims = {**claims, "email_verified": None, "xms_edov": None}
    company.provider.userinfo = {"email": "ann@example.org", "email_verified": "false"}
    assert (await company.sign_in()).status_code == (403 if told is not None else 303)


ELSEWHERE = {
    "another person": ({"sub": "2"}, 403),
    "nobody": ({"sub": None}, 403),
    "another email than the token": ({"email": "bob@example.org", "email_verified": True}, 403),
    "no email": ({"email": None, "email_verified": True}, 403),
    "the same email": ({"email": "Ann@Example.org", "email_verified": True}, 303),
}


@pytest.mark.parametrize("what", sorted(ELSEWHERE))
async def test_what_userinfo_says_is_of_the_same_person(company: Company, what: str):
    """It vouches for the email of the token's own person, and for no other. SE-9."""
    company.provider.claims = {"email_verified": None}
    company.provider.userinfo, status = ELSEWHERE[what]
    assert (await company.sign_in()).status_code == status


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (HTMLResponse("<p>no"), 403),
        (JSONResponse([1]), 403),
        (JSONResponse({}, 401), 403),
        (JSONResponse({}, 502), 503),
    ],
)
async def test_a_userinfo_endpoint_that_makes_no_sense(
    company: Company, answer: Response, status: int
):
    """What is no answer says nothing; one that is away decides nothing. SE-9."""
    company.provider.behave_like("Authelia")
    company.provider.odd = {"/me": answer}
    assert (await company.sign_in()).status_code == status
    assert not await company.is_in()


async def test_two_tabs_go_each_to_their_own_page(company: Company):
    """Both sign in, in any order, and each comes to the page that it wanted. SE-9."""
    pages = ["/inbox?view=agreed", "/executions", "/workflows"]
    left = [await company.depart(page) for page in pages]
    for address, page in reversed([*zip(left, pages, strict=True)]):
        back = await company.world.http.get(await company.agree(address))
        assert (back.status_code, back.headers["location"]) == (303, page)
    assert not [name for name in company.world.http.cookies if "sign_on" in name]


async def test_a_browser_keeps_a_few_sign_ins(company: Company):
    """The oldest of too many is over, and no request grows without end. SE-9."""
    left = []
    for _ in range(7):
        left.append(await company.depart())
        company.world.clock.advance(1)
    names = [name for name in company.world.http.cookies if "sign_on" in name]
    assert len(names) == MOST_ATTEMPTS
    assert (await company.world.http.get(await company.agree(left[0]))).status_code == 403
    for address in left[-MOST_ATTEMPTS:]:
        assert (await company.world.http.get(await company.agree(address))).status_code == 303


async def test_a_long_way_to_the_page_that_was_wanted(company: Company):
    """Browsers drop cookies over 4 KB: a page that fits into none is left out, not the sign-in."""
    address = await company.depart("/inbox?workflow=" + "x" * 5_000)
    assert len(company.kept()[1]) < 1_500
    back = await company.world.http.get(await company.agree(address))
    assert (back.status_code, back.headers["location"]) == (303, "/")


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
    assert (bob.plan, bob.password_hash, bob.operator) == (Tier.FREE, None, False)


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


@pytest.mark.parametrize(
    "terms", [SignOnTerms(groups={"7f3e": "finance", "legal": "legal"})], ids=["groups"]
)
class TestGroups:
    """The provider decides the groups that the settings name, at each sign-in. AP-50."""

    async def test_each_sign_in_joins_and_leaves(self, company: Company):
        """A word of the provider joins its group, and its absence at the next sign-in leaves it."""
        services, ann = company.world.services, company.world.ann
        await create_group(services, OPERATOR, "board", [ann.email])
        company.provider.claims = {"groups": ["7f3e", "board", "admins", 7]}
        assert (await company.sign_in()).status_code == 303
        found = await list_groups(services)
        assert found == {"board": (ann.email,), "finance": (ann.email,)}
        company.provider.claims = {"groups": "legal"}
        await company.sign_in()
        found = await list_groups(services)
        assert (found["finance"], found["legal"]) == ((), (ann.email,))
        company.provider.claims = {}
        await company.sign_in()
        assert (await list_groups(services))["legal"] == ()
        assert (await list_groups(services))["board"] == (ann.email,)
        entries = await read_audit(services, company.world.clock.now(), None, 99)
        moves = [(one.account_id, one.details) for one in entries if one.event == "group.follow"]
        assert moves == [
            (ann.id, {"by": "oidc", "joined": ["finance"], "left": []}),
            (ann.id, {"by": "oidc", "joined": ["legal"], "left": ["finance"]}),
            (ann.id, {"by": "oidc", "joined": [], "left": ["legal"]}),
        ]

    async def test_who_is_refused_joins_nothing(self, company: Company):
        """A sign-in that is refused changes no group."""
        services, ann = company.world.services, company.world.ann
        company.provider.claims = {"groups": ["legal"], "email_verified": False}
        assert (await company.sign_in()).status_code == 403
        company.provider.claims = {"groups": ["legal"]}
        await accounts.set_account(services, OPERATOR, ann.id, status=AccountStatus.LOCKED)
        assert (await company.sign_in()).status_code == 403
        assert await list_groups(services) == {}

    async def test_groups_at_userinfo_only(self, company: Company):
        """A provider that names groups only at its userinfo endpoint is heard there."""
        company.provider.userinfo = {"email": "ann@example.org", "groups": ["legal"]}
        await company.sign_in()
        assert (await list_groups(company.world.services))["legal"] == ("ann@example.org",)
        assert "userinfo" in company.provider.asked

    async def test_a_scope_for_groups_is_requested_where_there_is_one(self, company: Company):
        """The scope `groups` is requested only where the metadata offers it."""
        company.provider.scopes = ["openid", "email", "groups"]
        company.provider.wanted_scopes = ["groups"]
        company.provider.claims = {"groups": ["legal"]}
        assert (await company.sign_in()).status_code == 303


async def test_without_the_setting_the_claim_is_ignored(company: Company):
    """A claim about groups makes no group where the settings name none. AP-50."""
    company.provider.claims = {"groups": ["finance"]}
    company.provider.scopes = ["openid", "email", "groups"]
    await company.sign_in()
    assert await list_groups(company.world.services) == {}
