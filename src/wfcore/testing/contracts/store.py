"""
The contract of a store, as a test class to inherit from.

    class TestMyStore(StoreContract):
        @pytest.fixture
        async def store(self, clock):
            store = MyStore(..., now=clock.service_now)
            yield store
            await store.close()

        @pytest.fixture
        async def another(self, store, clock):
            another = MyStore(..., now=clock.service_now)  # a second handle on the same medium
            yield another
            await another.close()

        @pytest.fixture
        async def broken(self, tmp_path):
            store = MyStore(...)
            ...  # take the medium away
            return store

Without `another`, races over two handles go through one handle; without `broken`, its tests are
skipped. A store whose time cannot be set ignores `clock`. See `keeping.Handles`. The contract needs
pytest-asyncio in auto mode.
"""

from wfcore.testing.contracts.audit import AuditContract
from wfcore.testing.contracts.awaited import Awaited
from wfcore.testing.contracts.broken import BrokenContract
from wfcore.testing.contracts.claims import ClaimContract
from wfcore.testing.contracts.concurrency import ConcurrencyContract
from wfcore.testing.contracts.heads import HeadContract
from wfcore.testing.contracts.keeping import Handles
from wfcore.testing.contracts.lists import ListContract
from wfcore.testing.contracts.pages import PageContract
from wfcore.testing.contracts.triggers import TriggerContract
from wfcore.testing.contracts.units import UnitContract
from wfcore.testing.contracts.upkeep import UpkeepContract


class StoreContract(
    BrokenContract,
    UpkeepContract,
    AuditContract,
    TriggerContract,
    ConcurrencyContract,
    ClaimContract,
    PageContract,
    ListContract,
    HeadContract,
    UnitContract,
    Handles,
    Awaited,
):
    """
    The promises of `wfcore.ports.store` and `wfcore.ports.records`.

    Subclasses provide the fixture `store`, and `another` and `broken` if possible. pytest runs the
    tests of the last base first, so that units fail before chains of audit entries.
    """
