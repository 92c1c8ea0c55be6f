// SPDX-License-Identifier: Apache-2.0
//
// The system calls of the Lab that Swift cannot make itself: variadic ones, those behind _GNU_SOURCE, and the ones
// that must happen between vfork(2) and execve(2). Each returns -1 with errno set on failure.
#pragma once

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sys/socket.h>
#include <sys/types.h>

// Moves the calling thread, alone, into a new network namespace, and into a new mount namespace whose /sys shows it.
// Where sysfs may not be mounted, /sys keeps showing the old one; everything else works.
int clab_enter_new_network(void);

// Moves the calling thread into the network namespace that `descriptor` refers to.
int clab_enter_network(int descriptor);

// The calling thread's number, under which /proc and rtnetlink know its namespaces.
pid_t clab_thread_id(void);

// Starts `argv[0]`, found by PATH, as a child of the calling thread, in that thread's namespaces, with the three
// descriptors as its standard ones and no other, and with default signal handling. The kernel kills the child when
// the calling thread ends. A program that cannot be started is an error of this call.
pid_t clab_spawn(char *const argv[], int input, int output, int error);

// pipe2(2), which <unistd.h> declares behind _GNU_SOURCE.
int pipe2(int descriptors[2], int flags);

// A descriptor that becomes readable when the child `pid` ends.
int clab_watch_exit(pid_t pid);

// Attaches to the TUN device `name`, which exists: it has a carrier for as long as the descriptor is open.
int clab_attach_tun(const char *name);

// A pair of connected Unix sockets whose ends take each other for processes of `user` (SO_PEERCRED notes the effective
// user of the caller). Only for root; EINVAL where the user does not exist in the caller's user namespace.
int clab_socket_pair_as(uid_t user, int pair[2]);

// connect(2) on a Unix socket whose other end takes this one for a process of `user`. Conditions as above.
int clab_connect_as(uid_t user, int descriptor, const struct sockaddr *address, socklen_t length);
