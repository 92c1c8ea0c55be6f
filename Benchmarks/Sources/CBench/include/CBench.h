// SPDX-License-Identifier: Apache-2.0
//
// What must not cost anything while it measures: threads that block in one system call and note when it returned, and
// changes of routes without a process started for them. Functions return -1 with errno set on failure.
#pragma once

#include <CAsking.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// What a thread waits for.
enum bench_source {
    // Any datagram of a netlink socket. This is the bare reader: no program that learns of a change from the kernel can
    // learn of it earlier, except by chance of the scheduler.
    BENCH_NOTICES,
    // Bytes on a pipe or a stream socket that contain a given byte: a line's or a message's end.
    BENCH_MESSAGES,
    // The first segment of a TCP handshake, on a packet socket.
    BENCH_SYNS,
    // The segment by which a client ends its connection, likewise.
    BENCH_ENDS,
    // A connection, on a listening socket. It is accepted and left open.
    BENCH_CONNECTIONS,
    // The same, secured: the end of the server's handshake. See bench_start_securing.
    BENCH_SESSIONS,
    // The same, asked a question as soon as it is accepted: the moment when the client had read that.
    BENCH_ANSWERS,
};

// A thread that notes times. It lives as long as the process; what is noted beyond its room (65,536) is lost.
struct bench_stamper;

// Starts one on `descriptor`, which stays open. `end` is the byte that ends a message; NULL if there is no thread.
struct bench_stamper *bench_start_stamper(int descriptor, enum bench_source source, char end);

// A certificate for an address, with its key.
struct bench_identity;

// Makes one, which vouches for itself and is valid for a day, and writes the certificate to `path` in PEM.
struct bench_identity *bench_make_identity(const char *address, const char *path);

// Starts a thread that secures each connection with TLS before it counts, one after the other.
struct bench_stamper *bench_start_securing(int descriptor, struct bench_identity *identity);

// Starts a server that sends back what comes over each connection to a listening socket, with TLS where there is an
// identity. It lives as long as the process.
int bench_start_echo(int listener, struct bench_identity *identity);

// Sends so many bytes, at most 4,096, and waits until they are back, so often; writes how long each took.
int bench_round_trips(int descriptor, size_t size, size_t count, int64_t *times);

// Closes the connections that it has accepted; for those that accept, while none arrive.
void bench_close_connections(struct bench_stamper *stamper);

// How many times it has noted, and each of them.
size_t bench_stamp_count(const struct bench_stamper *stamper);
int64_t bench_stamp(const struct bench_stamper *stamper, size_t index);

// Whether the last message that it noted contains `text`; for BENCH_MESSAGES, where each is read by itself.
bool bench_last_contains(struct bench_stamper *stamper, const char *text);

// A netlink socket that is told of links, addresses, routes and rules, in the calling thread's network namespace.
int bench_open_notices(void);

// A socket that sees the IPv4 packets that arrive in the calling thread's network namespace. Needs CAP_NET_RAW.
int bench_open_packets(void);

// A socket that listens on all addresses; the kernel completes handshakes on it, with or without accept(2).
int bench_open_listener(uint16_t port);

// Accepts a connection; ETIMEDOUT where none comes in five seconds.
int bench_accept(int listener);

// Calls a method without parameters, over a connection of its own, and waits for the first reply.
int bench_call(const char *path, const char *method);

// A client that calls as fast as it can, over and over, for as long as the process lives. Without `reads` it never
// looks at an answer.
struct bench_flood;

struct bench_flood *bench_start_flood(const char *path, const char *call, bool reads);

// How many answers it has read.
size_t bench_flood_count(const struct bench_flood *flood);

// Ends it, and its connection.
void bench_end_flood(struct bench_flood *flood);

// A connection to a Unix socket.
int bench_connect_unix(const char *path);

// A netlink socket for bench_change_route, in the calling thread's network namespace.
int bench_open_changer(void);

// An IPv4 route; addresses as numbers in the machine's byte order.
struct bench_route {
    uint32_t prefix;
    uint8_t length;
    uint32_t gateway;
    uint32_t metric;
};

// Adds or removes a route. The kernel has told everybody when this returns.
int bench_change_route(int changer, const struct bench_route *route, bool add);

// Adds `count` routes: the first, and those to the prefixes of the same length behind it.
int bench_add_routes(int changer, const struct bench_route *first, uint32_t count);

// Removes the first of `count` such routes and adds it again, then the next, and so on and over again: ten changes in
// each of `bursts` milliseconds.
int bench_churn_routes(int changer, const struct bench_route *first, uint32_t count, uint32_t bursts);
