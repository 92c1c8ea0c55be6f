// SPDX-License-Identifier: Apache-2.0
//
// Of a service manager, what the agent's survival takes: sd_listen_fds(3) and the descriptor store of sd_notify(3). It
// reads what it was told before it looks after a process that ended, as systemd does.
//
// On standard input it takes "k", on which it kills the agent; on standard output it says "killed NANOSECONDS" then,
// and "ready NANOSECONDS STORED" whenever the agent serves.
#define _GNU_SOURCE

#include "Sleeper.h"

#include <CAsking.h>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum { first_descriptor = 3, room = 512, name_size = 64 };

struct stored {
    int descriptor;
    char name[name_size];
};

struct manager {
    char **command;
    int listener;
    int notices;
    pid_t child;
    int child_handle;
    struct stored stored[room];
    int count;
};

// A Unix socket of its own on a path.
static int bound_socket(const char *path, int type) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    int number = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
    if (number < 0 || bind(number, (struct sockaddr *)&address, sizeof address) != 0) fail(path);
    return number;
}

// In the child: the descriptors from the third on, in order, and what is said of them.
static void pass_descriptors(const struct manager *manager) {
    char text[32], names[room * name_size] = "varlink";
    // Above the places that they go to.
    int sources[room + 1] = {fcntl(manager->listener, F_DUPFD_CLOEXEC, first_descriptor + room + 1)};
    for (int index = 0; index < manager->count; index++) {
        sources[index + 1] = fcntl(manager->stored[index].descriptor, F_DUPFD_CLOEXEC, first_descriptor + room + 1);
        strcat(strcat(names, ":"), manager->stored[index].name);
    }
    for (int index = 0; index <= manager->count; index++) dup2(sources[index], first_descriptor + index);
    close_range((unsigned)(first_descriptor + manager->count + 1), ~0u, 0);
    snprintf(text, sizeof text, "%d", (int)getpid());
    setenv("LISTEN_PID", text, 1);
    snprintf(text, sizeof text, "%d", manager->count + 1);
    setenv("LISTEN_FDS", text, 1);
    setenv("LISTEN_FDNAMES", names, 1);
    snprintf(text, sizeof text, "%d", room);
    setenv("FDSTORE", text, 1);
}

static void start(struct manager *manager) {
    manager->child = fork_child();
    if (manager->child == 0) {
        pass_descriptors(manager);
        execvp(manager->command[0], manager->command);
        fail(manager->command[0]);
    }
    manager->child_handle = (int)syscall(SYS_pidfd_open, manager->child, 0);
    if (manager->child_handle < 0) fail("pidfd_open");
}

// The value of a variable in a notice.
static bool value(const char *notice, const char *variable, char *result) {
    const char *place = strstr(notice, variable);
    if (place == NULL) return false;
    place += strlen(variable);
    size_t length = strcspn(place, "\n");
    if (length >= name_size) return false;
    memcpy(result, place, length);
    result[length] = 0;
    return true;
}

static void forget(struct manager *manager, const char *name) {
    int kept = 0;
    for (int index = 0; index < manager->count; index++) {
        if (strcmp(manager->stored[index].name, name) == 0) {
            close(manager->stored[index].descriptor);
        } else {
            manager->stored[kept++] = manager->stored[index];
        }
    }
    manager->count = kept;
}

static void heed(struct manager *manager, const char *notice, const int *descriptors, size_t count) {
    char name[name_size];
    bool is_named = value(notice, "FDNAME=", name);
    if (is_named && strstr(notice, "FDSTOREREMOVE=1") != NULL) forget(manager, name);
    for (size_t index = 0; index < count; index++) {
        if (!is_named || manager->count == room) {
            close(descriptors[index]);
            continue;
        }
        manager->stored[manager->count].descriptor = descriptors[index];
        strcpy(manager->stored[manager->count++].name, name);
    }
    if (strstr(notice, "READY=1") != NULL) {
        printf("ready %lld %d\n", (long long)bench_now(), manager->count);
        fflush(stdout);
    }
}

// Reads all that it was told.
static void read_notices(struct manager *manager) {
    for (;;) {
        char notice[4096];
        // A connection with TLS has several.
        int descriptors[16];
        char control[CMSG_SPACE(sizeof descriptors)];
        struct iovec part = {notice, sizeof notice - 1};
        struct msghdr header = {
            .msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
        ssize_t count = recvmsg(manager->notices, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
        if (count < 0) return;
        notice[count] = 0;
        size_t held = 0;
        struct cmsghdr *rights = CMSG_FIRSTHDR(&header);
        if (rights != NULL && rights->cmsg_type == SCM_RIGHTS) {
            held = (rights->cmsg_len - CMSG_LEN(0)) / sizeof(int);
            memcpy(descriptors, CMSG_DATA(rights), held * sizeof(int));
        }
        heed(manager, notice, descriptors, held);
    }
}

int run_manager(const char *path, char **command) {
    static struct manager manager;
    char notices[128];
    snprintf(notices, sizeof notices, "%s.notify", path);
    setenv("NOTIFY_SOCKET", notices, 1);
    manager.command = command;
    manager.notices = bound_socket(notices, SOCK_DGRAM);
    manager.listener = bound_socket(path, SOCK_STREAM);
    if (listen(manager.listener, 128) != 0) fail("listen");
    for (start(&manager);;) {
        struct pollfd waits[] = {
            {.fd = manager.notices, .events = POLLIN}, {.fd = manager.child_handle, .events = POLLIN},
            {.fd = STDIN_FILENO, .events = POLLIN}};
        if (poll(waits, 3, -1) < 0) continue;
        read_notices(&manager);
        if (waits[1].revents != 0) {
            waitpid(manager.child, NULL, 0);
            close(manager.child_handle);
            start(&manager);
        } else if (waits[2].revents != 0) {
            char byte = 0;
            // Who started it is gone, and so is the child: it dies with its parent.
            if (read(STDIN_FILENO, &byte, 1) != 1) return 0;
            if (byte != 'k') continue;
            printf("killed %lld\n", (long long)bench_now());
            fflush(stdout);
            kill(manager.child, SIGKILL);
        }
    }
}
