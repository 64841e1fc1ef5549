"""Signing in through an identity provider. SE-9."""

from typing import Protocol

from attrs import field, frozen

from wfcore.model.access import Identity


@frozen
class SignOnAttempt:
    """
    The secrets that one browser keeps while its owner is at the provider, so that nobody else can
    complete the sign-on. Three unguessable texts: `state` comes back in the query, `nonce` in the
    token, and `verifier` goes to the provider with the code.
    """

    state: str = field(repr=False)
    nonce: str = field(repr=False)
    verifier: str = field(repr=False)


class IdentityProvider(Protocol):
    """A provider that the operator chose. Its methods raise `NotReady` while it does not answer."""

    async def address(self, attempt: SignOnAttempt, redirect_uri: str) -> str:
        """The URL to send the browser to; it comes back to *redirect_uri*."""

    async def identity(self, attempt: SignOnAttempt, redirect_uri: str, code: str) -> Identity:
        """
        The identity of the person who came back with *code*, which works once. Raises `Unvouched`
        for a code or a token that does not match *attempt* exactly.
        """
