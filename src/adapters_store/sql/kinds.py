"""
The kinds of records that are one row each.

A kind is a key, columns for lookups, a version and a body: enough for the statements of each kind.

A cell is JSON text, sealed if it comes from people or steps, contains a secret or lets somebody in.
Decision 86. A sealed cell is `~`, the id of the key, a dot, and the output of the sealer. No JSON
begins with a tilde. Where there is a key, a cell in clear is refused: anybody who can write to the
database could have put that cell there. SC-10, decision 86. Values that SQL uses stay in clear in
columns and bodies of their own: ids, states, instants, names.
"""
# ruff: noqa: S608 - only constant names of this package are put into the text

from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar, cast

from attrs import evolve, frozen

from adapters_store.sql.cells import SEALED, Cells, Key, Row, sealed, text_of, value_of
from adapters_store.sql.statement import Write, insert, update
from wfcore.model.access import (
    Account,
    ApiKey,
    Login,
    LoginLink,
    PeopleGroups,
    Session,
    Share,
)
from wfcore.model.approval import Approval, ApprovalHead
from wfcore.model.execution import Artifact, Callback, Replay
from wfcore.model.node import Node
from wfcore.model.notice import Notice
from wfcore.model.signing import SigningKeys
from wfcore.model.trigger import Timer, Trigger
from wfcore.model.webhook import Delivery, Tally, Webhook
from wfcore.model.workflow import DefinitionSnapshot, Workflow, WorkflowState
from wfcore.ports.records import KIND_OF
from wfcore.ports.system import Sealer
from wfcore.rules.approval.machine import accounts_of, next_reminder
from wfcore.rules.auth.access import idle
from wfcore.time import DAY
from wfcore.wire.records import reader_of, writer_of


class Differs(ValueError):
    """Raised for a column in clear that differs from the record in its row."""

    def __init__(self, column: str) -> None:
        super().__init__(f"its column {column} is not that of the record")


R = TypeVar("R")
Decode = Callable[[Row, Cells], R]
"""A function that makes a record from a row; its second argument opens the sealed cells."""


@frozen
class Fetch(Generic[R]):
    """
    The statements by which one record is read by its key.

    `fetch` selects the version first, then the columns for `decode`. `probe` selects the version
    alone, so that a decoded record can be reused without a read of its body. Only ids that are
    never reused may have a `probe`; otherwise an old record could be taken for its successor.
    `watched`: the database counts changes of these records (migration 7), so that only the count is
    read. `immutable`: a record is read only once.
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

    *columns*: the columns beside key, version and body. A column is a field of the record, unless
    *values* has a function that computes the column. *probed*, *watched* and *immutable*: see
    `Fetch`.
    """

    whole = "body"
    """The expression that is selected for `decode`, beside the version."""

    def __init__(
        self,
        table: str,
        type: type[R],
        columns: tuple[str, ...] = (),
        probed: bool = False,
        watched: bool = False,
        immutable: bool = False,
        values: Mapping[str, Callable[[R], Any]] | None = None,
        conflict: str = "",
    ) -> None:
        key = KIND_OF[type].key
        self.table, self.type, self.key, self.columns = table, type, key, columns
        self._values = values or {}
        self._encode = writer_of(type, ["version"])
        self._structure = reader_of(type)
        found = " AND ".join(f"{name} = ?" for name in key)
        names = (*key, *columns, "version", "body")
        self.insert = insert(table, names, conflict)
        self.update = update(table, names[len(key) :], (*key, "version"))
        self.delete = f"DELETE FROM {table} WHERE {found}"
        fetch = f"SELECT version, {self.whole} FROM {table} WHERE {found}"
        probe = f"SELECT version FROM {table} WHERE {found}" if probed else None
        self.one = Fetch(table, fetch, self.decode, probe, watched, immutable)

    def key_of(self, record: R) -> Key:
        """The values of the key."""
        return tuple(getattr(record, name) for name in self.key)

    def bumped(self, record: R) -> R:
        """*record* with the version that the record has once it is stored."""
        return cast("R", evolve(cast("Any", record), version=cast("Any", record).version + 1))

    def decode(self, row: Row, cells: Cells) -> R:
        """A record from `version` and `whole`."""
        return self._made(row, value_of(cells.opened(row[1], "body")))

    @property
    def compared(self) -> tuple[str, ...]:
        """The columns in clear whose values a sealed body has, too. SC-10."""
        stored = (name for name in self.columns if name not in self._values)
        return tuple(stored) if self.table in SEALED else ()

    def decode_compared(self, row: Row, cells: Cells) -> R:
        """A record from `version`, `whole` and the columns `compared`. Raises `Differs`."""
        return self.found_by(dict(zip(self.compared, row[2:], strict=True)))(row, cells)

    def found_by(self, columns: Mapping[str, Any]) -> Decode[R]:
        """
        `decode` for rows that were found by their *columns*. It raises `Differs` for a record that
        has other values: somebody changed the row by SQL, and the record is not the searched
        record. SC-10.
        """

        def decoded(row: Row, cells: Cells) -> R:
            record = self.decode(row, cells)
            for name, found in columns.items():
                if self._value(record, name) != found:
                    raise Differs(name)
            return record

        return decoded

    def _made(self, row: Row, data: dict[str, Any]) -> R:
        return self._structure({**data, "version": row[0]})

    def put(self, record: R, sealer: Sealer | None) -> list[Write]:
        """The writes of *record*; the first write is a compare-and-set of the version."""
        return [self._put(record, self._encode(record), sealer)]

    def _put(self, record: R, data: Mapping[str, Any], sealer: Sealer | None) -> Write:
        key = self.key_of(record)
        version = cast("Any", record).version
        values = tuple(self._value(record, name) for name in self.columns)
        body = sealed(sealer, text_of(data), self.table, "body", *key)
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
        """The write that deletes *record* if its version is unchanged."""
        key = self.key_of(record)
        sql = self.delete + " AND version = ? RETURNING 1"
        return sql, (*key, cast("Any", record).version), (self.table, str(key[-1]))


_HEAD = reader_of(ApprovalHead)


class ApprovalKind(Kind[Approval]):
    """
    The rows of approvals. `body` holds only the head, so lists need not read table rows; any other
    parts are in one row of `approval_details`.
    """

    whole = """body || coalesce('\n' ||
        (SELECT d.body FROM approval_details d WHERE d.id = approvals.id), '')"""
    """No cell has a line break: a sealed cell is base64, a cell in clear is compact JSON."""
    _DETAILS = ("groups", "history", "attachments", "fields", "answers")
    _PUT = insert(
        "approval_details", ("id", "body"), " ON CONFLICT (id) DO UPDATE SET body = excluded.body"
    )

    def decode(self, row: Row, cells: Cells) -> Approval:
        head, _, details = row[1].partition("\n")
        data = value_of(cells.opened(head, "body"))
        if details:
            data |= value_of(cells.opened(details, "body", "approval_details"))
        found = self._made(row, data)
        if any(group.left_out for group in found.groups):
            raise ValueError("its rows are missing")
        return found

    def decode_head(self, row: Row, cells: Cells) -> ApprovalHead:
        """The head in a row of `version, body`."""
        return _HEAD({**value_of(cells.opened(row[1], "body")), "version": row[0]})

    def put(self, record: Approval, sealer: Sealer | None) -> list[Write]:
        data = self._encode(record)
        details = {name: data[name] for name in self._DETAILS if name in data}
        head = {name: type(value)() for name, value in details.items()}  # as `Approval.head`
        head["groups"] = [
            {**group, "columns": [], "items": [], "left_out": len(group.get("items", ()))}
            for group in data.get("groups", ())
        ]
        writes = [self._put(record, {**data, **head}, sealer)]
        if record.version or any(details.values()):
            cell = sealed(sealer, text_of(details), "approval_details", "body", record.id)
            writes.append((self._PUT, (record.id, cell), None))
        return writes


ACCOUNTS = Kind("accounts", Account, columns=("email", "created_at"), watched=True)
KEYS = Kind("api_keys", ApiKey, columns=("account_id", "created_at"), watched=True)
SESSIONS = Kind("sessions", Session, columns=("account_id", "created_at"))
LOGINS = Kind("logins", Login, columns=("last_failure_at",))
LOGIN_LINKS = Kind("login_links", LoginLink, columns=("created_at",))
WORKFLOWS = Kind("workflows", Workflow, columns=("owner_id", "name", "revision"), watched=True)
DEFINITIONS = Kind("definitions", DefinitionSnapshot, immutable=True)
STATES = Kind("workflow_states", WorkflowState)
SHARES = Kind("shares", Share, columns=("permission",))
APPROVALS = ApprovalKind(
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
        "idle",
    ),
    probed=True,
    values={
        "remind_at": next_reminder,
        "named": lambda approval: 1 if approval.approvers else 0,
        "assented": lambda approval: text_of(
            [account for one in approval.assents for account in accounts_of(one)]
        ),
        "idle": lambda approval: text_of(sorted(idle(approval))),
    },
)
ARTIFACTS = Kind("artifacts", Artifact, columns=("execution_id", "created_at"))
CALLBACKS = Kind("callbacks", Callback, columns=("due_at",))
WEBHOOKS = Kind(
    "webhooks", Webhook, columns=("owner_id", "workflow_id", "created_at"), watched=True
)
TRIGGERS = Kind("triggers", Trigger, columns=("workflow_id", "watches", "created_at"), probed=True)
TIMERS = Kind("timers", Timer, columns=("trigger_id", "due_at"))
NOTICES = Kind(
    "notices",
    Notice,
    columns=(
        "execution_id",
        "channel",
        "recipient",
        "status",
        "due_at",
        "attempted_at",
        "created_at",
    ),
    values={"recipient": lambda notice: notice.to},
)
NODES = Kind("nodes", Node)
SIGNING = Kind("signing_keys", SigningKeys)
GROUPS = Kind("people_groups", PeopleGroups)
REPLAYS = Kind(
    "replays",
    Replay,
    columns=("created_at",),
    conflict=f""" ON CONFLICT (scope, key) DO UPDATE
    SET created_at = excluded.created_at, version = excluded.version, body = excluded.body
    WHERE replays.created_at <= excluded.created_at - {DAY}""",
)

KINDS: Mapping[type[Any], Kind[Any]] = {
    kind.type: kind
    for kind in (
        *(ACCOUNTS, KEYS, SESSIONS, LOGINS, LOGIN_LINKS, WORKFLOWS, DEFINITIONS, STATES),
        *(SHARES, SIGNING, GROUPS),
        *(APPROVALS, ARTIFACTS, CALLBACKS, WEBHOOKS, TRIGGERS, TIMERS, NOTICES, NODES, REPLAYS),
    )
}
"""The kinds of records, by type; for executions see `execution_rows`."""

TABLE_OF: Mapping[type[Any], str] = {
    **{type: kind.table for type, kind in KINDS.items()},
    Tally: "webhook_tallies",
    Delivery: "webhook_deliveries",
}
