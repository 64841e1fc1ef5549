"""python-statemachine: a state machine; keeping its state is the program's own affair."""

import os
from pathlib import Path

from stage import say
from statemachine import State, StateMachine

KEPT = Path("state.txt")


class Greeting(StateMachine):
    new = State(initial=True)
    greeted = State()
    done = State(final=True)
    advance = new.to(greeted, on="hello") | greeted.to(done, on="world")

    def hello(self) -> None:
        say("hello")

    def world(self) -> None:
        say("world")

    def after_advance(self) -> None:
        with Path("state.new").open("w") as file:
            file.write(str(self.current_state_value))
            file.flush()
            os.fsync(file.fileno())
        os.replace("state.new", KEPT)


greeting = Greeting(start_value=KEPT.read_text() if KEPT.exists() else None)
while not greeting.is_terminated:
    greeting.advance()
