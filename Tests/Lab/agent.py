# SPDX-License-Identifier: Apache-2.0
"""Talks to a running daemon with asyncvarlink, which refuses a reply with a field too many or too few.

The types are those of Tests/DialtoneAPI/strict.py, which must be in PYTHONPATH.
"""

import asyncio
import sys

from asyncvarlink import VarlinkClientProtocol, connect_unix_varlink
from asyncvarlink.serviceinterface import VarlinkServiceInterface
from strict import Backoff, Connections, Keepalive, Network, NoSuchConnection, Settings, Target, refused


async def connect(path):
    _, protocol = await connect_unix_varlink(VarlinkClientProtocol, path)
    return protocol


async def main(path):
    protocol = await connect(path)
    info = await protocol.make_proxy(VarlinkServiceInterface).GetInfo()
    assert info["product"] == "dialtoned", info
    network = protocol.make_proxy(Network)
    connections = protocol.make_proxy(Connections)

    reply = await network.GetPath(target=Target("127.0.0.1", port=80, protocol="tcp"))
    assert reply["path"].isLocalAddress, reply
    reply = await network.GetPath(target=Target("192.0.2.1"))
    assert reply["path"].status == "unsatisfied" and reply["path"].reason == "noCarrier", reply
    assert (await network.GetPath())["path"].destination is None
    assert "lo" in [interface.name for interface in (await network.ListInterfaces())["interfaces"]]

    # A stream holds its connection, so each has one of its own.
    events = (await connect(path)).make_proxy(Connections).Monitor()
    snapshot = await anext(events)
    assert snapshot["kind"] == "snapshot" and snapshot["connections"] == [], snapshot
    reply = await connections.Open(
        remote="tcp://192.0.2.1:5060",
        name="office",
        settings=Settings(
            Keepalive("tcp", 60000),
            Backoff(initialMilliseconds=1000, factor=1.6),
            userTimeoutMilliseconds=30000,
            mark=7,
        ),
    )
    assert reply == {"name": "office"}, reply
    change = await anext(events)
    assert change["kind"] == "change" and change["event"].kind == "opened", change
    assert change["sequence"] == change["event"].sequence == snapshot["sequence"] + 1, change
    assert [connection.state for connection in (await connections.List())["connections"]] == ["waiting"]

    paths = (await connect(path)).make_proxy(Network).MonitorPath()
    first = await anext(paths)
    assert first["changes"] == [] and first["path"].status == "unsatisfied", first

    await connections.Redial(name="office")
    await connections.Close(name="office")
    while change["event"].kind != "closed":
        change = await anext(events)
    assert (await refused(connections.Close(name="office"), NoSuchConnection))["name"] == "office"
    print("all as declared")


asyncio.run(main(sys.argv[1]))
