#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""An app as UnifiedPush has it, by GLib's D-Bus: the session bus starts it, it notes what it is told, and exits.

    push_app.py NAME DIRECTORY [register TOKEN TYPE]

What it is told stands in DIRECTORY/told, a line of JSON each. With `register` it registers, and writes the answer to the
standard output. Files in DIRECTORY have it behave badly: `refuse` (answer with an error), `crash` (exit without an
answer), `hang` (never answer).
"""

import json
import os
import sys

from gi.repository import Gio, GLib

NAME, DIRECTORY = sys.argv[1:3]
QUIET_SECONDS = 2
XML = """
<node>
  <interface name="org.unifiedpush.Connector2">
    <method name="Message"><arg type="a{sv}" direction="in"/><arg type="a{sv}" direction="out"/></method>
    <method name="NewEndpoint"><arg type="a{sv}" direction="in"/><arg type="a{sv}" direction="out"/></method>
    <method name="Unregistered"><arg type="a{sv}" direction="in"/><arg type="a{sv}" direction="out"/></method>
  </interface>
</node>
"""

loop = GLib.MainLoop()
quiet = None


def wait_for_more():
    global quiet
    if quiet:
        GLib.source_remove(quiet)
    quiet = GLib.timeout_add_seconds(QUIET_SECONDS, loop.quit)


def has(file):
    return os.path.exists(f"{DIRECTORY}/{file}")


def told(connection, sender, path, interface, method, parameters, call):
    (arguments,) = parameters.unpack()
    wait_for_more()
    if "message" in arguments:
        arguments["message"] = bytes(arguments["message"]).decode("latin-1")
    if has("crash"):
        os._exit(3)
    if has("hang"):
        return
    if has("refuse"):
        return call.return_dbus_error("org.example.Error.Refused", "not today")
    # One write: a line is there or is not.
    line = json.dumps({"method": method, "process": os.getpid(), **arguments})
    with open(f"{DIRECTORY}/told", "ab", buffering=0) as file:
        file.write(line.encode() + b"\n")
    call.return_value(GLib.Variant("(a{sv})", ({},)))


bus = Gio.bus_get_sync(Gio.BusType.SESSION)
(interface,) = Gio.DBusNodeInfo.new_for_xml(XML).interfaces
bus.register_object("/org/unifiedpush/Connector", interface, told)
Gio.bus_own_name_on_connection(bus, NAME, Gio.BusNameOwnerFlags.NONE, lambda *_: begin(), None)


def begin():
    wait_for_more()
    if sys.argv[3:4] != ["register"]:
        return
    names = ("service", NAME), ("token", sys.argv[4]), ("org.dialtone.type", sys.argv[5])
    arguments = {name: GLib.Variant("s", text) for name, text in names}
    bus.call(
        "org.unifiedpush.Distributor.Dialtone", "/org/unifiedpush/Distributor", "org.unifiedpush.Distributor2",
        "Register", GLib.Variant("(a{sv})", (arguments,)), None, Gio.DBusCallFlags.NONE, 30_000, None, answered)


def answered(bus, result):
    try:
        print(json.dumps(bus.call_finish(result).unpack()[0]), flush=True)
    except GLib.Error as error:
        print(json.dumps({"error": error.message}), flush=True)


loop.run()
