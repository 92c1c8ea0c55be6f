# SPDX-License-Identifier: Apache-2.0
"""Varlink over a Unix socket: each call has a connection of its own, and descriptors ride along."""

import array
import asyncio
import errno
import json
import os
import socket
import typing

from . import _values as _v
from .errors import AccessDenied, Busy, Interrupted, NotRunning, ProtocolViolation, Unreachable, refusal
from .interface import ERRORS

R = typing.TypeVar("R")

#: The most bytes of a reply without its NUL, as in systemd (VARLINK_BUFFER_MAX of sd-varlink.c).
MESSAGE_LIMIT = 16 * 1024 * 1024
#: The most descriptors that the kernel passes with one message (SCM_MAX_FD of include/net/scm.h). There is room for
#: all of them, so the kernel drops none.
DESCRIPTOR_LIMIT = 253
_CHUNK = 64 * 1024
# The kernel refuses a Unix connection at once when too many clients wait, and does not tell when there is room again.
# A busy agent accepts within milliseconds; a stuck one is given up after five seconds.
_RETRY_SECONDS = 0.02
_RETRIES = 250


def socket_paths() -> typing.Tuple[str, ...]:
    """The paths of the agent's socket, in the order in which they are tried: the one that ``DIALTONE_SOCKET`` names;
    without it, for root, the machine's; for other users their own, then the machine's."""
    system = "/run/dialtone/dialtone.sock"
    named = os.environ.get("DIALTONE_SOCKET")
    if named:
        return (named,)
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if os.geteuid() == 0 or not runtime:
        return (system,)
    return (f"{runtime}/dialtone/dialtone.sock", system)


class Readiness:
    """A socket, and the tasks that wait until it can be read or written. The loop knows of the socket only while a task
    waits, so a socket that is dropped leaves nothing behind in it."""

    def __init__(self, of: socket.socket) -> None:
        self.socket = of
        # The waiting tasks: by True the writing one, by False the reading one.
        self._waiting: typing.Dict[bool, "asyncio.Future[None]"] = {}

    async def readable(self) -> None:
        """Returns when a read would not wait.

        :raises ConnectionAbortedError: if the socket is closed meanwhile."""
        await self._wait(False)

    async def writable(self) -> None:
        """Returns when a write would not wait.

        :raises ConnectionAbortedError: if the socket is closed meanwhile."""
        await self._wait(True)

    def close(self) -> None:
        """Closes the socket, and ends the waiting for it. Called in the thread of the loop that waits."""
        waiting, self._waiting = self._waiting, {}
        for writing, ready in waiting.items():
            # Before the close: the next socket may get the same number.
            self._forget(ready.get_loop(), writing)
            # A loop that was closed wakes nobody.
            if not (ready.done() or ready.get_loop().is_closed()):
                ready.set_result(None)
        self.socket.close()

    def _forget(self, loop: asyncio.AbstractEventLoop, writing: bool) -> None:
        (loop.remove_writer if writing else loop.remove_reader)(self.socket.fileno())

    async def _wait(self, writing: bool) -> None:
        if writing in self._waiting:
            raise RuntimeError("another task waits for this socket already")
        loop = asyncio.get_running_loop()
        ready: "asyncio.Future[None]" = loop.create_future()

        def notice() -> None:
            if not ready.done():
                ready.set_result(None)

        (loop.add_writer if writing else loop.add_reader)(self.socket.fileno(), notice)
        self._waiting[writing] = ready
        try:
            await ready
        finally:
            if self._waiting.pop(writing, None) is not None:
                self._forget(loop, writing)
        if self.socket.fileno() < 0:
            raise ConnectionAbortedError(errno.ECONNABORTED, "this program closed the socket")


async def connect(paths: typing.Sequence[str]) -> socket.socket:
    """Connects to the first of several paths that a server listens on.

    :raises DialtoneError: if there is none, or the kernel refuses."""
    for _ in range(_RETRIES):
        busy = None
        for path in paths:
            end = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
            try:
                end.connect(path)
                return end
            except BlockingIOError:
                busy = path
            except PermissionError:
                end.close()
                raise AccessDenied(path) from None
            except OSError as error:
                if error.errno not in (errno.ENOENT, errno.ECONNREFUSED):
                    end.close()
                    raise Unreachable(path, error.strerror or str(error)) from None
            end.close()
            if busy:
                break
        else:
            raise NotRunning(paths)
        await asyncio.sleep(_RETRY_SECONDS)
    raise Busy(paths[-1] if busy is None else busy)


class Exchange(typing.Generic[R]):
    """One call, and its replies. Closing it hangs up, and closes the descriptors that came and were not taken."""

    def __init__(self, end: socket.socket, method: _v.Method[R]) -> None:
        self._socket = end
        self._ready = Readiness(end)
        self._method = method
        self._is_stream = isinstance(method, _v.StreamMethod)
        self._received = bytearray()
        self._searched = 0
        self._descriptors: typing.List[typing.Optional[int]] = []

    @classmethod
    async def begin(
        cls, paths: typing.Sequence[str], method: _v.Method[R], descriptors: typing.Sequence[int] = ()
    ) -> "Exchange[R]":
        """Connects and calls.

        :raises DialtoneError: if no agent can be reached.
        :raises TypeError: if a parameter is of the wrong type."""
        call: typing.Dict[str, object] = {"method": method._method, "parameters": _v.write_fields(method)}
        if isinstance(method, _v.StreamMethod):
            call["more"] = True
        message = json.dumps(call, separators=(",", ":"), allow_nan=False).encode() + b"\0"
        exchange = cls(await connect(paths), method)
        try:
            await exchange._send(message, descriptors)
        except BaseException:
            exchange.close()
            raise
        return exchange

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        """Hangs up. A task that waits for a reply gets ``Interrupted``."""
        self._ready.close()
        left, self._descriptors = self._descriptors, []
        for descriptor in left:
            if descriptor is not None:
                os.close(descriptor)

    def take_descriptor(self, place: int) -> int:
        """The descriptor at a place among those that came. From now on the caller closes it.

        :raises ProtocolViolation: if there is none."""
        descriptor = self._descriptors[place] if 0 <= place < len(self._descriptors) else None
        if descriptor is None:
            raise self._violation(f"descriptor {place} did not come with the answer")
        self._descriptors[place] = None
        return descriptor

    async def reply(self) -> typing.Tuple[R, bool]:
        """The next reply, and whether another one follows.

        :raises Refused: if it is an error.
        :raises Interrupted: if the connection ends before."""
        message = await self._next()
        try:
            reply = json.loads(message.decode("utf-8"), parse_constant=_no_number)
            if not isinstance(reply, dict):
                raise _v.Malformed("the answer is no object")
            parameters = reply.get("parameters")
            if parameters is None:
                parameters = {}
            error = reply.get("error")
            if error is not None:
                raise refusal(str(_v.TEXT.read(error, "error")), parameters, self._method._method, ERRORS)
            continues = reply.get("continues")
            continues = False if continues is None else bool(_v.FLAG.read(continues, "continues"))
            if continues and not self._is_stream:
                raise _v.Malformed("more answers are to follow than one")
            return _v.read_reply(self._method, parameters), continues
        except (ValueError, RecursionError) as error:
            raise self._violation(str(error)) from None

    async def _send(self, message: bytes, descriptors: typing.Sequence[int]) -> None:
        rest = memoryview(message)
        ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))] if descriptors else []
        try:
            while rest:
                try:
                    sent = self._socket.sendmsg([rest], ancillary, socket.MSG_NOSIGNAL)
                    # They ride on the first byte.
                    rest, ancillary = rest[sent:], []
                except BlockingIOError:
                    await self._ready.writable()
        except ConnectionError:
            # An agent that is short of something answers before it has read, and hangs up: the answer says why.
            pass

    async def _next(self) -> bytes:
        while True:
            end = self._received.find(b"\0", self._searched)
            if end >= 0:
                message = bytes(self._received[:end])
                del self._received[:end + 1]
                self._searched = 0
                return message
            self._searched = len(self._received)
            if self._searched > MESSAGE_LIMIT:
                raise self._violation(f"the answer is longer than {MESSAGE_LIMIT} bytes")
            try:
                if not self._receive():
                    await self._ready.readable()
            except ConnectionError as error:
                raise Interrupted(self._method._method, error.strerror or str(error)) from None

    def _receive(self) -> bool:
        """Reads what has arrived; false if nothing has."""
        room = socket.CMSG_SPACE(DESCRIPTOR_LIMIT * array.array("i").itemsize)
        try:
            # Not recv: the kernel drops descriptors that a program does not ask for.
            data, ancillary, flags, _ = self._socket.recvmsg(_CHUNK, room, socket.MSG_CMSG_CLOEXEC)
        except BlockingIOError:
            return False
        for level, kind, content in ancillary:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                numbers = array.array("i")
                numbers.frombytes(content[:len(content) - len(content) % numbers.itemsize])
                self._descriptors += numbers
        if flags & socket.MSG_CTRUNC or len(self._descriptors) > DESCRIPTOR_LIMIT:
            raise self._violation("more descriptors came than there is room for")
        if self._is_stream and self._descriptors:
            raise self._violation("descriptors came with a stream, which has none")
        if not data:
            raise Interrupted(self._method._method, "it hung up")
        self._received += data
        return True

    def _violation(self, reason: str) -> ProtocolViolation:
        self.close()
        return ProtocolViolation(self._method._method, reason)


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is no number of JSON")
