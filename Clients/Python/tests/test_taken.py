# SPDX-License-Identifier: Apache-2.0
"""The reader and the writer of a taken socket, and how its ownership ends."""

import asyncio
import os
import pathlib
import socket
import typing

import pytest

from dialtone_client import (
    Client, HeldByClient, NotTaken, OpeningAnswer, OpeningStep, PartialMessage, SocketReader, SocketWriter, TakenSocket)
from dialtone_client import taken as module
from dialtone_client._wire import Readiness
from stand_in import CONNECTION, Conversation, StandIn, run

T = typing.TypeVar("T")


class Office:
    """An agent with one connection, whose server is here as well."""

    def __init__(self, folder: pathlib.Path, *, is_over: bool = False) -> None:
        self.server, self._kept = socket.socketpair()
        self.server.settimeout(60)
        self._is_over = is_over
        #: The calls, as method and parameters.
        self.calls: typing.List[typing.Tuple[str, typing.Dict[str, typing.Any]]] = []
        #: The answer to Park.
        self.parking: typing.Dict[str, typing.Any] = {"parameters": {}}
        self.agent = StandIn(folder, self._handle)
        self.client = Client(self.agent.path)

    def _handle(self, conversation: Conversation) -> None:
        while True:
            call = conversation.call()
            if not call:
                return
            method = call["method"].rpartition(".")[2]
            self.calls.append((method, call["parameters"]))
            if method == "Take":
                answer = {"connection": CONNECTION, "fileDescriptor": 0, "epoch": 3, "isOver": self._is_over}
                conversation.reply([self._kept], parameters=answer)
            else:
                conversation.reply(**self.parking)

    def run(self, body: typing.Coroutine[object, object, T]) -> T:
        """Runs a test to its end."""
        with self.agent, self.server, self._kept:
            return run(body)

    @property
    def methods(self) -> typing.List[str]:
        return [method for method, _ in self.calls]

    def unread(self) -> bytes:
        """The bytes that the next owner of the socket reads."""
        try:
            return self._kept.recv(65536, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return b""


# How the ownership ends.


def test_it_is_parked_when_the_block_ends(tmp_path: pathlib.Path) -> None:
    office = Office(tmp_path)

    async def body() -> None:
        async with office.client.take("van") as (reader, writer):
            office.server.sendall(b"hello\nand more\n")
            assert await reader.readline() == b"hello\n"
            writer.write(b"GOT hello\n")
        assert office.server.recv(100) == b"GOT hello\n"
        assert office.unread() == b"and more\n", "what the program has not asked for is the next owner's"

    office.run(body())
    assert office.calls == [("Take", {"name": "van"}), ("Park", {"name": "van", "epoch": 3})]


def test_it_is_abandoned_on_an_exception(tmp_path: pathlib.Path) -> None:
    office = Office(tmp_path)

    async def body() -> TakenSocket:
        with pytest.raises(KeyError):
            async with office.client.take("van") as taken:
                raise KeyError("nobody")
        return taken

    taken = office.run(body())
    assert office.methods == ["Take"] and not taken.is_held


def test_it_is_abandoned_when_the_task_is_cancelled(tmp_path: pathlib.Path) -> None:
    office = Office(tmp_path)

    async def hold(held: "asyncio.Future[TakenSocket]") -> None:
        async with office.client.take("van") as taken:
            held.set_result(taken)
            await taken.reader.readline()

    async def body() -> TakenSocket:
        held: "asyncio.Future[TakenSocket]" = asyncio.get_running_loop().create_future()
        task = asyncio.ensure_future(hold(held))
        taken = await held
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return taken

    taken = office.run(body())
    assert office.methods == ["Take"] and not taken.is_held


def test_one_that_is_over_is_read_and_closed(tmp_path: pathlib.Path) -> None:
    office = Office(tmp_path, is_over=True)

    async def body() -> None:
        office.server.sendall(b"last words")
        office.server.shutdown(socket.SHUT_WR)
        async with office.client.take("van") as (reader, _):
            assert await reader.read() == b"last words"
            assert reader.at_eof()

    office.run(body())
    assert office.methods == ["Take"]


def test_one_whose_place_another_took_is_closed_and_says_so(tmp_path: pathlib.Path) -> None:
    office = Office(tmp_path)
    office.parking = {"error": "org.dialtone.Connections.StaleEpoch", "parameters": {"name": "van", "epoch": 4}}

    async def body() -> TakenSocket:
        async with office.client.take("van") as taken:
            pass
        return taken

    taken = office.run(body())
    assert taken.replaced_by == 4 and not taken.is_held


def test_another_refusal_is_raised(tmp_path: pathlib.Path) -> None:
    office = Office(tmp_path)
    office.parking = {"error": "org.dialtone.Connections.NotTaken", "parameters": {"name": "van"}}

    async def body() -> None:
        with pytest.raises(NotTaken):
            async with office.client.take("van"):
                pass

    office.run(body())


def test_one_in_the_middle_of_a_message_is_not_parked(tmp_path: pathlib.Path) -> None:
    office = Office(tmp_path)

    async def body() -> None:
        with pytest.raises(PartialMessage) as caught:
            async with office.client.take("van") as (reader, _):
                office.server.sendall(b"half")
                with pytest.raises(asyncio.TimeoutError):
                    await asyncio.wait_for(reader.readline(), 0.05)
                assert reader.pending == 4
        assert caught.value.count == 4

    office.run(body())
    assert office.methods == ["Take"]


def test_it_is_parked_by_hand_with_an_opening_and_blocking(tmp_path: pathlib.Path) -> None:
    office = Office(tmp_path)

    async def body() -> None:
        async with office.client.take("van", owner=1000) as taken:
            os.set_blocking(taken.socket.fileno(), False)
            await taken.park([OpeningStep(send="HELLO\\n", expect=OpeningAnswer(until="\\n"))])
            assert not taken.is_held
        assert os.get_blocking(office._kept.fileno())

    office.run(body())
    opening = [{"send": "HELLO\\n", "expect": {"until": "\\n"}}]
    assert office.calls[1:] == [("Park", {"name": "van", "owner": 1000, "epoch": 3, "opening": opening})]


def test_what_cannot_be_sent_is_told_and_the_socket_is_not_parked(tmp_path: pathlib.Path) -> None:
    office = Office(tmp_path)

    async def body() -> None:
        with pytest.raises(ConnectionError):
            async with office.client.take("van") as (_, writer):
                office.server.close()
                writer.write(b"hello\n")

    office.run(body())
    assert office.methods == ["Take"]


def test_the_socket_is_blocking_whatever_the_programs_default_is(tmp_path: pathlib.Path) -> None:
    office = Office(tmp_path)

    async def body() -> None:
        async with office.client.take("van") as (reader, _):
            assert os.get_blocking(office._kept.fileno()), "O_NONBLOCK is shared with the agent's copy"
            office.server.sendall(b"hello\n")
            assert await reader.readline() == b"hello\n"

    earlier = socket.getdefaulttimeout()
    socket.setdefaulttimeout(30)
    try:
        office.run(body())
    finally:
        socket.setdefaulttimeout(earlier)


# The reader.


@pytest.fixture
def ends() -> typing.Iterator[typing.Tuple[socket.socket, socket.socket]]:
    server, taken = socket.socketpair()
    with server, taken:
        server.settimeout(60)
        yield server, taken


Ends = typing.Tuple[socket.socket, socket.socket]


def test_lines_that_come_in_pieces(ends: Ends) -> None:
    server, taken = ends

    async def body() -> None:
        reader = SocketReader(Readiness(taken))
        assert not reader.is_readable()
        line = asyncio.ensure_future(reader.readline())
        for piece in (b"o", b"n", b"e\ntw"):
            await asyncio.sleep(0)
            server.sendall(piece)
        assert await line == b"one\n"
        assert (reader.pending, taken.recv(10, socket.MSG_PEEK)) == (0, b"tw")
        server.sendall(b"o\nthree")
        server.shutdown(socket.SHUT_WR)
        assert [line async for line in reader] == [b"two\n", b"three"]
        assert reader.at_eof() and reader.is_readable() and await reader.readline() == b""

    run(body())


@pytest.mark.parametrize("pieces", [
    [b"one\r\ntwo"], [b"one\r", b"\ntwo"], [b"one", b"\r", b"\n", b"two"], [b"one\r\n", b"two"]])
def test_a_separator_of_two_bytes_is_found_across_pieces(pieces: typing.List[bytes], ends: Ends) -> None:
    server, taken = ends

    async def body() -> None:
        reader = SocketReader(Readiness(taken))
        found = asyncio.ensure_future(reader.readuntil(b"\r\n"))
        for piece in pieces:
            server.sendall(piece)
            # It has read the piece when it waits again, or is done.
            for _ in range(5):
                await asyncio.sleep(0)
        assert await found == b"one\r\n"
        assert await reader.readexactly(3) == b"two"

    run(body())


def test_a_read_that_is_cancelled_loses_nothing(ends: Ends) -> None:
    server, taken = ends

    async def body() -> None:
        reader = SocketReader(Readiness(taken))
        server.sendall(b"one")
        for read in (reader.readline, lambda: reader.readexactly(5)):
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(read(), 0.02)
        assert reader.is_readable() and not reader.at_eof()
        server.sendall(b"\ntwo")
        assert await reader.readline() == b"one\n"
        assert await reader.read(2) == b"tw"
        assert await reader.read(100) == b"o"

    run(body())


def test_what_is_incomplete_or_too_long_is_told_as_by_asyncio(ends: Ends) -> None:
    server, taken = ends

    async def body() -> None:
        reader = SocketReader(Readiness(taken))
        sending = asyncio.get_running_loop().run_in_executor(None, server.sendall, b"x" * module.LIMIT + b"\nend")
        with pytest.raises(asyncio.LimitOverrunError):
            await reader.readuntil()
        with pytest.raises(ValueError):
            await reader.readline()
        assert len(await reader.read(module.LIMIT)) == module.LIMIT
        assert await reader.readline() == b"\n"
        await sending
        server.shutdown(socket.SHUT_WR)
        with pytest.raises(asyncio.IncompleteReadError) as caught:
            await reader.readexactly(4)
        assert caught.value.partial == b"end"
        with pytest.raises(asyncio.IncompleteReadError):
            await reader.readuntil()

    run(body())


def test_two_tasks_do_not_read_at_a_time(ends: Ends) -> None:
    async def body() -> None:
        reader = SocketReader(Readiness(ends[1]))
        first = asyncio.ensure_future(reader.readline())
        await asyncio.sleep(0)
        with pytest.raises(RuntimeError):
            await reader.readline()
        ends[0].sendall(b"mine\n")
        assert await first == b"mine\n"

    run(body())


def test_a_task_that_reads_is_told_when_another_abandons_the_socket(tmp_path: pathlib.Path) -> None:
    office = Office(tmp_path)

    async def body() -> None:
        taken = await office.client.take("van")
        reading = asyncio.ensure_future(taken.reader.readline())
        await asyncio.sleep(0)
        taken.abandon()
        with pytest.raises(ConnectionAbortedError):
            await reading

    office.run(body())


def test_a_task_that_has_something_to_read_is_told_as_well(tmp_path: pathlib.Path) -> None:
    office = Office(tmp_path)

    async def body() -> None:
        taken = await office.client.take("van")
        reading = asyncio.ensure_future(taken.reader.readline())
        await asyncio.sleep(0)
        office.server.sendall(b"hello\n")
        # The loop sees the bytes in its next turn, and resumes the task in the one after, behind this.
        loop = asyncio.get_running_loop()
        loop.call_soon(lambda: loop.call_soon(taken.abandon))
        with pytest.raises(ConnectionAbortedError):
            await reading

    office.run(body())


def test_the_next_socket_of_the_same_number_is_not_taken_for_the_closed_one() -> None:
    async def body() -> None:
        kept, ended = socket.socketpair()
        closed = Readiness(ended)
        waiting = asyncio.ensure_future(closed.readable())
        await asyncio.sleep(0)
        number = ended.fileno()
        closed.close()
        ends = socket.socketpair()
        with kept, ends[0], ends[1]:
            # The kernel gives the lowest number that is free.
            again, other = ends if ends[0].fileno() == number else (ends[1], ends[0])
            assert again.fileno() == number
            reading = asyncio.ensure_future(SocketReader(Readiness(again)).readline())
            await asyncio.sleep(0)
            other.sendall(b"hello\n")
            assert await reading == b"hello\n"
        with pytest.raises(ConnectionAbortedError):
            await waiting

    run(body())


def test_more_is_written_than_the_kernel_has_room_for(ends: Ends) -> None:
    server, taken = ends
    data = bytes(range(256)) * 20_000

    def receive() -> bytes:
        received = b""
        while len(received) < len(data):
            received += server.recv(1 << 20)
        return received

    async def body() -> None:
        writer = SocketWriter(Readiness(taken))
        writer.writelines([data[:1000], data[1000:]])
        receiving = asyncio.get_running_loop().run_in_executor(None, receive)
        await writer.drain()
        assert await receiving == data
        # Nobody sets O_NONBLOCK, which the agent's copy shares.
        assert os.get_blocking(taken.fileno())

    run(body())


def test_a_held_connection_names_who_holds_it(tmp_path: pathlib.Path) -> None:
    def handle(conversation: Conversation) -> None:
        conversation.call()
        conversation.reply(error="org.dialtone.Connections.HeldByClient", parameters={"name": "van", "process": 7})

    with StandIn(tmp_path, handle) as agent:
        with pytest.raises(HeldByClient) as caught:
            run(_enter(Client(agent.path)))
    assert caught.value.process == 7


async def _enter(client: Client) -> None:
    async with client.take("van"):
        raise AssertionError("it was not to be had")
