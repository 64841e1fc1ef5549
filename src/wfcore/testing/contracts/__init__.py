"""
Contract suites for the authors of adapters: what each port promises, as tests to inherit.

Inherit from `StoreContract`, `CountersContract`, `FilesContract`, `RunnerContract` or
`ModelsContract`, give the fixtures that it names, and run pytest.
"""

from wfcore.testing.contracts.counters import CountersContract
from wfcore.testing.contracts.files import FilesContract
from wfcore.testing.contracts.models import ModelsContract
from wfcore.testing.contracts.runner import RunnerContract
from wfcore.testing.contracts.store import StoreContract

__all__ = ["CountersContract", "FilesContract", "ModelsContract", "RunnerContract", "StoreContract"]
