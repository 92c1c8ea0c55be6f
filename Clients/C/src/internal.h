/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the library share. Names with dt_ are not exported.
 */
#ifndef DIALTONE_INTERNAL_H
#define DIALTONE_INTERNAL_H

#include "dialtone.h"

#include <jansson.h>
#include <sys/types.h>

#define DT_CONNECTIONS "org.dialtone.Connections."
#define DT_NETWORK "org.dialtone.Network."

/* ---- error.c: the last failure of a handle ---- */

struct dt_error {
	char *text, *name;
	json_t *parameters;
};

/* Notes a failure and returns number. */
int dt_fail(struct dt_error *error, int number, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* Notes that the kernel refused something with errno number, and returns it negated. */
int dt_fail_system(struct dt_error *error, const char *tried, int number);
/* Notes an error that the agent answered with; returns its errno, negative. */
int dt_fail_refused(struct dt_error *error, const char *method, const char *name, const json_t *parameters);
void dt_error_clear(struct dt_error *error);

/* ---- reader.c: messages out of bytes ---- */

/* The most bytes of a message, its NUL not counted: as the agent's own clients, and sd-varlink. */
#define DT_MESSAGE_LIMIT ((size_t)16 << 20)
/* How many descriptors may wait to be taken; the interface sends one at a time. */
#define DT_DESCRIPTOR_LIMIT 16

/* Cuts a stream of bytes into messages, each ended by a NUL. Descriptors belong to the message of the last byte that
 * they came with: the kernel ends a read behind them (unix(7)), and bytes of an earlier message may come before. */
struct dt_reader {
	char *bytes;
	size_t count, capacity;
	/* Where the next message begins, and up to where no NUL is. */
	size_t start, searched;
	/* How many messages were cut off. */
	uint64_t taken;
	struct {
		int number;
		uint64_t message;
	} descriptors[DT_DESCRIPTOR_LIMIT];
	size_t descriptor_count;
};

/* Reads what is there. Returns 1 if something came, 0 if nothing is there now; -ECONNRESET at the end of the stream,
 * -EBADMSG for too many descriptors, -ENOMEM, or what recvmsg(2) says. */
int dt_reader_fill(struct dt_reader *reader, int socket);
/* Takes bytes with the descriptors that came with them. Returns 0, -EBADMSG or -ENOMEM; the descriptors are the
 * reader's in any case. */
int dt_reader_append(struct dt_reader *reader, const char *bytes, size_t count, const int *descriptors,
	size_t descriptor_count);
/* The next complete message, as text that lives until bytes are appended. Returns 1, 0 if it is not complete, -EMSGSIZE
 * as soon as it is too long. */
int dt_reader_next(struct dt_reader *reader, const char **message, size_t *length);
/* Moves the descriptors of the message cut off last to descriptors, which has room for DT_DESCRIPTOR_LIMIT; returns how
 * many. */
size_t dt_reader_take_descriptors(struct dt_reader *reader, int *descriptors);
void dt_reader_clear(struct dt_reader *reader);

/* ---- reply.c ---- */

struct dialtone_reply {
	json_t *parameters;
	/* -1 where one was taken out. */
	int descriptors[DT_DESCRIPTOR_LIMIT];
	size_t descriptor_count;
};

/* What one message is. */
struct dt_message {
	/* NULL for a message that is an error. */
	dialtone_reply *reply;
	bool continues;
	/* The error's, owned by the caller; NULL for a reply. */
	json_t *error, *parameters;
};

/* Reads a message with its descriptors, which are the reply's from then on or closed. Returns 0, -EBADMSG with what is
 * wrong in *reason, or -ENOMEM. */
int dt_message_read(struct dt_message *message, const char *text, size_t length, const int *descriptors,
	size_t descriptor_count, const char **reason);
/* The place of the descriptor that "fileDescriptor" names; -1 where there is none. */
int dt_reply_place(const dialtone_reply *reply);
void dt_close_all(const int *descriptors, size_t count);

/* ---- request.c: one call or stream ---- */

enum dt_phase { DT_CONNECTING, DT_SENDING, DT_READING, DT_OVER };

struct dialtone_request {
	dialtone *client;
	dialtone_request *next;
	char *method;
	json_t *parameters;
	unsigned flags;
	dialtone_handler *handler;
	void *data;

	enum dt_phase phase;
	int socket;
	/* What goes along with the call, a copy; or -1. */
	int descriptor;
	char *bytes;
	size_t length, sent;
	struct dt_reader reader;

	/* Times of CLOCK_MONOTONIC in microseconds. When to connect; when a call has lasted too long. */
	uint64_t connect_at, deadline;
	/* How often the agent had no room for another client. */
	unsigned refusals;
	/* The last pause before the agent was looked for again; 0 after a reply. */
	uint64_t pause;
	bool is_lost;

	/* Of the handle's loop: which socket epoll watches, for what; whether it has something. */
	int watched;
	uint32_t watched_for;
	bool is_ready;
};

uint64_t dt_now(void);
/* Makes a request that is to connect at once. Returns 0 or what dialtone_start() does. */
int dt_request_new(dialtone *client, const char *method, const json_t *parameters, int descriptor, unsigned flags,
	dialtone_request **request);
/* Does what can be done without waiting. */
void dt_request_step(dialtone_request *request, uint64_t now);
/* When to call dt_request_step() at the latest; UINT64_MAX for never. */
uint64_t dt_request_due(const dialtone_request *request);
/* What to wait for on the socket, as for poll(2); 0 where there is none. */
short dt_request_events(const dialtone_request *request);
/* Hangs up; the request is over. */
void dt_request_end(dialtone_request *request);
/* Ends the request and tells its handler the failure that the handle has noted. */
void dt_request_fail(dialtone_request *request, int result);
void dt_request_free(dialtone_request *request);

/* ---- client.c: the handle ---- */

struct dialtone {
	pid_t owner;
	/* Where the agent is looked for, in this order. */
	char *paths[2];
	size_t path_count;
	/* Whether DIALTONE_SOCKET named it. */
	bool is_named_by_environment;
	int timeout;
	int64_t user;
	int epoll;
	dialtone_request *requests;
	bool is_processing, is_freed;
	struct dt_error error;
};

/* Returns 0, or -ECHILD in a child process; forgets the last failure. */
int dt_begin(dialtone *client);
/* In a child process: closes its copies of the sockets; all requests are over. Else nothing. */
void dt_leave_to_parent(dialtone *client);
/* Takes the socket of a request out of the loop before it is closed. */
void dt_unwatch(dialtone *client, dialtone_request *request);

#endif
