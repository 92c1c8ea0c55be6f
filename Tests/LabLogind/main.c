// SPDX-License-Identifier: Apache-2.0
//
// What logind shows on the system bus of the machine's sleep, and nothing else of it. Says "ready" once it has its name
// on the bus, then what is done to it:
//
//   locked WHAT MODE WHO       somebody holds a lock
//   let go                     of it
//
// and does what it reads:
//
//   sleep                      tells that the machine goes to sleep
//   wake                       tells that it is awake again
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <systemd/sd-bus.h>
#include <unistd.h>

#define ROOT "/org/freedesktop/login1"
#define SERVICE "org.freedesktop.login1"
#define MANAGER "org.freedesktop.login1.Manager"

static sd_bus *bus;
static sd_event *loop;

static void check(int result, const char *operation) {
    if (result >= 0) return;
    fprintf(stderr, "lab-logind: %s: %s\n", operation, strerror(-result));
    exit(71);
}

static void say(const char *text) {
    puts(text);
    fflush(stdout);
}

static int let_go(sd_event_source *source, int descriptor, uint32_t events, void *data) {
    sd_event_source_disable_unref(source);
    close(descriptor);
    say("let go");
    return 0;
}

static int inhibit(sd_bus_message *call, void *data, sd_bus_error *error) {
    const char *what, *who, *why, *mode;
    check(sd_bus_message_read(call, "ssss", &what, &who, &why, &mode), "reading");
    int ends[2];
    check(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) < 0 ? -errno : 0, "making a lock");
    check(sd_event_add_io(loop, NULL, ends[0], 0, let_go, NULL), "watching the lock");
    int result = sd_bus_reply_method_return(call, "h", ends[1]);
    close(ends[1]);
    printf("locked %s %s %s\n", what, mode, who);
    fflush(stdout);
    return result;
}

static const sd_bus_vtable table[] = {
    SD_BUS_VTABLE_START(0),
    SD_BUS_METHOD("Inhibit", "ssss", "h", inhibit, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_SIGNAL("PrepareForSleep", "b", 0),
    SD_BUS_VTABLE_END,
};

static int input(sd_event_source *source, int descriptor, uint32_t events, void *data) {
    char line[64];
    // A line each, and the next one after what came of this.
    ssize_t got = read(descriptor, line, sizeof line - 1);
    if (got <= 0) exit(0);
    line[got] = 0;
    int sleeps = !strcmp(line, "sleep\n");
    if (!sleeps && strcmp(line, "wake\n")) exit(64);
    check(sd_bus_emit_signal(bus, ROOT, MANAGER, "PrepareForSleep", "b", sleeps), "telling");
    check(sd_bus_flush(bus), "telling");
    return 0;
}

int main(void) {
    check(sd_event_default(&loop), "making a loop");
    check(sd_bus_open_system(&bus), "connecting");
    check(sd_bus_add_object_vtable(bus, NULL, ROOT, MANAGER, table, NULL), "adding");
    check(sd_bus_request_name(bus, SERVICE, 0), "taking the name");
    check(sd_bus_attach_event(bus, loop, 0), "attaching");
    check(sd_event_add_io(loop, NULL, STDIN_FILENO, 1, input, NULL), "reading");
    say("ready");
    check(sd_event_loop(loop), "running");
    return 0;
}
