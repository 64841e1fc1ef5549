"""
The contract of an identity provider, as a test class to inherit from.

    class TestMyProvider(IdentityProviderContract):
        @pytest.fixture
        def company(self): ...    # a `ScriptedCompany`: the place where people sign in

        @pytest.fixture
        def provider(self, company): ...    # a provider that uses the company

The contract needs pytest-asyncio in auto mode.
"""

from typing import Protocol
from urllib.parse import parse_qs, urlsplit

import pytest

from wfcore.errors import NotReady, Unvouched
from wfcore.ports.identity import IdentityProvider, SignOnAttempt
from wfcore.testing.contracts.awaited import Awaited

BACK = "http://127.0.0.1:8000/sign-in/provider/back"
ATTEMPT = SignOnAttempt("state-" + "s" * 32, "nonce-" + "n" * 32, "verifier-" + "v" * 43)
OTHER = SignOnAttempt("other-" + "s" * 32, "other-" + "n" * 32, "other-" + "v" * 43)


class ScriptedCompany(Protocol):
    """A company with one person, who is signed in there and agrees to everything."""

    email: str
    secret: str
    """The credential of the provider, which no error may repeat."""

    async def agree(self, address: str) -> str:
        """Return the address to which the company redirects the browser from *address*."""

    def is_away(self) -> None:
        """Answer nothing from now on."""


class IdentityProviderContract(Awaited):
    """The promises of `wfcore.ports.identity.IdentityProvider`."""

    async def _code(
        self, provider: IdentityProvider, company: ScriptedCompany, attempt: SignOnAttempt = ATTEMPT
    ) -> str:
        back = await company.agree(await provider.address(attempt, BACK))
        return parse_qs(urlsplit(back).query)["code"][0]

    async def test_the_way_back_has_the_state(
        self, provider: IdentityProvider, company: ScriptedCompany
    ) -> None:
        """The browser comes back to the given address, with the state of its attempt."""
        back = await company.agree(await provider.address(ATTEMPT, BACK))
        assert back.startswith(f"{BACK}?")
        assert parse_qs(urlsplit(back).query)["state"] == [ATTEMPT.state]

    async def test_the_verifier_stays_here(
        self, provider: IdentityProvider, company: ScriptedCompany
    ) -> None:
        """A person who sees the address of the redirect cannot complete the sign-in."""
        address = await provider.address(ATTEMPT, BACK)
        assert ATTEMPT.verifier not in address
        assert company.secret not in address

    async def test_a_code_says_who_came(
        self, provider: IdentityProvider, company: ScriptedCompany
    ) -> None:
        """
        A code gives the email of the person who agreed, and the provider vouches for the email.
        """
        code = await self._code(provider, company)
        found = await provider.identity(ATTEMPT, BACK, code)
        assert (found.email, found.verified) == (company.email, True)

    async def test_a_code_works_once(
        self, provider: IdentityProvider, company: ScriptedCompany
    ) -> None:
        """A code that was used before is refused, and so is an invented code."""
        code = await self._code(provider, company)
        await provider.identity(ATTEMPT, BACK, code)
        for worthless in (code, "guessed"):
            with pytest.raises(Unvouched) as refused:
                await provider.identity(ATTEMPT, BACK, worthless)
            assert company.secret not in str(refused.value)

    @pytest.mark.parametrize("given_own", ["nonce", "verifier"])
    async def test_a_code_is_bound_to_its_attempt(
        self, provider: IdentityProvider, company: ScriptedCompany, given_own: str
    ) -> None:
        """A code is refused in a browser other than the one that fetched the code."""
        code = await self._code(provider, company, OTHER)
        parts = {name: getattr(OTHER, name) for name in ("state", "nonce", "verifier")}
        with pytest.raises(Unvouched):
            await provider.identity(
                SignOnAttempt(**{**parts, given_own: getattr(ATTEMPT, given_own)}), BACK, code
            )

    async def test_a_provider_that_is_away_is_said(
        self, provider: IdentityProvider, company: ScriptedCompany
    ) -> None:
        """An absent provider raises `NotReady`, without a secret; no person is refused."""
        company.is_away()
        for asked in (
            provider.address(ATTEMPT, BACK),
            provider.identity(ATTEMPT, BACK, "code"),
        ):
            with pytest.raises(NotReady) as away:
                await asked
            assert company.secret not in str(away.value)
