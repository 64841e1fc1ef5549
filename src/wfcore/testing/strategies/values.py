"""
Hypothesis strategies for JSON, instants, variables, keys, accounts, webhooks, approvals.

Ids come from small pools, so that owners, strangers and collisions all occur.
"""

from collections.abc import Mapping
from functools import cache
from string import printable

from hypothesis import strategies as st

from wfcore.model.access import Account, AccountStatus, ApiKey, Permission, Scope, Share, Tier
from wfcore.model.approval import Approval, Group
from wfcore.model.json import Json, JsonObject
from wfcore.model.webhook import DisabledReason, Webhook, WebhookStatus
from wfcore.model.workflow import (
    Column,
    ColumnType,
    Variable,
    VariableType,
)
from wfcore.rules.auth.api_key import ALPHABET, ID_LENGTHS, RANDOM_LENGTH, compose
from wfcore.testing import builders
from wfcore.time import DurationMs, EpochMs

LATEST = 4_102_444_800_000
"""2100-01-01, in epoch milliseconds."""

ACCOUNT_IDS = ("acc_1", "acc_2", "acc_3")
PEOPLE = (*ACCOUNT_IDS, "acc_1@example.org", " ACC_2@Example.org ")
"""The accounts by the names that `approvers` may use."""


@cache
def instants(least: int = 0, most: int = LATEST) -> st.SearchStrategy[EpochMs]:
    """Any instant; boundaries of quota windows are drawn more often."""
    anywhere = st.integers(least, most)
    near = st.builds(
        lambda at, length, by: min(max(at - at % length + by, least), most),
        anywhere,
        st.sampled_from((60_000, 900_000, 86_400_000)),
        st.integers(-1, 1),
    )
    return (anywhere | near).map(EpochMs)


_LETTERS = st.characters(exclude_categories=["Cs"])
_LETTERS.validate()
"""
The strategy is validated on import, so that Hypothesis makes its Unicode table now. Making the
table takes most of a second unless the disk already has it; during a user's first test Hypothesis
would report a slow strategy.
"""


@cache
def texts(least: int = 0, most: int = 12) -> st.SearchStrategy[str]:
    """Text that JSON can carry: every character but lone surrogates."""
    return st.text(printable, min_size=least, max_size=most) | st.text(
        _LETTERS, min_size=least, max_size=most
    )


@cache
def numbers() -> st.SearchStrategy[int | float]:
    """JSON numbers."""
    return st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)


@cache
def scalars() -> st.SearchStrategy[Json]:
    """Strings, numbers, booleans, null."""
    return st.none() | st.booleans() | numbers() | texts()


@cache
def json_values(depth: int = 3) -> st.SearchStrategy[Json]:
    """
    Any small JSON value, nested at most *depth* levels deep.

    `st.recursive` takes four times as long.
    """
    if depth == 0:
        return scalars()
    inner = json_values(depth - 1)
    return scalars() | st.lists(inner, max_size=3) | st.dictionaries(texts(), inner, max_size=3)


@cache
def payloads(names: st.SearchStrategy[str] | None = None) -> st.SearchStrategy[JsonObject]:
    """JSON objects, as clients send them."""
    return st.dictionaries(texts(1) if names is None else names, json_values(), max_size=5)


@cache
def typed(type: VariableType) -> st.SearchStrategy[Json]:
    """Values that fit the declared type *type*. A string has no NUL (VM-7)."""
    by_type: Mapping[VariableType, st.SearchStrategy[Json]] = {
        VariableType.STRING: texts().filter(lambda text: "\0" not in text),
        VariableType.NUMBER: numbers(),
        VariableType.BOOLEAN: st.booleans(),
        VariableType.OBJECT: payloads(),
        VariableType.ARRAY: st.lists(json_values(), max_size=3),
    }
    return by_type[type]


@st.composite
def variables(draw: st.DrawFn, name: str) -> Variable:
    """A declared variable, whose default fits its type."""
    type = draw(st.sampled_from(VariableType))
    has_default = draw(st.booleans())
    return Variable(
        name,
        type,
        required=draw(st.booleans()),
        has_default=has_default,
        default=draw(typed(type)) if has_default else None,
        secret=draw(st.booleans()),
        description=draw(texts()),
    )


# Accounts, keys, shares, webhooks


@cache
def base62(length: int) -> st.SearchStrategy[str]:
    return st.text(ALPHABET, min_size=length, max_size=length)


@cache
def key_ids() -> st.SearchStrategy[str]:
    """Ids of API keys, of every length that such an id may have."""
    return st.text(ALPHABET, min_size=ID_LENGTHS[0], max_size=ID_LENGTHS[1])


@cache
def key_texts() -> st.SearchStrategy[str]:
    """Well-formed API keys, as a caller sends them."""
    return st.builds(compose, key_ids(), base62(RANDOM_LENGTH))


@cache
def accounts() -> st.SearchStrategy[Account]:
    """Accounts from a small pool, with any plan and status."""
    return st.builds(
        builders.account,
        st.sampled_from(ACCOUNT_IDS),
        plan=st.sampled_from(Tier),
        status=st.sampled_from(AccountStatus),
    )


@cache
def api_keys() -> st.SearchStrategy[ApiKey]:
    """API keys of accounts from the pool, with some scopes; some keys expire or are revoked."""
    return st.builds(
        builders.key,
        st.sampled_from(("key_1", "key_2")),
        account_id=st.sampled_from(ACCOUNT_IDS),
        scopes=st.frozensets(st.sampled_from(Scope)),
        expires_at=st.none() | instants(),
        revoked_at=st.none() | instants(),
    )


@cache
def shares(workflow_id: str = "wf_1") -> st.SearchStrategy[Share | None]:
    """Shares of a workflow with accounts from the pool, or None."""
    return st.none() | st.builds(
        builders.share,
        st.just(workflow_id),
        st.sampled_from(ACCOUNT_IDS),
        permission=st.sampled_from(Permission),
    )


@st.composite
def webhooks(draw: st.DrawFn, id: str = "wh_1") -> Webhook:
    """A webhook in any mode and status."""
    status = draw(st.sampled_from(WebhookStatus))
    disabled = status is WebhookStatus.DISABLED
    return builders.webhook(
        id,
        owner_id=draw(st.sampled_from(ACCOUNT_IDS)),
        api_key_id=draw(st.sampled_from((None, "key_1", "key_2"))),
        secret_key=draw(st.sampled_from((None, "", "a secret"))),
        created_at=draw(instants()),
        status=status,
        disabled_reason=draw(st.sampled_from(DisabledReason)) if disabled else None,
    )


# Approvals


@cache
def column_values(column: Column) -> st.SearchStrategy[Json]:
    """Non-null values that fit *column*."""
    by_type: Mapping[ColumnType, st.SearchStrategy[Json]] = {
        ColumnType.STRING: texts(),
        ColumnType.NUMBER: numbers(),
        ColumnType.BOOLEAN: st.booleans(),
        ColumnType.DATE: st.dates().map(str),
        ColumnType.ENUM: st.sampled_from(column.options or (None,)),
        ColumnType.JSON: json_values().filter(lambda value: value is not None),
    }
    return by_type[column.type]


@cache
def columns_named(key: str) -> st.SearchStrategy[Column]:
    """Columns of any type with the key *key*."""
    return st.builds(
        Column,
        st.just(key),
        st.just(f"Column {key}"),
        st.sampled_from(ColumnType),
        st.booleans(),
        st.booleans(),
        st.just(("a", 1, True)),
    )


@cache
def _row_ids() -> st.SearchStrategy[list[int | str]]:
    return st.lists(st.integers(0, 99) | texts(1), max_size=4, unique_by=repr)


@st.composite
def groups(draw: st.DrawFn, name: str = "rows") -> Group:
    """A group whose rows fit its columns, with or without a row key."""
    keyed = draw(st.booleans())
    columns = tuple(draw(columns_named(f"c{number}")) for number in range(draw(st.integers(0, 3))))
    ids = draw(_row_ids())
    items = tuple(
        {"id": id, **{column.key: draw(column_values(column)) for column in columns}} for id in ids
    )
    return Group(name, name.title(), columns, items, "id" if keyed else None)


@st.composite
def approvals(draw: st.DrawFn) -> Approval:
    """An open approval with up to two groups and perhaps named approvers."""
    people = st.lists(st.sampled_from(PEOPLE), max_size=2)
    return builders.approval(
        owner_id=draw(st.sampled_from(ACCOUNT_IDS)),
        workflow_owner_id=draw(st.sampled_from(ACCOUNT_IDS)),
        timeout_ms=DurationMs(draw(st.integers(1, 10**10))),
        approvers=tuple(draw(people)),
        groups=tuple(draw(groups(name)) for name in ("first", "second")[: draw(st.integers(0, 2))]),
    )
