// SPDX-License-Identifier: Apache-2.0
//
// A server that sends back what comes, and a client that waits for each answer before it asks again.
#include "CBench.h"
#include "Securing.h"

#include <errno.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

struct echo {
    int descriptor;
    struct bench_identity *identity;
};

static void *serve(void *argument) {
    struct echo echo = *(struct echo *)argument;
    free(argument);
    char bytes[4096];
    if (echo.identity != NULL) {
        SSL *session = bench_session(echo.descriptor, echo.identity);
        for (int count; session != NULL && (count = SSL_read(session, bytes, sizeof bytes)) > 0;)
            if (SSL_write(session, bytes, count) != count) break;
        SSL_free(session);
    } else {
        for (ssize_t count; (count = recv(echo.descriptor, bytes, sizeof bytes, 0)) > 0;)
            if (send(echo.descriptor, bytes, (size_t)count, MSG_NOSIGNAL) != count) break;
    }
    close(echo.descriptor);
    return NULL;
}

static void *accept_all(void *argument) {
    struct echo listener = *(struct echo *)argument;
    free(argument);
    for (;;) {
        int client = accept(listener.descriptor, NULL, NULL);
        if (client < 0) return NULL;
        struct echo *echo = malloc(sizeof *echo);
        pthread_t thread;
        if (echo == NULL) return NULL;
        *echo = (struct echo){client, listener.identity};
        if (pthread_create(&thread, NULL, serve, echo) != 0) return NULL;
        pthread_detach(thread);
    }
}

int bench_start_echo(int listener, struct bench_identity *identity) {
    struct echo *echo = malloc(sizeof *echo);
    pthread_t thread;
    if (echo == NULL) return -1;
    *echo = (struct echo){listener, identity};
    int code = pthread_create(&thread, NULL, accept_all, echo);
    if (code != 0) return errno = code, -1;
    pthread_detach(thread);
    return 0;
}

int bench_round_trips(int descriptor, size_t size, size_t count, int64_t *times) {
    char bytes[4096] = {0};
    if (size > sizeof bytes) return errno = EINVAL, -1;
    for (size_t index = 0; index < count; index++) {
        int64_t start = bench_now();
        if (send(descriptor, bytes, size, MSG_NOSIGNAL) != (ssize_t)size) return -1;
        for (size_t got = 0; got < size;) {
            ssize_t more = recv(descriptor, bytes, size - got, 0);
            if (more <= 0) return -1;
            got += (size_t)more;
        }
        times[index] = bench_now() - start;
    }
    return 0;
}
