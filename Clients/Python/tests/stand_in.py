# SPDX-License-Identifier: Apache-2.0
"""A server that stands in for the agent and does as a test says, and a count of descriptors."""

import array
import asyncio
import json
import os
import pathlib
import socket
import threading
import typing

T = typing.TypeVar("T")

#: No wait of a test takes longer than that, in seconds; the limit is there so that a failure ends.
PATIENCE = 60


def run(coroutine: typing.Coroutine[object, object, T]) -> T:
    """Runs a test to its end."""
    return asyncio.run(asyncio.wait_for(coroutine, PATIENCE))


def descriptors() -> typing.Dict[str, str]:
    """What this process has open."""
    found = {}
    for number in os.listdir("/proc/self/fd"):
        try:
            found[number] = os.readlink(f"/proc/self/fd/{number}")
        except FileNotFoundError:
            # The one that reads the folder.
            pass
    return found


class Conversation:
    """A connection of a client, on the server's side."""

    def __init__(self, end: socket.socket) -> None:
        self.end = end
        end.settimeout(PATIENCE)
        self._received = b""
        self.descriptors: typing.List[int] = []

    def call(self) -> typing.Dict[str, typing.Any]:
        """The next call; an empty one at the end."""
        while b"\0" not in self._received:
            data, ancillary, _, _ = self.end.recvmsg(65536, socket.CMSG_SPACE(64))
            for level, kind, content in ancillary:
                assert (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS)
                numbers = array.array("i")
                numbers.frombytes(content)
                self.descriptors += numbers
            if not data:
                return {}
            self._received += data
        message, self._received = self._received.split(b"\0", 1)
        return typing.cast(typing.Dict[str, typing.Any], json.loads(message))

    def send(self, data: bytes, passed: typing.Sequence[socket.socket] = ()) -> None:
        """Sends bytes, and descriptors with the first of them."""
        numbers = array.array("i", [each.fileno() for each in passed])
        ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, numbers)] if passed else []
        sent = self.end.sendmsg([data], ancillary)
        # With nothing left, the client may have gone already.
        if sent < len(data):
            self.end.sendall(data[sent:])

    def reply(self, passed: typing.Sequence[socket.socket] = (), **reply: object) -> None:
        """Sends a reply."""
        self.send(json.dumps(reply).encode() + b"\0", passed)

    def wait_for_end(self) -> None:
        """Returns when the client has hung up."""
        try:
            while self.call():
                pass
        except ConnectionResetError:
            # It had not read everything.
            pass


Handler = typing.Callable[[Conversation], None]


class StandIn:
    """Serves a socket: the first handler serves the first connection, and so on; the last one serves all others."""

    def __init__(self, folder: pathlib.Path, *handlers: Handler) -> None:
        self.path = str(folder / "agent.sock")
        self._handlers = list(handlers)
        #: What went wrong in a handler.
        self.trouble: typing.List[BaseException] = []
        self._threads: typing.List[threading.Thread] = []
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.bind(self.path)
        self._socket.listen()
        self._acceptor = threading.Thread(target=self._accept, daemon=True)
        self._acceptor.start()

    def __enter__(self) -> "StandIn":
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        for thread in self._threads:
            thread.join(PATIENCE)
            assert not thread.is_alive(), "a handler waits for what does not come"
        if self.trouble:
            raise self.trouble[0]

    def stop(self) -> None:
        """Listens no more. The socket's name is gone, and a new one can take its place."""
        if self._socket.fileno() >= 0:
            # A close alone would not wake who accepts.
            self._socket.shutdown(socket.SHUT_RDWR)
            self._acceptor.join(PATIENCE)
            self._socket.close()
            os.unlink(self.path)

    def _accept(self) -> None:
        while True:
            try:
                end, _ = self._socket.accept()
            except OSError:
                return
            handler = self._handlers.pop(0) if len(self._handlers) > 1 else self._handlers[0]
            thread = threading.Thread(target=self._handle, args=(handler, end), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _handle(self, handler: Handler, end: socket.socket) -> None:
        with end:
            try:
                handler(Conversation(end))
            except BaseException as error:
                self.trouble.append(error)


#: A connection as an agent tells it.
CONNECTION: typing.Dict[str, object] = {
    "name": "van", "remote": "tcp://192.0.2.7:7000", "epoch": 3, "state": "ready", "holder": "client",
    "session": "none", "since": "2026-05-01T12:00:00.250Z", "attempt": 0,
}

#: A path as an agent tells it.
PATH: typing.Dict[str, object] = {
    "generation": 7, "status": "satisfied", "coherent": True, "isDirect": False, "isLocalAddress": False,
    "supportsIPv4": True, "supportsIPv6": False, "supportsDNS": True, "expensive": False, "constrained": False,
    "interface": {
        "index": 2, "name": "wlan0", "kind": "wifi", "up": True, "carrier": True, "addresses": ["192.0.2.9/24"],
        "expensive": False, "constrained": False},
}


def answers(*, passed: typing.Sequence[socket.socket] = (), **reply: object) -> Handler:
    """A handler that answers each call alike, until the client hangs up."""

    def handle(conversation: Conversation) -> None:
        while conversation.call():
            conversation.reply(passed, **reply)

    return handle


def sends(data: bytes) -> Handler:
    """A handler that sends bytes for an answer, and hangs up."""

    def handle(conversation: Conversation) -> None:
        conversation.call()
        conversation.send(data)

    return handle
