# SPDX-License-Identifier: Apache-2.0
"""Streams across restarts of the agent."""

import asyncio
import datetime
import gc
import pathlib
import threading
import typing

import pytest

from dialtone_client import (
    AgentBack, AgentLost, Change, Client, EventKind, Gap, InvalidTimeout, MonitorEvent, NotRunning, PermissionDenied,
    Snapshot)
from dialtone_client.events import RetryPause
from dialtone_client.interface import Monitor
from stand_in import CONNECTION, PATH, Conversation, StandIn, descriptors, run

EVENT = {"time": "2026-05-01T12:00:00.000Z", "kind": "taken", "connection": CONNECTION}


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """An agent that is back is found at once."""
    monkeypatch.setattr(RetryPause, "SHORTEST", 0.001)
    monkeypatch.setattr(RetryPause, "LONGEST", 0.01)


def monitored(conversation: Conversation, sequence: int, kind: str = "change") -> None:
    """Sends a reply of Monitor."""
    event = {"event": {**EVENT, "sequence": sequence}} if kind == "change" else {}
    conversation.reply(
        parameters={"sequence": sequence, "kind": kind, "connections": [CONNECTION], **event}, continues=True)


def test_a_monitor_goes_on_after_the_last_event_that_it_told(tmp_path: pathlib.Path) -> None:
    asked: typing.List[object] = []

    def first(conversation: Conversation) -> None:
        asked.append(conversation.call())
        monitored(conversation, 10, "snapshot")
        monitored(conversation, 11)

    def second(conversation: Conversation) -> None:
        asked.append(conversation.call())
        monitored(conversation, 12)
        # Before the next one comes, it hangs up in the middle.
        conversation.send(b'{"parameters":')

    def third(conversation: Conversation) -> None:
        asked.append(conversation.call())
        monitored(conversation, 40, "gap")
        conversation.wait_for_end()

    async def body(client: Client) -> typing.List[MonitorEvent]:
        told: typing.List[MonitorEvent] = []
        async with client.monitor(["van"]) as events:
            async for event in events:
                told.append(event)
                if isinstance(event, Gap):
                    return told
        return told

    with StandIn(tmp_path, first, second, third) as agent:
        told = run(body(Client(agent.path)))
    kinds = [type(event) for event in told]
    assert kinds == [Snapshot, Change, AgentLost, AgentBack, Change, AgentLost, AgentBack, Gap]
    afters = [call["parameters"] for call in typing.cast(typing.List[typing.Dict[str, object]], asked)]
    assert afters == [{"names": ["van"]}, {"names": ["van"], "after": 11}, {"names": ["van"], "after": 12}]
    change = told[1]
    assert isinstance(change, Change) and change.event.kind is EventKind.TAKEN and change.sequence == 11
    assert [event.connections[0].name for event in told if event.connections] == ["van"] * 4


def test_an_agent_that_is_not_there_yet_is_waited_for(tmp_path: pathlib.Path) -> None:
    async def body() -> typing.List[MonitorEvent]:
        events = Client(tmp_path / "agent.sock").monitor(after=5)
        told = [await events.__anext__()]
        assert isinstance(told[0], AgentLost) and isinstance(told[0].error, NotRunning)
        waiting = asyncio.ensure_future(events.__anext__())
        # It looks for the agent several times, and says nothing more.
        await asyncio.sleep(0.05)
        assert not waiting.done()
        with StandIn(tmp_path, lambda conversation: _one(conversation, 6)):
            told += [await waiting, await events.__anext__()]
            events.close()
        return told

    def _one(conversation: Conversation, sequence: int) -> None:
        assert conversation.call()["parameters"] == {"after": 5}
        monitored(conversation, sequence)
        conversation.wait_for_end()

    assert [type(event) for event in run(body())] == [AgentLost, AgentBack, Change]


def test_an_agent_that_refuses_for_a_while_is_waited_for(tmp_path: pathlib.Path) -> None:
    def first(conversation: Conversation) -> None:
        conversation.call()
        monitored(conversation, 10, "snapshot")

    def second(conversation: Conversation) -> None:
        conversation.call()
        conversation.reply(error="org.dialtone.Connections.OutOfResources", parameters={"reason": "no memory"})

    def third(conversation: Conversation) -> None:
        conversation.call()
        conversation.reply(
            error="org.dialtone.Connections.Suspended", parameters={"reason": "it crashed", "seconds": 5})

    def fourth(conversation: Conversation) -> None:
        conversation.call()
        monitored(conversation, 11)
        conversation.wait_for_end()

    async def body(client: Client) -> typing.List[MonitorEvent]:
        async with client.monitor() as events:
            return [await events.__anext__() for _ in range(4)]

    with StandIn(tmp_path, first, second, third, fourth) as agent:
        told = run(body(Client(agent.path)))
    assert [type(event) for event in told] == [Snapshot, AgentLost, AgentBack, Change]


def test_what_no_waiting_cures_ends_a_monitor(tmp_path: pathlib.Path) -> None:
    def handle(conversation: Conversation) -> None:
        conversation.call()
        conversation.reply(error="org.varlink.service.PermissionDenied")

    with StandIn(tmp_path, handle) as agent:
        with pytest.raises(PermissionDenied):
            run(Client(agent.path).monitor().__anext__())


def test_a_monitor_that_is_dropped_or_cancelled_hangs_up(tmp_path: pathlib.Path) -> None:
    gone = threading.Semaphore(0)

    def handle(conversation: Conversation) -> None:
        conversation.call()
        monitored(conversation, 1, "snapshot")
        conversation.wait_for_end()
        gone.release()

    async def leave_the_loop(client: Client) -> None:
        async for _ in client.monitor():
            break

    async def be_cancelled(client: Client) -> None:
        events = client.monitor()
        await events.__anext__()
        task = asyncio.ensure_future(events.__anext__())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        # A new call goes on.
        again = asyncio.ensure_future(events.__anext__())
        await asyncio.sleep(0)
        assert not again.done()
        again.cancel()
        events.close()

    with StandIn(tmp_path, handle) as agent:
        before = descriptors()
        for body in (leave_the_loop, be_cancelled):
            run(body(Client(agent.path)))
            gc.collect()
            assert gone.acquire(timeout=60)
        assert len(descriptors()) == len(before)


def test_a_task_that_waits_ends_when_another_closes_the_monitor(tmp_path: pathlib.Path) -> None:
    gone = threading.Event()

    def handle(conversation: Conversation) -> None:
        conversation.call()
        monitored(conversation, 1, "snapshot")
        conversation.wait_for_end()
        gone.set()

    async def body(client: Client) -> None:
        events = client.monitor()
        assert isinstance(await events.__anext__(), Snapshot)
        waiting = asyncio.ensure_future(events.__anext__())
        await asyncio.sleep(0)
        events.close()
        for again in (waiting, events.__anext__()):
            with pytest.raises(StopAsyncIteration):
                await again
        stream = client.stream(Monitor())
        await stream.__anext__()
        waiting_too = asyncio.ensure_future(stream.__anext__())
        await asyncio.sleep(0)
        stream.close()
        with pytest.raises(StopAsyncIteration):
            await waiting_too

    with StandIn(tmp_path, handle) as agent:
        run(body(Client(agent.path)))
        assert gone.wait(60)


def test_a_path_is_told_again_when_the_agent_is_lost_and_when_it_is_back(tmp_path: pathlib.Path) -> None:
    def first(conversation: Conversation) -> None:
        assert conversation.call()["parameters"] == {"target": {"host": "sip.example.com"}}
        conversation.reply(parameters={"path": PATH, "changes": []}, continues=True)
        routed = {**PATH, "gateway": "192.0.2.1"}
        conversation.reply(parameters={"path": routed, "changes": ["gateway"]}, continues=True)

    def second(conversation: Conversation) -> None:
        conversation.call()
        lost = {**PATH, "status": "unsatisfied", "reason": "noRoute", "supportsIPv4": False}
        del lost["interface"]
        conversation.reply(parameters={"path": lost, "changes": []}, continues=True)
        conversation.wait_for_end()

    async def body(client: Client) -> typing.List[typing.Tuple[str, bool, typing.List[str]]]:
        told = []
        async for path in client.monitor_path("sip.example.com"):
            told.append((str(path.status), path.coherent, sorted(path.changes)))
            if path.status == "unsatisfied":
                return told
        return told

    with StandIn(tmp_path, first, second) as agent:
        told = run(body(Client(agent.path)))
    assert told == [
        ("satisfied", True, []), ("satisfied", True, ["gateway"]), ("satisfied", False, ["coherent"]),
        ("unsatisfied", True, ["addresses", "coherent", "gateway", "interface", "ipv4", "reason", "status"])]


def test_a_path_without_an_agent_is_an_error_at_the_beginning(tmp_path: pathlib.Path) -> None:
    with pytest.raises(NotRunning):
        run(Client(tmp_path / "agent.sock").monitor_path().__anext__())


def test_keepalives_are_called_for_across_restarts_until_another_takes_over(tmp_path: pathlib.Path) -> None:
    acknowledged: typing.List[int] = []

    def serve(*replies: typing.Dict[str, object]) -> typing.Callable[[Conversation], None]:
        def handle(conversation: Conversation) -> None:
            while True:
                call = conversation.call()
                if not call:
                    return
                if call["method"].endswith("Acknowledge"):
                    acknowledged.append(call["parameters"]["wake"])
                    conversation.reply()
                    continue
                assert call["parameters"] == {"name": "van", "timeoutMilliseconds": 30000} and call["more"]
                for reply in replies:
                    conversation.reply(parameters={"limitMilliseconds": 10000, **reply}, continues=True)
                return
        return handle

    def last(conversation: Conversation) -> None:
        conversation.call()
        conversation.reply(parameters={"limitMilliseconds": 10000})

    handled: typing.List[int] = []

    async def handler() -> None:
        handled.append(acknowledged[-1])

    with StandIn(tmp_path, serve({}, {"wake": 1}), serve(), serve({}, {"wake": 2}), serve(), last) as agent:
        run(Client(agent.path).keep_alive("van", datetime.timedelta(seconds=30), handler))
    assert handled == acknowledged == [1, 2]


def test_a_keepalive_that_makes_no_sense_is_refused(tmp_path: pathlib.Path) -> None:
    def handle(conversation: Conversation) -> None:
        conversation.call()
        conversation.reply(
            error="org.dialtone.Connections.InvalidTimeout", parameters={"name": "van", "reason": "it is too short"})

    async def handler() -> None:
        raise AssertionError("nobody calls")

    with StandIn(tmp_path, handle) as agent:
        with pytest.raises(InvalidTimeout):
            run(Client(agent.path).keep_alive("van", datetime.timedelta(seconds=1), handler))
