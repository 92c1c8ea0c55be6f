// SPDX-License-Identifier: Apache-2.0
//
// What NetworkManager shows on the system bus of the cost of its devices, and nothing else of it:
//
//   lab-network-manager [CONTROL DATA METERED]…
//
// Each device has the name of its control port, of its data interface (or "-" for none) and an NMMetered, as a number.
// Says "ready" once it has its name on the bus, then does what it reads, and answers "done":
//
//   metered DEVICE METERED     DEVICE is a place in the list, from 0
//   add CONTROL DATA METERED
//   remove DEVICE
//   strength DEVICE            news of a device that are none of the cost
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-bus.h>
#include <unistd.h>

#define ROOT "/org/freedesktop/NetworkManager"
#define MANAGER "org.freedesktop.NetworkManager"
#define DEVICE "org.freedesktop.NetworkManager.Device"
#define WIRELESS "org.freedesktop.NetworkManager.Device.Wireless"

struct device {
    char path[64];
    char control[16];
    char data[16];
    uint32_t metered;
    uint32_t strength;
    sd_bus_slot *slots[2];
};

enum { MOST = 8 };
static struct device devices[MOST];
static int count;
static sd_bus *bus;

static void check(int result, const char *operation) {
    if (result >= 0) return;
    fprintf(stderr, "lab-network-manager: %s: %s\n", operation, strerror(-result));
    exit(71);
}

static int text(sd_bus *b, const char *p, const char *i, const char *name, sd_bus_message *reply, void *data,
                sd_bus_error *e) {
    return sd_bus_message_append(reply, "s", (const char *)data);
}

static const sd_bus_vtable device_table[] = {
    SD_BUS_VTABLE_START(0),
    SD_BUS_PROPERTY("Driver", "s", text, offsetof(struct device, control), SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
    SD_BUS_PROPERTY("Interface", "s", text, offsetof(struct device, control), SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
    SD_BUS_PROPERTY("IpInterface", "s", text, offsetof(struct device, data), SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
    SD_BUS_PROPERTY("Metered", "u", NULL, offsetof(struct device, metered), SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
    SD_BUS_VTABLE_END,
};

static const sd_bus_vtable wireless_table[] = {
    SD_BUS_VTABLE_START(0),
    SD_BUS_PROPERTY("Bitrate", "u", NULL, offsetof(struct device, strength), SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
    SD_BUS_VTABLE_END,
};

static int get_devices(sd_bus_message *call, void *data, sd_bus_error *error) {
    sd_bus_message *reply = NULL;
    check(sd_bus_message_new_method_return(call, &reply), "answering");
    check(sd_bus_message_open_container(reply, 'a', "o"), "answering");
    for (int i = 0; i < count; i++) {
        if (devices[i].slots[0]) check(sd_bus_message_append(reply, "o", devices[i].path), "answering");
    }
    check(sd_bus_message_close_container(reply), "answering");
    int result = sd_bus_send(NULL, reply, NULL);
    sd_bus_message_unref(reply);
    return result;
}

static const sd_bus_vtable manager_table[] = {
    SD_BUS_VTABLE_START(0),
    SD_BUS_METHOD("GetDevices", "", "ao", get_devices, 0),
    SD_BUS_SIGNAL("DeviceAdded", "o", 0),
    SD_BUS_SIGNAL("DeviceRemoved", "o", 0),
    SD_BUS_VTABLE_END,
};

static struct device *add(const char *control, const char *data, const char *metered) {
    if (count == MOST) exit(64);
    struct device *device = &devices[count];
    snprintf(device->path, sizeof device->path, ROOT "/Devices/%d", ++count);
    snprintf(device->control, sizeof device->control, "%s", control);
    snprintf(device->data, sizeof device->data, "%s", strcmp(data, "-") ? data : "");
    device->metered = (uint32_t)atoi(metered);
    check(sd_bus_add_object_vtable(bus, &device->slots[0], device->path, DEVICE, device_table, device), "adding");
    check(sd_bus_add_object_vtable(bus, &device->slots[1], device->path, WIRELESS, wireless_table, device), "adding");
    return device;
}

static void obey(char *line) {
    char word[16] = "", a[16] = "", b[16] = "", c[16] = "";
    sscanf(line, "%15s %15s %15s %15s", word, a, b, c);
    struct device *device = &devices[atoi(a) % MOST];
    if (!strcmp(word, "metered")) {
        device->metered = (uint32_t)atoi(b);
        check(sd_bus_emit_properties_changed(bus, device->path, DEVICE, "Metered", NULL), "telling");
    } else if (!strcmp(word, "strength")) {
        device->strength++;
        check(sd_bus_emit_properties_changed(bus, device->path, WIRELESS, "Bitrate", NULL), "telling");
    } else if (!strcmp(word, "add")) {
        device = add(a, b, c);
        check(sd_bus_emit_signal(bus, ROOT, MANAGER, "DeviceAdded", "o", device->path), "telling");
    } else if (!strcmp(word, "remove")) {
        for (int i = 0; i < 2; i++) device->slots[i] = sd_bus_slot_unref(device->slots[i]);
        check(sd_bus_emit_signal(bus, ROOT, MANAGER, "DeviceRemoved", "o", device->path), "telling");
    }
    check(sd_bus_flush(bus), "telling");
    puts("done");
    fflush(stdout);
}

static int input(sd_event_source *source, int descriptor, uint32_t events, void *data) {
    static char buffer[1024];
    static size_t used;
    ssize_t got = read(descriptor, buffer + used, sizeof buffer - 1 - used);
    if (got <= 0) exit(0);
    used += (size_t)got;
    buffer[used] = 0;
    for (char *end; (end = strchr(buffer, '\n')); used = strlen(buffer)) {
        *end = 0;
        obey(buffer);
        memmove(buffer, end + 1, strlen(end + 1) + 1);
    }
    return 0;
}

int main(int argc, char **argv) {
    sd_event *loop = NULL;
    check(sd_event_default(&loop), "making a loop");
    check(sd_bus_open_system(&bus), "connecting");
    check(sd_bus_add_object_vtable(bus, NULL, ROOT, MANAGER, manager_table, NULL), "adding");
    for (int i = 1; i + 2 < argc; i += 3) add(argv[i], argv[i + 1], argv[i + 2]);
    check(sd_bus_request_name(bus, MANAGER, 0), "taking the name");
    check(sd_bus_attach_event(bus, loop, 0), "attaching");
    check(sd_event_add_io(loop, NULL, STDIN_FILENO, 1, input, NULL), "reading");
    puts("ready");
    fflush(stdout);
    check(sd_event_loop(loop), "running");
    return 0;
}
