// SPDX-License-Identifier: Apache-2.0
//
// What systemd shows on a bus of the units that it starts and thaws, and nothing else of it:
//
//   lab-systemd [DIRECTORY]    transient units have control groups of their own, below this one
//
// Says "ready" once it has its name on the bus, then what it is asked for:
//
//   start UNIT MODE
//   stop UNIT MODE
//   thaw UNIT
//   transient UNIT MODE    followed by a line NAME=VALUE for each property, and "read" or "refused"
//   gone UNIT              nothing is left of a transient unit
//
// It reads "refuse", "ignore" or "accept", which concern transient units from then on, and says it again.
//
// A unit's name says what comes of its start: "good" starts; "eager" is started before the answer is out; "broken"
// fails; "missing" is not there; "slow" starts when "finish" is read; "mute" gets no answer. The program of a transient
// unit is run. Of jobs it tells those alone who subscribed, as systemd.
#include "lab-systemd.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

sd_bus *bus;
static int has_subscriber;
static unsigned job;

void check(int result, const char *operation) {
    if (result >= 0) return;
    fprintf(stderr, "lab-systemd: %s: %s\n", operation, strerror(-result));
    exit(71);
}

static void job_path(char path[64]) { snprintf(path, 64, ROOT "/job/%u", job); }

void job_ended(const char *unit, const char *result) {
    if (!has_subscriber) return;
    char path[64];
    job_path(path);
    check(sd_bus_emit_signal(bus, ROOT, MANAGER, "JobRemoved", "uoss", job, path, unit, result), "telling");
}

int answer_with_job(sd_bus_message *call) {
    char path[64];
    job++;
    job_path(path);
    return sd_bus_reply_method_return(call, "o", path);
}

static int is(const char *unit, const char *kind) { return strncmp(unit, kind, strlen(kind)) == 0; }

static int begin(sd_bus_message *call, const char *unit, sd_bus_error *error) {
    if (is(unit, "missing"))
        return sd_bus_error_setf(error, SERVICE ".NoSuchUnit", "Unit %s not found.", unit);
    if (is(unit, "mute")) return 1;
    if (is(unit, "eager")) {
        char path[64];
        job++;
        job_path(path);
        job_ended(unit, "done");
        return sd_bus_reply_method_return(call, "o", path);
    }
    int result = answer_with_job(call);
    if (is(unit, "good")) job_ended(unit, "done");
    if (is(unit, "broken")) job_ended(unit, "failed");
    return result;
}

static int start(sd_bus_message *call, void *data, sd_bus_error *error) {
    const char *unit, *mode;
    check(sd_bus_message_read(call, "ss", &unit, &mode), "reading");
    int result = begin(call, unit, error);
    // Only now: who reads this may end the process before anything else is sent.
    check(sd_bus_flush(bus), "answering");
    printf("start %s %s\n", unit, mode);
    fflush(stdout);
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
    SD_BUS_METHOD("StartTransientUnit", "ssa(sv)a(sa(sv))", "o", start_transient_unit, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD("StopUnit", "ss", "o", stop_unit, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD("UnrefUnit", "s", "", release_unit, SD_BUS_VTABLE_UNPRIVILEGED),
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
    if (take_order(line) == 0) {
        fputs(line, stdout);
        fflush(stdout);
        return 0;
    }
    if (strcmp(line, "finish\n")) exit(64);
    job_ended("slow.service", "done");
    return 0;
}

int main(int count, char *arguments[]) {
    sd_event *loop;
    sigset_t children;
    if (count > 1) make_groups_below(arguments[1]);
    // Their ends are read from the loop.
    sigemptyset(&children);
    sigaddset(&children, SIGCHLD);
    sigprocmask(SIG_BLOCK, &children, NULL);
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
