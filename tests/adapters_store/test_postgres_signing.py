"""Signed releases on PostgreSQL: the same answers as the other stores."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from attrs import evolve

from adapters_runtime.passkeys import WebAuthnPasskeys
from tests.support.authenticator import URL
from tests.support.postgres_server import emptied
from tests.wfcore.usecases.conftest import World, a_world
from tests.wfcore.usecases.test_signed_choices import is_signed_by
from tests.wfcore.usecases.test_signed_release import deed, opened, signed_in
from wfcore.model.approval import ApprovalStatus
from wfcore.usecases.accounts.passkeys import Confirmed
from wfcore.usecases.artifacts import list_artifacts
from wfcore.usecases.services import Policy


@pytest.fixture
async def signing(database: str, tmp_path: Path) -> AsyncIterator[World]:
    async with a_world(await emptied(database), tmp_path) as world:
        policy = Policy(public_url=URL)
        parts = {"passkeys": WebAuthnPasskeys(), "policy": policy}
        yield evolve(world, services=evolve(world.services, **parts))


async def test_two_people_sign_and_a_replay_is_refused(signing: World) -> None:
    """Nonces, counters, receipts and their files are kept; of five takers one wins. SR-2, SR-3."""
    ann, bob = await signed_in(signing, "ann"), await signed_in(signing, "bob", counts=False)
    both = {"approvers": ("ann@example.org", "bob@example.org"), "required_approvals": 2}
    approval = await opened(signing, ann.who, **both)
    await ann.approve(deed(approval))
    answer, digests = bob.sign(await bob.begin(deed(approval)))
    takers = (bob.take(answer, digests) for _ in range(5))
    results = await asyncio.gather(*takers, return_exceptions=True)
    (confirmed,) = [one for one in results if isinstance(one, Confirmed)]
    after = await bob.decide(evolve(deed(approval), confirmed=confirmed))
    assert after.status is ApprovalStatus.APPROVED
    assert is_signed_by(after, ann, bob)
    files = await list_artifacts(signing.services, ann.who, approval.execution_id)
    assert {one.name for one in files} == {"receipt-1.json", "receipt-2.json"}
