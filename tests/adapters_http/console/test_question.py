"""What an approval asks: Markdown for people, as it was written on the wire."""

from adapters_runtime.expressions.templates import MiniJinjaTemplates
from tests.support.http_world import code
from wfcore.model.workflow import ApprovalStep, Variable, VariableType
from wfcore.ports.runtime import StepEnd

from .conftest import Site
from .test_executions import Reader

ASKED = """# Pay **{{ variables.who }}**?

Check the amounts:

- {{ variables.note }}
- [the list](https://docs.example/list)

{{ variables.note | markdown }}"""
NOTE = "*see* [here](https://evil.example) <b>x</b>"


def test_the_question_is_shown_and_what_is_inserted_means_nothing(site: Site):
    """
    A title without marks in lists, the rest as HTML, links with their host; what a template inserts
    is text, unless its author says otherwise; the API has the text as it was written. MD-1 to MD-3.
    """
    world, reader = site.world, Reader(site)
    object.__setattr__(world.services, "templates", MiniJinjaTemplates())
    variables = {name: Variable(name, VariableType.STRING) for name in ("who", "note")}
    step = ApprovalStep("review", ASKED)
    workflow = site.do(world.workflow(code("first"), step, variables=variables))
    id = site.do(world.start(workflow, who="*Ann*", note=NOTE))
    site.do(world.run(StepEnd()))
    (approval,) = site.do(world.get(f"/api/v1/approvals/execution/{id}")).json()["approvals"]
    raw = ASKED.replace("{{ variables.who }}", "*Ann*")
    raw = raw.replace("{{ variables.note | markdown }}", NOTE)
    told = site.do(world.get(f"/api/v1/approvals/{approval['id']}")).json()
    assert told["approvalMessage"] == raw.replace("{{ variables.note }}", NOTE)
    assert "Pay *Ann*?</a></h2>" in reader.get("/inbox").text
    page = reader.get(f"/approvals/{approval['id']}").text
    assert '<h1 dir="auto">Pay *Ann*?</h1>' in page
    assert "<li>*see* [here](https://evil.example) &lt;b&gt;x&lt;/b&gt;</li>" in page
    assert 'the list</a> <span class="host">(docs.example)</span>' in page
    assert "<p><em>see</em> <a" in page
    assert "<b>x</b>" not in page
