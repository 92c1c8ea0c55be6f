# SPDX-License-Identifier: Apache-2.0
"""paho-mqtt over the agent's connections; for paho-mqtt 1.6 and 2.

    from dialtone_client.paho import Client
    from paho.mqtt.enums import CallbackAPIVersion

    client = Client(CallbackAPIVersion.VERSION2, "door")
    client.connect("van")

The agent dials, does TLS, and dials again when the path or the socket is lost; paho reads and writes.
"""

import asyncio
import concurrent.futures
import socket
import typing

import paho.mqtt.client as mqtt

from . import Client as Agent
from .errors import DialtoneError
from .interface import ConnectionSession, TakeUntil
from .taken import TakenSocket

T = typing.TypeVar("T")


class Client(mqtt.Client):
    """A client of paho's that takes its socket from the agent.

    ``connect`` gets the connection's name in place of a host, and ignores the port. Everything else is paho's. The
    agent does TLS, so the client does not call ``tls_set``.

    When the socket is lost, paho's loop takes the next one and logs in again. If an opening of the connection has
    logged in already, the client sends no CONNECT: it calls ``on_connect`` with the flag "session present", since the
    opening has subscribed, too. Give the opening and the client the same keepalive, or the broker hangs up.

    The agent knows the client by its process: no other process gets the socket until this one ends.
    """

    def __init__(self, *arguments: typing.Any, **options: typing.Any) -> None:
        """As paho's."""
        super().__init__(*arguments, **options)
        #: The agent that has the connection.
        self.agent = Agent()
        self._is_logged_in = False
        # The agent pauses between attempts to dial, so paho need not.
        self.reconnect_delay_set(1, 5)

    def _create_socket_connection(self) -> socket.socket:
        # paho 1.6 and 2 call this for a new socket, and try again after an OSError.
        try:
            taken = _finish(lambda: self._take())
        except DialtoneError as error:
            raise ConnectionError(str(error)) from error
        self._is_logged_in = taken.connection.session is ConnectionSession.OPEN
        return taken.socket

    async def _take(self) -> TakenSocket:
        while True:
            taken = await self.agent.take(self._host, until=TakeUntil.FLOW, timeout=self._connect_timeout)
            if not taken.is_over:
                return taken
            # Its messages cannot be acknowledged any more; the broker sends them again.
            taken.abandon()

    def _send_connect(self, keepalive: int) -> typing.Any:
        # paho calls this when it has a socket.
        if not self._is_logged_in:
            return super()._send_connect(keepalive)  # type: ignore[no-untyped-call, unused-ignore]
        # The answer that the opening got: the session is present, accepted; of MQTT 5 with no properties.
        content = b"\1\0\0" if self._protocol == mqtt.MQTTv5 else b"\1\0"
        self._keepalive = keepalive
        packet = self._in_packet
        packet["remaining_length"], packet["packet"] = len(content), bytearray(content)
        try:
            return self._handle_connack()  # type: ignore[no-untyped-call, unused-ignore]
        finally:
            packet["remaining_length"], packet["packet"] = 0, bytearray()


def _finish(make: typing.Callable[[], typing.Coroutine[object, object, T]]) -> T:
    """Runs a coroutine to its end, also where the caller has an event loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(make())
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        return pool.submit(lambda: asyncio.run(make())).result()
