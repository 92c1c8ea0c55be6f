/* SPDX-License-Identifier: Apache-2.0
 *
 * libdialtone: the Dialtone agent, as a C or C++ program talks to it.
 *
 * The words of the interface (names of methods, members, states, errors) are those of org.dialtone.Network.varlink and
 * org.dialtone.Connections.varlink, which document each of them. docs/clients-c.md is a tutorial.
 *
 * Rules that hold for every function:
 *
 * - A function that can fail returns an int: 0 or more for success, else a negative errno. After a failure
 *   dialtone_error_text() says what was tried, what came back and what to do. Where the agent itself refused,
 *   dialtone_error_name() has the interface's name of the error. dialtone_error_text() lists all numbers.
 * - A handle and all that was made with it belong to one thread at a time. Two handles may be used by two threads at
 *   the same time. The library has no threads, no signal handlers and no state outside of its handles.
 * - All descriptors of the library are closed at exec (O_CLOEXEC). No function raises SIGPIPE.
 * - After fork(2), a handle belongs to the parent. In the child each call with it returns -ECHILD and changes nothing;
 *   dialtone_free() releases the child's copy and the parent notices nothing.
 * - Texts are UTF-8. A pointer that a function returns as const belongs to the library and lives as long as what it
 *   was read from.
 * - A function that takes a handle or another object does not accept NULL, except where it says so.
 */
#ifndef DIALTONE_H
#define DIALTONE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The agent, as one program sees it: where it listens, the calls and streams that run, and the last error. */
typedef struct dialtone dialtone;

/* An object of the interface: settings, a target, a connection, a path. */
typedef struct dialtone_value dialtone_value;

/* One reply of the agent, with the descriptors that came with it. */
typedef struct dialtone_reply dialtone_reply;

/* A call or a stream that runs beside the program. */
typedef struct dialtone_request dialtone_request;

/* The version of the library, such as "0.1.0". */
const char *dialtone_version(void);


/* ---- The handle ---- */

/* Makes a handle. It does not connect: each call and each stream makes a connection of its own to the agent.
 *
 * client  receives the handle; the caller owns it.
 * socket  the path of the agent's socket. NULL: the environment variable DIALTONE_SOCKET names it; without one it is
 *         /run/dialtone/dialtone.sock, and for other users than root $XDG_RUNTIME_DIR/dialtone/dialtone.sock before it.
 *
 * Errors (there is no handle to ask for a text): -ENOMEM; -ENAMETOOLONG for a path longer than a socket's name may be
 * (107 bytes, unix(7)); -EMFILE and -ENFILE as epoll_create1(2). */
int dialtone_new(dialtone **client, const char *socket);

/* Ends all calls and streams of the handle without calling their handlers, and releases it. NULL does nothing. It may
 * be called from a handler: the handle then lives until dialtone_process() has returned. */
void dialtone_free(dialtone *client);

/* How long each call may take, in milliseconds; negative for as long as it takes. A new handle has 30000: a name may
 * take the agent some seconds. Streams have no such limit. Errors: -ECHILD. */
int dialtone_set_timeout(dialtone *client, int milliseconds);

/* For root: whose connections the names in later calls mean, by the user's number; negative for root's own, or the only
 * connection of that name, which is what a new handle has. For dialtone_monitor(): only connections of that user.
 * Errors: -ECHILD. */
int dialtone_set_owner(dialtone *client, int64_t owner);

/* What the last failure of this handle was, as a sentence for a person; "" if there was none. It lives until the next
 * call with the handle.
 *
 *   -ECONNREFUSED  the agent is not running: nobody listens on its socket
 *   -EACCES        the socket is not open to this user
 *   -EAGAIN        the agent does not accept clients: too many wait; or the agent refuses this user for a while
 *                  (Suspended)
 *   -ECONNRESET    the agent hung up before it answered. Whether it carried the call out is not known.
 *   -ETIMEDOUT     the agent did not answer in time. Whether it will carry the call out is not known.
 *   -EBADMSG       what came is not a message of the interface, or a descriptor is missing or one too many
 *   -EMSGSIZE      what came is longer than 16 MiB
 *   -ECHILD        the handle belongs to the parent process
 *   -EINVAL        an argument that the library or the agent does not accept (InvalidParameter, InvalidRemote,
 *                  InvalidOpening, InvalidTimeout, InvalidTarget)
 *   -EBUSY         another process owns the socket (HeldByClient); dialtone_process() called from a handler
 *   -ENOENT        NoSuchConnection          -EEXIST        NameTaken
 *   -ENOTUNIQ      AmbiguousName             -EPERM         NotOwner, PermissionDenied
 *   -EDQUOT        QuotaExceeded             -ENOBUFS       OutOfResources
 *   -ESTALE        StaleEpoch                -ENOTCONN      NotReady
 *   -ENXIO         NotTaken                  -EBADF         InvalidDescriptor
 *   -EXDEV         ForeignNetwork            -EIO           SystemFailure
 *   -ENOSYS        the agent is older and has no such method
 *   -EREMOTEIO     another error of the agent; see dialtone_error_name()
 *   -ENOMEM, -EMFILE, -ENFILE   this process has no memory, no descriptors left */
const char *dialtone_error_text(const dialtone *client);

/* The interface's name of the last failure, such as "org.dialtone.Connections.NotReady"; NULL where the agent did not
 * answer with an error. */
const char *dialtone_error_name(const dialtone *client);

/* The members of that error, such as "name" and "state"; NULL where dialtone_error_name() is. */
const dialtone_value *dialtone_error_parameters(const dialtone *client);


/* ---- The event loop ----
 *
 * A program that only makes blocking calls needs nothing of this. A program with calls or streams that run beside it
 * waits for the descriptor or the time, whichever comes first, and then calls dialtone_process(); as with sd-bus. It
 * asks for both again after each call of the library, since calls change them. */

/* The descriptor to wait for. It stays the same for the life of the handle and belongs to it: the program only waits.
 * Errors: -ECHILD. */
int dialtone_get_fd(dialtone *client);

/* What to wait for on the descriptor, as for poll(2): always POLLIN. Errors: -ECHILD. */
int dialtone_get_events(dialtone *client);

/* When to call dialtone_process() at the latest, although the descriptor is not ready.
 *
 * microseconds  receives the time of CLOCK_MONOTONIC; 0 for at once, UINT64_MAX for never.
 *
 * Errors: -ECHILD. */
int dialtone_get_timeout(dialtone *client, uint64_t *microseconds);

/* Does what can be done without waiting: connects, sends, reads, and calls the handlers of what came. Returns more than
 * 0 if it did something, 0 if there is nothing to do now. What fails in a call or a stream goes to its handler.
 * Errors: -ECHILD; -EBUSY when a handler calls it; -EIO and the like as epoll_wait(2). */
int dialtone_process(dialtone *client);

/* Waits until dialtone_process() has something to do: for programs without an event loop of their own.
 *
 * milliseconds  how long at most; negative for no limit.
 *
 * Returns 1 if there is something to do, 0 when the time is over. Errors: -ECHILD; -EINTR when a signal came. */
int dialtone_wait(dialtone *client, int milliseconds);


/* ---- Values ----
 *
 * A path names a member by the interface's own names, with a dot between an object and its member and a number for a
 * place in a list: "interface.name", "connections.0.state", "keepalive.protocol", "opening.1.expect.until". NULL or ""
 * is the value itself. */

/* An empty object; NULL without memory. The caller owns it and frees it with dialtone_value_free(). */
dialtone_value *dialtone_value_new(void);

/* Reads a value from JSON text: an object or a list. Errors: -EINVAL for other text; -ENOMEM. */
int dialtone_value_parse(dialtone_value **value, const char *json);

/* The value as JSON text, for a person or a log; NULL without memory. The caller owns it and frees it with free(3). */
char *dialtone_value_print(const dialtone_value *value);

/* Releases a value that the caller owns. NULL does nothing. */
void dialtone_value_free(dialtone_value *value);

/* Set a member. Objects and lists on the way are made where they are missing: in a list, the place after the last one
 * appends. The library does not know which members there are: the agent checks them, and answers InvalidParameter
 * with the name of the wrong one. dialtone_value_set() copies what it is given.
 * Errors: -EINVAL for a path that leads through something else than an object or a list, skips places of a list, or is
 * empty; for text that is not UTF-8; for a number that is not finite. -ENOMEM. After an error the value may have
 * objects on the way that are empty. */
int dialtone_value_set_string(dialtone_value *value, const char *path, const char *text);
int dialtone_value_set_int(dialtone_value *value, const char *path, int64_t number);
int dialtone_value_set_real(dialtone_value *value, const char *path, double number);
int dialtone_value_set_bool(dialtone_value *value, const char *path, bool truth);
int dialtone_value_set(dialtone_value *value, const char *path, const dialtone_value *member);

/* The object, list or other member at a path; NULL where there is none, or where value is NULL. It lives as long as
 * value, and until that member is set anew. */
const dialtone_value *dialtone_value_at(const dialtone_value *value, const char *path);

/* How many items the list at a path has; 0 where there is none. */
size_t dialtone_value_count(const dialtone_value *value, const char *path);

/* Item number index, beginning with 0, of the list at a path; NULL where there is none. */
const dialtone_value *dialtone_value_item(const dialtone_value *value, const char *path, size_t index);

/* The text at a path; NULL where there is none, or something else. Text that holds a NUL is cut there. */
const char *dialtone_value_string(const dialtone_value *value, const char *path);

/* The number at a path; otherwise where there is none, or something else. */
int64_t dialtone_value_int(const dialtone_value *value, const char *path, int64_t otherwise);

/* The number at a path, integer or not; otherwise where there is none, or something else. */
double dialtone_value_real(const dialtone_value *value, const char *path, double otherwise);

/* Whether the member at a path is true. One that is left out is not: so the interface means it, except in settings. */
bool dialtone_value_bool(const dialtone_value *value, const char *path);

/* A target for paths; NULL without memory. The caller owns it and adds "protocol", "mark", "interface" or "source" where
 * it wants.
 *
 * host  a name or an address
 * port  1 to 65535; 0 to leave it out */
dialtone_value *dialtone_target(const char *host, int port);


/* ---- Replies ---- */

/* What the agent answered. It lives as long as the reply. */
const dialtone_value *dialtone_reply_value(const dialtone_reply *reply);

/* Takes the descriptor out of the reply that its member "fileDescriptor" names. The caller owns it and closes it. What
 * nobody takes out is closed with the reply. Errors: -ENOENT where there is none, or it was taken out before. */
int dialtone_reply_take_fd(dialtone_reply *reply);

/* Releases a reply that the caller owns, with the descriptors that are still in it. NULL does nothing. */
void dialtone_reply_free(dialtone_reply *reply);


/* ---- Calls that wait ----
 *
 * Each waits for the answer, at most as long as dialtone_set_timeout() says, and calls no handlers meanwhile. A signal
 * does not end the wait. With a reply, the caller owns it; NULL for a reply that does not matter. Errors: all of
 * dialtone_error_text(), where a list here does not name the typical ones. */

/* Calls any method of the agent, such as "org.dialtone.Network.Explain".
 *
 * parameters  what the method takes; NULL for none.
 * fd          a descriptor that goes along, for a method that takes one; its place is 0. It stays the caller's.
 *             Negative for none.
 *
 * Errors, before anything is sent: -EINVAL for a method that is not UTF-8, or parameters that are no object. */
int dialtone_call(dialtone *client, const char *method, const dialtone_value *parameters, int fd,
	dialtone_reply **reply);

/* The path to a target, or to the network as such where target is NULL. Nothing is sent to the target. The reply has
 * "path.status" ("satisfied", "unsatisfied", "requiresConnection", "unknown"), "path.reason", "path.interface.name" and
 * more. No path is no error. Errors: -EINVAL (InvalidTarget), -EXDEV. */
int dialtone_get_path(dialtone *client, const dialtone_value *target, dialtone_reply **reply);

/* All connections that the caller may see: "connections", a list. */
int dialtone_list(dialtone *client, dialtone_reply **reply);

/* Supervises a connection from now on. It belongs to the caller's user and outlives this program.
 *
 * name      one that none of the user's connections has; NULL: the agent makes one. The reply has it as "name".
 * remote    where it leads, such as "tls://chat.example.com:5223"
 * settings  members of the interface's type Settings; NULL for the defaults of the remote's scheme.
 *
 * Errors: -EEXIST, -EINVAL (InvalidRemote, InvalidOpening, InvalidParameter), -EDQUOT, -EPERM, -ENOBUFS, -EXDEV. */
int dialtone_open(dialtone *client, const char *name, const char *remote, const dialtone_value *settings,
	dialtone_reply **reply);

/* Closes a connection and supervises it no longer. Errors: -ENOENT; -EPERM for one that a configuration file names. */
int dialtone_close(dialtone *client, const char *name);

/* Drops the connection's socket and dials a new one.
 *
 * milliseconds  how long to wait before that; 0 for not at all. More than a day counts as a day.
 *
 * Errors: -ENOENT. */
int dialtone_redial(dialtone *client, const char *name, int64_t milliseconds);

/* Takes the connection's socket, to read and write it until it is parked.
 *
 * until  what to wait for: "flow" for a socket that can be taken, "data" for bytes that can be read. NULL: nothing.
 *        The wait ends with -ETIMEDOUT when the handle's time is over; dialtone_set_timeout(client, -1) has no limit.
 *
 * dialtone_reply_take_fd() takes the socket out of the reply: connected, a stream, blocking, closed at exec. The reply
 * also has "epoch", the number to park it with; "isOver", whether it has ended and what it received can still be read;
 * and "connection". A reply that is freed with its descriptor loses nothing: the agent keeps a copy, and this process
 * may take the socket again. Errors: -ENOTCONN, -EBUSY, -ENOENT, -EXDEV; -EBADMSG if no descriptor came (this process
 * may have none left). */
int dialtone_take(dialtone *client, const char *name, const char *until, dialtone_reply **reply);

/* Gives the socket back: the caller is logged in on it and is between two messages. The caller clears O_NONBLOCK before,
 * if it set it, and closes its descriptor afterwards, whatever this returns.
 *
 * epoch    the socket's number, from the reply of dialtone_take()
 * opening  a list of OpeningStep: what the agent says on each new socket from now on to log in. An empty list: nothing.
 *          NULL: as before.
 *
 * Errors: -ESTALE where another socket has taken its place (close this one, take that one), -ENXIO, -ENOENT. */
int dialtone_park(dialtone *client, const char *name, int64_t epoch, const dialtone_value *opening);

/* Supervises a connected TCP socket on which the caller is logged in. The caller's descriptor stays the caller's: it
 * closes it afterwards.
 *
 * remote    where to dial when the socket is lost; NULL: nowhere, and the connection ends with the socket.
 * settings  as for dialtone_open().
 *
 * Errors: -EBADF (InvalidDescriptor, or fd is not open), -EEXIST, -EINVAL, -EDQUOT, -EXDEV. */
int dialtone_adopt(dialtone *client, const char *name, int fd, const char *remote, const dialtone_value *settings,
	dialtone_reply **reply);

/* Says that the caller takes care of what it was woken for. Taking the socket says so, too.
 *
 * wake  the number of the wake, from an event or a call of dialtone_keepalive()
 *
 * Errors: -ENOENT. A wake that is over is no error. */
int dialtone_acknowledge(dialtone *client, const char *name, int64_t wake);


/* ---- Calls and streams that run beside the program ---- */

/* What a handler is told. */
enum dialtone_outcome {
	/* The only or last reply. The request is over. */
	DIALTONE_DONE = 0,
	/* A reply; others follow. */
	DIALTONE_MORE = 1,
	/* The connection to the agent was lost, or the agent is not there, or it refuses for a while (OutOfResources,
	 * Suspended); dialtone_error_text() says which. It is told once. The library looks for the agent again, at first
	 * after 100 ms and at last every 5 s, and goes on. The next reply says that the agent is back. Only streams with
	 * DIALTONE_RESUME are told. */
	DIALTONE_LOST = 2
};

/* Called by dialtone_process() with each reply of a call or a stream.
 *
 * result  one of enum dialtone_outcome; or a negative errno, with which the request is over, and the handle's
 *         dialtone_error_text() says why.
 * reply   belongs to the library until the handler returns, except for a descriptor that the handler takes out. NULL
 *         where result is negative or DIALTONE_LOST.
 * data    as it was given.
 *
 * A handler may make calls, start and cancel requests, this one included, and free the handle. What it starts begins in
 * the next call of dialtone_process(). */
typedef void dialtone_handler(dialtone *client, int result, dialtone_reply *reply, void *data);

/* For dialtone_start(): the method has many replies. */
#define DIALTONE_STREAM 1u
/* For dialtone_start(), with DIALTONE_STREAM: go on when the agent was restarted, see DIALTONE_LOST. */
#define DIALTONE_RESUME 2u

/* Starts a call of any method, as dialtone_call(), and returns at once.
 *
 * fd       as for dialtone_call(); the library makes a copy of it.
 * flags    0, DIALTONE_STREAM, or both
 * request  receives the request, for dialtone_cancel(); NULL if that is not needed. It is over, and the pointer with it,
 *          when the handler returns from a call with DIALTONE_DONE or a negative result.
 *
 * Errors: -EINVAL, -ENOMEM, -EMFILE, -ECHILD. All others go to the handler. */
int dialtone_start(dialtone *client, const char *method, const dialtone_value *parameters, int fd, unsigned flags,
	dialtone_handler *handler, void *data, dialtone_request **request);

/* Ends a request and hangs up; its handler is not called again. NULL does nothing. */
void dialtone_cancel(dialtone_request *request);

/* The path to a target, or to the network as such where target is NULL: the present one at once, then each change, over
 * restarts of the agent. Each reply has "path", and "changes", the names of what differs from the reply before: an empty
 * list in the first reply, and in the first one after DIALTONE_LOST. A program that reads slowly gets the latest path.
 * Errors of the stream: -EINVAL (InvalidTarget), -EDQUOT, -EXDEV. */
int dialtone_monitor_path(dialtone *client, const dialtone_value *target, dialtone_handler *handler, void *data,
	dialtone_request **request);

/* What happens to the connections, over restarts of the agent. Each reply has "kind": "snapshot" with all connections;
 * "change" with one "event" and its connection; "gap" with all connections after events that were dropped. It also has
 * "sequence", the number to go on after. After DIALTONE_LOST the stream goes on after the last sequence that it told:
 * with the changes that were missed, or with a gap or a snapshot if the agent no longer has them. An agent that was
 * started without the state of the last one lacks the connections that programs opened.
 *
 * names  only connections of these names, ended by NULL; NULL for all that the caller may see.
 * after  begins after that sequence, known from an earlier run; negative: with a snapshot.
 *
 * Errors of the stream: -EDQUOT, -EPERM. */
int dialtone_monitor(dialtone *client, const char *const *names, int64_t after, dialtone_handler *handler, void *data,
	dialtone_request **request);

/* Has the agent call this program when a keepalive of its own protocol is due, over restarts of the agent. The first
 * reply says that it is agreed, and has no "wake". Each further one is such a call, with the number "wake": the program
 * takes the socket, sends its keepalive and parks the socket, within "limitMilliseconds". The stream ends with
 * DIALTONE_DONE when another program has taken its place.
 *
 * milliseconds  how long the server waits to hear from the client; the call comes earlier.
 * wake_machine  whether to wake a sleeping machine for it: for root and the agent's own user.
 *
 * Errors of the stream: -EINVAL (InvalidTimeout), -ENOENT, -EPERM. */
int dialtone_keepalive(dialtone *client, const char *name, int64_t milliseconds, bool wake_machine,
	dialtone_handler *handler, void *data, dialtone_request **request);

#ifdef __cplusplus
}
#endif

#endif
