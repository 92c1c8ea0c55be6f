# SPDX-License-Identifier: Apache-2.0
"""The library and the agent that runs, beyond what the scenarios of all clients play."""

import asyncio
import datetime
import os
import signal
import socket
import sys
import typing

import pytest

from agent import Agent, Server, needs_agent
from dialtone_client import (
    AgentBack, AgentLost, Change, Client, Connection, ConnectionHolder, EventKind, HeldByClient, InvalidDescriptor,
    InvalidTimeout, Keepalive, NotReady, OpeningAnswer, OpeningStep, Refused, Settings, Snapshot, State, TakeUntil,
    TimedOut)
from stand_in import run

pytestmark = needs_agent


async def follow(client: Client, name: str, condition: typing.Callable[[Connection], object]) -> Connection:
    """Waits until a connection satisfies a condition."""
    async with client.monitor([name]) as events:
        async for event in events:
            for connection in event.connections:
                if condition(connection):
                    return connection
    raise AssertionError("the monitor has ended")


async def opened(client: Client, server: Server) -> socket.socket:
    """Opens the connection "van", and returns the server's end of it."""
    assert await client.open(server.remote, "van") == "van"
    end = await asyncio.get_running_loop().run_in_executor(None, server.accept)
    await follow(client, "van", lambda connection: connection.state is State.READY)
    return end


def test_a_block_parks_and_the_agent_watches_again(agent: Agent, server: Server) -> None:
    async def body(client: Client) -> None:
        with await opened(client, server) as end:
            end.sendall(b"one\ntwo\n")
            async with client.take("van") as (reader, writer):
                assert await reader.readline() == b"one\n"
                writer.write(b"GOT one\n")
            assert end.recv(100) == b"GOT one\n"
            van = (await client.list())[0]
            assert (van.holder, van.epoch) == (ConnectionHolder.DAEMON, 1), van
            # The line that was not asked for waits for the next owner.
            async with client.take("van", until=TakeUntil.DATA) as (reader, _):
                assert await reader.readline() == b"two\n"

    run(body(agent.client))


def test_an_exception_abandons_and_the_socket_can_be_taken_again(agent: Agent, server: Server) -> None:
    async def body(client: Client) -> None:
        with await opened(client, server) as end:
            end.sendall(b"one\ntwo\n")
            with pytest.raises(KeyError):
                async with client.take("van") as (reader, _):
                    assert await reader.readline() == b"one\n"
                    raise KeyError("one")
            van = (await client.list())[0]
            assert van.holder is ConnectionHolder.CLIENT, van
            async with client.take("van") as taken:
                assert taken.epoch == 1
                assert await taken.reader.readline() == b"two\n"

    run(body(agent.client))


def test_a_socket_that_is_replaced_while_it_is_held_says_so(agent: Agent, server: Server) -> None:
    async def body(client: Client) -> None:
        first = await opened(client, server)
        async with client.take("van") as taken:
            await client.redial("van")
            second = await asyncio.get_running_loop().run_in_executor(None, server.accept)
            await follow(client, "van", lambda connection: connection.epoch == 2 and connection.state is State.READY)
        assert taken.replaced_by == 2
        first.close()
        second.close()

    run(body(agent.client))


def test_waiting_for_data_ends_with_data_or_with_the_time(agent: Agent, server: Server) -> None:
    async def body(client: Client) -> None:
        with await opened(client, server) as end:
            with pytest.raises(TimedOut):
                await client.take("van", until=TakeUntil.DATA, timeout=0.05)
            waiting = asyncio.ensure_future(_line(client))
            await asyncio.sleep(0)
            end.sendall(b"hello\n")
            assert await waiting == b"hello\n"

    async def _line(client: Client) -> bytes:
        async with client.take("van", until=TakeUntil.DATA) as (reader, _):
            return await reader.readline()

    run(body(agent.client))


def test_another_process_is_told_who_holds_the_socket(agent: Agent, server: Server) -> None:
    async def body(client: Client) -> int:
        with await opened(client, server):
            child = await asyncio.create_subprocess_exec(
                sys.executable, "-c", HOLD, *client.paths, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
                stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE)
            assert child.stdout is not None and child.stdin is not None
            assert await child.stdout.readline() == b"held\n"
            with pytest.raises(HeldByClient) as caught:
                await client.take("van")
            assert caught.value.process == child.pid
            child.stdin.close()
            assert await child.wait() == 0
            # The process ended without parking, so the agent dials another socket.
            async with client.take("van", until=TakeUntil.FLOW) as taken:
                return taken.epoch

    assert run(body(agent.client)) == 2


HOLD = """
import asyncio, sys
from dialtone_client import Client
async def main():
    taken = await Client(sys.argv[1]).take("van")
    print("held", flush=True)
    sys.stdin.read()
asyncio.run(main())
"""


def test_settings_reach_the_agent_and_come_back(agent: Agent, server: Server) -> None:
    async def body(client: Client) -> None:
        greeting = OpeningStep(send="HELLO\\n", expect=OpeningAnswer(until="\\n"))
        settings = Settings(opening=[greeting], keepalive=Keepalive(
            protocol="crlf", interval=datetime.timedelta(seconds=90)))
        await client.open(server.remote, "van", settings)
        with await asyncio.get_running_loop().run_in_executor(None, server.accept) as end:
            assert await asyncio.get_running_loop().run_in_executor(None, end.recv, 100) == b"HELLO\n"
            end.sendall(b"WELCOME\n")
            van = await follow(client, "van", lambda connection: connection.session == "open")
            assert van.keepalive_interval == datetime.timedelta(seconds=90), van

    run(body(agent.client))


def test_what_the_agent_refuses_has_its_class(agent: Agent, server: Server) -> None:
    async def handler() -> None:
        raise AssertionError("the agent does not call")

    async def body(client: Client) -> None:
        await client.open("tcp://192.0.2.1:1", "far")
        with pytest.raises(NotReady) as caught:
            await client.take("far")
        assert caught.value.name == "far" and caught.value.state is State.WAITING
        with pytest.raises(InvalidTimeout):
            await client.keep_alive("far", datetime.timedelta(seconds=1), handler)
        with socket.socket(socket.AF_UNIX) as odd, pytest.raises(InvalidDescriptor):
            await client.adopt(odd, "odd")
        with pytest.raises(Refused, match="InvalidParameter"):
            await client.open("tcp://192.0.2.1:1", "a/b")

    run(body(agent.client))


def test_a_monitor_goes_on_when_the_agent_is_restarted_with_its_state(agent: Agent) -> None:
    async def body(client: Client) -> typing.List[str]:
        loop = asyncio.get_running_loop()
        told = []
        async with client.monitor() as events:
            async for event in events:
                told.append(type(event).__name__)
                if isinstance(event, Snapshot) and len(told) == 1:
                    await client.open("tcp://192.0.2.1:1", "far")
                elif isinstance(event, Change) and event.event.kind is EventKind.OPENED:
                    await loop.run_in_executor(None, agent.end)
                elif isinstance(event, AgentLost):
                    await loop.run_in_executor(None, agent.start)
                elif isinstance(event, AgentBack):
                    return told
        return told

    told = run(body(agent.client))
    assert told[:2] == ["Snapshot", "Change"] and told[-2:] == ["AgentLost", "AgentBack"], told


def test_a_call_that_waits_is_interrupted_by_the_death_of_the_agent(agent: Agent, server: Server) -> None:
    async def body(client: Client) -> None:
        with await opened(client, server):
            waiting = asyncio.ensure_future(_wait(client))
            # The agent has the call when it counts the caller as one that watches; a second call is answered after it.
            await client.list()
            await asyncio.get_running_loop().run_in_executor(None, agent.end, signal.SIGKILL)
            with pytest.raises(Exception) as caught:
                await waiting
            assert type(caught.value).__name__ in ("Interrupted", "NotRunning"), caught.value

    async def _wait(client: Client) -> None:
        await client.take("van", until=TakeUntil.DATA)

    run(body(agent.client))
