# SPDX-License-Identifier: Apache-2.0
"""A socket that was taken from the agent, with its reader and its writer.

The reader reads no byte that the program did not ask for, so the next owner of the socket finds it in the kernel.
asyncio's own streams read ahead, and what they hold is lost when the socket is parked.
"""

import asyncio
import os
import typing
from socket import MSG_DONTWAIT, MSG_NOSIGNAL, MSG_PEEK
from socket import socket as Socket

from . import interface as _api
from ._wire import Readiness
from .errors import PartialMessage

if typing.TYPE_CHECKING:
    from .client import Client

#: The longest message that ``readuntil`` and ``readline`` return, in bytes; asyncio's streams have the same.
LIMIT = 64 * 1024


class SocketReader:
    """Reads a taken socket. Its methods do what those of ``asyncio.StreamReader`` do; one task reads at a time."""

    def __init__(self, ready: Readiness) -> None:
        """Used by the library."""
        self._ready = ready
        self._socket = ready.socket
        # The beginning of a message that is not complete.
        self._begun = bytearray()
        self._ended = False

    @property
    def pending(self) -> int:
        """How many bytes of an incomplete message were read. The next read returns them first."""
        return len(self._begun)

    def at_eof(self) -> bool:
        """Whether the end was reached, and all before it was read."""
        return self._ended and not self._begun

    def is_readable(self) -> bool:
        """Whether a read returns something at once: bytes wait, or the end."""
        if self._begun or self._ended:
            return True
        try:
            self._peek(1)
        except BlockingIOError:
            return False
        return True

    async def read(self, n: int = -1) -> bytes:
        """Up to ``n`` bytes, as soon as there are some, and none at the end; with a negative ``n`` all up to the end.

        :raises OSError: if the socket has failed."""
        if n < 0:
            while await self._more(LIMIT):
                pass
            return self._take(len(self._begun))
        if n and not self._begun:
            await self._more(n)
        return self._take(n)

    async def readexactly(self, n: int) -> bytes:
        """Exactly ``n`` bytes.

        :raises asyncio.IncompleteReadError: if the socket ends before.
        :raises OSError: if the socket has failed."""
        while len(self._begun) < n:
            if not await self._more(n - len(self._begun)):
                raise asyncio.IncompleteReadError(self._take(n), n)
        return self._take(n)

    async def readuntil(self, separator: bytes = b"\n") -> bytes:
        """The bytes up to a separator, with the separator.

        :raises asyncio.IncompleteReadError: if the socket ends before.
        :raises asyncio.LimitOverrunError: if there is none within ``LIMIT`` bytes.
        :raises OSError: if the socket has failed."""
        if not separator:
            raise ValueError("a separator has one byte at least")
        searched = 0
        while True:
            end = self._begun.find(separator, max(0, searched - len(separator) + 1))
            if end >= 0:
                return self._take(end + len(separator))
            searched = len(self._begun)
            if searched >= LIMIT:
                raise asyncio.LimitOverrunError(f"no separator within {LIMIT} bytes", searched)
            if not await self._more(LIMIT - searched, separator):
                raise asyncio.IncompleteReadError(self._take(searched), None)

    async def readline(self) -> bytes:
        """A line with its newline; at the end of the socket, the rest.

        :raises ValueError: if it is longer than ``LIMIT``.
        :raises OSError: if the socket has failed."""
        try:
            return await self.readuntil(b"\n")
        except asyncio.IncompleteReadError as error:
            return error.partial
        except asyncio.LimitOverrunError as error:
            raise ValueError(str(error)) from None

    def __aiter__(self) -> "SocketReader":
        return self

    async def __anext__(self) -> bytes:
        line = await self.readline()
        if not line:
            raise StopAsyncIteration
        return line

    def _take(self, count: int) -> bytes:
        taken = bytes(self._begun[:count])
        del self._begun[:count]
        return taken

    def _peek(self, count: int) -> bytes:
        return self._socket.recv(count, MSG_PEEK | MSG_DONTWAIT)

    async def _more(self, most: int, separator: bytes = b"") -> bool:
        """Reads up to ``most`` bytes, and none after a separator; false at the end."""
        while not self._ended:
            try:
                count = most
                if separator:
                    tail = bytes(self._begun[len(self._begun) - len(separator) + 1:]) if len(separator) > 1 else b""
                    seen = tail + self._peek(most)
                    found = seen.find(separator)
                    count = (found + len(separator) if found >= 0 else len(seen)) - len(tail) or 1
                data = self._socket.recv(count, MSG_DONTWAIT)
            except BlockingIOError:
                await self._ready.readable()
                continue
            except InterruptedError:
                continue
            if data:
                self._begun += data
                return True
            self._ended = True
        return False


class SocketWriter:
    """Writes a taken socket. Its methods do what those of ``asyncio.StreamWriter`` do. It has no ``close``: the socket is
    parked or abandoned."""

    def __init__(self, ready: Readiness) -> None:
        """Used by the library."""
        self._ready = ready
        self._socket = ready.socket
        self._rest = bytearray()
        self._failure: typing.Optional[OSError] = None

    def write(self, data: typing.Union[bytes, bytearray, memoryview]) -> None:
        """Sends what the kernel has room for, and keeps the rest for ``drain``, which also tells of a failure."""
        self._rest += data
        self._send()

    def writelines(self, lines: typing.Iterable[bytes]) -> None:
        """Writes one after the other."""
        self.write(b"".join(lines))

    async def drain(self) -> None:
        """Returns when the kernel has everything that was written.

        :raises OSError: if the socket has failed."""
        while self._rest and self._failure is None:
            await self._ready.writable()
            self._send()
        if self._failure is not None:
            raise self._failure

    def _send(self) -> None:
        while self._rest and self._failure is None:
            try:
                del self._rest[:self._socket.send(self._rest, MSG_DONTWAIT | MSG_NOSIGNAL)]
            except BlockingIOError:
                return
            except OSError as error:
                self._failure = error


class TakenSocket(typing.Tuple[SocketReader, SocketWriter]):
    """A socket that this process owns until it parks it; also the pair of its reader and its writer.

    ``Client.take`` makes it. The ownership ends with the process. Dropping this object closes the descriptor, and does
    not park the socket.
    """

    #: The connection, as it was right after this socket was taken. It tells about the newest socket: this one, unless
    #: ``is_over``.
    connection: _api.Connection
    #: The number of this socket, to park it with.
    epoch: int
    #: Whether this socket had ended when it was taken: the bytes that it received before can be read. It cannot be
    #: parked.
    is_over: bool
    #: The socket itself, for code that reads and writes on its own: a stream socket, blocking. With TLS it is one end
    #: of a pair of Unix sockets that carries the plaintext. ``O_NONBLOCK`` is shared with the agent's copy; ``park``
    #: clears it. Bytes that such code has read ahead are lost when the socket is parked.
    socket: Socket
    #: The number of the connection's newest socket, if this one was over before ``async with`` could park it; else
    #: ``None``. It is this one's own number while there is no other one. The agent wakes the client for that one, or
    #: plays its opening on it.
    replaced_by: typing.Optional[int]

    def __new__(
        cls, client: "Client", owner: typing.Optional[int], reply: _api.TakeReply, taken: Socket
    ) -> "TakenSocket":
        """Used by the library."""
        ready = Readiness(taken)
        self = super().__new__(cls, (SocketReader(ready), SocketWriter(ready)))
        self._client, self._owner, self._ready = client, owner, ready
        self.connection, self.epoch, self.is_over = reply.connection, reply.epoch, reply.is_over
        self.socket, self.replaced_by = taken, None
        return self

    _client: "Client"
    _owner: typing.Optional[int]
    _ready: Readiness

    @property
    def reader(self) -> SocketReader:
        """Its reader."""
        return self[0]

    @property
    def writer(self) -> SocketWriter:
        """Its writer."""
        return self[1]

    async def park(self, opening: typing.Optional[typing.Sequence[_api.OpeningStep]] = None) -> None:
        """Sends what was written, closes this descriptor and gives the socket back. The program is logged in on it, and
        between two messages.

        :param opening: what the agent says on each new socket from now on to log in for the client; empty for nothing,
            ``None`` for what it did before.
        :raises StaleEpoch: if another socket has replaced this one, which is closed. Take that one.
        :raises PartialMessage: if the reader holds the beginning of a message.
        :raises OSError: if what was written could not be sent."""
        try:
            await self.writer.drain()
            if self.reader.pending:
                raise PartialMessage(self.connection.name, self.reader.pending)
            os.set_blocking(self.socket.fileno(), True)
            await self._client.park(self.connection.name, self.epoch, owner=self._owner, opening=opening)
        finally:
            self.abandon()

    def abandon(self) -> None:
        """Closes this descriptor without parking. The connection stays taken by this process, which can take the same
        socket again; ``Client.redial`` has the agent make a new one. Bytes that were written and not sent are lost. A
        task that reads or writes gets ``ConnectionAbortedError``."""
        self._ready.close()

    @property
    def is_held(self) -> bool:
        """Whether it was neither parked nor abandoned yet."""
        return self.socket.fileno() >= 0


class Taking(typing.Awaitable[TakenSocket], typing.AsyncContextManager[TakenSocket]):
    """A call of ``Client.take``, for ``await`` or ``async with``."""

    def __init__(self, take: typing.Callable[[], typing.Awaitable[TakenSocket]]) -> None:
        self._take = take
        self._taken: typing.Optional[TakenSocket] = None

    def __await__(self) -> typing.Generator[typing.Any, None, TakenSocket]:
        return self._take().__await__()

    async def __aenter__(self) -> TakenSocket:
        self._taken = await self._take()
        return self._taken

    async def __aexit__(self, kind: typing.Optional[typing.Type[BaseException]], *_: object) -> None:
        taken, self._taken = self._taken, None
        if taken is None or not taken.is_held:
            return
        if kind is not None or taken.is_over:
            taken.abandon()
            return
        try:
            await taken.park()
        except _api.StaleEpoch as error:
            taken.replaced_by = error.epoch
