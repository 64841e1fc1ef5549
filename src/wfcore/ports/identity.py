"""Signing in through an identity provider. SE-9."""

from typing import Protocol

from attrs import field, frozen

from wfcore.model.access import Identity


@frozen
class SignOnAttempt:
    """
    The secrets that a browser keeps while its owner is at the provider, so that nobody else can
    complete the sign-on. Three unguessable texts: `state` comes back in the query, `nonce` in the
    token, and `verifier` goes to the provider with the code.
    """

    state: str = field(repr=False)
    nonce: str = field(repr=False)
    verifier: str = field(repr=False)


class IdentityProvider(Protocol):
    """
    A provider that the operator chose. The methods raise `NotReady` while the provider does not
    answer.
    """

    async def address(self, attempt: SignOnAttempt, redirect_uri: str) -> str:
        """
        The URL to which to send the browser; the provider sends the browser back to *redirect_uri*.
        """

    async def identity(self, attempt: SignOnAttempt, redirect_uri: str, code: str) -> Identity:
        """
        The identity of the person who returned with *code*; a code works once. Raises `Unvouched`
        for a code or a token that does not match *attempt* exactly.
        """
