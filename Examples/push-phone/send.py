#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The server of a phone: says that somebody calls. It needs PyPI's pywebpush.

    send.py TOKEN-FILE TEXT        TOKEN-FILE has what the phone printed
"""

import json
import sys

from pywebpush import WebPushException, webpush


def call(subscription, text):
    """Sends a push that is worth something for half a minute, and for which the device is to be woken."""
    try:
        webpush(
            subscription_info=subscription,
            data=text,
            ttl=30,
            headers={"Urgency": "high", "Topic": "call"},
            timeout=150,
        )
    except WebPushException as error:
        status = error.response.status_code if error.response is not None else None
        if status in (404, 410):
            return "the token is over: forget it, and wait for the phone's next one"
        return f"not delivered: {error}"
    return "taken"


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    with open(sys.argv[1]) as file:
        print(call(json.load(file), sys.argv[2]))
