"""What pages say beside their main matter: where it leads, what a field means, what is not so."""

import pytest

from tests.support.http_world import code
from wfcore.model.workflow import Variable

from .approval_case import Case, both
from .conftest import Site
from .execution_case import Runs
from .test_executions import Reader, text_of

ABOUT = "The cost centre that pays"


def test_what_a_variable_means_is_said_where_it_is_read(site: Site):
    """On the workflow's page and beside the field of its form, to which it belongs."""
    variable = Variable("centre", description=ABOUT)
    id = site.do(site.world.workflow(variables={"centre": variable}))
    assert ABOUT in text_of(Reader(site).get(f"/workflows/{id}"))
    form = Reader(site).get(f"/workflows/{id}/start").text
    assert f'<label for="input-1">{ABOUT} ' in form


def test_an_execution_leads_to_its_workflow(site: Site):
    """To the page of the workflow, and to the version that it runs."""
    runs = Runs(site, code("only"))
    page = Reader(site).get(f"/executions/{runs.start()}").text
    assert f'href="/workflows/{runs.workflow}"' in page
    assert f'href="/workflows/{runs.workflow}/versions/1"' in page


@pytest.mark.parametrize("path", ["/approvals/appr_none", "/executions/exec_none", "/nowhere"])
def test_a_page_that_is_not_there_leads_on(site: Site, path: str):
    """Who is signed in has the places of every page; it says what may be the reason."""
    answer = Reader(site).get(path)
    assert answer.status_code == 404
    for place in ("/inbox", "/executions", "/workflows", "/operate/webhooks"):
        assert f'href="{place}"' in answer.text, place


def test_a_yes_to_a_text_alone_speaks_of_no_rows(site: Site):
    """With rows it does; changing them would start the count anew."""
    for count, says in ((0, "You have agreed; others must agree, too."), (2, "these rows")):
        case = Case(site, count, **both(required_approvals=2))
        case.decide(site.world.ann)
        page = text_of(Reader(site).get(f"/approvals/{case.id}"))
        assert says in page
        assert ("rows" in page.split("You have agreed")[1].split(".")[0]) == bool(count)
