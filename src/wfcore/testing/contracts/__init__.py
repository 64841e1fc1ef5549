"""
Contract suites for authors of adapters: the promises of each port, as test classes to inherit from.

Inherit from the class for your port, provide the fixtures that the class names, and run pytest.

The suites are classes because each promise is then a test with a name, which can be selected, or
overridden with a reason. A function that checks everything would stop at the first failure; a
plugin would act unasked.
"""

from wfcore.testing.contracts.callback_client import CallbackClientContract
from wfcore.testing.contracts.counters import CountersContract
from wfcore.testing.contracts.dispatch import DispatchContract
from wfcore.testing.contracts.environments import EnvironmentsContract
from wfcore.testing.contracts.files import FilesContract
from wfcore.testing.contracts.identity import IdentityProviderContract
from wfcore.testing.contracts.machine import MachineContract
from wfcore.testing.contracts.models import ModelsContract, PricesContract
from wfcore.testing.contracts.notifier import NotifierContract
from wfcore.testing.contracts.passkeys import PasskeysContract
from wfcore.testing.contracts.runner import CallContract, RunnerContract
from wfcore.testing.contracts.store import StoreContract
from wfcore.testing.contracts.system import (
    ClockContract,
    IdsContract,
    OffloadContract,
    PasswordsContract,
    SealerContract,
    TokensContract,
)
from wfcore.testing.contracts.templates import CalendarContract, TemplatesContract
from wfcore.testing.contracts.wakeups import HintsContract, WakeupContract
from wfcore.testing.contracts.worker import WorkerContract

__all__ = [
    "CalendarContract",
    "CallContract",
    "CallbackClientContract",
    "ClockContract",
    "CountersContract",
    "DispatchContract",
    "EnvironmentsContract",
    "FilesContract",
    "HintsContract",
    "IdentityProviderContract",
    "IdsContract",
    "MachineContract",
    "ModelsContract",
    "NotifierContract",
    "OffloadContract",
    "PasskeysContract",
    "PasswordsContract",
    "PricesContract",
    "RunnerContract",
    "SealerContract",
    "StoreContract",
    "TemplatesContract",
    "TokensContract",
    "WakeupContract",
    "WorkerContract",
]
