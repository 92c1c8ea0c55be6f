// SPDX-License-Identifier: Apache-2.0
//
// What the process is at work on, in memory that outlives it, and the line that it writes with its last breath: what
// Swift cannot write, since nothing of its runtime may run in a handler of a fatal signal.
#pragma once

#include <stddef.h>
#include <stdint.h>

enum {
    // Bytes of a text, its NUL included; a longer one is cut.
    black_box_text = 80,
    // Entries that a crash may leave about somebody.
    black_box_entries = 16,
};

// What there is to be at work on.
enum black_box_kind {
    // Nothing that anybody asked for.
    black_box_nothing = 0,
    // A message of a user; the text is its method, empty before that is read.
    black_box_call = 1,
    // What the server of a connection sent; the text is the connection's name.
    black_box_connection = 2,
    // The configuration.
    black_box_configuration = 3,
};

// One thing at a time is done on each of these.
enum black_box_place {
    black_box_agent = 0,
    black_box_loader = 1,
    black_box_places = 2,
};

struct black_box_work {
    // Set last and cleared first.
    uint32_t kind;
    uint32_t user;
    uint64_t digest;
    char text[black_box_text];
};

struct black_box_entry {
    uint32_t kind;
    uint32_t user;
    uint64_t digest;
    // When it happened last, in milliseconds of the boot clock.
    uint64_t milliseconds;
    uint32_t count;
    uint32_t reserved;
    char text[black_box_text];
};

// A page that one process leaves to the next. What it finds there may have been written by one that was out of its
// mind.
struct black_box {
    uint64_t magic;
    // Whether a process has it that has not ended in order.
    uint32_t is_open;
    // The signal that ended it; 0 where no handler ran.
    uint32_t signal;
    // On which place it was at work then, and one more.
    uint32_t place;
    // How many processes in a row did not last.
    uint32_t starts;
    struct black_box_work works[black_box_places];
    struct black_box_entry entries[black_box_entries];
};

// Maps the box in a file, or one that ends with the process where the number is negative. NULL with errno: EINVAL
// where the file is too small to be one. One that no process has written is all zero.
struct black_box *black_box_map(int file);

// Says that this process has the box, until it exits in order; and has its last line written when a signal ends it.
void black_box_watch(struct black_box *box, const char *program, int is_journal);

// Says what is begun on a place; 0 where something is under way there already, which stays. `bytes` are the
// message's, of which a digest is kept.
int black_box_begin(
    int place, int kind, unsigned int user, const void *bytes, size_t count, const char *text, size_t length);

// Says more of what was begun.
void black_box_name(int place, const char *text, size_t length);

// It is over.
void black_box_end(int place);
