"""Temporal: durable functions; their history is kept by a server, which must run beside this."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

from temporalio import activity, workflow
from temporalio.client import Client
from temporalio.common import WorkflowIDConflictPolicy
from temporalio.worker import Worker

with workflow.unsafe.imports_passed_through():
    from stage import say


@activity.defn
def hello() -> None:
    say("hello")


@activity.defn
def world() -> None:
    say("world")


@workflow.defn
class Greet:
    @workflow.run
    async def run(self) -> None:
        for step in (hello, world):
            await workflow.execute_activity(step, start_to_close_timeout=timedelta(seconds=5))


async def main() -> None:
    client = await Client.connect("127.0.0.1:7233")
    with ThreadPoolExecutor() as threads:
        async with Worker(
            client,
            task_queue="greetings",
            workflows=[Greet],
            activities=[hello, world],
            activity_executor=threads,
        ):
            await client.execute_workflow(
                Greet.run,
                id="greeting",
                task_queue="greetings",
                id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
            )


asyncio.run(main())
