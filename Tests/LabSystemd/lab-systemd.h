// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>

#define ROOT "/org/freedesktop/systemd1"
#define SERVICE "org.freedesktop.systemd1"
#define MANAGER "org.freedesktop.systemd1.Manager"

extern sd_bus *bus;

// Ends the process where a call of the library has failed.
void check(int result, const char *operation);

// Begins a job, and answers a call with its path.
int answer_with_job(sd_bus_message *call);

// The last job, which was one of this unit, has ended.
void job_ended(const char *unit, const char *result);

// What is said of the transient units that come: "refuse", "ignore" or "accept", and the end of a line. 0 where it is
// one of these.
int take_order(const char *line);

// Below this control group each transient unit has one of its own.
void make_groups_below(const char *directory);

// Methods of the manager.
int start_transient_unit(sd_bus_message *call, void *data, sd_bus_error *error);
int stop_unit(sd_bus_message *call, void *data, sd_bus_error *error);
int release_unit(sd_bus_message *call, void *data, sd_bus_error *error);
