// SPDX-License-Identifier: Apache-2.0
#include "CBench.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { calls_at_once = 64 };

struct bench_flood {
    int socket;
    char *calls;
    size_t size;
    atomic_size_t count;
    pthread_t writer, reader;
    bool reads;
};

static void *write_calls(void *argument) {
    struct bench_flood *flood = argument;
    size_t sent = 0;
    for (;;) {
        ssize_t count = send(flood->socket, flood->calls + sent, flood->size - sent, MSG_NOSIGNAL);
        if (count < 0) return NULL;
        sent = (sent + (size_t)count) % flood->size;
    }
}

static void *read_answers(void *argument) {
    struct bench_flood *flood = argument;
    char bytes[65536];
    for (;;) {
        ssize_t count = recv(flood->socket, bytes, sizeof bytes, 0);
        if (count <= 0) return NULL;
        size_t answers = 0;
        for (ssize_t index = 0; index < count; index++) answers += bytes[index] == 0;
        atomic_fetch_add(&flood->count, answers);
    }
}

struct bench_flood *bench_start_flood(const char *path, const char *call, bool reads) {
    struct bench_flood *flood = calloc(1, sizeof *flood);
    size_t length = strlen(call) + 1;
    if (flood == NULL || (flood->calls = malloc(calls_at_once * length)) == NULL) return NULL;
    for (size_t number = 0; number < calls_at_once; number++) memcpy(flood->calls + number * length, call, length);
    flood->size = calls_at_once * length;
    flood->reads = reads;
    flood->socket = bench_connect_unix(path);
    if (flood->socket < 0 || pthread_create(&flood->writer, NULL, write_calls, flood) != 0) return NULL;
    if (reads && pthread_create(&flood->reader, NULL, read_answers, flood) != 0) return NULL;
    return flood;
}

size_t bench_flood_count(const struct bench_flood *flood) { return atomic_load(&flood->count); }

void bench_end_flood(struct bench_flood *flood) {
    shutdown(flood->socket, SHUT_RDWR);
    pthread_join(flood->writer, NULL);
    if (flood->reads) pthread_join(flood->reader, NULL);
    close(flood->socket);
    free(flood->calls);
    free(flood);
}
