// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <sys/types.h>

// A client of the agent that takes the flow of a connection when it is told to, answers what is there, and parks it. It
// outlives the agent, and says "following" when it is told of events. With `stops` it asks for no events and stops
// itself (SIGSTOP) whenever it has parked.
int run_taker(const char *path, const char *name, bool stops);

// Bare wakers: a process with the socket that waits in poll(2), and wakes whoever reads it.
int run_signal_waker(int connection);
int run_thaw_waker(int connection, const char *group);
int run_launching_waker(int connection, const char *program);

// A service manager in little: listens for the agent, keeps its descriptors, and starts it again when it ends.
int run_manager(const char *path, char **command);

// fork(2) of a child that does not outlive this process.
pid_t fork_child(void);

// Ends the process with an error's name.
void fail(const char *what);
