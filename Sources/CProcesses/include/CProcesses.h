// SPDX-License-Identifier: Apache-2.0
//
// Starting a program from a process with threads, and holding on to processes: what Swift cannot write, since nothing of
// its runtime may run between fork and exec.
#pragma once

// What a program is started with. Everything is prepared beforehand; the child allocates nothing.
struct activation_program {
    const char *path;
    char *const *arguments;
    // LISTEN_PID= stands in it with room for a number, see `process_identifier`.
    char *const *environment;
    // Behind LISTEN_PID= in the environment: the child writes its own number there. NULL for none.
    char *process_identifier;
    const char *directory;
    // Descriptors to become 0, 1, 2 and so on; each may stand more than once.
    const int *descriptors;
    unsigned int descriptor_count;
    // The place among them of one whose reads are to wait; -1 for none.
    int blocking;
    // Whose the process is to be; not looked at unless `changes_user`.
    int changes_user;
    unsigned int uid;
    unsigned int gid;
    const unsigned int *groups;
    unsigned int group_count;
};

// Where a start failed; the steps as Swift names them.
enum activation_step {
    activation_step_session = 1,
    activation_step_descriptors,
    activation_step_user,
    activation_step_privileges,
    activation_step_exec,
    activation_step_leave,
};

struct activation_failure {
    int step;
    int code;
};

// Starts a process that becomes a program as soon as it has leave to. Returns its number, or -1 with errno. `*report` is
// for the caller to read and close: its end says that the program runs, an `activation_failure` in it that it does not.
// `*leave` is for `activation_give_leave`, and for the caller to close: without leave by then, the process ends.
int activation_start(const struct activation_program *program, int *report, int *leave);

// Lets a process become its program. Returns -1 with errno where it has ended.
int activation_give_leave(int leave);

// pidfd_open(2), Linux 5.3.
int activation_open_process(int process);

// A descriptor of the process that connected to a Unix socket, as the kernel noted it then. Before Linux 6.5 it is the one
// that has its number now.
int activation_peer_process(int socket);

// Whether a socket is the accepted end of a connection to the socket of this path.
int activation_was_accepted(int socket, const char *path);

// pidfd_send_signal(2), Linux 5.1. Signal 0 asks whether the process lives.
int activation_signal(int process_descriptor, int number);

// pidfd_getfd(2), Linux 5.6: a copy of a descriptor of another process.
int activation_copy_descriptor(int process_descriptor, int number);

// The number that no other process has had since the start of the machine: that of the descriptor's file, since Linux 6.9
// gave each process one of its own. 0 where the kernel does not.
unsigned long long activation_process_identity(int process_descriptor);

// Becomes a program that finds what is the standard input of this process as descriptor 3, and nothing to read. Returns -1
// with errno where that fails.
int activation_pass_socket(const char *path, char *const *arguments);

// Opens a file of a control group, whose directory's path may hold no symbolic link (openat2(2), Linux 5.6). -1 with errno;
// -2 where the directory is none of a control group of version 2.
int activation_open_group_file(const char *directory, const char *file, int flags);

// Takes the end of a child: 1 with how it ended, 0 while it runs, -1 with errno. P_PIDFD, Linux 5.4.
int activation_reap(int process_descriptor, int *killed, int *status);
