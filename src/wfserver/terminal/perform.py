"""The protocol of operations from the command line: beside the store, or by a server elsewhere."""

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from wfcore.usecases.administration.operator import Operation

URL, KEY = "WFCORE_URL", "WFCORE_KEY"


class Perform(Protocol):
    """Performs an operation beside the store or by a server elsewhere. The answer is JSON."""

    def __call__(self, operation: "Operation[Any]", /, **parameters: Any) -> Any: ...
