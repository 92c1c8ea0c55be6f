# SPDX-License-Identifier: Apache-2.0
"""paho-mqtt over the agent's connections, against mosquitto."""

import asyncio
import os
import pathlib
import queue
import shutil
import socket
import subprocess
import sys
import typing

import pytest

from agent import Agent, Program, needs_agent
from dialtone_client import OpeningAnswer, OpeningStep, Settings
from stand_in import PATIENCE, run

mqtt = pytest.importorskip("paho.mqtt.client")
from dialtone_client import paho  # noqa: E402

MOSQUITTO = shutil.which("mosquitto", path="/usr/sbin:/usr/local/sbin:/usr/bin:/usr/local/bin")
pytestmark = [needs_agent, pytest.mark.skipif(MOSQUITTO is None, reason="mosquitto is not installed")]


class Broker:
    """A mosquitto that runs, and may be ended and started again."""

    def __init__(self, folder: pathlib.Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port: int = free.getsockname()[1]
        self._settings = folder / "mosquitto.conf"
        self._settings.write_text(
            f"listener {self.port} 127.0.0.1\nallow_anonymous true\nlog_type all\nlog_dest stderr\n"
            f"user root\npersistence true\npersistence_location {folder}/\n")
        self.start()

    def start(self) -> None:
        """Starts it, and returns when it listens."""
        self._program = Program([str(MOSQUITTO), "-c", str(self._settings)], "running")

    def end(self) -> None:
        """Ends it."""
        self._program.end()

    def wait_for(self, words: str) -> None:
        """Returns when its log has these words."""
        self._program.wait_for(words)

    def logins(self) -> int:
        """How many logins of "door" it has accepted since it was started."""
        return sum(" as door (" in line for line in self._program.lines)

    def publish(self, message: str) -> None:
        """Publishes on the topic "bell", by a client that goes to the broker itself."""
        client = _made(mqtt.Client, "visitor")
        client.connect("127.0.0.1", self.port)
        client.loop_start()
        client.publish("bell", message, qos=1).wait_for_publish()
        client.disconnect()
        client.loop_stop()


@pytest.fixture
def broker(tmp_path: pathlib.Path) -> typing.Iterator[Broker]:
    found = Broker(tmp_path)
    yield found
    found.end()


def _made(kind: typing.Any, name: str, **options: object) -> typing.Any:
    # What paho-mqtt 2 wants first, and 1.6 does not know.
    version = [mqtt.CallbackAPIVersion.VERSION2] if hasattr(mqtt, "CallbackAPIVersion") else []
    return kind(*version, name, **options)


class Door:
    """A client of paho's with the agent's socket, that subscribes to the topic "bell"."""

    def __init__(self, agent: Agent, **options: object) -> None:
        #: Each login, with whether the session was there already.
        self.logins: "queue.Queue[bool]" = queue.Queue()
        #: Each message.
        self.messages: "queue.Queue[str]" = queue.Queue()
        self.client = _made(paho.Client, "door", **options)
        self.client.agent = agent.client
        self.client.on_connect = self._on_connect
        self.client.on_message = lambda client, data, message: self.messages.put(message.payload.decode())

    def _on_connect(self, client: typing.Any, data: object, flags: typing.Any, *_: object) -> None:
        is_present = flags["session present"] if isinstance(flags, dict) else flags.session_present
        if not is_present:
            client.subscribe("bell", qos=1)
        self.logins.put(bool(is_present))

    def __enter__(self) -> "Door":
        self.client.connect("van", keepalive=60)
        self.client.loop_start()
        return self

    def __exit__(self, *_: object) -> None:
        self.client.disconnect()
        self.client.loop_stop()


def test_it_logs_in_on_each_socket_that_the_agent_dials(agent: Agent, broker: Broker) -> None:
    run(agent.client.open(f"mqtt://127.0.0.1:{broker.port}", "van"))
    with Door(agent, clean_session=False) as door:
        assert door.logins.get(timeout=PATIENCE) is False
        broker.publish("one")
        assert door.messages.get(timeout=PATIENCE) == "one"
        broker.end()
        broker.start()
        assert door.logins.get(timeout=PATIENCE) is True, "the broker has kept the session"
        broker.publish("two")
        assert door.messages.get(timeout=PATIENCE) == "two"


def test_it_does_not_log_in_where_the_agent_has(agent: Agent, broker: Broker) -> None:
    def text(words: str) -> str:
        return f"\\x00\\x{len(words):02x}{words}"

    opening = [
        # Protocol level 4, not clean, a keepalive of 60 s.
        OpeningStep(send=f"\\x10\\x10{text('MQTT')}\\x04\\x00\\x00\\x3c{text('door')}",
                    expect=OpeningAnswer(bytes="\\x20\\x02\\x0?\\x00")),
        OpeningStep(send=f"\\x82\\x09\\x00\\x01{text('bell')}\\x01",
                    expect=OpeningAnswer(bytes="\\x90\\x03\\x00\\x01\\x01")),
    ]
    run(agent.client.open(f"mqtt://127.0.0.1:{broker.port}", "van", Settings(opening=opening)))
    with Door(agent, clean_session=False) as door:
        assert door.logins.get(timeout=PATIENCE) is True
        broker.publish("one")
        assert door.messages.get(timeout=PATIENCE) == "one"
        assert broker.logins() == 1, "the agent's alone"
        broker.end()
        broker.start()
        assert door.logins.get(timeout=PATIENCE) is True
        broker.publish("two")
        assert door.messages.get(timeout=PATIENCE) == "two"
        assert broker.logins() == 1


def test_a_program_with_an_event_loop_connects_as_well(agent: Agent, broker: Broker) -> None:
    async def body() -> None:
        await agent.client.open(f"mqtt://127.0.0.1:{broker.port}", "van")
        with Door(agent) as door:
            assert await asyncio.get_running_loop().run_in_executor(None, door.logins.get, True, PATIENCE) is False

    run(body())


def test_what_the_agent_refuses_is_a_connection_error_with_its_words(agent: Agent) -> None:
    with pytest.raises(ConnectionError, match="NoSuchConnection"):
        Door(agent).client.connect("van")
    agent.end()
    with pytest.raises(ConnectionError, match="is not running"):
        Door(agent).client.connect("van")


def test_the_example_for_paho_mqtt_2_prints_what_is_published(agent: Agent, broker: Broker) -> None:
    run(agent.client.open(f"mqtt://127.0.0.1:{broker.port}", "van"))
    example = pathlib.Path(__file__).parent.parent / "examples" / "door.py"
    environment = {**os.environ, "DIALTONE_SOCKET": agent.client.paths[0], "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(
        [sys.executable, "-B", str(example), "van"], env=environment, stdout=subprocess.PIPE, text=True
    ) as door:
        try:
            broker.wait_for("Sending SUBACK to door")
            broker.publish("ring")
            assert door.stdout is not None and door.stdout.readline() == "ring\n"
        finally:
            door.kill()
