# SPDX-License-Identifier: Apache-2.0
"""An app's UnifiedPush connector with GLib's D-Bus, for tests.

usage: connector.py LOG COMMAND...

Writes what it sees to LOG, one JSON array a line. Commands, done in their order:
  own=NAME            owns a name
  behave=HOW          how Message is answered: taken (by default), silent, crash, error, other
  register2=JSON      calls Distributor2.Register with these strings
  register1=A,B,C     calls Distributor1.Register
  unregister2=TOKEN   calls Distributor2.Unregister
  unregister1=TOKEN   calls Distributor1.Unregister
  flood=N             calls Register so often without waiting, and then for all the answers
  introspect          what the distributor's Introspect says
  serve               serves until it is killed
"""
import json
import os
import sys

from gi.repository import Gio, GLib

DISTRIBUTOR = "org.unifiedpush.Distributor.Dialtone"
PATH = "/org/unifiedpush/Distributor"
CONNECTOR = """
<node>
  <interface name="org.unifiedpush.Connector2">
    <method name="Message"><arg type="a{sv}" direction="in"/><arg type="a{sv}" direction="out"/></method>
    <method name="NewEndpoint"><arg type="a{sv}" direction="in"/><arg type="a{sv}" direction="out"/></method>
    <method name="Unregistered"><arg type="a{sv}" direction="in"/><arg type="a{sv}" direction="out"/></method>
  </interface>
  <interface name="org.unifiedpush.Connector1">
    <method name="Message">
      <arg type="s" direction="in"/><arg type="ay" direction="in"/><arg type="s" direction="in"/>
    </method>
    <method name="NewEndpoint"><arg type="s" direction="in"/><arg type="s" direction="in"/></method>
    <method name="Unregistered"><arg type="s" direction="in"/></method>
  </interface>
</node>
"""
log_path, commands = sys.argv[1], sys.argv[2:]
behaviour = "taken"


def log(*words):
    with open(log_path, "a", encoding="utf-8") as file:
        file.write(json.dumps(words, sort_keys=True) + "\n")


def called(_bus, _sender, _path, interface, method, parameters, invocation):
    version = int(interface[-1])
    log(method, version, *parameters.unpack())
    if method == "Message" and behaviour == "silent":
        return
    if method == "Message" and behaviour == "crash":
        os._exit(1)
    if method == "Message" and behaviour == "error":
        invocation.return_dbus_error("org.example.Error.Broken", "cannot decrypt")
        return
    if version == 1:
        invocation.return_value(None)
        return
    answer = {}
    if method == "Message":
        identifier = "another" if behaviour == "other" else parameters.unpack()[0]["id"]
        answer["id"] = GLib.Variant("s", identifier)
    invocation.return_value(GLib.Variant("(a{sv})", (answer,)))


def strings(words):
    return GLib.Variant("(a{sv})", ({key: GLib.Variant("s", value) for key, value in words.items()},))


def call(method, parameters):
    interface, member = method.split(".")
    name = f"org.unifiedpush.{interface}"
    try:
        answer = bus.call_sync(DISTRIBUTOR, PATH, name, member, parameters, None, Gio.DBusCallFlags.NONE, 20000, None)
        log(method, *answer.unpack())
    except GLib.Error as error:
        log(method, Gio.DBusError.get_remote_error(error))


def flood(count):
    left = [count]

    def answered(_bus, result):
        left[0] -= 1
        try:
            log("flood", bus.call_finish(result).unpack()[0])
        except GLib.Error as error:
            log("flood", Gio.DBusError.get_remote_error(error))

    for number in range(count):
        parameters = strings({"service": "org.example.Flood", "token": f"token {number}"})
        bus.call(
            DISTRIBUTOR, PATH, "org.unifiedpush.Distributor2", "Register", parameters, None, Gio.DBusCallFlags.NONE,
            20000, None, answered)
    while left[0]:
        GLib.MainContext.default().iteration(True)


def introspect():
    answer = bus.call_sync(
        DISTRIBUTOR, PATH, "org.freedesktop.DBus.Introspectable", "Introspect", None, None, Gio.DBusCallFlags.NONE,
        20000, None)
    for interface in Gio.DBusNodeInfo.new_for_xml(answer.unpack()[0]).interfaces:
        for method in interface.methods:
            taken = [f"{argument.name}:{argument.signature}" for argument in method.in_args]
            given = [f"{argument.name}:{argument.signature}" for argument in method.out_args]
            notes = [f"{note.key}={note.value}" for note in method.annotations]
            log(interface.name, method.name, taken, given, notes)


bus = Gio.bus_get_sync(Gio.BusType.SESSION, None)
for interface in Gio.DBusNodeInfo.new_for_xml(CONNECTOR).interfaces:
    bus.register_object("/org/unifiedpush/Connector", interface, called, None, None)
for command in commands:
    word, _, value = command.partition("=")
    if word == "own":
        answer = bus.call_sync(
            "org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus", "RequestName",
            GLib.Variant("(su)", (value, 4)), None, Gio.DBusCallFlags.NONE, 20000, None)
        log("own", value, answer.unpack()[0])
    elif word == "behave":
        behaviour = value
    elif word == "register2":
        call("Distributor2.Register", strings(json.loads(value)))
    elif word == "register1":
        call("Distributor1.Register", GLib.Variant("(sss)", tuple(value.split(","))))
    elif word == "unregister2":
        call("Distributor2.Unregister", strings({"token": value}))
    elif word == "unregister1":
        call("Distributor1.Unregister", GLib.Variant("(s)", (value,)))
    elif word == "flood":
        flood(int(value))
    elif word == "introspect":
        introspect()
    elif word == "serve":
        log("serves")
        GLib.MainLoop().run()
