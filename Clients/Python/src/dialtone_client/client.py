# SPDX-License-Identifier: Apache-2.0
"""The calls of the agent."""

import asyncio
import datetime
import os
import socket
import typing

from . import _values as _v
from . import interface as _api
from ._wire import Exchange, socket_paths
from .errors import DialtoneError, ProtocolViolation, TimedOut
from .events import ConnectionEvents, PathUpdates, RetryPause
from .taken import TakenSocket, Taking

R = typing.TypeVar("R")

#: Where a path leads: a host's name or address, or more about it.
AnyTarget = typing.Union[str, _api.Target]
Settings = typing.Optional[_api.Settings]


class Stream(typing.AsyncIterator[R]):
    """The replies of a stream: ``Client.stream`` makes it. Each is read from the socket when it is asked for."""

    def __init__(self, paths: typing.Sequence[str], method: _v.Method[R]) -> None:
        self._paths = paths
        self._method = method
        self._exchange: typing.Optional[Exchange[R]] = None
        self._is_over = False

    async def __anext__(self) -> R:
        """The next reply. The first one connects.

        :raises DialtoneError: if the agent refuses, or the connection to it breaks."""
        if self._is_over:
            raise StopAsyncIteration
        try:
            if self._exchange is None:
                self._exchange = await Exchange.begin(self._paths, self._method)
                if self._is_over:
                    self.close()
                    raise StopAsyncIteration
            reply, continues = await self._exchange.reply()
        except DialtoneError:
            if self._is_over:
                raise StopAsyncIteration from None
            self.close()
            raise
        if not continues:
            self.close()
        return reply

    async def __aenter__(self) -> "Stream[R]":
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Hangs up, and ends the iteration. Leaving ``async with`` and dropping the iterator do the same."""
        self._is_over = True
        if self._exchange is not None:
            self._exchange.close()


class Client:
    """The agent.

    A client names the place where the agent listens, and holds nothing: each call and each stream has a connection of
    its own. So nothing has to be repaired when the agent restarts or the process forks, and any event loop and any
    thread may use it. A stream or a taken socket belongs to the loop and to the process that made it; a child of
    ``fork`` leaves it alone.
    """

    def __init__(
        self, path: typing.Optional[typing.Union[str, "os.PathLike[str]"]] = None, *,
        timeout: typing.Optional[float] = 30
    ) -> None:
        """The agent that listens on ``path``; without one, where ``DIALTONE_SOCKET`` says, else the user's own agent,
        else the machine's.

        :param timeout: how many seconds a call waits for its answer; ``None`` for as long as it takes. Looking up a
            name may take several seconds."""
        self.paths: typing.Sequence[str] = socket_paths() if path is None else (os.fspath(path),)
        self.timeout = timeout

    # Any method of the interfaces.

    async def call(self, method: _v.Method[R]) -> R:
        """Calls a method of the interfaces. Cancelling the task hangs up; whether the agent has carried out the call is
        not known then.

        :raises DialtoneError: if the agent refuses, or cannot be asked."""
        return await self._within(self.timeout, method, self._call(method))

    def stream(self, method: _v.StreamMethod[R]) -> Stream[R]:
        """Calls a method of the interfaces that answers with a stream."""
        return Stream(self.paths, method)

    # The network.

    async def path(
        self, target: typing.Optional[AnyTarget] = None, *, without: typing.Optional[str] = None
    ) -> _api.Path:
        """The path to a target; without one, to the network as such.

        :param without: the name of an interface to ignore.
        :raises InvalidTarget: if the target makes no sense."""
        return (await self.call(_api.GetPath(_target(target), without))).path

    def monitor_path(self, target: typing.Optional[AnyTarget] = None) -> PathUpdates:
        """The path to a target, or to the network as such: the present one, then each change, also after restarts of
        the agent."""
        return PathUpdates(self, _api.MonitorPath(_target(target)))

    async def interfaces(self) -> typing.Sequence[_api.Interface]:
        """The interfaces of this machine."""
        return (await self.call(_api.ListInterfaces())).interfaces

    # Connections.

    async def list(self) -> typing.Sequence[_api.Connection]:
        """The connections that this user may see."""
        return (await self.call(_api.List())).connections

    def monitor(
        self, names: typing.Optional[typing.Sequence[str]] = None, *, owner: typing.Optional[int] = None,
        after: typing.Optional[int] = None
    ) -> ConnectionEvents:
        """What happens to the connections, or to those named: first a snapshot, then each change, also after restarts
        of the agent.

        :param owner: only connections of this user.
        :param after: begin after the event of this number, without a snapshot."""
        return ConnectionEvents(self, _api.Monitor(names, owner, after))

    async def open(self, remote: str, name: typing.Optional[str] = None, settings: Settings = None) -> str:
        """Has the agent supervise a connection, and returns its name.

        :param remote: where it leads, such as ``tcp://192.0.2.7:7000``.
        :raises NameTaken: if this user has one of this name.
        :raises InvalidRemote: if the remote cannot be dialled."""
        return (await self.call(_api.Open(remote, name, settings))).name

    async def close(self, name: str, *, owner: typing.Optional[int] = None) -> None:
        """Closes a connection, which ends its supervision.

        :param owner: for root: whose connection of that name is meant.
        :raises NoSuchConnection: if there is none."""
        await self.call(_api.Close(name, owner))

    async def redial(
        self, name: str, *, owner: typing.Optional[int] = None, after: typing.Optional[datetime.timedelta] = None
    ) -> None:
        """Drops a connection's socket if there is one, and dials: at once, or after a pause that the server asked for.

        :raises NoSuchConnection: if there is none."""
        await self.call(_api.Redial(name, owner, after))

    async def adopt(
        self, taken: typing.Union[socket.socket, int], name: str, remote: typing.Optional[str] = None,
        settings: Settings = None
    ) -> str:
        """Has the agent supervise a TCP socket that the program connected and logged in on, and returns the
        connection's name. The program closes its own descriptor afterwards.

        :param taken: the socket, or its number.
        :param remote: where to dial when the socket is lost; ``None`` for nowhere: the connection ends with it.
        :raises InvalidDescriptor: if it is no connected TCP socket."""
        number = taken if isinstance(taken, int) else taken.fileno()
        method = _api.Adopt(name, 0, remote, settings)
        return (await self._within(self.timeout, method, self._call(method, [number]))).name

    def take(
        self, name: str, *, owner: typing.Optional[int] = None, until: typing.Optional[_api.TakeUntil] = None,
        timeout: typing.Optional[float] = None
    ) -> Taking:
        """Takes a connection's socket, to read and write it.

        ``async with client.take("van") as (reader, writer):`` parks the socket at the end of the block. An exception or
        a cancellation abandons it, since the next owner could not tell where in a message it is. A socket that had
        ended (``TakenSocket.is_over``) is closed, and so is one that another has replaced
        (``TakenSocket.replaced_by``).

        ``await client.take("van")`` returns the socket, which the program parks with ``TakenSocket.park``.

        A call that is cancelled after the agent has answered leaves the socket taken; this process can take it again.

        :param owner: for root: whose connection of that name is meant.
        :param until: what to wait for: a socket that can be taken, or bytes that can be read. ``None``: do not wait.
        :param timeout: how many seconds to wait. ``None``: with ``until`` without end, else as long as for other calls.
        :raises NotReady: if there is no socket.
        :raises HeldByClient: if another process owns it."""
        method = _api.Take(name, owner, until)
        limit = self.timeout if timeout is None and until is None else timeout
        return Taking(lambda: self._within(limit, method, self._take(method)))

    async def park(
        self, name: str, epoch: int, *, owner: typing.Optional[int] = None,
        opening: typing.Optional[typing.Sequence[_api.OpeningStep]] = None
    ) -> None:
        """Gives a taken socket back. ``TakenSocket.park`` calls this, and closes the descriptor.

        :param epoch: the socket's number.
        :param opening: what the agent says on each new socket from now on to log in for the client; empty for nothing,
            ``None`` for what it did before.
        :raises StaleEpoch: if another socket has taken its place.
        :raises NotTaken: if no client has taken it."""
        await self.call(_api.Park(name, epoch, owner, opening))

    async def acknowledge(self, name: str, wake: int, *, owner: typing.Optional[int] = None) -> None:
        """Says that the program takes care of this wake, so the agent does not repeat it."""
        await self.call(_api.Acknowledge(name, wake, owner))

    async def keep_alive(
        self, name: str, timeout: datetime.timedelta, handler: typing.Callable[[], typing.Awaitable[object]], *,
        owner: typing.Optional[int] = None, wake_machine: typing.Optional[bool] = None
    ) -> None:
        """Calls ``handler`` at least once in each ``timeout`` while the socket is parked, to keep a connection alive
        whose protocol the agent does not know. The handler takes the socket, sends its keepalive and parks the socket,
        within ten seconds.

        It goes on, also after restarts of the agent, until the task is cancelled, the handler raises or the agent
        refuses. An error of the handler that waiting cures (``DialtoneError.is_passing``) does not end it. It returns when another call of ``keep_alive`` replaces it.

        :raises InvalidTimeout: if the timeout makes no sense for the connection."""
        method = _api.KeepAlive(name, timeout, owner, wake_machine)
        pause = RetryPause()
        while True:
            try:
                async with self.stream(method) as calls:
                    async for call in calls:
                        pause = RetryPause()
                        if call.wake is not None:
                            await self.acknowledge(name, call.wake, owner=owner)
                            await handler()
                return
            except DialtoneError as error:
                if not error.is_passing:
                    raise
            await pause.wait()

    async def _call(self, method: _v.Method[R], descriptors: typing.Sequence[int] = ()) -> R:
        exchange = await Exchange.begin(self.paths, method, descriptors)
        try:
            return (await exchange.reply())[0]
        finally:
            exchange.close()

    async def _take(self, method: _api.Take) -> TakenSocket:
        exchange = await Exchange.begin(self.paths, method)
        try:
            reply, _ = await exchange.reply()
            # There is no await from here on: either the socket or the exchange closes the descriptor.
            number = exchange.take_descriptor(reply.file_descriptor)
            try:
                taken = socket.socket(fileno=number)
            except OSError as error:
                os.close(number)
                raise ProtocolViolation(method._method, f"what came is no socket: {error}") from None
            # Blocking, whatever socket.setdefaulttimeout says: O_NONBLOCK is shared with the agent's copy.
            taken.settimeout(None)
            return TakenSocket(self, method.owner, reply, taken)
        finally:
            exchange.close()

    @staticmethod
    async def _within(
        seconds: typing.Optional[float], method: _v.Method[typing.Any], call: typing.Coroutine[object, object, R]
    ) -> R:
        try:
            return await asyncio.wait_for(call, seconds)
        except asyncio.TimeoutError:
            raise TimedOut(method._method, seconds or 0) from None


def _target(target: typing.Optional[AnyTarget]) -> typing.Optional[_api.Target]:
    return _api.Target(target) if isinstance(target, str) else target
