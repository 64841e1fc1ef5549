"""
The kinds of steps: for each a table of fields, and a function that makes the step.

A new kind is a new row of `KINDS`.
"""

from collections.abc import Collection, Mapping
from typing import Any

from wfcore.model.json import Json
from wfcore.model.workflow import (
    AiStep,
    ApprovalStep,
    Assurance,
    ChildStep,
    CodeStep,
    DataStep,
    DelayStep,
    Language,
    Links,
    Listen,
    LoopStep,
    MailStep,
    OnInterrupt,
    ParallelStep,
    Runtime,
    SwitchStep,
)
from wfcore.rules import named_secrets as secret_name
from wfcore.rules.definition import tree as trees
from wfcore.rules.definition.ai import (
    fallback,
    max_tokens,
    model,
    model_problems,
    prompt,
    schema,
    temperature,
)
from wfcore.rules.definition.files import files
from wfcore.rules.definition.mail import attach_fields, recipients
from wfcore.rules.definition.packages import package_problems, packages, requirement
from wfcore.rules.definition.review import (
    answer_fields,
    approval_problems,
    group,
    review_fields,
)
from wfcore.rules.definition.tree import Fields, StepKind
from wfcore.rules.definition.values import (
    CHANNELS,
    Field,
    Findings,
    accepting,
    any_of,
    boolean,
    choice,
    duration,
    list_of,
    number,
    retry,
    template,
    text,
    whole_template,
)
from wfcore.rules.limits import (
    MAX_BRANCHES,
    MAX_LABELS,
    MAX_NAME,
    MAX_PACKAGES,
    MAX_REMINDERS,
    MAX_REQUIRED_APPROVALS,
    MAX_ROUNDS,
    SECRETS_PER_ACCOUNT,
    SOURCE_BYTES,
)
from wfcore.rules.paths import below
from wfcore.rules.variables import NO_NUL


@accepting({"type": "string", "minLength": 1})
def source(document: Json, path: str, findings: Findings) -> Any:
    """Source code. Never a template: code receives data through its environment and files."""
    if not isinstance(document, str):
        return findings.wrong(path, "text", document)
    if not document.strip():
        findings.add(path, "must not be empty")
    if len(document.encode("utf-8", "surrogatepass")) > SOURCE_BYTES:
        findings.add(path, f"is over {SOURCE_BYTES // 1_024} KiB")
    _refuse_nul(document, path, findings)
    return document


@accepting({"type": "string"})
def _argument(document: Json, path: str, findings: Findings) -> Any:
    if isinstance(document, str):
        _refuse_nul(document, path, findings)
    return template(document, path, findings)


_arguments = list_of(_argument, least=1)


@accepting(_arguments.schema)
def command(document: Json, path: str, findings: Findings) -> Any:
    """A list of arguments, each a template; the first is the program."""
    vector = _arguments(document, path, findings)
    if vector and vector[0] == "":
        findings.add(below(path, 0), "must name a program")
    return vector


def _refuse_nul(written: str, path: str, findings: Findings) -> None:
    if "\0" in written:
        findings.add(path, NO_NUL)


def _code_problems(values: Mapping[str, Any]) -> Collection[tuple[str, str]]:
    """
    The problems of `command`, which belongs to the language command, and of `source`, which belongs
    to all other languages.
    """
    language = values.get("language")
    if language is None:
        return ()
    is_command = language is Language.COMMAND
    wanted, refused = ("command", "source") if is_command else ("source", "command")
    found = [(wanted, f"is required for language {language}")] if wanted not in values else []
    if refused in values:
        found.append((refused, f"is not for language {language}; use {wanted}"))
    if values.get("listen") and not values.get("network"):
        found.append(("listen", "needs network: true"))
    return [*found, *package_problems(language, values)]


_LISTEN: Mapping[bool | str, Listen | None] = {
    False: None,
    True: Listen.LOOPBACK,
    "any": Listen.ANY,
}


@accepting(any_of({"type": "boolean"}, {"const": "any"}))
def _listen(document: Json, path: str, findings: Findings) -> Any:
    """The addresses at which the step listens. CS-20."""
    if not isinstance(document, bool | str) or document not in _LISTEN:
        return findings.wrong(path, "true, false or any", document)
    return _LISTEN[document]


@accepting(False)
def _never_in_flight(document: Json, path: str, findings: Findings) -> Any:
    """
    Refuses `onInterrupt` on steps that no worker runs. The inner steps, or the started workflow,
    may set it.
    """
    findings.add(
        path,
        "is for code and ai steps: only these run when a worker dies; say it on the steps that "
        "this one holds, in the definition of the workflow that it starts, or at the top",
    )


_STEP_NAME = text(
    most=MAX_NAME,
    pattern="[A-Za-z_][A-Za-z0-9_-]*",
    wanted="letters, digits, _ and -, beginning with a letter or _",
)

_SECRET_NAME = text(most=MAX_NAME, pattern=secret_name.NAME, wanted=secret_name.WANTED)

LABEL_PATTERN = "[a-z0-9][a-z0-9._-]*"
_LABEL = text(
    most=MAX_NAME,
    pattern=LABEL_PATTERN,
    wanted="lower-case letters, digits, dots, _ and -, beginning with a letter or digit",
)

_COMMON: Fields = {
    "name": Field(
        _STEP_NAME,
        "name",
        "Letters, digits, _ and -; unique in the whole definition.",
        required=True,
    ),
    "kind": Field(
        text(),
        "kind",
        "What the step does: code, ai, manual_approval, mail, data, switch, parallel, loop, "
        "delay or workflow.",
        required=True,
    ),
    "when": Field(
        whole_template,
        "when",
        "A template; if it is false, null, 0 or empty, the step is skipped, and a "
        "skipped step counts as completed.",
    ),
    "continueOnError": Field(
        boolean,
        "continue_on_error",
        "`true`: if the step fails, the execution goes on. Default: false.",
    ),
    "onInterrupt": Field(_never_in_flight, "on_interrupt"),
}
_TIMED: Fields = {
    **_COMMON,
    "timeout": Field(
        duration,
        "timeout_ms",
        "Like 500ms, 30s, 5m, 24h, 7d; a bare integer is milliseconds. Default: "
        "30s, AI 2m, mail 3h, approvals 24h, none for switch, parallel, loop and workflow.",
    ),
}
_RUN: Fields = {
    **_TIMED,
    "onInterrupt": Field(
        choice(OnInterrupt), "on_interrupt", "As at the top, for this step; it takes precedence."
    ),
    "labels": Field(
        list_of(_LABEL, most=MAX_LABELS),
        "labels",
        "Labels that a worker must carry to take the execution, like `[gpu]`.",
    ),
}
"""
The fields of steps that a worker runs, which can therefore be in flight when the worker dies.
EX-25.
"""

KINDS: Mapping[str, StepKind] = {
    "code": StepKind(
        CodeStep,
        {
            **_RUN,
            "language": Field(
                choice(Language),
                "language",
                "The language of the source; `command` for a program with arguments.",
                required=True,
            ),
            "source": Field(
                source,
                "source",
                "The text of the program, for every language but `command`. It is no "
                "template: data comes as `WF_VAR_<name>` and from the file `WF_CONTEXT`.",
            ),
            "command": Field(
                command,
                "command",
                "For language `command`: a list of arguments, each a template; never a "
                "shell string.",
            ),
            "network": Field(
                boolean,
                "network",
                "`true`: the step may connect to others on the network. Default: false.",
            ),
            "listen": Field(
                _listen,
                "listen",
                "With `network: true`: `true`: others on the same machine may connect to the step, "
                "at 127.0.0.1 and ::1; `any`: at every address of the machine. Default: false.",
            ),
            "secrets": Field(
                list_of(_SECRET_NAME, most=SECRETS_PER_ACCOUNT),
                "secrets",
                "Names of secrets that the step receives as `WF_SECRET_<NAME>`.",
            ),
            "runtime": Field(
                choice(Runtime),
                "runtime",
                "For javascript and typescript: `node` or `bun`. Default: what the server's "
                "setting `WFCORE_JAVASCRIPT` says.",
            ),
            "requirements": Field(
                list_of(requirement, most=MAX_PACKAGES),
                "requirements",
                'For python: pinned packages of the operator, like `"requests==2.32.3"`.',
            ),
            "packages": Field(
                packages,
                "packages",
                "For javascript and typescript: exact versions from the operator's "
                "registry, like `{left-pad: 1.3.0}`.",
            ),
            "retry": Field(
                retry, "retry", "Whether and how the step is tried again after a failure."
            ),
        },
        _code_problems,
        nested=files,
    ),
    "ai": StepKind(
        AiStep,
        {
            **_RUN,
            "model": Field(
                model, "model", "Provider and model, like `openai:gpt-5-mini`.", required=True
            ),
            "fallback": Field(
                fallback,
                "fallback",
                "Further models, at most 5: each is asked if the one before fails or declines.",
            ),
            "system": Field(
                template, "system", "A template: what the model is told about its role."
            ),
            "prompt": Field(prompt, "prompt", "A template: the question.", required=True),
            "maxTokens": Field(
                max_tokens,
                "max_tokens",
                "How many tokens the answer may have. Default: the model's own limit.",
            ),
            "temperature": Field(
                temperature, "temperature", "From 0 to 2. Default: the model's own."
            ),
            "schema": Field(
                schema,
                "schema",
                "A JSON Schema for the output; without it, the output is the answer's text.",
            ),
            "retry": Field(
                retry, "retry", "Whether and how the step is tried again after a failure."
            ),
        },
        lambda values: [*model_problems(values)],
    ),
    "manual_approval": StepKind(
        ApprovalStep,
        {
            **_TIMED,
            "message": Field(template, "message", "A template: what reviewers read."),
            "humans": Field(
                number(1, MAX_REQUIRED_APPROVALS, whole=True),
                "humans",
                "How many people must approve in any case, whatever rules approve.",
            ),
            "delegable": Field(
                boolean,
                "delegable",
                "`true`: an approver may let somebody else decide; the two count as one approver. "
                "Default: false.",
            ),
            "autoApprove": Field(
                whole_template,
                "auto_approve",
                "A template; if it is true, the rule approves by itself.",
            ),
            "groups": Field(list_of(group, unique="name"), "groups", "Rows to review, in groups."),
            "requiredApprovals": Field(
                number(1, MAX_REQUIRED_APPROVALS, whole=True),
                "required_approvals",
                "How many different approvers must approve. One rejection decides. Default: 1.",
            ),
            "allowSelfApproval": Field(
                boolean,
                "allow_self_approval",
                "`false`: the account that started the execution may not approve it. "
                "Default: true.",
            ),
            "reminders": Field(
                list_of(duration, most=MAX_REMINDERS),
                "reminders",
                "Durations before the expiry; at each of them an `approval.reminder` event "
                "is sent.",
            ),
            "assurance": Field(
                choice(Assurance),
                "assurance",
                "`passkey`: each approver signs the released rows with a passkey, on the page. "
                "Default: `session`.",
            ),
            "links": Field(
                choice(Links),
                "links",
                "`decide` (default): a personal link opens the approval for its approver; "
                "`sign_in`: it only leads to signing in.",
            ),
            "notify": Field(
                CHANNELS,
                "notify",
                "The channels that tell of it, like `[mail, finance]`. Default: mail if it "
                "is set up; `[]`: none.",
            ),
            "fields": Field(answer_fields, "fields", "What approvers answer when they approve."),
        },
        approval_problems,
        nested=review_fields,
    ),
    "mail": StepKind(
        MailStep,
        {
            **_TIMED,
            "to": Field(
                recipients,
                "to",
                "The recipients, at most 50: email addresses, account ids, or templates that give "
                "such. Each must be an active account, or in the operator's `WFCORE_MAIL_TO`.",
                required=True,
            ),
            "subject": Field(prompt, "subject", "A template: one line.", required=True),
            "body": Field(
                prompt,
                "body",
                "A template: the text, in Markdown. Inserted values show as they are; "
                "`| markdown` lets them be markup.",
                required=True,
            ),
        },
        nested=attach_fields,
    ),
    "delay": StepKind(
        DelayStep,
        {**_COMMON, "duration": Field(duration, "duration_ms", "How long to wait.", required=True)},
    ),
    "data": StepKind(
        DataStep,
        {
            **_COMMON,
            "value": Field(
                trees.value,
                "value",
                "The step's output: any JSON, with templates anywhere in it.",
                required=True,
            ),
        },
    ),
    "switch": StepKind(SwitchStep, _TIMED, nested=trees.cases),
    "parallel": StepKind(
        ParallelStep,
        {
            **_TIMED,
            "maxParallel": Field(
                number(1, MAX_BRANCHES, whole=True),
                "max_parallel",
                "How many branches run at once. Default: all.",
            ),
        },
        nested=trees.branches,
    ),
    "loop": StepKind(
        LoopStep,
        {
            **_TIMED,
            "items": Field(
                trees.items,
                "items",
                "A list, or a template whose result is one: the steps run once for each item.",
                required=True,
            ),
            "maxParallel": Field(
                number(1, MAX_ROUNDS, whole=True),
                "max_parallel",
                "How many rounds run at once. Default: 1.",
            ),
        },
        nested=trees.rounds,
    ),
    "workflow": StepKind(
        ChildStep,
        {
            **_TIMED,
            "inputs": Field(
                trees.inputs,
                "inputs",
                "The inputs of the other workflow by name, which may be templates.",
            ),
            "retry": Field(
                retry, "retry", "Whether and how the step is tried again after a failure."
            ),
        },
        nested=trees.child,
    ),
}
