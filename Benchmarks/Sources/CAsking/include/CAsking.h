// SPDX-License-Identifier: Apache-2.0
//
// A server that asks and a client that answers: a number each way, and when the client's read returned. Both ends are
// on one machine, and so on one clock.
#pragma once

#include <stdbool.h>
#include <stdint.h>

// Nanoseconds of CLOCK_MONOTONIC.
int64_t bench_now(void);

// What the server sends, in one segment.
struct asking_question {
    uint32_t number;
};

// What the client sends back.
struct asking_answer {
    uint32_t number;
    // When its read returned.
    int64_t read_at;
};

// How a question ended.
enum asking_outcome {
    ASKING_ANSWERED,
    // Nothing came back in time.
    ASKING_SILENT,
    // The connection is over.
    ASKING_ENDED,
    // The answer was to another question.
    ASKING_DISORDERED,
};

// The server's end: sends a question and waits for its answer, for `patience` seconds.
enum asking_outcome asking_ask(
    int connection, uint32_t number, unsigned patience, int64_t *sent_at, struct asking_answer *answer);

// The client's end: waits for a question as long as poll(2) says (-1: for ever), reads and answers it. Returns 1, 0 if
// none came, -1 if the connection is over.
int asking_answer(int connection, int patience);

// A connection to an IPv4 address.
int asking_connect(const char *address, uint16_t port);

// A thread that asks question after question and stops at the first that is not answered.
struct asker;

struct asker *asking_start(int connection, unsigned patience);

// How many were answered, and how the last one ended. ASKING_ANSWERED: it goes on.
uint32_t asking_count(const struct asker *asker);
enum asking_outcome asking_last(const struct asker *asker);

// Has it stop after the question that is asked now, and waits for that.
void asking_stop(struct asker *asker);
