// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE

#include "CAsking.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

struct asker {
    int connection;
    unsigned patience;
    pthread_t thread;
    atomic_bool is_over;
    atomic_uint count;
    atomic_int last;
};

int64_t bench_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

enum asking_outcome asking_ask(
    int connection, uint32_t number, unsigned patience, int64_t *sent_at, struct asking_answer *answer) {
    struct asking_question question = {.number = number};
    struct timeval limit = {.tv_sec = patience};
    setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    // What came too late, if anything.
    while (recv(connection, answer, sizeof *answer, MSG_DONTWAIT) > 0) continue;
    *sent_at = bench_now();
    if (send(connection, &question, sizeof question, MSG_NOSIGNAL) != sizeof question) return ASKING_ENDED;
    ssize_t count = recv(connection, answer, sizeof *answer, MSG_WAITALL);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return ASKING_SILENT;
    if (count != sizeof *answer) return ASKING_ENDED;
    return answer->number == number ? ASKING_ANSWERED : ASKING_DISORDERED;
}

int asking_answer(int connection, int patience) {
    struct pollfd wait = {.fd = connection, .events = POLLIN};
    // Without a limit it blocks where a client does: in its read.
    if (patience >= 0 && poll(&wait, 1, patience) == 0) return 0;
    struct asking_question question;
    ssize_t count = recv(connection, &question, sizeof question, MSG_WAITALL);
    struct asking_answer answer = {.read_at = bench_now()};
    if (count != sizeof question) return -1;
    answer.number = question.number;
    return send(connection, &answer, sizeof answer, MSG_NOSIGNAL) == sizeof answer ? 1 : -1;
}

int asking_connect(const char *address, uint16_t port) {
    struct sockaddr_in remote = {.sin_family = AF_INET, .sin_port = htons(port)};
    inet_pton(AF_INET, address, &remote.sin_addr);
    int connection = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connection < 0 || connect(connection, (struct sockaddr *)&remote, sizeof remote) != 0) return -1;
    return connection;
}

static void *run(void *argument) {
    struct asker *asker = argument;
    while (!atomic_load(&asker->is_over)) {
        int64_t sent_at;
        struct asking_answer answer;
        enum asking_outcome outcome =
            asking_ask(asker->connection, atomic_load(&asker->count) + 1, asker->patience, &sent_at, &answer);
        atomic_store(&asker->last, outcome);
        if (outcome != ASKING_ANSWERED) break;
        atomic_fetch_add(&asker->count, 1);
    }
    return NULL;
}

struct asker *asking_start(int connection, unsigned patience) {
    struct asker *asker = calloc(1, sizeof *asker);
    if (asker == NULL) return NULL;
    asker->connection = connection;
    asker->patience = patience;
    if (pthread_create(&asker->thread, NULL, run, asker) == 0) return asker;
    free(asker);
    return NULL;
}

uint32_t asking_count(const struct asker *asker) { return atomic_load(&asker->count); }

enum asking_outcome asking_last(const struct asker *asker) { return (enum asking_outcome)atomic_load(&asker->last); }

void asking_stop(struct asker *asker) {
    atomic_store(&asker->is_over, true);
    pthread_join(asker->thread, NULL);
}
