# SPDX-License-Identifier: Apache-2.0
"""A server of WebSockets that asks its clients whether they are there, and tells each what another one says.

Usage: asking_server.py PORT [CHAIN KEY]     serves, with TLS where there is a certificate
       asking_server.py say URI TEXT         says something as a client
"""

import asyncio
import logging
import ssl
import sys

from websockets.asyncio.client import connect
from websockets.asyncio.server import broadcast, serve


async def repeat(socket):
    async for message in socket:
        broadcast([other for other in socket.server.connections if other is not socket], message)


async def main(arguments):
    if arguments[0] == "say":
        async with connect(arguments[1]) as socket:
            await socket.send(arguments[2])
        return
    # Each ping and its pong, with its payload.
    logging.basicConfig(level=logging.DEBUG, format="%(message)s", stream=sys.stdout)
    tls = None
    if len(arguments) > 1:
        tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        tls.load_cert_chain(arguments[1], arguments[2])
    # A ping each four seconds: more often than any server does by default, and no more than twenty in a minute.
    async with serve(repeat, "0.0.0.0", int(arguments[0]), ssl=tls, ping_interval=4, ping_timeout=2) as server:
        print("serves", flush=True)
        await server.serve_forever()


asyncio.run(main(sys.argv[1:]))
