"""Operations on the service itself: notices, nodes, signing keys, the audit log, evidence."""

from collections.abc import Sequence
from datetime import UTC, datetime

import attrs

from wfcore.model.access import OPERATOR
from wfcore.model.event import Anchor
from wfcore.model.node import Node
from wfcore.model.notice import NoticeStatus
from wfcore.model.page import PageRequest
from wfcore.rules.audit.chain import anchor_text, read_anchor
from wfcore.time import EpochMs
from wfcore.usecases import nodes, signing
from wfcore.usecases.administration.operator import (
    Answer,
    Operator,
    checked_size,
    listed,
    shown,
)
from wfcore.usecases.audit import evidence
from wfcore.usecases.audit.auditing import read_audit
from wfcore.usecases.nodes import NodeState
from wfcore.usecases.notices import managing
from wfcore.usecases.signing import KnownKey
from wfcore.wire.operating import audit_view, notice_view


async def list_notices(
    at: Operator, status: Sequence[NoticeStatus] = (), limit: int = 50
) -> Answer:
    """Notices, newest first."""
    page = PageRequest(1, checked_size(limit))
    found = await managing.list_notices(at.services, page, tuple(status))
    return listed(map(notice_view, found.rows), found.total)


async def retry_notice(at: Operator, id: str) -> Answer:
    """Try a notice again that was given up."""
    return shown(notice_view(await managing.retry_notice(at.services, OPERATOR, id, at.origin)))


async def try_notice(at: Operator, channel: str, to: str = "") -> Answer:
    """Have the server send a test over a channel; `to`: who gets the mail."""
    made = await managing.send_test(at.services, OPERATOR, channel, to, at.origin)
    return shown(notice_view(made))


async def list_nodes(at: Operator) -> Answer:
    """Servers of this store: what each does and can run, and when it was seen last."""
    return listed(_node(*one) for one in await nodes.known_nodes(at.services))


async def drain_node(at: Operator, id: str, undo: bool = False) -> Answer:
    """Let a server finish what it runs and take nothing new; or take executions again."""
    told = await nodes.drain_node(at.services, OPERATOR, id, not undo, at.origin)
    return _node(told, NodeState.TAKING if undo else NodeState.DRAINING)


def _node(node: Node, state: NodeState) -> Answer:
    able = node.able if node.present is None else node.present
    return {
        "id": node.id,
        "state": state,
        "role": "api" if not node.places else "all" if node.address else "worker",
        "version": node.release,
        "pid": node.pid,
        "address": node.address or None,
        "seenAt": _instant(EpochMs(node.seen_until - nodes.NODE_LEASE_MS)),
        "host": node.host,
        "places": node.places,
        "startedAt": _instant(node.started_at),
        "draining": node.draining,
        "able": None if able is None else list(able),
    }


async def list_signing_keys(at: Operator) -> Answer:
    """Keys that verify links to downloads and to approvals; the one that signs comes first."""
    return listed(map(_key, await signing.list_signing_keys(at.services)))


async def rotate_signing_key(at: Operator) -> Answer:
    """Have a new key sign links from now on; links that others signed stay good."""
    return _key(await signing.rotate_signing_key(at.services, OPERATOR, at.origin))


async def retire_signing_key(at: Operator, id: str) -> Answer:
    """Refuse links that a key signed, from now on."""
    await signing.retire_signing_key(at.services, OPERATOR, id, at.origin)
    return {"id": id, "retired": True}


def _key(key: KnownKey) -> Answer:
    return {"id": key.id, "madeAt": key.made_at and _instant(key.made_at), "signs": key.signs}


def _instant(at: EpochMs) -> str:
    return f"{datetime.fromtimestamp(at / 1_000, UTC):%Y-%m-%d %H:%M:%S}Z"


async def read_entries(
    at: Operator, since: int, after: str | None = None, limit: int = 1_000
) -> Answer:
    """Audit entries since an instant in milliseconds, behind the id `after`, oldest first."""
    size = checked_size(limit)
    return listed(map(audit_view, await read_audit(at.services, EpochMs(since), after, size)))


async def verify_audit(at: Operator, anchors: Sequence[str] = ()) -> Answer:
    """Whether each entry is as it was written, where it was written, and none is missing."""
    checked = await evidence.check_audit(at.services, _anchors(anchors))
    chain, fault = checked.chain, checked.fault
    return {
        "ok": fault is None,
        "chain": chain.id,
        "first": chain.start.number + 1,
        "last": chain.end.number,
        "hash": chain.end.hash,
        "fault": attrs.asdict(fault) if fault else None,
    }


async def anchor_audit(at: Operator) -> Answer:
    """The log's end as a text to be kept on another machine."""
    return {"anchor": anchor_text(await evidence.audit_anchor(at.services))}


async def write_evidence(at: Operator, execution: str, anchors: Sequence[str] = ()) -> Answer:
    """All that is known of one execution, as a text that can be checked anywhere."""
    known = _anchors(anchors)
    return {"text": await evidence.write_evidence(at.services, execution, known, at.origin)}


def _anchors(texts: Sequence[str]) -> Sequence[Anchor]:
    return [read_anchor(text) for text in texts]
