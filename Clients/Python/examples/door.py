#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints what is published on the topic "bell", by paho-mqtt over a connection of the agent.

    door.py NAME
"""

import sys
import typing

import paho.mqtt.client as mqtt
from paho.mqtt.enums import CallbackAPIVersion

from dialtone_client.paho import Client


def subscribe(client: mqtt.Client, *_: typing.Any) -> None:
    client.subscribe("bell", qos=1)


def show(client: mqtt.Client, data: typing.Any, message: mqtt.MQTTMessage) -> None:
    print(message.payload.decode(errors="replace"), flush=True)


def main(name: str) -> None:
    client = Client(CallbackAPIVersion.VERSION2, "door")
    client.on_connect = subscribe
    client.on_message = show
    client.connect(name)
    client.loop_forever()


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    try:
        main(sys.argv[1])
    except OSError as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        pass
