"""Callers of use cases: all rights come from one value, never from a caller that is left out."""

import inspect
from collections.abc import Callable, Iterator
from importlib import import_module
from pkgutil import walk_packages
from typing import Any

import pytest

import wfcore
from tests.wfcore.usecases.conftest import World, code
from wfcore import usecases
from wfcore.model.access import OPERATOR, Scope
from wfcore.model.page import PageRequest
from wfcore.model.trigger import Schedule
from wfcore.usecases.accounts.keys import create_key, revoke_key
from wfcore.usecases.workflows.triggers import list_triggers
from wfcore.usecases.workflows.workflows import apply_workflow

ALL = PageRequest(1, 9)
BY_THE_SERVICE = {"note", "note_decision"}
"""The functions whose *who* is None for an act of the service itself; they grant nothing."""


def with_callers() -> Iterator[Callable[..., Any]]:
    """The functions of use cases with a caller *who*."""
    for found in walk_packages(usecases.__path__, f"{usecases.__name__}."):
        for function in vars(import_module(found.name)).values():
            own = inspect.isfunction(function) and function.__module__ == found.name
            if own and "who" in inspect.signature(function).parameters:
                yield function


def test_no_use_case_has_a_caller_by_default() -> None:
    """A caller is always given, and is never None. AC-11."""
    functions = {one.__name__: inspect.signature(one).parameters["who"] for one in with_callers()}
    assert len(functions) > 90
    assert {name for name, who in functions.items() if who.default is not who.empty} == {
        apply_workflow.__name__  # the owner applies a definition, if nobody else is named
    }
    optional = {name for name, who in functions.items() if "None" in str(who.annotation)}
    assert optional == {"apply_workflow", "_apply", "_account_id", "_key_id"} | BY_THE_SERVICE


async def test_a_caller_that_is_none_is_an_error(world: World) -> None:
    """A program that forgot to sign its user in reads nothing. AC-11."""
    with pytest.raises(TypeError, match=r"list_executions: who must be of type Principal"):
        await wfcore.list_executions(world.services, None, ALL)  # type: ignore[arg-type]


async def test_the_operator_has_the_rights_of_everybody(world: World) -> None:
    """OPERATOR reads and ends what belongs to any account."""
    ann = await world.account()
    flow = await world.workflow(ann, code("a"))
    made = await create_key(world.services, ann.account.id, "a key", Scope.ordinary())
    assert (await wfcore.read_workflow(world.services, OPERATOR, flow)).workflow.id == flow
    assert (await revoke_key(world.services, OPERATOR, made.key.id)).revoked_at is not None


async def test_triggers_of_others_are_not_listed(world: World) -> None:
    """The list without a workflow has the caller's triggers; that of an operator has all. AC-6."""
    ann, bob = await world.account(), await world.account("bob@example.org")
    await world.workflow(ann, code("a"), triggers=(Schedule("0 3 * * *"),))
    assert len((await list_triggers(world.services, ann, ALL)).rows) == 1
    assert not (await list_triggers(world.services, bob, ALL)).rows
    assert len((await list_triggers(world.services, OPERATOR, ALL)).rows) == 1
