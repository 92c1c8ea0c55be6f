#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A client that sleeps until its server speaks: takes the connection, reads, answers, parks. Needs nothing but Python.

    sleeping_client.py NAME URL      for instance: sleeping_client.py chat tcp://192.0.2.7:7000

The server speaks lines. A new session begins with "HELLO NAME"; each line that comes is answered by "GOT ...".
"""

import array
import json
import os
import socket
import sys
import time


class Agent:
    """One conversation with dialtoned: a JSON object and a zero byte each way, descriptors beside it (Varlink)."""

    def __init__(self):
        runtime = os.environ.get("XDG_RUNTIME_DIR", "")
        path = os.environ.get("DIALTONE_SOCKET") or (
            "/run/dialtone/dialtone.sock" if os.geteuid() == 0 else f"{runtime}/dialtone/dialtone.sock"
        )
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self.socket.connect(path)
        except OSError as error:
            raise AgentGone from error
        self.received = b""
        self.descriptors = []

    def send(self, method, more=False, **parameters):
        call = {"method": f"org.dialtone.Connections.{method}", "parameters": parameters}
        try:
            self.socket.sendall(json.dumps(call | ({"more": True} if more else {})).encode() + b"\0")
        except OSError as error:
            raise AgentGone from error

    def reply(self):
        while b"\0" not in self.received:
            # Not recv: a descriptor that nobody asks for is lost.
            try:
                data, ancillary, _, _ = self.socket.recvmsg(65536, socket.CMSG_SPACE(4 * 8))
            except ConnectionError as error:
                raise AgentGone from error
            for level, kind, content in ancillary:
                if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                    self.descriptors += array.array("i", content)
            if not data:
                raise AgentGone
            self.received += data
        message, self.received = self.received.split(b"\0", 1)
        message = json.loads(message)
        if "error" in message:
            raise Refused(message["error"], message.get("parameters"))
        return message["parameters"]

    def call(self, method, **parameters):
        self.send(method, **parameters)
        return self.reply()


class Refused(Exception):
    pass


class AgentGone(Exception):
    """It was restarted, or is about to be. The connection outlives that."""


def serve(agent, name):
    """Takes the flow, reads what there is, answers, and parks it; again if another flow has taken its place."""
    while True:
        taken = agent.call("Take", name=name)
        flow = socket.socket(fileno=agent.descriptors.pop(taken["fileDescriptor"]))
        try:
            if taken["connection"]["session"] != "open" and not taken["isOver"]:
                flow.sendall(f"HELLO {name}\n".encode())
            answer(flow)
        except OSError:
            pass  # It has ended, and Park says which flow took its place.
        flow.close()
        if taken["isOver"]:
            continue
        try:
            agent.call("Park", name=name, epoch=taken["epoch"])
            return
        except Refused as refusal:
            # StaleEpoch: the line was lost meanwhile, and another flow is there.
            if not refusal.args[0].endswith("StaleEpoch"):
                raise


def answer(flow):
    """Answers all lines that have come. A line that has only begun is waited for: parked is between two messages."""
    pending = b""
    while True:
        try:
            data = flow.recv(65536, 0 if pending else socket.MSG_DONTWAIT)
        except BlockingIOError:
            return
        if not data:
            return
        *lines, pending = (pending + data).split(b"\n")
        for line in lines:
            print("read", line.decode(), flush=True)
            try:
                flow.sendall(b"GOT " + line + b"\n")
            except OSError:
                pass  # It has ended; what it had received is read all the same.


def run(name, remote):
    """Serves the connection for as long as the agent runs."""
    agent, events = Agent(), Agent()
    events.send("Monitor", more=True, names=[name])
    try:
        agent.call("Open", remote=remote, name=name)
    except Refused as refusal:
        # NameTaken: an earlier run opened it.
        if not refusal.args[0].endswith("NameTaken"):
            raise
    isGreeted = False
    while True:
        # First what there is, then each change.
        for connection in events.reply()["connections"]:
            # The first flow is nobody's yet; from then on a wake says that there is something to do.
            isFirst = not isGreeted and connection["state"] == "ready"
            if isFirst or "wake" in connection:
                try:
                    serve(agent, name)
                    isGreeted = True
                except Refused as refusal:
                    # NotReady: the next event tells when there is a flow again.
                    if not refusal.args[0].endswith("NotReady"):
                        raise


def main(name, remote):
    while True:
        try:
            run(name, remote)
        except AgentGone:
            print("the agent is gone", flush=True)
            time.sleep(1)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2])
