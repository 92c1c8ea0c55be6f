# SPDX-License-Identifier: Apache-2.0
"""What happens to the connections, and to a path, across restarts of the agent."""

import asyncio
import dataclasses
import typing

from . import _values as _v
from . import interface as _api
from .errors import DialtoneError, Interrupted

if typing.TYPE_CHECKING:
    from .client import Client, Stream

S = typing.TypeVar("S", bound="_Following")


class RetryPause:
    """The pauses between attempts to reach an agent that is gone, in seconds: each is twice as long as the one before.
    An agent takes about a second to restart; a person tolerates five seconds more."""

    SHORTEST = 0.1
    LONGEST = 5.0

    def __init__(self) -> None:
        self._length = self.SHORTEST

    async def wait(self) -> None:
        """Waits, and longer the next time."""
        await asyncio.sleep(self._length)
        self._length = min(self._length * 2, self.LONGEST)


class MonitorEvent:
    """What ``Client.monitor`` yields: a ``Snapshot``, ``Change``, ``Gap``, ``AgentLost`` or ``AgentBack``."""

    #: The connections that it is about, as they are after it.
    connections: typing.Sequence[_api.Connection]


@dataclasses.dataclass(frozen=True)
class Snapshot(MonitorEvent):
    """All connections, at the beginning."""

    #: The number of the last event before.
    sequence: int
    connections: typing.Sequence[_api.Connection]


@dataclasses.dataclass(frozen=True)
class Change(MonitorEvent):
    """Something happened to a connection."""

    #: Its number.
    sequence: int
    connections: typing.Sequence[_api.Connection]
    #: What happened.
    event: _api.Event


@dataclasses.dataclass(frozen=True)
class Gap(MonitorEvent):
    """Events were dropped, because the program read too slowly or the agent does not have them any more. All
    connections, as in a snapshot."""

    #: The number of the last event before.
    sequence: int
    connections: typing.Sequence[_api.Connection]


@dataclasses.dataclass(frozen=True)
class AgentLost(MonitorEvent):
    """The agent is gone, or is not there at the beginning, or refuses for a while (``OutOfResources``, ``Suspended``).
    The next one is ``AgentBack``."""

    #: How the connection to it ended.
    error: DialtoneError
    connections = ()


@dataclasses.dataclass(frozen=True)
class AgentBack(MonitorEvent):
    """The agent is there again. The missed changes follow; if it does not have them any more, a snapshot or a gap. An
    agent that was killed without a service manager has none of the connections that programs opened: a program opens
    its own again."""

    connections = ()


class _Following:
    """A stream that goes on when the agent is back."""

    def __init__(self, client: "Client") -> None:
        self._client = client
        self._stream: typing.Optional["Stream[typing.Any]"] = None
        self._pause = RetryPause()
        self._is_lost = False
        self._is_over = False

    def __aiter__(self: S) -> S:
        return self

    async def __aenter__(self: S) -> S:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Hangs up, and ends the iteration. Leaving ``async with`` and dropping the iterator do the same."""
        self._is_over = True
        self._hang_up()

    def _hang_up(self) -> None:
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    async def _next(self, method: _v.StreamMethod[typing.Any]) -> typing.Any:
        """The next reply; a passing error when the agent is lost, once."""
        while True:
            if self._is_lost:
                await self._pause.wait()
            if self._is_over:
                raise StopAsyncIteration
            try:
                if self._stream is None:
                    self._stream = self._client.stream(method)
                reply = await self._stream.__anext__()
            except (DialtoneError, StopAsyncIteration) as error:
                if self._is_over:
                    raise StopAsyncIteration from None
                self._hang_up()
                loss: DialtoneError = Interrupted(method._method, "the stream has ended")
                if isinstance(error, DialtoneError):
                    loss = error
                if not loss.is_passing:
                    raise loss from None
                if self._is_lost:
                    continue
                self._is_lost = True
                # Its frames hold this object, so dropping this object would not hang up.
                return loss.with_traceback(None)
            self._pause = RetryPause()
            return reply


class ConnectionEvents(_Following, typing.AsyncIterator[MonitorEvent]):
    """What happens to the connections, also after restarts of the agent: ``Client.monitor`` makes it.

    A reply is read from the socket when the program asks for the next event. A slow program gets a ``Gap``, and memory
    does not grow.
    """

    def __init__(self, client: "Client", parameters: _api.Monitor) -> None:
        super().__init__(client)
        self._parameters = parameters
        self._waiting: typing.Optional[MonitorEvent] = None

    async def __anext__(self) -> MonitorEvent:
        """The next event. The iteration ends with ``close`` alone.

        :raises DialtoneError: for an error that no waiting cures."""
        if self._waiting is not None:
            event, self._waiting = self._waiting, None
            return event
        reply = await self._next(self._parameters)
        if isinstance(reply, DialtoneError):
            return AgentLost(reply)
        self._parameters = dataclasses.replace(self._parameters, after=reply.sequence)
        event = _event(reply)
        if self._is_lost:
            self._is_lost, self._waiting = False, event
            return AgentBack()
        return event


def _event(reply: _api.MonitorReply) -> MonitorEvent:
    if reply.kind is _api.MonitorKind.SNAPSHOT:
        return Snapshot(reply.sequence, reply.connections)
    if reply.event is not None:
        return Change(reply.sequence, reply.connections, reply.event)
    return Gap(reply.sequence, reply.connections)


@dataclasses.dataclass(frozen=True, repr=False)
class MonitoredPath(_api.Path):
    """A path as ``Client.monitor_path`` yields it."""

    #: What differs from the path before: status, reason, coherent, interface, addresses, gateway, source, destination,
    #: direct, ipv4, ipv6, dns, expensive, constrained. Empty for the first one.
    changes: typing.Sequence[str] = ()


class PathUpdates(_Following, typing.AsyncIterator[MonitoredPath]):
    """The path to a target, now and after each change: ``Client.monitor_path`` makes it.

    When the agent is lost, the last path comes again with ``coherent`` false: it is the last known verdict. When the
    agent is back, the present path comes, with its changes since then.
    """

    def __init__(self, client: "Client", parameters: _api.MonitorPath) -> None:
        super().__init__(client)
        self._parameters = parameters
        self._last: typing.Optional[_api.Path] = None

    async def __anext__(self) -> MonitoredPath:
        """The next path. The iteration ends with ``close`` alone.

        :raises DialtoneError: if there is no agent at the beginning, or for an error that no waiting cures."""
        reply = await self._next(self._parameters)
        if isinstance(reply, DialtoneError):
            if self._last is None:
                self._is_lost = False
                raise reply
            self._last = dataclasses.replace(self._last, coherent=False)
            return _monitored(self._last, ("coherent",))
        changes = reply.changes
        if self._is_lost and self._last is not None:
            self._is_lost, changes = False, _differences(self._last, reply.path)
        self._last = reply.path
        return _monitored(reply.path, changes)


def _monitored(path: _api.Path, changes: typing.Sequence[str]) -> MonitoredPath:
    values = {field.name: getattr(path, field.name) for field in path._wire}
    return MonitoredPath(**values, changes=tuple(changes))


def _differences(old: _api.Path, new: _api.Path) -> typing.Sequence[str]:
    """The names of what differs, as the agent names it."""
    names = {
        "status": "status", "reason": "reason", "coherent": "coherent", "gateway": "gateway", "source": "source",
        "destination": "destination", "is_direct": "direct", "supports_ipv4": "ipv4", "supports_ipv6": "ipv6",
        "supports_dns": "dns", "expensive": "expensive", "constrained": "constrained",
    }
    found = [name for field, name in names.items() if getattr(old, field) != getattr(new, field)]
    before, after = old.interface, new.interface
    if (before and before.index) != (after and after.index):
        found.append("interface")
    if (before and before.addresses) != (after and after.addresses):
        found.append("addresses")
    return found
