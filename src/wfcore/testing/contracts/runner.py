"""
The contract of a step runner that starts processes, as a test class to inherit from. Contract §5.

    class TestMyRunner(RunnerContract):
        @pytest.fixture
        async def runner(self, files):
            runner = MyRunner(files, ...)
            yield runner
            await runner.close()

`files` is to be the `ArtifactFiles` that the runner stores to, `runner_without_ruby` a runner
that cannot run Ruby. Needs pytest-asyncio in auto mode, Linux's /proc, Python and Bash.
"""

from wfcore.testing.contracts.runner_calls import CallContract
from wfcore.testing.contracts.runner_endings import EndingContract
from wfcore.testing.contracts.runner_leavings import LeavingContract
from wfcore.testing.contracts.runner_worlds import WorldContract


class RunnerContract(CallContract, WorldContract, EndingContract, LeavingContract):
    """
    Subclasses give fixtures `files`, an `ArtifactFiles`, `runner`, which stores to it, and
    `runner_without_ruby`, which finds no Ruby. Everything that `StepRunner` promises.
    """
