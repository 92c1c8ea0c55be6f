#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A subscriber of an MQTT broker that sleeps, and answers each message that it is woken for.

    mqtt_sleeper.py stay NAME     takes NAME, logs in, parks it and sleeps; on each wake takes, answers and parks again
    mqtt_sleeper.py leave NAME    takes NAME, logs in, parks it and ends
    mqtt_sleeper.py read          answers what has come on the socket that it was started with, and ends

A message on the topic "bell" is acknowledged, and answered by the same one on "answers/UID". The agent's messages are
those of Examples/sleeping-client/sleeping_client.py, which must be in PYTHONPATH for the first two.
"""

import os
import socket
import sys

CLIENT = "door"
# In seconds. A broker hangs up after half as long again.
KEEP_ALIVE = 3


def packet(kind, content):
    assert len(content) < 128
    return bytes([kind, len(content)]) + content


def text(words):
    return len(words).to_bytes(2, "big") + words.encode()


# The session is kept when the flow ends (clean session 0), and the subscription is of quality of service 1.
CONNECT = packet(0x10, text("MQTT") + bytes([4, 0, 0, KEEP_ALIVE]) + text(CLIENT))
SUBSCRIBE = packet(0x82, b"\0\1" + text("bell") + b"\1")


def escaped(data):
    return "".join(f"\\x{byte:02x}" for byte in data)


OPENING = [
    {"send": escaped(CONNECT), "expect": {"bytes": r"\x20\x02\x0?\x00"}},
    {"send": escaped(SUBSCRIBE), "expect": {"bytes": r"\x90\x03\x00\x01\x01"}, "overtakenBy": [r"\x3?"]},
]


def exactly(flow, count):
    data = b""
    while len(data) < count:
        part = flow.recv(count - len(data))
        if not part:
            sys.exit("the flow has ended")
        data += part
    return data


def next_packet(flow):
    kind, length = exactly(flow, 2)
    return kind, exactly(flow, length)


def log_in(flow):
    flow.sendall(CONNECT)
    assert next_packet(flow) in [(0x20, b"\0\0"), (0x20, b"\1\0")]
    flow.sendall(SUBSCRIBE)
    assert next_packet(flow) == (0x90, b"\0\1\1")


def answer_what_is_there(flow):
    """A packet that has only begun is waited for: parked is between two of them."""
    while True:
        try:
            if not flow.recv(1, socket.MSG_DONTWAIT | socket.MSG_PEEK):
                return
        except BlockingIOError:
            return
        kind, content = next_packet(flow)
        # Whatever else comes was not asked for, and nobody answers it.
        assert kind & 0xF6 == 0x32, f"{kind:x} {content!r}"
        end = 2 + int.from_bytes(content[:2], "big")
        number, message = content[end:end + 2], content[end + 2:]
        flow.sendall(packet(0x40, number) + packet(0x30, text(f"answers/{os.getuid()}") + message))


def serve(agent, name, handle):
    taken = agent.call("Take", name=name)
    flow = socket.socket(fileno=agent.descriptors.pop(taken["fileDescriptor"]))
    handle(flow)
    flow.close()
    agent.call("Park", name=name, epoch=taken["epoch"], opening=OPENING)


def stay(agent, events, name):
    while True:
        for connection in events.reply()["connections"]:
            if "wake" in connection:
                serve(agent, name, answer_what_is_there)


def main(mode, *names):
    if mode == "read":
        assert os.environ["LISTEN_FDS"] == "1" and os.environ["LISTEN_PID"] == str(os.getpid()), os.environ
        return answer_what_is_there(socket.socket(fileno=3))
    from sleeping_client import Agent

    agent, events = Agent(), Agent()
    events.send("Monitor", more=True, names=list(names))
    events.reply()
    serve(agent, names[0], log_in)
    print("parked", flush=True)
    if mode == "stay":
        stay(agent, events, names[0])


if __name__ == "__main__":
    main(*sys.argv[1:])
