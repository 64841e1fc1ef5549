"""
The contract of an identity provider, as a test class to inherit from.

    class TestMyProvider(IdentityProviderContract):
        @pytest.fixture
        def company(self): ...    # a `ScriptedCompany`: where people sign in, told what to say

        @pytest.fixture
        def provider(self, company): ...    # one that asks there

Needs pytest-asyncio in auto mode.
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
    """The other side: it knows one person, who is signed in there and agrees to everything."""

    email: str
    secret: str
    """The credential that the provider was given, which no error may repeat."""

    async def agree(self, address: str) -> str:
        """The address to which the browser is sent back from *address*."""

    def is_away(self) -> None:
        """It answers nothing from now on."""


class IdentityProviderContract(Awaited):
    """Everything that `wfcore.ports.identity.IdentityProvider` promises."""

    async def _code(
        self, provider: IdentityProvider, company: ScriptedCompany, attempt: SignOnAttempt = ATTEMPT
    ) -> str:
        back = await company.agree(await provider.address(attempt, BACK))
        return parse_qs(urlsplit(back).query)["code"][0]

    async def test_the_way_back_has_the_state(
        self, provider: IdentityProvider, company: ScriptedCompany
    ) -> None:
        """The browser comes back where it was told to, with the state of its attempt."""
        back = await company.agree(await provider.address(ATTEMPT, BACK))
        assert back.startswith(f"{BACK}?")
        assert parse_qs(urlsplit(back).query)["state"] == [ATTEMPT.state]

    async def test_the_verifier_stays_here(
        self, provider: IdentityProvider, company: ScriptedCompany
    ) -> None:
        """Whoever sees where the browser is sent can complete nothing."""
        address = await provider.address(ATTEMPT, BACK)
        assert ATTEMPT.verifier not in address
        assert company.secret not in address

    async def test_a_code_says_who_came(
        self, provider: IdentityProvider, company: ScriptedCompany
    ) -> None:
        """The email of whoever agreed, which the provider vouches for."""
        code = await self._code(provider, company)
        found = await provider.identity(ATTEMPT, BACK, code)
        assert (found.email, found.verified) == (company.email, True)

    async def test_a_code_works_once(
        self, provider: IdentityProvider, company: ScriptedCompany
    ) -> None:
        """A replayed code is refused, and so is one that was never given out."""
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
        """A code that another browser fetched is worth nothing in this one."""
        code = await self._code(provider, company, OTHER)
        parts = {name: getattr(OTHER, name) for name in ("state", "nonce", "verifier")}
        with pytest.raises(Unvouched):
            await provider.identity(
                SignOnAttempt(**{**parts, given_own: getattr(ATTEMPT, given_own)}), BACK, code
            )

    async def test_a_provider_that_is_away_is_said(
        self, provider: IdentityProvider, company: ScriptedCompany
    ) -> None:
        """Nobody is refused for it: `NotReady`, without a secret."""
        company.is_away()
        for asked in (
            provider.address(ATTEMPT, BACK),
            provider.identity(ATTEMPT, BACK, "code"),
        ):
            with pytest.raises(NotReady) as away:
                await asked
            assert company.secret not in str(away.value)
