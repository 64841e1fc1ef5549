"""Names are shown in terminals, logs and pages: what would not be seen there is refused."""

import pytest

from wfcore.errors import InvalidDefinition, InvalidInput
from wfcore.model.access import Scope
from wfcore.rules.definition.check import check_definition
from wfcore.rules.webhooks.webhook import check_name
from wfcore.testing.fakes import PathTemplates
from wfcore.usecases.accounts import accounts, keys

from .conftest import World

UNSEEN = ["\0", "\n", "\r", "\t", "\x1b[2J", "\x7f", "\x85", "\u2028", "\u202e", "\u2066"]
SEEN = ["Ann's key", "Gänse & 雪", "a\u00a0b", "🎈"]


@pytest.mark.parametrize("bad", UNSEEN)
async def test_names_have_no_control_characters(world: World, bad: str):
    """Of accounts, keys, webhooks and workflows: each is refused, and its field is named."""
    ann = (await world.account()).account
    with pytest.raises(InvalidInput, match="email"):
        await accounts.create_account(world.services, f"b{bad}ob@example.org")
    with pytest.raises(InvalidInput, match="name: must not have control characters"):
        await keys.create_key(world.services, ann.id, f"a{bad}b", Scope.ordinary())
    with pytest.raises(InvalidInput, match="name: must not have control characters"):
        check_name(f"a{bad}b")
    step = {"name": "one", "kind": "code", "language": "bash", "code": ":"}
    with pytest.raises(InvalidDefinition, match="name"):
        check_definition({"name": f"a{bad}b", "steps": [step]}, PathTemplates().problems)


@pytest.mark.parametrize("good", SEEN)
async def test_whatever_can_be_seen_is_a_name(world: World, good: str):
    """Letters of any language, signs and spaces."""
    ann = (await world.account()).account
    issued = await keys.create_key(world.services, ann.id, good, Scope.ordinary())
    assert (issued.key.name, check_name(good)) == (good, good)
