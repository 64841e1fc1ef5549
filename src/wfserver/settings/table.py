"""
Every setting of the server: its variable, default and meaning, as Markdown.

The page on operating shows this table, and `wfcore settings` shows which settings are set and
where. A variable `WFCORE_…` that is missing here is refused at start.
"""

from attrs import frozen


@frozen
class Setting:
    """A setting. `option`: the option that sets it. `secret`: the value is never shown."""

    name: str
    default: str
    what: str
    option: str = ""
    secret: bool = False


SETTINGS = (
    Setting(
        "WFCORE_SETTINGS",
        "none",
        "a TOML file with settings, by these names: `WFCORE_PORT = 9000`. The environment wins "
        "over it. It is hidden from steps, and must not be readable for everybody if it holds "
        "a secret",
        option="--settings",
    ),
    Setting("WFCORE_DATA", "`./wfcore-data`", "the data folder", option="--data"),
    Setting(
        "WFCORE_URL",
        "none",
        "[a server elsewhere](operating.md#administration-from-elsewhere) that commands ask",
        option="--url",
    ),
    Setting("WFCORE_KEY", "none", "the key of scope ADMIN for `WFCORE_URL`", secret=True),
    Setting(
        "WFCORE_STORE",
        "SQLite in the data folder",
        "`sqlite:///path`, `postgresql://…` ([several "
        "machines](operating.md#several-machines)), `memory:`, or `NAME://…` of an "
        "[installed package](embedding.md)",
        option="--store",
        secret=True,
    ),
    Setting(
        "WFCORE_ROLE",
        "all",
        "`api`, `worker` or `all`, if servers share a store ([several "
        "machines](operating.md#several-machines))",
        option="--role",
    ),
    Setting(
        "WFCORE_CELL",
        "k0",
        "two characters, such as `k1`, that every id made here contains, if this is one of "
        "several installations ([cells](explanation/cells.md))",
    ),
    Setting(
        "WFCORE_LABELS",
        "none",
        "labels of this server, separated by commas, that steps may ask for",
    ),
    Setting(
        "WFCORE_ARTIFACTS",
        "`artifacts` in the data folder",
        "where artifacts are kept: `s3://BUCKET/PREFIX` ([in a "
        "bucket](operating.md#artifacts-in-a-bucket)), or `file:///FOLDER` for servers that share "
        "a store. The folder must exist when a server starts, and is hidden from steps",
    ),
    Setting(
        "WFCORE_ARTIFACT_DOWNLOADS",
        "served",
        "`direct`: download links lead to the bucket, past the server ([in a "
        "bucket](operating.md#artifacts-in-a-bucket))",
    ),
    Setting(
        "WFCORE_SIGNING_KEY",
        "the file `signing.key`",
        "`NAME:KEY`, each KEY from `openssl rand -hex 32`: signs links. Several are "
        "separated by commas; the first signs, all of them verify",
        secret=True,
    ),
    Setting(
        "WFCORE_STORE_DIRECT",
        "the store's URL",
        "a URL of the same PostgreSQL database that bypasses a pooler, for hints "
        "between servers ([several machines](operating.md#several-machines))",
        secret=True,
    ),
    Setting(
        "WFCORE_ENGINE",
        "none",
        "`nats://HOST:4222` (NATS JetStream, several hosts separated by commas; needs the extra "
        "`nats`), or `NAME://…` of an installed package: what dispatches executions to the servers "
        "that share a store ([dispatching](operating.md#dispatching-by-nats))",
        secret=True,
    ),
    Setting("WFCORE_HOST", "127.0.0.1", "the address that `serve` listens at", option="--host"),
    Setting("WFCORE_PORT", "8000", "the port that `serve` listens at", option="--port"),
    Setting(
        "WFCORE_PUBLIC_URL",
        "none",
        "the address that callers use; https makes cookies Secure",
        option="--public-url",
    ),
    Setting(
        "WFCORE_TRUSTED_PROXIES",
        "none",
        "addresses and networks, separated by commas, whose `X-Forwarded-For`, `-Proto`"
        ' and `-Host` are believed; see "Behind a proxy"',
    ),
    Setting(
        "WFCORE_ALLOWED_HOSTS",
        "the public URL's host if there is one, otherwise any",
        "further host names to accept, separated by commas; `*`: any",
    ),
    Setting(
        "WFCORE_CORS_ORIGINS",
        "none",
        "origins, separated by commas, whose pages may call the API with a key, such as "
        "`https://app.example.org`; `*`: any",
    ),
    Setting("WFCORE_CONCURRENCY", "8", "how many executions run at once"),
    Setting(
        "WFCORE_PROCESSES",
        "1",
        "how many processes serve, which share the port, the store and the slots "
        "([several processes](operating.md#several-processes))",
        option="--processes",
    ),
    Setting("WFCORE_LEASE", "15s", "how long a silent worker keeps its executions"),
    Setting(
        "WFCORE_INTERRUPTED_GRACE",
        "5m",
        "how long an interrupted execution waits to be resumed before it is FAILED",
    ),
    Setting(
        "WFCORE_MISSED_RUNS",
        "skip",
        "what schedules do about starts that were missed while no server ran: `skip` or `once`",
    ),
    Setting(
        "WFCORE_RUNNER",
        "none",
        "which installed package runs code steps, by the name of its entry point in the"
        " group `wfcore.runners`; by default the bundled runner does",
    ),
    Setting("WFCORE_SCHEDULE_GRACE", "1m", "how late a scheduled start is still on time"),
    Setting(
        "WFCORE_DRAIN",
        "25s",
        "how long running steps may go on after SIGTERM; `0s`: not at all",
    ),
    Setting(
        "WFCORE_STALLED_AFTER",
        "1m",
        "how long due work may stay untouched, or one round of a loop may take, before "
        "`/readyz` fails",
    ),
    Setting(
        "WFCORE_KEEP_EXECUTIONS",
        "30d",
        "how long ended executions are kept, with artifacts and events",
    ),
    Setting(
        "WFCORE_ALLOW_PRIVATE_CALLBACKS",
        "0",
        "1: callbacks may go to private and loopback addresses",
    ),
    Setting(
        "WFCORE_KEEP_AUDIT",
        "90d",
        "how long audit entries are kept, with the rows of decisions; never shorter "
        "than `WFCORE_KEEP_EXECUTIONS`",
    ),
    Setting(
        "WFCORE_CONNECTIONS",
        "as many as the limit on open files allows, at most 10000",
        'simultaneous HTTP connections; see "Connections"',
    ),
    Setting(
        "WFCORE_CONNECTIONS_PER_ADDRESS",
        "half of that",
        "the same from one address; a proxy is one address, so behind one set it as "
        "high as `WFCORE_CONNECTIONS`",
    ),
    Setting("WFCORE_AI_CONCURRENCY", "32", "simultaneous calls to models"),
    Setting("WFCORE_AI_PRICES", "none", 'a file with prices of models; see "Models"'),
    Setting(
        "WFCORE_CACHE",
        "24MB",
        "how much memory the cache of decoded records may use; the database's own "
        "caches (36 MB at most) and the rest of the process come on top; an idle server gives all "
        "caches back",
    ),
    Setting("WFCORE_LOG", "info", "the lowest level that is logged: debug, info, warning, error"),
    Setting(
        "WFCORE_LOG_FORMAT",
        "json; text on a terminal",
        "`json`: one JSON object per line on stderr; `text`: lines for people",
    ),
    Setting(
        "WFCORE_TRACES",
        "0",
        "1: spans are sent to an OpenTelemetry collector; needs the extra `otel`; see "
        "[Traces](operating.md#traces)",
    ),
    Setting(
        "WFCORE_SEAL_KEY_FILE",
        "`seal.key` in the data folder",
        "the file with the keys that seal the database; created at the first start",
    ),
    Setting(
        "WFCORE_SEAL_KEY",
        "none",
        "the keys themselves instead of a file, separated by spaces; the first one seals",
        secret=True,
    ),
    Setting(
        "WFCORE_PACKAGES",
        "`packages/` in the data folder",
        "where packages of code steps are kept",
    ),
    Setting(
        "WFCORE_CONSOLE",
        "1",
        "`0`: no pages for people; their paths are 404, and `up` prints no link",
    ),
    Setting(
        "WFCORE_MCP",
        "0",
        "1: agents are offered workflows at `/mcp`; needs the extra `mcp`; see [Let agents "
        "work](howto/agents.md)",
    ),
    Setting(
        "WFCORE_OIDC_ISSUER",
        "none",
        "people sign in with this OpenID Connect provider; needs the extra `oidc`; see "
        "[Let people in](howto/sign-in.md#your-companys-login)",
    ),
    Setting("WFCORE_OIDC_CLIENT_ID", "none", "what the provider gave for this server"),
    Setting(
        "WFCORE_OIDC_CLIENT_SECRET",
        "none",
        "what the provider gave with it; without it this server is a public client",
        secret=True,
    ),
    Setting("WFCORE_OIDC_NAME", "the issuer's host", "what the button is called"),
    Setting(
        "WFCORE_OIDC_DOMAINS",
        "any",
        "domains of emails that are admitted, separated by commas",
    ),
    Setting(
        "WFCORE_OIDC_TRUST_EMAIL",
        "0",
        "1: emails count of which the provider does not say whether they are verified, as Entra "
        "ID's; only for the issuer of one tenant, never `common`",
    ),
    Setting(
        "WFCORE_OIDC_GROUPS",
        "none",
        "groups whose members each sign-in sets from the claim `groups`, separated by commas: "
        "NAME, or WORD=NAME where the provider has another word for one",
    ),
    Setting("WFCORE_OIDC_CREATE", "0", "1: an email without an account gets one, on the plan FREE"),
    Setting(
        "WFCORE_SMTP_URL",
        "none",
        "the server that sends mail, `smtp://user:password@host:587`, which demands "
        "STARTTLS, or `smtps://…`; `?tls=none` at the end only for a relay on the same machine; "
        "see [Notices](howto/notices.md)",
        secret=True,
    ),
    Setting("WFCORE_MAIL_FROM", "none", "the sender's address"),
    Setting("WFCORE_MAIL_ROWS", "0", "how many rows of an approval a mail shows, up to 50"),
    Setting(
        "WFCORE_LANGUAGE",
        "en",
        "the language of messages to accounts that have set none: `en` or `de`",
    ),
    Setting(
        "WFCORE_NOTICE_TEMPLATES",
        "none",
        "a folder with your own texts; see [Notices](howto/notices.md#words)",
    ),
    Setting(
        "WFCORE_OPERATORS",
        "none",
        "emails of accounts that see the pages for operators, separated by commas; in "
        "addition to those set with `wfcore account set … --operator`",
    ),
    Setting(
        "WFCORE_DEFAULT_PLAN",
        "FREE",
        "plan of accounts that are made without one, also by signing in: FREE, PRO, TEAM or "
        "ENTERPRISE; ENTERPRISE in a data folder that `wfcore up` made",
    ),
    Setting(
        "WFCORE_GATE_APPROVERS",
        "none",
        "addresses, and domains such as `@example.org`, separated by commas: people without an "
        "account whom gates, agents, and templates of `approvers` may name "
        "([whom they may ask](howto/agents.md#whom-they-may-ask))",
    ),
    Setting(
        "WFCORE_MAIL_TO",
        "none",
        "addresses, and domains such as `@example.org` (that domain alone), separated by commas: "
        "recipients without an account to whom `mail` steps may send "
        "([mail from a workflow](definitions.md#mail))",
    ),
    Setting(
        "WFCORE_BUILD_PACKAGES",
        "0",
        "`1`: packages without a wheel may be built in the sandbox when a workflow is applied",
    ),
    Setting(
        "WFCORE_ISOLATION",
        "`auto`",
        "the level of isolation of code steps: `namespace`, `uid`, `landlock`, "
        "`process`, or `auto` for the strongest available",
    ),
    Setting(
        "WFCORE_MIN_ISOLATION",
        "`landlock`; as root `uid`",
        "the weakest level allowed; below it code steps are refused",
    ),
    Setting(
        "WFCORE_STEP_MEMORY",
        "1GB",
        "how much memory a step's processes may use, each and together",
    ),
    Setting(
        "WFCORE_STEP_DISK",
        "512MB",
        "the size of a step's folder, at the level `namespace`, where it is kept in memory",
    ),
    Setting(
        "WFCORE_STEP_FILES",
        "16384",
        "the number of files in a step's folder, at the level `namespace`",
    ),
    Setting(
        "WFCORE_FILES_BYTES",
        "2GB",
        "how many bytes of [earlier steps' files](code-steps.md#files-of-earlier-steps) one step "
        "may read",
    ),
    Setting(
        "WFCORE_STEP_PROCESSES",
        "256",
        "processes and threads of a step, at the levels `namespace` and `uid`, and "
        "wherever a control group counts them",
    ),
    Setting(
        "WFCORE_JAVASCRIPT",
        "`node`",
        "`bun`: JavaScript and TypeScript run on Bun, unless the step has a `runtime`",
    ),
    Setting("WFCORE_WARM", "1", "0: no interpreter is started ahead of the step that needs it"),
    Setting(
        "WFCORE_STEP_READS",
        "none",
        "further paths that every step may read, separated by colons",
    ),
    Setting(
        "WFCORE_STEP_WRITES",
        "none",
        "further paths that every step may read and write, separated by colons",
    ),
    Setting(
        "WFCORE_FAILURE_CHANNELS",
        "none",
        "channels that are told of every failed execution, separated by commas; mail "
        "goes to `WFCORE_OPERATORS`",
    ),
)

KNOWN = {setting.name: setting for setting in SETTINGS}
