"""What scenarios play of mails, files and models. DF-11."""

from .conftest import Play, wrong

MAILED = """
name: W
variables: {who: {default: ann@example.org}}
steps:
  - {name: a, kind: code, language: lua, source: x, timeout: 2h}
  - name: tell
    kind: mail
    to: ["{{ variables.who }}", bob@example.org]
    subject: "Result of {{ steps.a.output }}"
    body: "**Done**: {{ steps.a.output }}"
output: "{{ steps.tell.output.accepted }}"
"""


def test_mails_that_would_go_out(play: Play) -> None:
    """ML-7: a mail is taken at once, or as its stub says; its text is the text on the wire."""
    ran = play(
        MAILED,
        """
steps: {a: {output: a_b, takes: 1h}}
scenarios:
  - name: taken
    expect:
      output: [ann@example.org, bob@example.org]
      mails:
        - step: tell
          to: [ann@example.org, bob@example.org]
          subject: Result of a_b
          body: "**Done**: a_b"
          attach: []
          after: 1h
  - name: taken late
    steps: {tell: {takes: 2h}}
    expect: {took: 3h, mails: [{step: tell}]}
  - name: refused
    steps: {tell: {fails: no such user}}
    expect: {status: FAILED, error: no such user, mails: []}
  - name: too late
    steps: {tell: {takes: 4h}}
    expect: {status: FAILED, reason: TIMEOUT, took: 4h, mails: []}
  - name: nobody
    given: {inputs: {who: Ann}}
    expect: {status: FAILED, error: "gives 'Ann'", mails: []}
""",
    )
    assert wrong(ran) == ""


FILES = """
name: W
steps:
  - {name: fetch, kind: code, language: bash, source: x, retry: {attempts: 2, delay: 1s}}
  - {name: sub, kind: workflow, workflow: other}
  - {name: load, kind: code, language: ruby, source: x, files: [fetch, sub]}
"""


def test_files_of_stubbed_steps(play: Play) -> None:
    """FI-3: a step gets what the last attempt of earlier steps left, of workflow steps, too."""
    ran = play(
        FILES,
        """
steps: {load: {}, sub: {files: [total.csv]}}
scenarios:
  - name: it gets the files
    steps: {fetch: [{fails: no, files: [part.csv]}, {files: [b.csv, a/1.csv]}]}
    expect:
      status: COMPLETED
      steps: {load: {files: [fetch/a/1.csv, fetch/b.csv, sub/total.csv]}}
  - name: or none
    steps: {fetch: {}}
    expect: {steps: {load: {files: [sub/total.csv]}, fetch: {files: []}}}
""",
    )
    assert wrong(ran) == ""


def test_what_a_model_is_asked_and_what_it_used(play: Play) -> None:
    """Prompts are rendered, and usage counts against the budget."""
    ran = play(
        """
name: W
budget: {maxTokens: 100}
variables: {who: {type: string, default: Ann}}
steps:
  - name: one
    kind: ai
    model: openai:x
    system: "Be {{ 'kind' }}"
    prompt: "Greet {{ variables.who }}"
  - {name: two, kind: ai, model: "openai:x", prompt: "Again"}
""",
        """
steps:
  one: {output: hello, usage: {inputTokens: 90, outputTokens: 20}}
  two: {output: ""}
scenarios:
  - name: over the budget
    expect: {status: FAILED, ran: [one], steps: {one: {prompt: Greet Ann, system: Be kind}}}
""",
    )
    assert wrong(ran) == ""


def test_which_model_answers(play: Play) -> None:
    """AI-11: the first one, or the one in the stub; a model that the step cannot ask is named."""
    ran = play(
        """
name: W
steps:
  - {name: ask, kind: ai, model: "a:x", fallback: ["b:y"], prompt: Hello}
""",
        """
scenarios:
  - name: by itself
    steps: {ask: {output: hello}}
    expect: {steps: {ask: {model: "a:x"}}}
  - name: after a failure
    steps: {ask: {output: hello, model: "b:y"}}
    expect: {steps: {ask: {model: "b:y"}}}
  - name: unknown
    steps: {ask: {output: hello, model: "c:z"}}
    expect: {status: COMPLETED}
""",
    )
    assert wrong(ran).splitlines() == ["ask: asks no model c:z; it asks a:x, b:y"]
