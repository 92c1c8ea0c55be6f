# SPDX-License-Identifier: Apache-2.0
"""An app's server, by PyPI's pywebpush: posts encrypted messages, one after the other, each once.

    push_sender.py TOKEN TOLD PREFIX FIRST LAST [PATIENCE]

TOKEN is what the app printed, TOLD the file of what it was told. For each message a line: the status of the answer, or
the name of the error, and whether the app had the message at that moment (`has`, `lacks`). It waits PATIENCE seconds for
an answer, 150 by default: prosody's service takes up to 120.
"""

import json
import sys

import requests
from pywebpush import WebPusher

TOKEN, TOLD, PREFIX, FIRST, LAST = sys.argv[1:6]
PATIENCE = int(sys.argv[6]) if len(sys.argv) > 6 else 150


def has(text):
    """Whether the app noted a message."""
    try:
        with open(TOLD, encoding="utf-8") as file:
            return any(json.loads(line).get("message") == text for line in file if line.endswith("\n"))
    except FileNotFoundError:
        return False


with requests.Session() as session:
    pusher = WebPusher(json.loads(TOKEN), requests_session=session)
    for number in range(int(FIRST), int(LAST) + 1):
        text = f"{PREFIX} {number}"
        try:
            status = pusher.send(text, headers={"Urgency": "high"}, ttl=3600, timeout=PATIENCE).status_code
        except requests.RequestException as error:
            status = type(error).__name__
        print(status, "has" if has(text) else "lacks", flush=True)
