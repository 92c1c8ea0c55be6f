#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A UnifiedPush distributor without a push server: the bus starts it, and a test has it send what it likes.

It is written after the specification (DBUS 0.3.0), with GLib's D-Bus and nothing of Dialtone's. The first argument is a
file that says why registrations fail; where there is none, they succeed.
"""

import base64
import json
import os
import sys

from gi.repository import Gio, GLib

SPECIFIED = """
<node>
  <interface name="org.unifiedpush.Distributor2">
    <method name="Register"><arg type="a{sv}" direction="in"/><arg type="a{sv}" direction="out"/></method>
    <method name="Unregister"><arg type="a{sv}" direction="in"/><arg type="a{sv}" direction="out"/></method>
  </interface>
  <interface name="org.example.Test">
    <method name="Send">
      <arg name="token" type="s" direction="in"/><arg name="message" type="s" direction="in"/>
      <arg name="id" type="s" direction="in"/><arg name="answer" type="s" direction="out"/>
    </method>
    <method name="Tell">
      <arg name="method" type="s" direction="in"/><arg name="arguments" type="a{ss}" direction="in"/>
      <arg name="answer" type="s" direction="out"/>
    </method>
    <method name="State"><arg type="s" direction="out"/></method>
    <method name="Quit"/>
  </interface>
</node>
"""

service = "org.example.Phone"
registrations = {}
log = []
pending = 0
loop = GLib.MainLoop()


def text(answer):
    return json.dumps(answer, sort_keys=True)


def texts(values):
    return {key: GLib.Variant("s", value) for key, value in values.items()}


def call(connection, method, arguments, then):
    """Calls the app's connector, and `then` with what it answers in words."""
    global pending

    def answered(connection, result):
        global pending
        pending -= 1
        try:
            then(text(connection.call_finish(result).unpack()[0]))
        except GLib.Error as error:
            then(Gio.DBusError.get_remote_error(error) or str(error))

    pending += 1
    connection.call(
        service, "/org/unifiedpush/Connector", "org.unifiedpush.Connector2", method,
        GLib.Variant("(a{sv})", (arguments,)), GLib.VariantType("(a{sv})"), Gio.DBusCallFlags.NONE, 60_000, None,
        answered)


def called(connection, sender, path, interface, method, parameters, invocation):
    global service
    arguments = parameters.unpack()
    if method == "Register":
        (registration,) = arguments
        log.append(registration)
        service = registration["service"]
        reason = open(sys.argv[1]).read().strip() if os.path.exists(sys.argv[1]) else ""
        answer = {"success": "REGISTRATION_SUCCEEDED"}
        if reason:
            answer = {"success": "REGISTRATION_FAILED", "reason": reason}
        invocation.return_value(GLib.Variant("(a{sv})", (texts(answer),)))
        if not reason:
            registrations[registration["token"]] = registration
            endpoint = "https://push.example.net/" + registration["token"]
            call(connection, "NewEndpoint", texts({"token": registration["token"], "endpoint": endpoint}), log.append)
    elif method == "Unregister":
        registrations.pop(arguments[0]["token"], None)
        invocation.return_value(GLib.Variant("(a{sv})", ({},)))
    elif method == "Send":
        token, message, name = arguments
        values = {"token": GLib.Variant("s", token), "message": GLib.Variant("ay", base64.b64decode(message))}
        if name:
            values["id"] = GLib.Variant("s", name)
        call(connection, "Message", values, lambda answer: invocation.return_value(GLib.Variant("(s)", (answer,))))
    elif method == "Tell":
        name, values = arguments
        call(connection, name, texts(values), lambda answer: invocation.return_value(GLib.Variant("(s)", (answer,))))
    elif method == "State":
        state = {"registrations": registrations, "log": log, "pending": pending}
        invocation.return_value(GLib.Variant("(s)", (text(state),)))
    elif method == "Quit":
        invocation.return_value(None)
        connection.flush_sync()
        loop.quit()


def acquired(connection, name):
    for interface in Gio.DBusNodeInfo.new_for_xml(SPECIFIED).interfaces:
        connection.register_object("/org/unifiedpush/Distributor", interface, called, None, None)


Gio.bus_own_name(
    Gio.BusType.SESSION, "org.unifiedpush.Distributor.test", Gio.BusNameOwnerFlags.NONE, acquired, None,
    lambda *_: loop.quit())
loop.run()
