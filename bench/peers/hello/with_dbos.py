"""DBOS: durable functions; the steps that were done are rows of a database."""

from dbos import DBOS, SetWorkflowID
from stage import say


@DBOS.step()
def hello() -> None:
    say("hello")


@DBOS.step()
def world() -> None:
    say("world")


@DBOS.workflow()
def greet() -> None:
    hello()
    world()


DBOS(config={"name": "greeting", "system_database_url": "sqlite:///greeting.sqlite"})
DBOS.launch()
with SetWorkflowID("greeting"):
    greet()
