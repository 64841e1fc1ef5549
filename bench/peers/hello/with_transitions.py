"""transitions: a state machine; keeping its state is the program's own affair."""

import os
from pathlib import Path

from stage import say
from transitions import Machine

KEPT = Path("state.txt")


class Greeting:
    state: str

    def on_enter_greeted(self) -> None:
        say("hello")

    def on_enter_done(self) -> None:
        say("world")

    def keep(self) -> None:
        with Path("state.new").open("w") as file:
            file.write(self.state)
            file.flush()
            os.fsync(file.fileno())
        os.replace("state.new", KEPT)


greeting = Greeting()
machine = Machine(
    greeting,
    states=["new", "greeted", "done"],
    initial=KEPT.read_text() if KEPT.exists() else "new",
    after_state_change="keep",
)
machine.add_ordered_transitions(loop=False)
while greeting.state != "done":
    machine.events["next_state"].trigger(greeting)
