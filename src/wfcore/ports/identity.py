"""Asking an identity provider who somebody is. SE-9."""

from typing import Protocol

from attrs import field, frozen

from wfcore.model.access import Identity


@frozen
class SignOnAttempt:
    """
    What one browser keeps while its owner is at the provider: nobody else may complete it. Three
    unguessable texts: `state` comes back in the query, `nonce` in the token, and `verifier` goes to
    the provider with the code.
    """

    state: str = field(repr=False)
    nonce: str = field(repr=False)
    verifier: str = field(repr=False)


class IdentityProvider(Protocol):
    """One provider that the operator chose. Both raise `NotReady` while it does not answer."""

    async def address(self, attempt: SignOnAttempt, redirect_uri: str) -> str:
        """Where to send the browser; it comes back to *redirect_uri*."""

    async def identity(self, attempt: SignOnAttempt, redirect_uri: str, code: str) -> Identity:
        """
        Who came back with *code*, which works once. Raises `Unvouched` for a code or a token that
        is not exactly what *attempt* asked for.
        """
