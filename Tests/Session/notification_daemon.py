# SPDX-License-Identifier: Apache-2.0
"""A notification daemon and a portal that note what they are told, and do as the test says.

    notification_daemon.py LOG [CAPABILITY...]

It serves org.freedesktop.Notifications, or the portal with the capability "portal", and writes each call to LOG, a line
of JSON each. By org.example.Test, Close(id, reason) and Press(id, action) have it send those signals.
"""

import json
import os
import sys

from gi.repository import Gio, GLib

LOG, CAPABILITIES = sys.argv[1], sys.argv[2:]
DAEMON = """<node><interface name='org.freedesktop.Notifications'>
<method name='GetCapabilities'><arg type='as' direction='out'/></method>
<method name='GetServerInformation'><arg type='s' direction='out'/><arg type='s' direction='out'/>
<arg type='s' direction='out'/><arg type='s' direction='out'/></method>
<method name='Notify'><arg type='s'/><arg type='u'/><arg type='s'/><arg type='s'/><arg type='s'/><arg type='as'/>
<arg type='a{sv}'/><arg type='i'/><arg type='u' direction='out'/></method>
<method name='CloseNotification'><arg type='u'/></method></interface></node>"""
PORTAL = """<node><interface name='org.freedesktop.portal.Notification'>
<method name='AddNotification'><arg type='s'/><arg type='a{sv}'/></method>
<method name='RemoveNotification'><arg type='s'/></method></interface></node>"""
TEST = """<node><interface name='org.example.Test'>
<method name='Close'><arg type='u'/><arg type='u'/></method>
<method name='Press'><arg type='s'/><arg type='s'/></method></interface></node>"""
IS_PORTAL = "portal" in CAPABILITIES
NAME = "org.freedesktop.portal.Desktop" if IS_PORTAL else "org.freedesktop.Notifications"
PATH = "/org/freedesktop/portal/desktop" if IS_PORTAL else "/org/freedesktop/Notifications"
INTERFACE = "org.freedesktop.portal.Notification" if IS_PORTAL else NAME

next_id = 1


def note(*words):
    with open(LOG, "a") as log:
        log.write(json.dumps(words) + "\n")


def emit(connection, signal, types, *arguments):
    connection.emit_signal(None, PATH, INTERFACE, signal, GLib.Variant(types, arguments))


def called(connection, sender, path, interface, method, parameters, invocation):
    global next_id
    arguments = parameters.unpack()
    answer = None
    if method == "GetCapabilities":
        answer = GLib.Variant("(as)", (CAPABILITIES,))
    elif method == "GetServerInformation":
        answer = GLib.Variant("(ssss)", ("Notification Daemon" if "gnome" in CAPABILITIES else "recorder", "dialtone", "1.0", "1.2"))
    elif method == "Notify":
        note(method, *arguments)
        if "full" in CAPABILITIES:
            return invocation.return_dbus_error("org.example.Full", "too many")
        answer = GLib.Variant("(u)", (arguments[1] or next_id,))
        next_id += 0 if arguments[1] else 1
    elif method == "Close":
        emit(connection, "NotificationClosed", "(uu)", *arguments)
    elif method == "Press" and IS_PORTAL:
        emit(connection, "ActionInvoked", "(ssav)", *arguments, [])
    elif method == "Press":
        emit(connection, "ActionInvoked", "(us)", int(arguments[0]), arguments[1])
    else:
        note(method, *arguments)
        if method == "CloseNotification":
            emit(connection, "NotificationClosed", "(uu)", arguments[0], 3)
    invocation.return_value(answer)


def main():
    connection = Gio.DBusConnection.new_for_address_sync(
        os.environ["DBUS_SESSION_BUS_ADDRESS"],
        Gio.DBusConnectionFlags.AUTHENTICATION_CLIENT | Gio.DBusConnectionFlags.MESSAGE_BUS_CONNECTION, None, None)
    for text in (PORTAL if IS_PORTAL else DAEMON, TEST):
        connection.register_object(PATH, Gio.DBusNodeInfo.new_for_xml(text).interfaces[0], called)
    flags = Gio.BusNameOwnerFlags.REPLACE | Gio.BusNameOwnerFlags.ALLOW_REPLACEMENT
    Gio.bus_own_name_on_connection(connection, NAME, flags, lambda *_: note("serves"), None)
    GLib.MainLoop().run()


main()
