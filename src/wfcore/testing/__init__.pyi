"""The public names of the kit; see `__init__.py`. Decision 52."""

from wfcore.testing.comparison.comparing import StoreComparison as StoreComparison
from wfcore.testing.contracts.awaited import Awaited as Awaited
from wfcore.testing.contracts.callback_client import (
    CallbackClientContract as CallbackClientContract,
)
from wfcore.testing.contracts.callback_client import ScriptedReceiver as ScriptedReceiver
from wfcore.testing.contracts.counters import CountersContract as CountersContract
from wfcore.testing.contracts.dispatch import DispatchContract as DispatchContract
from wfcore.testing.contracts.dispatch import NewDispatch as NewDispatch
from wfcore.testing.contracts.environments import EnvironmentsContract as EnvironmentsContract
from wfcore.testing.contracts.files import FilesContract as FilesContract
from wfcore.testing.contracts.identity import (
    IdentityProviderContract as IdentityProviderContract,
)
from wfcore.testing.contracts.identity import ScriptedCompany as ScriptedCompany
from wfcore.testing.contracts.keeping import Elapse as Elapse
from wfcore.testing.contracts.keeping import Handles as Handles
from wfcore.testing.contracts.machine import MachineContract as MachineContract
from wfcore.testing.contracts.models import ModelsContract as ModelsContract
from wfcore.testing.contracts.models import PricesContract as PricesContract
from wfcore.testing.contracts.models import ScriptedProvider as ScriptedProvider
from wfcore.testing.contracts.notifier import NotifierContract as NotifierContract
from wfcore.testing.contracts.notifier import ScriptedPost as ScriptedPost
from wfcore.testing.contracts.passkeys import PasskeysContract as PasskeysContract
from wfcore.testing.contracts.runner import CallContract as CallContract
from wfcore.testing.contracts.runner import Does as Does
from wfcore.testing.contracts.runner import RunnerContract as RunnerContract
from wfcore.testing.contracts.store import StoreContract as StoreContract
from wfcore.testing.contracts.system import ClockContract as ClockContract
from wfcore.testing.contracts.system import ClockControl as ClockControl
from wfcore.testing.contracts.system import IdsContract as IdsContract
from wfcore.testing.contracts.system import OffloadContract as OffloadContract
from wfcore.testing.contracts.system import PasswordsContract as PasswordsContract
from wfcore.testing.contracts.system import SealerContract as SealerContract
from wfcore.testing.contracts.system import TokensContract as TokensContract
from wfcore.testing.contracts.templates import CalendarContract as CalendarContract
from wfcore.testing.contracts.templates import TemplatesContract as TemplatesContract
from wfcore.testing.contracts.wakeups import HintsContract as HintsContract
from wfcore.testing.contracts.wakeups import WakeupContract as WakeupContract
from wfcore.testing.contracts.worker import WorkerContract as WorkerContract
from wfcore.testing.contracts.worker_site import Dispatch as Dispatch
from wfcore.testing.contracts.worker_site import RefusingGate as RefusingGate
from wfcore.testing.contracts.worker_site import Site as Site
from wfcore.testing.contracts.worker_trees import BesideOneAnother as BesideOneAnother
from wfcore.testing.fakes import CountingIds as CountingIds
from wfcore.testing.fakes import CountingTokens as CountingTokens
from wfcore.testing.fakes import ManualClock as ManualClock
from wfcore.testing.fakes import NotedEnvironments as NotedEnvironments
from wfcore.testing.fakes import NotedHints as NotedHints
from wfcore.testing.fakes import PathTemplates as PathTemplates
from wfcore.testing.fakes import PlainCalendar as PlainCalendar
from wfcore.testing.fakes import PlainPasswords as PlainPasswords
from wfcore.testing.fakes_running import DictFiles as DictFiles
from wfcore.testing.fakes_running import HeldRunner as HeldRunner
from wfcore.testing.fakes_running import NotedCallbacks as NotedCallbacks
from wfcore.testing.fakes_running import ScriptedRunner as ScriptedRunner
from wfcore.testing.fakes_running import counters_in_memory as counters_in_memory
from wfcore.testing.fakes_running import in_turn as in_turn
from wfcore.testing.fakes_running import store_in_memory as store_in_memory
from wfcore.testing.models import FixedPrices as FixedPrices
from wfcore.testing.models import ScriptedModels as ScriptedModels
from wfcore.testing.strategies.definition import definitions as definitions
from wfcore.testing.strategies.records import values_of as values_of
from wfcore.testing.strategies.runs import executions as executions
from wfcore.testing.strategies.values import instants as instants
from wfcore.testing.strategies.values import json_values as json_values
from wfcore.testing.strategies.values import key_texts as key_texts
from wfcore.testing.strategies.values import payloads as payloads
from wfcore.testing.strategies.written import written as written
from wfcore.testing.walks.decisions import ApprovalWalk as ApprovalWalk
from wfcore.testing.walks.decisions import WebhookWalk as WebhookWalk
from wfcore.testing.walks.execution import ExecutionWalk as ExecutionWalk
from wfcore.testing.walks.execution import StepWalk as StepWalk
from wfcore.testing.walks.walking import Facts as Facts
from wfcore.testing.walks.walking import MachineWalk as MachineWalk
from wfcore.testing.walks.walking import TimedWalk as TimedWalk
