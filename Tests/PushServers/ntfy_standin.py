# SPDX-License-Identifier: Apache-2.0
#
# A small honest ntfy: its WebSocket subscription and its publishing, after server/server.go and message_cache.go. It
# keeps everything in memory. Prints its two ports (one for the WebSocket, one for POST), and ends with its standard
# input.
#
# A message whose body is "hold" is stored and not sent to who is subscribed now: as if the socket broke before.
#
# Usage: ntfy_standin.py [--token TOKEN] [--ping SECONDS] [--pong SECONDS] [--host ADDRESS --ports WEBSOCKET HTTP]
import argparse
import asyncio
import base64
import contextlib
import http.server
import json
import random
import re
import string
import sys
import threading
import time
import urllib.parse

from websockets.asyncio.server import serve
from websockets.exceptions import ConnectionClosed

TOPICS = re.compile(r"^/([-_A-Za-z0-9]{1,64}(?:,[-_A-Za-z0-9]{1,64})*)/ws$")
TOPIC = re.compile(r"^/([-_A-Za-z0-9]{1,64})$")
LARGEST_BODY = 4096
KEPT = 12 * 3600


def event(kind, topic, **more):
    name = "".join(random.choices(string.ascii_letters + string.digits, k=12))
    return {"id": name, "time": int(time.time()), "event": kind, "topic": topic, **more}


class Ntfy:
    def __init__(self, token):
        self.token, self.cache, self.subscribers = token, [], []

    # Whether a request is refused: a response, or None.
    def check(self, connection, request):
        path, _, query = request.path.partition("?")
        if not TOPICS.match(path):
            return connection.respond(404, "no such page\n")
        if self.token and request.headers.get("Authorization") != f"Bearer {self.token}":
            return connection.respond(403, "forbidden\n")
        if self.since(urllib.parse.parse_qs(query).get("since", ["none"])[0]) is None:
            return connection.respond(400, "invalid since\n")
        return None

    # The stored messages for a value of since, by index; None for a wrong one.
    def since(self, value):
        if value == "none":
            return []
        if value == "all":
            return list(self.cache)
        names = [message["id"] for message in self.cache]
        if re.fullmatch(r"[A-Za-z0-9]{12}", value):
            return self.cache[names.index(value) + 1 :] if value in names else list(self.cache)
        if re.fullmatch(r"-?[0-9]+", value):
            return [message for message in self.cache if message["time"] >= int(value)]
        return None

    async def serve(self, socket):
        path, _, query = socket.request.path.partition("?")
        names = TOPICS.match(path)[1].split(",")
        subscriber = (set(names), socket)
        # In this order, as the real one: a new message may come before the stored ones.
        self.subscribers.append(subscriber)
        try:
            await self.send(socket, event("open", ",".join(names)))
            value = urllib.parse.parse_qs(query).get("since", ["none"])[0]
            for message in sorted(self.since(value), key=lambda message: message["time"]):
                if message["topic"] in names:
                    await self.send(socket, message)
            await socket.wait_closed()
        except ConnectionClosed:
            pass
        finally:
            self.subscribers.remove(subscriber)

    @staticmethod
    async def send(socket, message):
        await socket.send(json.dumps(message, separators=(",", ":")) + "\n")

    async def publish(self, topic, body, priority):
        self.cache = [message for message in self.cache if message["time"] > time.time() - KEPT]
        message = event("message", topic, expires=int(time.time()) + KEPT)
        held = body == b"hold"
        try:
            message["message"] = body[:LARGEST_BODY].decode() or "triggered"
        except UnicodeDecodeError:
            message["message"] = base64.b64encode(body[:LARGEST_BODY]).decode()
            message["encoding"] = "base64"
        if priority:
            message["priority"] = priority
        self.cache.append(message)
        for names, socket in [] if held else list(self.subscribers):
            if topic in names:
                # A subscriber that is closing does not keep the others from the message.
                with contextlib.suppress(ConnectionClosed):
                    await self.send(socket, message)
        return message


def handler(ntfy, loop):
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            path, _, _ = self.path.partition("?")
            match = TOPIC.match(path)
            answer, status = {"code": 40401, "http": 404}, 404
            if match:
                work = ntfy.publish(match[1], body, int(self.headers.get("Priority", 0)))
                answer, status = asyncio.run_coroutine_threadsafe(work, loop).result(), 200
            content = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *arguments):
            pass

    return Handler


async def main():
    options = argparse.ArgumentParser()
    options.add_argument("--token")
    options.add_argument("--ping", type=float, default=45)
    options.add_argument("--pong", type=float, default=15)
    options.add_argument("--host", default="127.0.0.1")
    options.add_argument("--ports", type=int, nargs=2, default=[0, 0])
    options = options.parse_args()
    ntfy, loop = Ntfy(options.token), asyncio.get_running_loop()
    publishing = http.server.ThreadingHTTPServer((options.host, options.ports[1]), handler(ntfy, loop))
    threading.Thread(target=publishing.serve_forever, daemon=True).start()
    async with serve(
        ntfy.serve, options.host, options.ports[0], process_request=ntfy.check, ping_interval=options.ping,
        ping_timeout=options.pong,
    ) as server:
        print(server.sockets[0].getsockname()[1], publishing.server_address[1], flush=True)
        await loop.run_in_executor(None, sys.stdin.read)


asyncio.run(main())
