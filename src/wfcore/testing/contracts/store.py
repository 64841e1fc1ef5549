"""
The contract of a store, as a test class to inherit from.

    class TestMyStore(StoreContract):
        @pytest.fixture
        async def store(self):
            store = MyStore(...)
            yield store
            await store.close()

        @pytest.fixture
        async def another(self, store):
            another = MyStore(...)  # a second handle on the same medium
            yield another
            await another.close()

Without `another` what races over two handles goes through one. Needs pytest-asyncio in auto mode.
Time is plain integers: the suite controls it by its arguments.
"""

from wfcore.testing.contracts.audit import AuditContract
from wfcore.testing.contracts.awaited import Awaited
from wfcore.testing.contracts.claims import ClaimContract
from wfcore.testing.contracts.concurrency import LaneContract
from wfcore.testing.contracts.lists import ListContract
from wfcore.testing.contracts.pages import PageContract
from wfcore.testing.contracts.triggers import TriggerContract
from wfcore.testing.contracts.units import UnitContract


class StoreContract(
    Awaited,
    UnitContract,
    ListContract,
    PageContract,
    ClaimContract,
    LaneContract,
    TriggerContract,
    AuditContract,
):
    """
    Subclasses give a fixture `store`: empty, and closed afterwards.

    Everything that `wfcore.ports.store` and `wfcore.ports.records` promise.
    """
