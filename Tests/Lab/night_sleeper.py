# SPDX-License-Identifier: Apache-2.0
"""A client that loses its server once in the evening and is woken many times in the night, and its server.

    night_sleeper.py NAME WAKES

It says "evening" after the outage and "morning" after the last wake, and goes on when it reads a line. The agent's messages are those of
Examples/sleeping-client/sleeping_client.py, which must be in PYTHONPATH.
"""

import socket
import sys

from sleeping_client import Agent


def wait_for(events, condition):
    while True:
        for connection in events.reply()["connections"]:
            if condition(connection):
                return connection


def main(name, wakes):
    listener = socket.create_server(("127.0.0.1", 0))
    agent, events = Agent(), Agent()
    remote = "tcp://127.0.0.1:%d" % listener.getsockname()[1]
    agent.call("Open", name=name, remote=remote, settings={"backoff": {"initialMilliseconds": 500}})
    events.send("Monitor", more=True, names=[name])
    server, _ = listener.accept()
    wait_for(events, lambda connection: connection["state"] == "ready")
    server.close()
    wait_for(events, lambda connection: connection["state"] == "backingOff")
    server, _ = listener.accept()
    wait_for(events, lambda connection: connection["state"] == "ready")
    print("evening", flush=True)
    sys.stdin.readline()
    last = 0
    for number in range(wakes):
        line = b"ring %d\n" % number
        server.sendall(line)
        # Events of the wake before may still be on their way.
        last = wait_for(events, lambda connection: connection.get("wake", 0) > last)["wake"]
        taken = agent.call("Take", name=name)
        with socket.socket(fileno=agent.descriptors.pop(taken["fileDescriptor"])) as taken_socket:
            read = taken_socket.recv(100)
            assert read == line, (read, line)
        agent.call("Park", name=name, epoch=taken["epoch"])
    print("morning", flush=True)
    sys.stdin.readline()


main(sys.argv[1], int(sys.argv[2]))
