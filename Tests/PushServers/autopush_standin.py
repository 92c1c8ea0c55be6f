# SPDX-License-Identifier: Apache-2.0
#
# A small honest autopush: the WebSocket of autoconnect and the push endpoint of autoendpoint, after autopush-rs. It
# keeps everything in memory. Prints its two ports, and ends with its standard input.
#
# Differences from the real one: an endpoint is a random token (not a Fernet token); there is no Topic header; a POST
# to /control/forget drops every user, /control/state says in JSON what there is.
#
# Usage: autopush_standin.py [--ping SECONDS] [--host ADDRESS --ports WEBSOCKET HTTP]
import argparse
import asyncio
import base64
import collections
import contextlib
import http.server
import json
import secrets
import sys
import threading
import time
import uuid

from websockets.asyncio.server import serve
from websockets.exceptions import ConnectionClosed

BATCH = 10  # stored messages that are handed over at a time
HELLO_TIMEOUT = 5
PING_PAUSE = 45
LARGEST_BODY = 4096
LONGEST_TTL = 30 * 86400


class User:
    def __init__(self):
        self.uaid = uuid.uuid4()
        self.channels = set()
        self.stored = []
        self.session = None


class Session:
    def __init__(self, socket, user):
        self.socket, self.user = socket, user
        self.unacked = []
        self.last_ping = 0.0

    async def say(self, **message):
        await self.socket.send(json.dumps(message, separators=(",", ":")))

    async def notify(self, message):
        if message["ttl"] > 0:
            self.unacked.append(message)
        shown = {key: message[key] for key in ("channelID", "version", "data", "headers") if key in message}
        await self.say(messageType="notification", **shown)

    # The next messages in store come once all before are acknowledged.
    async def check_storage(self):
        while not self.unacked and self.user.stored:
            batch, self.user.stored = self.user.stored[:BATCH], self.user.stored[BATCH:]
            for message in batch:
                if message["until"] > time.time():
                    await self.notify(message)


class Autopush:
    def __init__(self):
        self.users, self.endpoints, self.acks = {}, {}, []
        self.place = ""

    async def serve(self, socket):
        try:
            hello = json.loads(await asyncio.wait_for(socket.recv(), HELLO_TIMEOUT))
        except (asyncio.TimeoutError, ValueError):
            return await socket.close(1011)
        if hello.get("messageType") != "hello":
            return await socket.close(1011)
        try:
            user = self.users.get(uuid.UUID(hello.get("uaid") or ""))
        except ValueError:
            user = None
        # A new user is kept once it registers.
        user = user or User()
        if user.session:
            await user.session.socket.close(1011)
        session = user.session = Session(socket, user)
        try:
            await session.say(
                messageType="hello", uaid=user.uaid.hex, status=200, use_webpush=True, broadcasts={})
            await session.check_storage()
            async for text in socket:
                await self.take(session, text)
        except ConnectionClosed:
            pass
        finally:
            user.stored = session.unacked + user.stored
            if user.session is session:
                user.session = None

    async def take(self, session, text):
        message = json.loads(text)
        kind = message.get("messageType")
        if message == {} or kind == "ping":
            if time.monotonic() - session.last_ping < PING_PAUSE:
                return await session.socket.close(1011)
            session.last_ping = time.monotonic()
            await session.socket.send("{}")
        elif kind == "register":
            channel = uuid.UUID(message["channelID"])
            if str(channel) != message["channelID"] or not self.is_key(message.get("key")):
                return await session.say(
                    messageType="register", channelID=str(channel), status=400, pushEndpoint="")
            user = session.user
            self.users[user.uaid] = user
            user.channels.add(channel)
            token = secrets.token_urlsafe(60)
            self.endpoints[token] = (user, channel)
            endpoint = f"http://{self.place}/wpush/v1/{token}"
            await session.say(
                messageType="register", channelID=str(channel), status=200, pushEndpoint=endpoint)
        elif kind == "unregister":
            session.user.channels.discard(uuid.UUID(message["channelID"]))
            await session.say(messageType="unregister", channelID=message["channelID"], status=200)
        elif kind == "ack":
            for update in message["updates"]:
                self.acks.append(update)
                name = (update["channelID"], update["version"])
                session.unacked = [m for m in session.unacked if (m["channelID"], m["version"]) != name]
            await session.check_storage()
        elif kind not in ("nack", "broadcast_subscribe"):
            await session.socket.close(1011)

    @staticmethod
    def is_key(key):
        if key is None:
            return True
        try:
            return len(base64.urlsafe_b64decode(key + "==")) in (64, 65)
        except ValueError:
            return False

    # A status, what the answer says, and its Location.
    async def push(self, token, headers, body):
        user, channel = self.endpoints.get(token, (None, None))
        if user is None:
            return 404, {"errno": 102}, None
        if channel not in user.channels or user.uaid not in self.users:
            return 410, {"errno": 106}, None
        if not headers.get("TTL", "").isdecimal():
            return 400, {"errno": 111}, None
        if len(body) > LARGEST_BODY:
            return 413, {"errno": 104}, None
        encoding = headers.get("Content-Encoding")
        if body and encoding not in ("aes128gcm", "aesgcm"):
            return 400, {"errno": 110}, None
        ttl = min(int(headers["TTL"]), LONGEST_TTL)
        version = secrets.token_urlsafe(150)
        message = {"channelID": str(channel), "version": version, "ttl": ttl, "until": time.time() + ttl}
        if body:
            message["data"] = base64.urlsafe_b64encode(body).decode().rstrip("=")
            message["headers"] = {"encoding": encoding}
            for name in ("Encryption", "Crypto-Key", "Urgency"):
                if name in headers:
                    message["headers"][name.lower().replace("-", "_")] = headers[name]
        if user.session and not user.stored:
            # One that cannot be sent any more is stored when its session ends.
            with contextlib.suppress(ConnectionClosed):
                await user.session.notify(message)
        elif ttl > 0:
            user.stored.append(message)
        return 201, {}, f"http://{self.place}/m/{version}"

    async def control(self, command):
        if command == "forget":
            users = list(self.users.values())
            self.users.clear()
            for user in users:
                if user.session:
                    await user.session.socket.close(1000)
        stored = sum(len(user.stored) for user in self.users.values())
        unacked = sum(len(user.session.unacked) for user in self.users.values() if user.session)
        return 200, {"users": len(self.users), "stored": stored, "unacked": unacked, "acks": self.acks}, None


def handler(autopush, loop):
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            parts = collections.deque(self.path.strip("/").split("/"))
            work = (
                autopush.control(parts[-1])
                if parts[0] == "control"
                else autopush.push(parts[-1], self.headers, body))
            status, answer, location = asyncio.run_coroutine_threadsafe(work, loop).result()
            content = json.dumps(answer).encode()
            self.send_response(status)
            if location:
                self.send_header("Location", location)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *arguments):
            pass

    return Handler


async def main():
    options = argparse.ArgumentParser()
    options.add_argument("--ping", type=float, default=300)
    options.add_argument("--host", default="127.0.0.1")
    options.add_argument("--ports", type=int, nargs=2, default=[0, 0])
    options = options.parse_args()
    autopush, loop = Autopush(), asyncio.get_running_loop()
    endpoints = http.server.ThreadingHTTPServer((options.host, options.ports[1]), handler(autopush, loop))
    http_port = endpoints.server_address[1]
    autopush.place = f"{options.host}:{http_port}"
    threading.Thread(target=endpoints.serve_forever, daemon=True).start()
    async with serve(
        autopush.serve, options.host, options.ports[0], ping_interval=options.ping, ping_timeout=4
    ) as server:
        print(server.sockets[0].getsockname()[1], http_port, flush=True)
        await loop.run_in_executor(None, sys.stdin.read)


asyncio.run(main())
