// SPDX-License-Identifier: Apache-2.0
//
// The programs that are woken, and who wakes them without an agent. Small, since some are started for each message.
//
//   sleeper answer DESCRIPTOR                     answers one question on a socket that it was started with
//   sleeper read ADDRESS PORT                     answers all, on a connection of its own
//   sleeper take SOCKET NAME [stop]               takes, answers and parks a connection of the agent
//   sleeper wake signal ADDRESS PORT              continues a stopped child that reads
//   sleeper wake thaw GROUP ADDRESS PORT          thaws the control group of a child that reads
//   sleeper wake launch PROGRAM ADDRESS PORT      starts `PROGRAM answer 0` for each question
//   sleeper manage SOCKET COMMAND…                runs the agent as a service manager does
#include "Sleeper.h"

#include <CAsking.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

void fail(const char *what) {
    perror(what);
    exit(1);
}

pid_t fork_child(void) {
    pid_t child = fork();
    if (child < 0) fail("fork");
    if (child == 0) prctl(PR_SET_PDEATHSIG, SIGKILL);
    return child;
}

// The connection that the last two of `count` words name.
static int connection(int count, char **words) {
    int number = asking_connect(words[count - 2], (uint16_t)atoi(words[count - 1]));
    if (number < 0) fail("connecting");
    return number;
}

static int usage(void) {
    fputs("usage: sleeper answer | read | take | wake | manage …\n", stderr);
    return 64;
}

int main(int count, char **words) {
    if (count < 3) return usage();
    if (strcmp(words[1], "answer") == 0) return asking_answer(atoi(words[2]), 1000) == 1 ? 0 : 1;
    if (count < 4) return usage();
    if (strcmp(words[1], "take") == 0) return run_taker(words[2], words[3], count > 4);
    if (strcmp(words[1], "manage") == 0) return run_manager(words[2], words + 3);
    if (strcmp(words[1], "read") == 0) {
        int number = connection(count, words);
        while (asking_answer(number, -1) == 1) continue;
        return 0;
    }
    if (strcmp(words[1], "wake") != 0 || count < 5) return usage();
    if (strcmp(words[2], "signal") == 0) return run_signal_waker(connection(count, words));
    if (strcmp(words[2], "thaw") == 0) return run_thaw_waker(connection(count, words), words[3]);
    if (strcmp(words[2], "launch") == 0) return run_launching_waker(connection(count, words), words[3]);
    return usage();
}
