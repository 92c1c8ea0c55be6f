#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What UPower shows on the bus of the battery, and nothing else of it (org.freedesktop.UPower's D-Bus reference).

`gdbus call … org.example.Test.Set NAME VALUE` changes a property, and tells it as UPower does. It starts as on a
machine without a battery.
"""

from gi.repository import Gio, GLib

XML = """
<node>
  <interface name="{}">{}</interface>
</node>
"""
ROOT = ("/org/freedesktop/UPower", "org.freedesktop.UPower", {"OnBattery": GLib.Variant("b", False)})
BATTERY = (
    "/org/freedesktop/UPower/devices/DisplayDevice", "org.freedesktop.UPower.Device",
    {"Type": GLib.Variant("u", 0), "Percentage": GLib.Variant("d", 0)})

bus = Gio.bus_get_sync(Gio.BusType.SESSION)


def interface(name, inside):
    (made,) = Gio.DBusNodeInfo.new_for_xml(XML.format(name, inside)).interfaces
    return made


def show(path, name, values):
    members = "".join(
        f'<property name="{key}" type="{value.get_type_string()}" access="read"/>' for key, value in values.items())
    bus.register_object(path, interface(name, members), None, lambda *call: values[call[4]], None)


def change(connection, sender, path, name, method, parameters, call):
    key, value = parameters.get_child_value(0).get_string(), parameters.get_child_value(1).get_variant()
    (path, name, values) = next(each for each in (ROOT, BATTERY) if key in each[2])
    values[key] = value
    bus.emit_signal(
        None, path, "org.freedesktop.DBus.Properties", "PropertiesChanged",
        GLib.Variant("(sa{sv}as)", (name, {key: value}, [])))
    call.return_value(None)


show(*ROOT)
show(*BATTERY)
bus.register_object(
    "/org/example/Test",
    interface(
        "org.example.Test", '<method name="Set"><arg type="s" direction="in"/><arg type="v" direction="in"/></method>'),
    change)
Gio.bus_own_name_on_connection(bus, ROOT[1], Gio.BusNameOwnerFlags.NONE, None, None)
GLib.MainLoop().run()
