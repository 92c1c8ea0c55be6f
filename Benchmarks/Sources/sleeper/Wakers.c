// SPDX-License-Identifier: Apache-2.0
//
// What a wake costs where nothing stands between: the least that any agent can need, on this machine in this minute.
#define _GNU_SOURCE

#include "Sleeper.h"

#include <CAsking.h>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void wait_until_readable(int connection) {
    struct pollfd wait = {.fd = connection, .events = POLLIN};
    while (poll(&wait, 1, -1) != 1) continue;
}

int run_signal_waker(int connection) {
    pid_t child = fork_child();
    while (child == 0) {
        raise(SIGSTOP);
        if (asking_answer(connection, -1) != 1) exit(0);
    }
    int status;
    // It stops itself when it has answered.
    while (waitpid(child, &status, WUNTRACED) == child && WIFSTOPPED(status)) {
        wait_until_readable(connection);
        kill(child, SIGCONT);
    }
    return 0;
}

static void put(const char *group, const char *file, const char *text) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", group, file);
    int number = open(path, O_WRONLY | O_CLOEXEC);
    if (number < 0 || write(number, text, 1) != 1) fail(path);
    close(number);
}

int run_thaw_waker(int connection, const char *group) {
    int done[2];
    if (pipe2(done, O_CLOEXEC) != 0) fail("pipe2");
    pid_t child = fork_child();
    if (child == 0) {
        put(group, "cgroup.procs", "0");
        // Who froze the group waits for the answer: whatever is to be done before it is frozen again comes before.
        while (asking_answer(connection, -1) == 1)
            if (write(done[1], "", 1) != 1) break;
        exit(0);
    }
    close(done[1]);
    char byte;
    do {
        wait_until_readable(connection);
        put(group, "cgroup.freeze", "0");
    } while (read(done[0], &byte, 1) == 1);
    return 0;
}

int run_launching_waker(int connection, const char *program) {
    char *const command[] = {(char *)program, "answer", "0", NULL};
    int status = 0;
    do {
        wait_until_readable(connection);
        pid_t child = fork_child();
        if (child == 0) {
            dup2(connection, 0);
            execv(program, command);
            fail(program);
        }
        waitpid(child, &status, 0);
    } while (status == 0);
    return 0;
}
