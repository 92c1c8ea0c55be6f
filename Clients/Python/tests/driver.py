# SPDX-License-Identifier: Apache-2.0
"""The driver of the shared scenarios: Tests/Lab/ScenarioDriver.swift has its commands."""

import asyncio
import os
import socket
import sys
import typing

from dialtone_client import (
    AgentBack, AgentLost, Change, Client, ConnectionEvents, DialtoneError, Gap, Interrupted, MonitoredPath, PathUpdates,
    Snapshot, TakenSocket)
from dialtone_client.interface import Connection, Path, Take


def tell(line: str) -> None:
    print(line, flush=True)


def path_words(path: Path) -> str:
    return f"path {path.status} {path.reason or '-'}"


def states(connections: typing.Iterable[Connection]) -> str:
    return ",".join(f"{connection.name}={connection.state}" for connection in connections) or "-"


class Driver:
    """The driver; each command is the method of its name."""

    def __init__(self) -> None:
        self.client = Client()
        self.taken: typing.Optional[TakenSocket] = None
        self.tasks: typing.List["asyncio.Task[None]"] = []

    async def path(self, host: str) -> str:
        return path_words(await self.client.path(host))

    async def monitor_path(self, host: str) -> str:
        updates = self.client.monitor_path(host)
        first = await updates.__anext__()
        self.tasks.append(asyncio.create_task(self.tell_paths(updates, first)))
        return "ok"

    async def tell_paths(self, updates: PathUpdates, first: MonitoredPath) -> None:
        tell(f"* {path_words(first)} -")
        async for path in updates:
            tell(f"* {path_words(path)} {','.join(path.changes) or '-'}")

    async def monitor(self) -> str:
        events = self.client.monitor()
        first = await events.__anext__()
        if isinstance(first, AgentLost):
            raise first.error
        self.tasks.append(asyncio.create_task(self.tell_events(events, first)))
        return "ok"

    async def tell_events(self, events: ConnectionEvents, event: object) -> None:
        while True:
            if isinstance(event, Snapshot):
                tell(f"* snapshot {states(event.connections)}")
            elif isinstance(event, Gap):
                tell("* gap")
            elif isinstance(event, AgentLost):
                tell("* lost")
            elif isinstance(event, Change):
                connection = event.event.connection
                tell(f"* event {event.sequence} {event.event.kind} {connection.name} {connection.state}")
            else:
                assert isinstance(event, AgentBack), event
            event = await events.__anext__()

    async def open(self, name: str, remote: str) -> str:
        await self.client.open(remote, name)
        return "ok"

    async def adopt(self, name: str, remote: str, port: str) -> str:
        with socket.create_connection(("127.0.0.1", int(port))) as own:
            await self.client.adopt(own, name, remote)
        return "ok"

    async def close(self, name: str) -> str:
        await self.client.close(name)
        return "ok"

    async def redial(self, name: str) -> str:
        await self.client.redial(name)
        return "ok"

    async def list(self) -> str:
        return f"connections {states(await self.client.list())}"

    async def take(self, name: str) -> str:
        self.taken = await self.client.take(name)
        return f"taken {name} {self.taken.epoch}"

    def held(self) -> TakenSocket:
        if self.taken is None:
            raise ValueError("no socket is held")
        return self.taken

    async def send(self, *words: str) -> str:
        writer = self.held().writer
        writer.write(" ".join(words).encode() + b"\n")
        await writer.drain()
        return "ok"

    async def receive(self) -> str:
        line = await self.held().reader.readline()
        return f"received {line.decode().rstrip()}" if line else "received-end"

    async def park(self) -> str:
        taken, self.taken = self.held(), None
        await taken.park()
        return "ok"

    async def abandon(self) -> str:
        taken, self.taken = self.held(), None
        taken.abandon()
        return "ok"

    async def forget(self, name: str) -> str:
        await self.client.call(Take(name))
        return "ok"

    async def descriptors(self) -> str:
        # The one that reads the folder is among them.
        return f"descriptors {len(os.listdir('/proc/self/fd')) - 1}"

    async def acknowledge(self, name: str, wake: str) -> str:
        await self.client.acknowledge(name, int(wake))
        return "ok"

    async def answer(self, words: typing.Sequence[str]) -> str:
        commands = {
            name.replace("_", "-"): getattr(self, name) for name in (
                "path", "monitor_path", "monitor", "open", "adopt", "close", "redial", "list", "take", "send",
                "receive", "park", "abandon", "forget", "descriptors", "acknowledge")
        }
        if words[0] not in commands:
            return f"error BadCommand {words[0]}"
        try:
            return str(await commands[words[0]](*words[1:]))
        except Interrupted as error:
            return f"error Lost {error}"
        except DialtoneError as error:
            return f"error {error.code} {error}"
        except (OSError, TypeError, ValueError) as error:
            return f"error {type(error).__name__} {error}"

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            line = await loop.run_in_executor(None, sys.stdin.readline)
            words = line.split()
            if not line or words == ["quit"]:
                break
            if words:
                tell(await self.answer(words))
        for task in self.tasks:
            task.cancel()


if __name__ == "__main__":
    asyncio.run(Driver().run())
