"""Entries of the audit log as sentences, with links to the things that they are about."""

from collections.abc import Mapping

from markupsafe import Markup

from adapters_http.console.formats import short
from adapters_http.console.language import N_, TranslatedTexts, _
from wfcore.model.event import AuditEntry, AuditOutcome
from wfcore.rules.visible import shown

SENTENCES = TranslatedTexts(
    {
        "account.create": N_("{who} created the account {what}"),
        "account.delete": N_("{who} deleted the account {what}"),
        "account.invite": N_("{who} invited {what}"),
        "account.set": N_("{who} changed the account {what}"),
        "approval.approve": N_("{who} approved {what}"),
        "approval.delegate": N_("{who} handed {what} on"),
        "approval.reject": N_("{who} rejected {what}"),
        "approval.revise": N_("{who} asked for changes in {what}"),
        "execution.cancel": N_("{who} cancelled {what}"),
        "execution.redrive": N_("{who} redrove {what}"),
        "execution.start": N_("{who} started {what}"),
        "gate.open": N_("{who} asked through a gate: {what}"),
        "group.change": N_("{who} changed the group {what}"),
        "group.create": N_("{who} created the group {what}"),
        "group.delete": N_("{who} deleted the group {what}"),
        "key.create": N_("{who} created the key {what}"),
        "key.revoke": N_("{who} revoked the key {what}"),
        "key.rotate": N_("{who} gave the key {what} a new secret"),
        "login_link.create": N_("{who} created a link to sign in for {what}"),
        "notice.retry": N_("{who} tried the notice {what} again"),
        "notice.test": N_("{who} sent a test notice"),
        "passkey.confirm": N_("{who} confirmed with a passkey"),
        "passkey.register": N_("{who} added a passkey"),
        "passkey.remove": N_("{who} removed a passkey"),
        "secret.delete": N_("{who} deleted a secret of {what}"),
        "secret.set": N_("{who} set a secret of {what}"),
        "session.create": N_("{who} signed in"),
        "session.end": N_("{who} signed out"),
        "session.end_all": N_("{who} ended all sessions of {what}"),
        "trigger.backfill": N_("{who} backfilled the schedule {what}"),
        "trigger.pause": N_("{who} paused the trigger {what}"),
        "trigger.resume": N_("{who} resumed the trigger {what}"),
        "webhook.create": N_("{who} connected the webhook {what}"),
        "webhook.delete": N_("{who} deleted the webhook {what}"),
        "webhook.replay": N_("{who} replayed a delivery of the webhook {what}"),
        "webhook.test": N_("{who} tested the webhook {what}"),
        "webhook.trigger": N_("{who} triggered the webhook {what}"),
        "webhook.update": N_("{who} changed the webhook {what}"),
        "workflow.apply": N_("{who} applied the workflow {what}"),
        "workflow.delete": N_("{who} deleted the workflow {what}"),
        "workflow.share": N_("{who} shared the workflow {what}"),
        "workflow.state": N_("{who} set the state of the workflow {what}"),
    }
)
"""What an allowed entry says, by its event; other events are named as they are."""
_PAGES: Mapping[str, str] = {
    "acc": "operate/people",
    "appr": "approvals",
    "exec": "executions",
    "wf": "workflows",
    "wh": "operate/webhooks",
}
"""The page of a thing, by the prefix of its id."""


def sentence(entry: AuditEntry, names: Mapping[str, str], base: str, operator: bool) -> Markup:
    """
    *entry* in words. *names*: by id. *operator*: whether pages of people exist for the reader.
    """
    denied = entry.outcome is AuditOutcome.DENIED
    nobody = _("Somebody") if denied else _("The server")
    who = _thing(entry.key_id or entry.account_id, names, base, operator) or nobody
    what = _thing(entry.target, names, base, operator)
    if denied:
        form = _("{who} was refused: {event} {what}")
    else:
        form = SENTENCES.get(entry.event) or "{who}: {event} {what}"
    return Markup(form).format(  # noqa: S704 - a sentence of the catalogue
        who=who,
        what=what or entry.execution_id or "",
        event=Markup("<code>{}</code>").format(entry.event),
    )


def _thing(id: str | None, names: Mapping[str, str], base: str, operator: bool) -> Markup | None:
    if not id:
        return None
    prefix = id.partition("_")[0]
    name = names.get(id)
    if name is None:
        name = short(id) if prefix in ("appr", "exec") else id
    text = Markup("<bdi>{}</bdi>").format(shown(name[:80]))
    page = _PAGES.get(prefix) if prefix != "acc" or operator else None
    return Markup('<a href="{}/{}/{}">{}</a>').format(base, page, id, text) if page else text
