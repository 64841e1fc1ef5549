"""Every limit of the specification and the contract, in one place."""

from collections.abc import Mapping

from wfcore.model.access import Tier
from wfcore.time import DAY, HOUR, MINUTE, DurationMs

KIB = 1_024
MIB = 1_048_576

TRIGGER_BODY = 1 * MIB
"""Webhook trigger bodies, and v1 and console bodies. LM-1."""
APPROVAL_BODY = 64 * KIB
"""Bodies of POST /api/webhook-trigger/approval. LM-2."""
JSON_DEPTH = 64
"""How deep client JSON may nest. LM-3."""

SECRETS_PER_ACCOUNT = 50
"""Named secrets: all of them are one row with the account. SC-5."""
VIEWS_PER_ACCOUNT = 20
"""The named lists of executions of an account."""
SECRET_BYTES = 8 * KIB
"""The longest named secret: a key with its certificates. SC-5."""
SECRET_LINES = 200
"""Lines of a named secret, and of all secret variables of an execution. SC-11."""
SECRET_VALUES = 50
"""Texts and numbers in all secret variables of an execution. SC-11."""
SECRET_VARIABLES_BYTES = 32 * KIB
"""All secret variables of an execution, as JSON. SC-11."""

STATE_VALUE_BYTES = 64 * KIB
STATE_BYTES = 1 * MIB
"""One value of a workflow's state, and all of its values, as JSON. SV-3."""

WORKFLOW_PAGE = (50, 200)
"""Default and largest page size of workflows, executions, webhooks. LM-4."""
APPROVAL_PAGE = (20, 200)
"""Default and largest page size of approvals. LM-5."""

WEBHOOKS_PER_ACCOUNT: Mapping[Tier, int | None] = {
    Tier.FREE: 0,
    Tier.PRO: 3,
    Tier.TEAM: 10,
    Tier.ENTERPRISE: None,
}
"""How many webhooks a plan allows, active or not; None: any number. LM-6."""

KEYS_PER_ACCOUNT: Mapping[Tier, int] = {
    Tier.FREE: 5,
    Tier.PRO: 50,
    Tier.TEAM: 200,
    Tier.ENTERPRISE: 1_000,
}
"""How many keys a plan allows that are active, or were active today. LM-11."""

REQUESTS: Mapping[Tier, tuple[int, int | None]] = {
    Tier.FREE: (60, 2_000),
    Tier.PRO: (300, 50_000),
    Tier.TEAM: (1_200, 500_000),
    Tier.ENTERPRISE: (6_000, None),
}
"""Requests per minute and per day (None: unlimited) for each key. RL-1."""

MAX_APPROVAL_ROWS = 10_000
"""Rows in one group of an approval. LM-7."""
TEXT_RESULT = 1 * MIB
"""The most that one template may give: the characters of its texts, and 1 for each other value."""
DATA_RESULT = 16 * MIB
"""
The same limit for an approval's rows and an execution's output, which hold whole sets of rows.
"""
EDITED_ROWS_BODY = 4 * MIB
"""The body of an approve, in which a reviewer may send all rows of every group. LM-10."""
MAX_DECISIONS = 50
"""Approvals that one request may decide. AP-39."""
MAX_HISTORY = 200
MAX_HISTORY_ROWS = 200_000
"""Entries of an approval's history, and rows in all of them, before and after. AP-12."""
MAX_REQUIRED_APPROVALS = 100
MAX_REMINDERS = 20
"""Approvers that a step may require, and reminders that it may ask for. AP-21."""
MAX_ATTACHED_STEPS = 20
MAX_FIELDS = 50
MAX_REVISIONS = 20
MAX_STAGES = 20
"""
The most that one approval may have: steps whose artifacts are shown, fields to answer, requests for
changes, and stages. AP-29, AP-30, AP-31, AP-33.
"""
MAX_APPROVERS = 200
"""Names that one template of an approval may give. AP-41."""
MAX_GROUPS, MAX_GROUP_MEMBERS = 500, 1_000
"""Groups of a server, and the members of one. AP-49."""
MAX_CHANNELS = 20
MAX_MAIL_RECIPIENTS = 50
MAX_MAIL_FILES = 20
MAX_MAIL_BYTES = 20 * MIB
"""The bytes of all files that one mail carries. ML-4."""
MAX_SUBJECT = 998
"""The characters of a mail's subject; a longer one is cut."""
"""Channels that a step, or a definition, may name. NT-2."""
MAX_PACKAGES = 100
MAX_REQUIREMENT = 500
"""Packages of a code step, and characters of one requirement. PK-1."""
MAX_ERROR = 4_000
"""The characters of an error of a step or an execution; a longer one is cut. EX-39."""
MAX_FILE_STEPS = 100
FILES_BYTES = 2_048 * MIB
"""Steps whose artifacts one code step reads, and bytes of these artifacts. FI-1, FI-5."""
MAX_COMMENT = 4_000
"""Characters in the comment of a decision."""
MAX_NAME = 200
"""Characters in a name. LM-8."""
MAX_REFERENCE = 200
"""Characters of an execution's reference. EX-38."""
MAX_STEPS = 500
"""Steps in a definition, nested ones too. DF-1."""
MAX_MISTAKES = 100
"""Mistakes that a check of a definition lists before it stops. DF-16."""
MAX_DEPTH = 8
"""How deep steps may be nested: a step outside of all containers is at depth 1. FL-9."""
MAX_BRANCHES = 100
MAX_LABELS = 10
MAX_ROUNDS = 1_000
"""Branches of one `parallel`, and rounds of one `loop`. FL-9."""
MAX_STEP_RESULTS = 10_000
"""Step results in one execution. FL-9."""
MAX_OUTPUTS = 64 * MIB
"""Characters of JSON in the outputs of one execution's steps, all together. FL-14."""
FACTS_AT_ONCE = 100
OUTPUTS_AT_ONCE = 1 * MIB
"""Facts that one turn of an execution decides, or characters of outputs. EX-33."""
MAX_CHILD_DEPTH = 8
"""How deep executions may start one another by `workflow` steps. FL-9."""
MAX_IN_FLIGHT = 10
"""
Steps of one execution that run at the same time; further steps begin when one of these ends. FL-3.
"""
SOURCE_BYTES = 256 * KIB
"""The source of one code step, and the text of a whole definition."""
MAX_FALLBACKS = 5
"""Further models that an AI step may ask. AI-11."""
MAX_PROMPT_TOKENS = 100_000_000
"""
The most tokens that a definition may allow, and the largest count of a provider that is believed.
"""
MAX_COST_USD = 1_000_000
MAX_SCHEMA_PARTS = 10_000
"""Parts of an answer's schema with all its references written out. AI-9."""
MAX_ATTEMPTS = 100
"""Attempts that a `retry` may ask for. DF-9."""
MAX_TRIGGERS = 20
MAX_RUNS = 1_000_000
"""The most triggers of a workflow, and the largest `maxRuns`. SH-5."""
MAX_RUNS_AT_ONCE = 1_000
"""The largest `concurrency.limit`."""
MAX_BACKOFF = 100
"""The largest factor from one wait to the next. DF-9."""
ARTIFACTS_PER_EXECUTION = 200
ARTIFACT_BYTES = 100 * MIB
"""Files of one execution, and bytes of each. LM-9."""
VARIABLE_ENV_BYTES = 100_000
"""A variable over this many bytes is only in the context file. CS-3."""

LOGIN_TRIES = 10
LOGIN_WINDOW = DurationMs(15 * MINUTE)
"""
`LOGIN_TRIES` failures within `LOGIN_WINDOW` lock a login, for as long as `LOGIN_WINDOW`. SE-2.
"""
LOGINS_EACH = 20
LOGINS_IN_ALL = 120
"""Logins that are checked in a minute: from one address, and in all. SE-6."""
LINKS_EACH = 5
"""Links that are mailed to one address in an hour. SE-10."""
SIGN_ON = DurationMs(10 * MINUTE)
"""How long somebody may be at the identity provider. SE-9."""
LOGIN_LINK = DurationMs(15 * MINUTE)
LOGIN_LINK_MAX = DurationMs(24 * HOUR)
"""How long a link to sign in is valid: by default, and at most. SE-7."""
CONFIRMATION = DurationMs(5 * MINUTE)
"""How long a request for a passkey is valid. SR-3."""
RECENT_SIGN_IN = DurationMs(5 * MINUTE)
"""How old a sign-in may be to register a passkey. SR-4."""
MAX_PASSKEYS = 20
"""The passkeys of one account. SR-4."""
SESSION_IDLE = DurationMs(12 * HOUR)
SESSION_MAX = DurationMs(7 * DAY)
"""How long a console session lasts without a request, and at most. SE-1."""
DOWNLOAD_LINK = DurationMs(15 * MINUTE)
"""How long a signed link opens its artifact. AR-2."""
ROTATION_OVERLAP = DurationMs(24 * HOUR)
"""How long the old secret of a key stays good after a rotation, unless said otherwise. AU-7."""
WEBHOOK_TOLERANCE = DurationMs(5 * MINUTE)
"""How far a sender's timestamp may be from our clock, in either direction. SG-5."""
MAX_SECRET_OVERLAP = DurationMs(30 * DAY)
"""How long a webhook's old secret may stay good beside the new one. WH-19."""
DELIVERIES_KEPT = 50
"""
The last deliveries kept of each webhook: as many with good credentials, and as many without. WH-20.
"""
DELIVERIES_KEPT_FOR = DurationMs(7 * DAY)
"""How long a delivery is listed, and its payload kept. WH-20, WH-21."""
DELIVERY_PAYLOAD = 64 * KIB
"""The largest body of a refused delivery that is kept to be replayed. WH-21."""
REPLAY_WINDOW = DurationMs(24 * HOUR)
"""How long an `Idempotency-Key` gives the first answer again. IK-1."""

MAX_DELAY_SECONDS = 365 * 86_400
"""The longest delay of a DELAYED_COMPLETION trigger after the end that it waits for, in s."""
