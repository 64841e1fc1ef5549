"""The events of an execution as lines on a terminal."""

from typing import TYPE_CHECKING, Any

from wfcore.model.event import Event, EventKind
from wfserver.terminal.output import clean, rounds_of, span

if TYPE_CHECKING:
    from rich.console import Console
    from rich.status import Status

_STYLES = {"✔": "green", "✘": "red", "?": "yellow", "↻": "yellow", "-": "dim", "+": "cyan"}


class Progress:
    """Prints a line for each step, its output, and a spinner while it runs."""

    def __init__(self, out: "Console") -> None:
        self._out = out
        self._spinner: Status | None = None
        self._loops: dict[str, tuple[set[str], int]] = {}
        """The rounds of each loop that have begun, and the number of all its rounds."""

    def show(self, event: Event) -> None:
        """Print one event."""
        data: Any = event.data
        match event.kind:
            case EventKind.STEP_STARTED:
                self._spin(data["step"], self._rounds(data["step"], data.get("rounds")))
            case EventKind.STEP_LOG:
                self._lines(data["text"])
            case EventKind.STEP_COMPLETED:
                self._mark("✔", data["step"], span(data["duration"]))
            case EventKind.STEP_FAILED:
                self._mark("✘", data["step"], data["error"])
            case EventKind.STEP_RETRYING:
                self._mark("↻", data["step"], f"again after: {data['error']}")
            case EventKind.STEP_SKIPPED:
                self._mark("-", data["step"], "skipped")
            case EventKind.APPROVAL_CREATED:
                self._mark("?", data["step"], "waits for approval")
            case EventKind.ARTIFACT_CREATED:
                self._mark("+", data["name"], f"{data['size']:,} bytes", still_runs=True)
            case _:
                pass

    def pause(self) -> None:
        """Remove the spinner, so that other code can print."""
        if self._spinner is not None:
            self._spinner.stop()
            self._spinner = None

    def _rounds(self, step: str, rounds: int | None) -> str:
        """
        The progress of the loop around *step*. *rounds*: the number of rounds if *step* is a loop.
        """
        if rounds is not None:
            self._loops[step] = set(), rounds
        loop, *inside = step.rsplit(".", 2)
        if not inside or loop not in self._loops:
            return ""
        begun, all_rounds = self._loops[loop]
        begun.add(inside[0])
        return rounds_of(len(begun), all_rounds)

    def _spin(self, step: str, rounds: str) -> None:
        self.pause()
        if self._out.is_terminal:
            self._spinner = self._out.status(clean(", ".join(filter(None, (step, rounds)))))
            self._spinner.start()

    def _lines(self, text: str) -> None:
        for line in clean(text).splitlines():
            self._print("dim", f"  │ {line}")

    def _mark(self, mark: str, what: str, words: str, *, still_runs: bool = False) -> None:
        if not still_runs:
            self.pause()
        first, *more = clean(words).splitlines() or [""]
        self._print(_STYLES[mark], f"{mark} {clean(what):<12} {first}")
        for line in more:
            self._print("", f"  {line}")

    def _print(self, style: str, text: str) -> None:
        from rich.text import Text

        styled = Text(text)
        styled.stylize(style, 0, 1 if style != "dim" else len(text))
        self._out.print(styled)
