// SPDX-License-Identifier: Apache-2.0
//
// What systemd shows on a bus of the units that it starts and thaws, and nothing else of it. Says "ready" once it has its
// name on the bus, then what it is asked for:
//
//   start UNIT MODE
//   thaw UNIT
//
// The unit's name says what comes of it: "good" starts; "eager" is started before the answer is out; "broken" fails;
// "missing" is not there; "slow" starts when "finish" is read; "mute" gets no answer. Of jobs it tells those alone who
// subscribed, as systemd.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-bus.h>
#include <unistd.h>

#define ROOT "/org/freedesktop/systemd1"
#define SERVICE "org.freedesktop.systemd1"
#define MANAGER "org.freedesktop.systemd1.Manager"

static sd_bus *bus;
static int has_subscriber;
static unsigned job;

static void check(int result, const char *operation) {
    if (result >= 0) return;
    fprintf(stderr, "lab-systemd: %s: %s\n", operation, strerror(-result));
    exit(71);
}

static void removed(const char *unit, const char *result) {
    if (!has_subscriber) return;
    char path[64];
    snprintf(path, sizeof path, ROOT "/job/%u", job);
    check(sd_bus_emit_signal(bus, ROOT, MANAGER, "JobRemoved", "uoss", job, path, unit, result), "telling");
}

static int is(const char *unit, const char *kind) { return strncmp(unit, kind, strlen(kind)) == 0; }

static int start(sd_bus_message *call, void *data, sd_bus_error *error) {
    const char *unit, *mode;
    check(sd_bus_message_read(call, "ss", &unit, &mode), "reading");
    printf("start %s %s\n", unit, mode);
    fflush(stdout);
    if (is(unit, "missing"))
        return sd_bus_error_setf(error, SERVICE ".NoSuchUnit", "Unit %s not found.", unit);
    if (is(unit, "mute")) return 1;
    char path[64];
    snprintf(path, sizeof path, ROOT "/job/%u", ++job);
    if (is(unit, "eager")) removed(unit, "done");
    int result = sd_bus_reply_method_return(call, "o", path);
    if (is(unit, "good")) removed(unit, "done");
    if (is(unit, "broken")) removed(unit, "failed");
    return result;
}

static int thaw(sd_bus_message *call, void *data, sd_bus_error *error) {
    const char *unit;
    check(sd_bus_message_read(call, "s", &unit), "reading");
    printf("thaw %s\n", unit);
    fflush(stdout);
    if (is(unit, "missing"))
        return sd_bus_error_setf(error, SERVICE ".NoSuchUnit", "Unit %s not loaded.", unit);
    return sd_bus_reply_method_return(call, "");
}

static int subscribe(sd_bus_message *call, void *data, sd_bus_error *error) {
    has_subscriber = 1;
    return sd_bus_reply_method_return(call, "");
}

static const sd_bus_vtable table[] = {
    SD_BUS_VTABLE_START(0),
    SD_BUS_METHOD("StartUnit", "ss", "o", start, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD("ThawUnit", "s", "", thaw, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD("Subscribe", "", "", subscribe, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_SIGNAL("JobRemoved", "uoss", 0),
    SD_BUS_VTABLE_END,
};

static int input(sd_event_source *source, int descriptor, uint32_t events, void *data) {
    char line[64];
    ssize_t got = read(descriptor, line, sizeof line - 1);
    if (got <= 0) exit(0);
    line[got] = 0;
    if (strcmp(line, "finish\n")) exit(64);
    removed("slow.service", "done");
    return 0;
}

int main(void) {
    sd_event *loop;
    check(sd_event_default(&loop), "making a loop");
    check(sd_bus_open_system(&bus), "connecting");
    check(sd_bus_add_object_vtable(bus, NULL, ROOT, MANAGER, table, NULL), "adding");
    check(sd_bus_request_name(bus, SERVICE, 0), "taking the name");
    check(sd_bus_attach_event(bus, loop, 0), "attaching");
    check(sd_event_add_io(loop, NULL, STDIN_FILENO, 1, input, NULL), "reading");
    puts("ready");
    fflush(stdout);
    check(sd_event_loop(loop), "running");
    return 0;
}
