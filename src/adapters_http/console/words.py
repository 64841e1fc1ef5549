"""The words of pages for states, sources, scopes and refusals, each in the reader's language."""

from adapters_http.console.language import N_, TranslatedTexts

STATUSES = TranslatedTexts(
    {
        "PENDING": N_("Pending"),
        "RUNNING": N_("Running"),
        "AWAITING_APPROVAL": N_("Awaiting approval"),
        "INTERRUPTED": N_("Interrupted"),
        "COMPLETED": N_("Completed"),
        "FAILED": N_("Failed"),
        "CANCELLED": N_("Cancelled"),
        "SKIPPED": N_("Skipped"),
        "REJECTED": N_("Rejected"),
    }
)
"""The words for the status of an execution or a step."""
APPROVALS = TranslatedTexts(
    {
        "APPROVED": N_("Approved"),
        "REJECTED": N_("Rejected"),
        "REVISED": N_("Changes asked for"),
        "CANCELLED": N_("Withdrawn"),
    }
)
"""The words for the end of an approval."""
MARKS = {
    "PENDING": "○",
    "RUNNING": "●",
    "AWAITING_APPROVAL": "‖",
    "INTERRUPTED": "!",
    "COMPLETED": "✓",
    "FAILED": "✕",
    "CANCELLED": "–",
    "SKIPPED": "»",
    "REJECTED": "✕",
}
"""The signs for statuses, which show the same as the colours."""
PARTS = TranslatedTexts(
    {
        "error": N_("Error"),
        "output": N_("Output"),
        "inputs": N_("Inputs seen"),
        "attempts": N_("Attempts"),
    }
)
"""The parts of a step's details on the page of an execution."""
SOURCES = TranslatedTexts(
    {
        "open_api": N_("API"),
        "webhook": N_("Webhook"),
        "manual": N_("Console"),
        "schedule": N_("Schedule"),
        "delayed_completion": N_("After another one"),
        "workflow": N_("Another execution"),
    }
)
"""The words for the source of an execution."""
SCOPES = TranslatedTexts(
    {
        "WORKFLOW_READ": N_("read workflows"),
        "WORKFLOW_EXECUTE": N_("start workflows"),
        "EXECUTION_READ": N_("read executions"),
        "EXECUTION_CANCEL": N_("cancel executions"),
        "APPROVAL_RESPOND": N_("decide approvals"),
        "ARTIFACT_READ": N_("download artifacts"),
        "WEBHOOK_TRIGGER": N_("trigger webhooks"),
        "ADMIN": N_("operate the server"),
    }
)
"""The rights of a key, by scope."""
TYPES = TranslatedTexts(
    {
        "string": N_("text"),
        "number": N_("number"),
        "boolean": N_("yes or no"),
        "object": N_("JSON object"),
        "array": N_("JSON list"),
    }
)
"""The words for the type of a variable."""
ACCOUNTS = TranslatedTexts(
    {"ACTIVE": N_("active"), "DISABLED": N_("disabled"), "LOCKED": N_("locked")}
)
"""The words for the status of an account."""
DENIALS = TranslatedTexts(
    {
        "missing": N_("without credentials"),
        "malformed": N_("malformed key"),
        "unknown_key": N_("unknown key"),
        "bad_secret": N_("wrong secret"),
        "revoked": N_("revoked key"),
        "expired": N_("expired key"),
        "scope_missing": N_("without the scope"),
        "not_bound_key": N_("another key is bound to it"),
        "wrong_account": N_("another account"),
        "signature_mismatch": N_("wrong signature"),
        "session_invalid": N_("session not valid"),
        "account_blocked": N_("account disabled or locked"),
        "login_locked": N_("too many attempts to sign in"),
        "not_found": N_("not found"),
        "forbidden": N_("not permitted"),
        "items_changed": N_("the rows had changed"),
        "already_decided": N_("decided already"),
        "conflict": N_("conflict"),
        "FAILURES": N_("too many failures"),
    }
)
"""
The reasons for denials, by the word in the audit log; for reasons of triggers see `REFUSALS`. PG-8.
"""

WEEKDAYS = TranslatedTexts(
    {
        "0": N_("Mon"),
        "1": N_("Tue"),
        "2": N_("Wed"),
        "3": N_("Thu"),
        "4": N_("Fri"),
        "5": N_("Sat"),
        "6": N_("Sun"),
    }
)
"""The names of weekdays, by number."""
MONTHS = TranslatedTexts(
    {
        "1": N_("Jan"),
        "2": N_("Feb"),
        "3": N_("Mar"),
        "4": N_("Apr"),
        "5": N_("May"),
        "6": N_("Jun"),
        "7": N_("Jul"),
        "8": N_("Aug"),
        "9": N_("Sep"),
        "10": N_("Oct"),
        "11": N_("Nov"),
        "12": N_("Dec"),
    }
)
"""The short names of months, by number."""


REASONS = (
    N_("You are not an approver of this approval, or not now"),
    N_("your account has no passkey here; register one on your account's page"),
    N_("each of your passkeys was registered after the question was asked"),
    N_("it needs an account with a passkey; sign in"),
    N_("sign in again first: the last sign-in was over five minutes ago"),
    N_("Who started the execution may not approve it; another approver must"),
    N_("An operator's is removed on the host: wfcore passkey remove"),
)
"""The messages of rules about what people may not do; listed here for translation."""
