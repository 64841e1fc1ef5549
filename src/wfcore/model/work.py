"""
The steps that a worker runs, and the limits of a workflow.

Code in seven languages, and questions to models; attempts, budget, executions at once.
"""

from enum import StrEnum

from attrs import field, frozen

from wfcore.model.json import JsonObject
from wfcore.time import HOUR, DurationMs


class OnExceeded(StrEnum):
    """The effect of an exceeded budget on the next call."""

    FAIL = "fail"
    APPROVE = "approve"


@frozen
class Budget:
    """Limits for the AI calls of one execution. `max_cost_usd` is a decimal number as text."""

    max_cost_usd: str | None = None
    max_tokens: int | None = None
    on_exceeded: OnExceeded = OnExceeded.FAIL


class OnLimit(StrEnum):
    """The effect of a full concurrency group on a start."""

    QUEUE = "queue"
    SKIP = "skip"


@frozen
class Concurrency:
    """At most `limit` executions at once, of the whole workflow or of each value of `key`."""

    limit: int
    key: str | None = None
    on_limit: OnLimit = OnLimit.QUEUE


class OnInterrupt(StrEnum):
    """The effect of a worker's death on a step that was in flight. EX-25."""

    RESUME = "resume"
    """The step may begin again if the service resumes the execution."""
    FAIL = "fail"
    """The step never begins again."""


@frozen
class Retry:
    """*attempts*: the number of all attempts. The n-th wait is `delay_ms * backoff ** (n - 1)`."""

    attempts: int = 1
    delay_ms: DurationMs = DurationMs(1_000)
    backoff: float = 1.0


class Language(StrEnum):
    """
    The language of a code step. COMMAND runs an executable of the machine, or a function of an
    embedding program.
    """

    PYTHON = "python"
    JAVASCRIPT = "javascript"
    TYPESCRIPT = "typescript"
    BASH = "bash"
    RUBY = "ruby"
    LUA = "lua"
    COMMAND = "command"


class Runtime(StrEnum):
    """The program that runs JavaScript and TypeScript."""

    NODE = "node"
    BUN = "bun"


class Listen(StrEnum):
    """The addresses of a machine at which a step with network may listen."""

    LOOPBACK = "loopback"
    ANY = "any"


SCRIPTS = (Language.JAVASCRIPT, Language.TYPESCRIPT)
"""The languages that have a `Runtime`."""


@frozen
class Needs:
    """
    Packages that a step imports beyond the packages of its language: sorted, without duplicates,
    pinned.

    TypeScript runs as JavaScript, so its needs are JavaScript packages. Equal needs share one
    environment. `lock`: all packages to install for the needs, at every depth, with hashes, in the
    installer's format; None: not resolved yet. PK-9.
    """

    language: Language
    packages: tuple[str, ...]
    lock: str | None = field(default=None, repr=False)


@frozen
class CodeStep:
    """
    Code in one of seven languages. `command` is a list of arguments, each a template.

    `requirements` (Python) and `packages` (JavaScript, TypeScript) are pinned: `name==1.2`,
    `name@1.2.3`. `lock`: the packages resolved from `requirements` or `packages` when the
    definition was applied; see `Needs`. `listen`: the addresses at which the step may listen; None:
    no address. `runtime`: the runtime of JavaScript and TypeScript; None: the runtime in the
    worker's settings. `javascript`: compiled TypeScript, if it was compiled in advance. `secrets`:
    the names of the secrets of the workflow's owner that the step receives. SC-6. `files`: the
    earlier steps whose artifacts the step reads. FI-1.
    """

    name: str
    language: Language
    source: str = ""
    command: tuple[str, ...] = ()
    timeout_ms: DurationMs = DurationMs(30_000)
    network: bool = False
    listen: Listen | None = None
    runtime: Runtime | None = None
    requirements: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    javascript: str | None = None
    lock: str | None = field(default=None, repr=False)
    secrets: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    when: str | None = None
    retry: Retry = Retry()
    continue_on_error: bool = False
    on_interrupt: OnInterrupt | None = None
    labels: tuple[str, ...] = ()

    @property
    def needs(self) -> Needs | None:
        """The packages to install for the step; None if there are none."""
        if self.requirements:
            return Needs(Language.PYTHON, tuple(sorted(set(self.requirements))), self.lock)
        if self.packages:
            return Needs(Language.JAVASCRIPT, tuple(sorted(set(self.packages))), self.lock)
        return None


@frozen
class AiStep:
    """
    A question to a model. `model` is `provider:model`; `system` and `prompt` are templates.

    With `schema` (JSON Schema) the output is JSON that matches it, otherwise the output is the text
    of the answer. `fallback`: the models that are asked, in this order, if `model` fails. AI-11.
    """

    name: str
    model: str
    prompt: str
    system: str = ""
    max_tokens: int | None = None
    temperature: float | None = None
    schema: JsonObject | None = None
    timeout_ms: DurationMs = DurationMs(120_000)
    when: str | None = None
    retry: Retry = Retry()
    continue_on_error: bool = False
    on_interrupt: OnInterrupt | None = None
    labels: tuple[str, ...] = ()
    fallback: tuple[str, ...] = ()

    @property
    def models(self) -> tuple[str, ...]:
        """The models in the order in which they are asked."""
        return (self.model, *self.fallback)

    @property
    def providers(self) -> tuple[str, ...]:
        """The names of the models' providers in the operator's configuration."""
        return tuple(dict.fromkeys(model.partition(":")[0] for model in self.models))


MAIL_TIMEOUT = DurationMs(3 * HOUR)


@frozen
class MailStep:
    """
    A mail to people. `subject` and `body`, in Markdown, are templates. ML-1.

    `to`: addresses, ids of accounts, and templates that give such. `attach`: earlier steps whose
    artifacts the mail carries: all of them (`step`), or the one with a name (`step/name`).
    `timeout_ms` limits the time until a mail server has taken the mail.
    """

    name: str
    to: tuple[str, ...]
    subject: str
    body: str
    attach: tuple[str, ...] = ()
    timeout_ms: DurationMs = MAIL_TIMEOUT
    when: str | None = None
    continue_on_error: bool = False

    @property
    def files(self) -> tuple[tuple[str, str | None], ...]:
        """The step and the name of the file (None: all files) in each entry of `attach`."""
        parts = (entry.partition("/") for entry in self.attach)
        return tuple((step, name if slash else None) for step, slash, name in parts)
