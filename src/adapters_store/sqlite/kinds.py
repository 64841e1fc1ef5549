"""
Kinds of records that are one row each: key, columns for lookups, version, body.

These few words yield the four statements that every kind needs.
"""
# ruff: noqa: S608 - only constant names of this package are put into the text

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar, cast

from attrs import evolve, frozen

from adapters_store.sqlite.cells import Cells, sealed, text_of, value_of
from adapters_store.sqlite.statements import Write, insert, update
from wfcore.model.access import Account, ApiKey, Login, LoginLink, Session, Share
from wfcore.model.approval import Approval
from wfcore.model.execution import Artifact, Callback, Replay
from wfcore.model.trigger import Timer, Trigger
from wfcore.model.webhook import Delivery, Tally, Webhook
from wfcore.model.workflow import DefinitionSnapshot, Workflow
from wfcore.ports.records import KIND_OF
from wfcore.ports.system import Sealer
from wfcore.wire.records import reader_of, writer_of

R = TypeVar("R")
Row = Sequence[Any]
Key = tuple[Any, ...]
Decode = Callable[[Row, Cells], R]
"""Makes a record of a row, whose sealed cells the second argument opens."""


@frozen
class Fetch(Generic[R]):
    """
    How one record is read by its key.

    `fetch` selects the version first, then what `decode` needs. With `probe` the version alone is
    selected first, so that a decoded record can be reused without reading its body: only for ids
    that are never reused, otherwise an old record could be taken for its successor. `watched`:
    changes of any such record are counted (migration 7), so only the count is read. `immutable`:
    read once only.
    """

    table: str
    fetch: str
    decode: "Decode[R]"
    probe: str | None = None
    watched: bool = False
    immutable: bool = False


class Kind(Generic[R]):
    """
    One table of records.

    *columns* are fields of the record that have columns as well; *values* says how to compute those
    that are not fields. *probed*, *watched* and *immutable*: see `Fetch`.
    """

    def __init__(
        self,
        table: str,
        type: type[R],
        columns: tuple[str, ...] = (),
        probed: bool = False,
        watched: bool = False,
        immutable: bool = False,
        values: Mapping[str, Callable[[R], Any]] | None = None,
    ) -> None:
        key = KIND_OF[type].key
        self.table, self.type, self.key, self.columns = table, type, key, columns
        self._values = values or {}
        self._encode = writer_of(type, ["version"])
        self._structure = reader_of(type)
        found = " AND ".join(f"{name} = ?" for name in key)
        names = (*key, *columns, "version", "body")
        self.insert = insert(table, names)
        self.update = update(table, names[len(key) :], (*key, "version"))
        self.delete = f"DELETE FROM {table} WHERE {found}"
        fetch = f"SELECT version, body FROM {table} WHERE {found}"
        probe = f"SELECT version FROM {table} WHERE {found}" if probed else None
        self.one = Fetch(table, fetch, self.decode, probe, watched, immutable)

    def key_of(self, record: R) -> Key:
        """The values of the key."""
        return tuple(getattr(record, name) for name in self.key)

    def bumped(self, record: R) -> R:
        """The record as it is once it is stored."""
        return cast("R", evolve(cast("Any", record), version=cast("Any", record).version + 1))

    def decode(self, row: Row, cells: Cells) -> R:
        """A record from `version, body`."""
        data = value_of(cells.opened(row[1], "body"))
        data["version"] = row[0]
        return self._structure(data)

    def put(self, record: R, sealer: Sealer | None) -> Write:
        """The write that compares the version and sets."""
        key = self.key_of(record)
        version = cast("Any", record).version
        values = tuple(self._value(record, name) for name in self.columns)
        body = sealed(sealer, text_of(self._encode(record)), self.table, "body", *key)
        values = (*values, version + 1, body)
        stale = (self.table, str(key[-1]))
        if version == 0:
            return self.insert, (*key, *values), stale
        return self.update, (*values, *key, version), stale

    def _value(self, record: R, column: str) -> Any:
        computed = self._values.get(column)
        value = getattr(record, column) if computed is None else computed(record)
        return getattr(value, "value", value)

    def drop(self, record: R) -> Write:
        """The write that compares the version and deletes."""
        key = self.key_of(record)
        sql = self.delete + " AND version = ?"
        return sql, (*key, cast("Any", record).version), (self.table, str(key[-1]))


ACCOUNTS = Kind("accounts", Account, columns=("email", "created_at"), watched=True)
KEYS = Kind("api_keys", ApiKey, columns=("account_id", "created_at"), watched=True)
SESSIONS = Kind("sessions", Session, columns=("created_at",))
LOGINS = Kind("logins", Login, columns=("last_failure_at",))
LOGIN_LINKS = Kind("login_links", LoginLink, columns=("created_at",))
WORKFLOWS = Kind("workflows", Workflow, columns=("owner_id", "name"), watched=True)
DEFINITIONS = Kind("definitions", DefinitionSnapshot, immutable=True)
SHARES = Kind("shares", Share, columns=("permission",))
APPROVALS = Kind(
    "approvals",
    Approval,
    columns=(
        "execution_id",
        "workflow_id",
        "workflow_owner_id",
        "owner_id",
        "status",
        "named",
        "created_at",
        "expires_at",
        "remind_at",
        "allow_self_approval",
        "assented",
    ),
    probed=True,
    values={
        "named": lambda approval: 1 if approval.approvers else 0,
        "assented": lambda approval: text_of([one.account for one in approval.assents]),
    },
)
ARTIFACTS = Kind("artifacts", Artifact, columns=("execution_id", "created_at"))
CALLBACKS = Kind("callbacks", Callback, columns=("due_at",))
WEBHOOKS = Kind(
    "webhooks", Webhook, columns=("owner_id", "workflow_id", "created_at"), watched=True
)
TRIGGERS = Kind("triggers", Trigger, columns=("workflow_id", "watches", "created_at"), probed=True)
TIMERS = Kind("timers", Timer, columns=("trigger_id", "due_at"))
REPLAYS = Kind("replays", Replay, columns=("created_at",))

KINDS: Mapping[type[Any], Kind[Any]] = {
    kind.type: kind
    for kind in (
        *(ACCOUNTS, KEYS, SESSIONS, LOGINS, LOGIN_LINKS, WORKFLOWS, DEFINITIONS, SHARES),
        *(APPROVALS, ARTIFACTS, CALLBACKS, WEBHOOKS, TRIGGERS, TIMERS, REPLAYS),
    )
}
"""How each kind of record is stored; of executions see `execution_rows`."""

TABLE_OF: Mapping[type[Any], str] = {
    **{type: kind.table for type, kind in KINDS.items()},
    Tally: "webhook_tallies",
    Delivery: "webhook_deliveries",
}
