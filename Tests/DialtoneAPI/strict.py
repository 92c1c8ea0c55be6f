# SPDX-License-Identifier: Apache-2.0
"""Calls methods of both interfaces with asyncvarlink, which refuses a reply with a field too many or too few.

The types are written down here once more, by hand and in another language, on purpose.
"""

import asyncio
import dataclasses
import sys
import typing

from asyncvarlink import (
    TypedVarlinkErrorReply,
    VarlinkClientProtocol,
    VarlinkInterface,
    connect_unix_varlink,
    varlinkmethod,
)
from asyncvarlink.serviceinterface import InterfaceNotFound, VarlinkServiceInterface

Optional = typing.Optional


@dataclasses.dataclass
class Interface:
    index: int
    name: str
    kind: typing.Literal["loopback", "wired", "wifi", "cellular", "tunnel", "bridge", "virtual", "other"]
    up: bool
    carrier: bool
    addresses: list[str]
    expensive: bool
    constrained: bool
    costSource: Optional[typing.Literal["configuration", "networkManager", "guess", "kind"]] = None


@dataclasses.dataclass
class Path:
    generation: int
    status: typing.Literal["satisfied", "unsatisfied", "requiresConnection", "unknown"]
    coherent: bool
    isDirect: bool
    isLocalAddress: bool
    supportsIPv4: bool
    supportsIPv6: bool
    supportsDNS: bool
    expensive: bool
    constrained: bool
    reason: Optional[str] = None
    interface: Optional[Interface] = None
    gateway: Optional[str] = None
    source: Optional[str] = None
    destination: Optional[str] = None


@dataclasses.dataclass
class Target:
    host: str
    port: Optional[int] = None
    protocol: Optional[typing.Literal["tcp", "udp"]] = None
    mark: Optional[int] = None
    interface: Optional[str] = None
    source: Optional[str] = None


class Network(VarlinkInterface, name="org.dialtone.Network"):
    @varlinkmethod(return_parameter="path")
    def GetPath(self, *, target: Optional[Target] = None) -> Path: ...

    class MonitorPathReply(typing.TypedDict):
        path: Path
        changes: list[str]

    @varlinkmethod
    def MonitorPath(self, *, target: Optional[Target] = None) -> typing.Iterator[MonitorPathReply]: ...

    @varlinkmethod(return_parameter="interfaces")
    def ListInterfaces(self) -> list[Interface]: ...


@dataclasses.dataclass
class Keepalive:
    protocol: str
    intervalMilliseconds: Optional[int] = None
    toleranceMilliseconds: Optional[int] = None


@dataclasses.dataclass
class Backoff:
    initialMilliseconds: Optional[int] = None
    maximumMilliseconds: Optional[int] = None
    factor: Optional[float] = None
    stableAfterMilliseconds: Optional[int] = None


@dataclasses.dataclass
class Settings:
    keepalive: Optional[Keepalive] = None
    backoff: Optional[Backoff] = None
    userTimeoutMilliseconds: Optional[int] = None
    graceMilliseconds: Optional[int] = None
    mark: Optional[int] = None


@dataclasses.dataclass
class Connection:
    name: str
    remote: str
    epoch: int
    state: str
    holder: typing.Literal["daemon", "client"]
    session: typing.Literal["none", "opening", "open", "unknown"]
    since: str
    attempt: int
    reason: Optional[str] = None
    localAddress: Optional[str] = None
    remoteAddress: Optional[str] = None
    interface: Optional[str] = None
    avoidedInterface: Optional[str] = None
    nextAttemptAt: Optional[str] = None
    cause: Optional[str] = None
    lastFailure: Optional[str] = None
    lastFailureCause: Optional[str] = None
    lastProof: Optional[str] = None
    unreadBytes: Optional[int] = None
    keepaliveIntervalMilliseconds: Optional[int] = None
    owner: Optional[int] = None
    endsWithAgent: Optional[bool] = None
    lacksLogin: Optional[bool] = None
    upSince: Optional[str] = None
    downSince: Optional[str] = None


@dataclasses.dataclass
class Event:
    sequence: int
    time: str
    kind: str
    connection: Connection
    reason: Optional[str] = None
    cause: Optional[str] = None
    previousState: Optional[str] = None
    previousDurationMilliseconds: Optional[int] = None


class NoSuchConnection(TypedVarlinkErrorReply, interface="org.dialtone.Connections"):
    class Parameters:
        name: str


class Connections(VarlinkInterface, name="org.dialtone.Connections"):
    errors = (NoSuchConnection,)

    @varlinkmethod(return_parameter="connections")
    def List(self) -> list[Connection]: ...

    class MonitorReply(typing.TypedDict):
        sequence: int
        kind: str
        connections: list[Connection]
        event: Optional[Event]

    @varlinkmethod
    def Monitor(
        self, *, names: Optional[list[str]] = None, after: Optional[int] = None
    ) -> typing.Iterator[MonitorReply]: ...

    @varlinkmethod(return_parameter="name")
    def Open(
        self,
        *,
        remote: str,
        name: Optional[str] = None,
        settings: Optional[Settings] = None,
    ) -> str: ...

    @varlinkmethod
    def Close(self, *, name: str) -> None: ...

    @varlinkmethod
    def Redial(self, *, name: str) -> None: ...


async def refused(awaitable, error):
    try:
        await awaitable
    except error as reply:
        return reply.parameters
    raise AssertionError(f"{error.__name__} expected")


async def main(path):
    transport, protocol = await connect_unix_varlink(VarlinkClientProtocol, path)
    service = protocol.make_proxy(VarlinkServiceInterface)
    network = protocol.make_proxy(Network)
    connections = protocol.make_proxy(Connections)

    info = await service.GetInfo()
    assert "org.dialtone.Network" in info["interfaces"], info
    text = await service.GetInterfaceDescription(interface="org.dialtone.Network")
    assert "interface org.dialtone.Network\n" in text["description"], text
    assert (await refused(service.GetInterfaceDescription(interface="a.b"), InterfaceNotFound))["interface"] == "a.b"

    reply = await network.GetPath(target=Target("192.0.2.1", protocol="udp"))
    assert reply["path"].destination == "192.0.2.1", reply
    assert (await network.GetPath())["path"].interface.kind == "wifi"
    assert [interface.name for interface in (await network.ListInterfaces())["interfaces"]] == ["wlan0"]
    assert [reply["changes"] async for reply in network.MonitorPath()] == [[], ["gateway"]]

    assert [connection.attempt for connection in (await connections.List())["connections"]] == [4]
    assert [reply["sequence"] async for reply in connections.Monitor(after=0)] == [1, 2, 3]
    reply = await connections.Open(
        remote="tcp://h:1", name="n", settings=Settings(Keepalive("crlf", 1000), Backoff(factor=1.6), mark=7)
    )
    assert reply == {"name": "n"}, reply
    await connections.Redial(name="office")
    await connections.Close(name="office")
    assert (await refused(connections.Close(name="nobody"), NoSuchConnection))["name"] == "nobody"
    await connections.Close.oneway(name="nobody")

    # Many at once, answered in order.
    replies = await asyncio.gather(*(connections.Open(remote="tcp://h:1", name=str(i)) for i in range(100)))
    assert [reply["name"] for reply in replies] == [str(i) for i in range(100)], replies
    transport.close()
    print("all as declared")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
