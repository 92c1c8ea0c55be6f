/* SPDX-License-Identifier: Apache-2.0
 *
 * A stand-in for the agent: a thread that serves one connection after the other, as badly as a test wants.
 */
#ifndef STAND_IN_H
#define STAND_IN_H

#include <stddef.h>

/* Serves a connection, the number'th beginning with 0; the stand-in closes it afterwards. */
typedef void serve(int socket, int number);

/* Listens; returns the path of the socket. One stand-in at a time. */
const char *stand_in_start(serve *serve);
/* Ends it and waits for that. */
void stand_in_stop(void);

/* Connects to it, as a client that says nothing; returns a socket, or -1 where too many clients wait. */
int stand_in_connect(void);

/* Waits until it has accepted so many connections. */
void stand_in_await(int count);

/* Reads a call up to its NUL, which is cut off; returns it, or "" if the client hung up. */
const char *stand_in_read(int socket);
/* How many descriptors came with it. They are closed. */
size_t stand_in_passed(void);
/* Sends text with its NUL. */
void stand_in_say(int socket, const char *text);
/* Sends text with its NUL and so many descriptors of /dev/null. */
void stand_in_pass(int socket, const char *text, size_t count);
/* Waits until the client hangs up. */
void stand_in_wait(int socket);

#endif
