"""eventsourcing: what was said is an event; continuing is the program's own affair."""

from uuid import NAMESPACE_URL, UUID, uuid5

from eventsourcing.application import AggregateNotFoundError, Application
from eventsourcing.domain import Aggregate, event
from stage import say

NAME = "greeting"


class Greeting(Aggregate):
    @event("Began")
    def __init__(self) -> None:
        self.said: list[str] = []

    @staticmethod
    def create_id() -> UUID:
        return uuid5(NAMESPACE_URL, NAME)

    @event("Said")
    def note(self, text: str) -> None:
        self.said.append(text)


app = Application[UUID](
    env={"PERSISTENCE_MODULE": "eventsourcing.sqlite", "SQLITE_DBNAME": "greeting.sqlite"}
)
try:
    greeting: Greeting = app.repository.get(Greeting.create_id())
except AggregateNotFoundError:
    greeting = Greeting()
for text in ("hello", "world"):
    if text not in greeting.said:
        say(text)
        greeting.note(text)
        app.save(greeting)
