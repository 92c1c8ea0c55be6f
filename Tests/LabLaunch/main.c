// SPDX-License-Identifier: Apache-2.0
//
// Starts a program with less, or with more, than a shell gives it:
//
//   lab-launch [--refuse FAMILY ERRNO]… [--fail CALL ERRNO]… [--listen PATH NAME] PROGRAM [ARGUMENT…]
//
//   --refuse    socket(2) of that address family fails with that error, as in a sandbox (seccomp(2))
//   --fail      epoll_create1 or timerfd_create fails with that error, as where descriptors have run out
//   --listen    a socket that listens on PATH is passed as a service manager does, sd_listen_fds(3), under NAME;
//               with PATH "-" an unconnected one, which is no listening socket
#define _GNU_SOURCE

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

// The descriptor that sd_listen_fds(3) begins with.
enum { FIRST = 3 };

static void fail(const char *operation) {
    fprintf(stderr, "lab-launch: %s: %s\n", operation, strerror(errno));
    exit(71);
}

static void install(struct sock_filter *filter, unsigned short count) {
    struct sock_fprog program = {.len = count, .filter = filter};
    // Without it only root may install a filter.
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) fail("giving up new privileges");
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) fail("installing the filter");
}

// The architecture is not looked at: the program is of the same as this one.
static void refuse_call(unsigned number, unsigned code) {
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | code),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    install(filter, sizeof filter / sizeof *filter);
}

static void refuse(unsigned family, unsigned code) {
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, family, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | code),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    install(filter, sizeof filter / sizeof *filter);
}

static void pass(const char *path, const char *name) {
    int number = socket(AF_UNIX, SOCK_STREAM, 0);
    if (number < 0) fail("making a socket");
    if (strcmp(path, "-") != 0) {
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
        if (bind(number, (struct sockaddr *)&address, sizeof address) != 0) fail(path);
        if (listen(number, 16) != 0) fail(path);
    }
    if (number != FIRST) {
        if (dup2(number, FIRST) < 0) fail("moving the socket");
        close(number);
    }
    char text[16];
    snprintf(text, sizeof text, "%d", (int)getpid());
    setenv("LISTEN_PID", text, 1);
    setenv("LISTEN_FDS", "1", 1);
    setenv("LISTEN_FDNAMES", name, 1);
}

int main(int count, char *arguments[]) {
    int next = 1;
    while (next + 3 < count && strncmp(arguments[next], "--", 2) == 0) {
        if (strcmp(arguments[next], "--refuse") == 0) {
            refuse((unsigned)atoi(arguments[next + 1]), (unsigned)atoi(arguments[next + 2]));
        } else if (strcmp(arguments[next], "--fail") == 0) {
            int is_epoll = strcmp(arguments[next + 1], "epoll_create1") == 0;
            refuse_call(is_epoll ? SYS_epoll_create1 : SYS_timerfd_create, (unsigned)atoi(arguments[next + 2]));
        } else if (strcmp(arguments[next], "--listen") == 0) {
            pass(arguments[next + 1], arguments[next + 2]);
        } else {
            break;
        }
        next += 3;
    }
    if (next >= count || strncmp(arguments[next], "--", 2) == 0) {
        fputs("usage: lab-launch [--refuse FAMILY ERRNO]… [--fail CALL ERRNO]… [--listen PATH NAME] PROGRAM [ARGUMENT…]\n",
              stderr);
        return 64;
    }
    execvp(arguments[next], arguments + next);
    fail(arguments[next]);
}
