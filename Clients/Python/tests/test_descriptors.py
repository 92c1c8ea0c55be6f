# SPDX-License-Identifier: Apache-2.0
"""Descriptors that ride along: each one that nobody takes out of its message is closed."""

import asyncio
import gc
import os
import pathlib
import socket
import threading
import typing

import pytest

from dialtone_client import Client, DialtoneError, ProtocolViolation
from dialtone_client.interface import Take
from stand_in import CONNECTION, Conversation, StandIn, answers, descriptors, run

ANSWER = {"connection": CONNECTION, "fileDescriptor": 0, "epoch": 3, "isOver": False}


@pytest.fixture
def pair() -> typing.Iterator[typing.Tuple[socket.socket, socket.socket]]:
    """The server's end of a socket, and the one that is handed over."""
    server, taken = socket.socketpair()
    with server, taken:
        server.settimeout(60)
        yield server, taken


@pytest.fixture(autouse=True)
def nothing_leaks() -> typing.Iterator[None]:
    """Holds that a test leaves no descriptor behind."""
    gc.collect()
    before = descriptors()
    yield
    gc.collect()
    assert {n: to for n, to in descriptors().items() if n not in before} == {}


Pair = typing.Tuple[socket.socket, socket.socket]


def test_the_descriptor_is_taken_and_no_program_inherits_it(tmp_path: pathlib.Path, pair: Pair) -> None:
    server, passed = pair
    with StandIn(tmp_path, answers(passed=[passed], parameters=ANSWER)) as agent:
        async def body() -> None:
            taken = await Client(agent.path).take("van")
            assert (taken.epoch, taken.is_over, taken.connection.name) == (3, False, "van")
            assert not os.get_inheritable(taken.socket.fileno())
            server.sendall(b"hello")
            assert await taken.reader.read(5) == b"hello"
            taken.abandon()
            assert not taken.is_held

        run(body())


@pytest.mark.parametrize("place", [1, 2, -1, 2**40])
def test_a_descriptor_that_did_not_come_is_a_violation(place: int, tmp_path: pathlib.Path, pair: Pair) -> None:
    answer = {**ANSWER, "fileDescriptor": place}
    with StandIn(tmp_path, answers(passed=[pair[1]], parameters=answer)) as agent:
        with pytest.raises(ProtocolViolation, match=f"descriptor {place}"):
            run(_take(agent.path))


def test_surplus_descriptors_are_closed(tmp_path: pathlib.Path, pair: Pair) -> None:
    passed = [pair[0], pair[1]] * 20
    with StandIn(tmp_path, answers(passed=passed, parameters={**ANSWER, "fileDescriptor": 39})) as agent:
        run(_take(agent.path))


def test_more_descriptors_than_one_message_may_have_are_a_violation(tmp_path: pathlib.Path, pair: Pair) -> None:
    def handle(conversation: Conversation) -> None:
        conversation.call()
        conversation.send(b"{", [pair[1]] * 253)
        conversation.send(b'"parameters"', [pair[1]])
        conversation.wait_for_end()

    with StandIn(tmp_path, handle) as agent:
        with pytest.raises(ProtocolViolation, match="room"):
            run(_take(agent.path))


def test_what_the_kernel_had_no_room_for_is_a_violation(
    tmp_path: pathlib.Path, pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dialtone_client._wire.DESCRIPTOR_LIMIT", 2)
    with StandIn(tmp_path, answers(passed=[pair[1]] * 5, parameters=ANSWER)) as agent:
        with pytest.raises(ProtocolViolation, match="room"):
            run(_take(agent.path))


def test_an_answer_that_nobody_looks_into_leaves_nothing(tmp_path: pathlib.Path, pair: Pair) -> None:
    with StandIn(tmp_path, answers(passed=[pair[1]], parameters=ANSWER)) as agent:
        assert run(Client(agent.path).call(Take("van"))).epoch == 3


@pytest.mark.parametrize("reply", [
    {"error": "org.dialtone.Connections.NotReady", "parameters": {"name": "van", "state": "waiting"}},
    {"parameters": {**ANSWER, "epoch": "three"}}, {"parameters": {}}])
def test_a_descriptor_with_an_error_or_with_nonsense_is_closed(
    reply: typing.Dict[str, object], tmp_path: pathlib.Path, pair: Pair
) -> None:
    with StandIn(tmp_path, answers(passed=[pair[1]], **reply)) as agent:
        with pytest.raises(DialtoneError):
            run(_take(agent.path))


def test_what_comes_and_is_no_socket_is_closed(tmp_path: pathlib.Path) -> None:
    with open("/dev/null", "rb") as file, socket.socket() as carrier:
        number = carrier.detach()
        os.dup2(file.fileno(), number)
        passed = _File(number)
        with StandIn(tmp_path, answers(passed=[typing.cast(socket.socket, passed)], parameters=ANSWER)) as agent:
            with pytest.raises(ProtocolViolation, match="no socket"):
                run(_take(agent.path))
        os.close(number)


def test_a_descriptor_with_a_stream_is_a_violation(tmp_path: pathlib.Path, pair: Pair) -> None:
    reply = {"sequence": 1, "kind": "snapshot", "connections": []}
    with StandIn(tmp_path, answers(passed=[pair[1]], parameters=reply, continues=True)) as agent:
        with pytest.raises(ProtocolViolation, match="stream"):
            run(Client(agent.path).monitor().__anext__())


def test_a_stream_that_is_closed_after_its_loop_leaves_nothing(tmp_path: pathlib.Path) -> None:
    reply = {"sequence": 1, "kind": "snapshot", "connections": []}
    with StandIn(tmp_path, answers(parameters=reply, continues=True)) as agent:
        loop = asyncio.new_event_loop()
        events = Client(agent.path).monitor()
        assert loop.run_until_complete(events.__anext__()).connections == ()
        waiting = loop.create_task(events.__anext__())
        # It waits for the socket when it was given a turn.
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()
        events.close()
        # What asyncio says of a task that its loop left behind is not of the library.
        typing.cast(typing.Any, waiting)._log_destroy_pending = False


def test_a_call_that_is_cancelled_between_its_descriptor_and_its_end_closes_it(
    tmp_path: pathlib.Path, pair: Pair
) -> None:
    half = threading.Event()

    def handle(conversation: Conversation) -> None:
        conversation.call()
        conversation.send(b'{"parameters":', [pair[1]])
        half.set()
        conversation.wait_for_end()

    async def body(path: str) -> None:
        before = len(descriptors())
        call = asyncio.ensure_future(_take(path))
        await asyncio.sleep(0)
        assert await asyncio.get_running_loop().run_in_executor(None, half.wait, 60)
        # It has arrived when there is one more than the connection.
        while len(descriptors()) < before + 3:
            await asyncio.sleep(0.01)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

    with StandIn(tmp_path, handle) as agent:
        run(body(agent.path))


def test_a_call_that_is_cancelled_when_its_answer_is_there_closes_the_descriptor(
    tmp_path: pathlib.Path, pair: Pair
) -> None:
    replied = threading.Event()

    def handle(conversation: Conversation) -> None:
        conversation.call()
        conversation.reply([pair[1]], parameters=ANSWER)
        replied.set()
        conversation.wait_for_end()

    async def body(path: str) -> None:
        call = asyncio.ensure_future(Client(path, timeout=None).call(Take("van")))
        while not replied.is_set():
            await asyncio.sleep(0)
        call.cancel()
        # Whichever of the two came first.
        await asyncio.wait([call])

    with StandIn(tmp_path, handle) as agent:
        run(body(agent.path))


def test_a_socket_that_the_program_hands_in_stays_its_own(tmp_path: pathlib.Path, pair: Pair) -> None:
    handed: typing.List[int] = []

    def handle(conversation: Conversation) -> None:
        call = conversation.call()
        handed.extend(conversation.descriptors)
        assert call["parameters"] == {"name": "own", "fileDescriptor": 0, "remote": "tcp://192.0.2.7:7000"}
        conversation.reply(parameters={"name": "own"})
        conversation.wait_for_end()

    server, own = pair
    with StandIn(tmp_path, handle) as agent:
        assert run(Client(agent.path).adopt(own, "own", "tcp://192.0.2.7:7000")) == "own"
    with socket.socket(fileno=handed[0]) as theirs:
        theirs.sendall(b"theirs")
    own.sendall(b"ours")
    assert server.recv(100) == b"theirsours"


class _File:
    def __init__(self, number: int) -> None:
        self._number = number

    def fileno(self) -> int:
        return self._number


async def _take(path: str) -> None:
    (await Client(path).take("van")).abandon()
