/* SPDX-License-Identifier: Apache-2.0
 *
 * The handle, and the loop of what runs beside the program.
 */
#define _GNU_SOURCE
#include "internal.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/un.h>
#include <unistd.h>

#define SYSTEM_SOCKET "/run/dialtone/dialtone.sock"
/* How long a call may take unless told otherwise, in milliseconds: looking up a name may take several seconds. */
#define DEFAULT_TIMEOUT 30000
/* How many sockets are asked for at a time; those that are left are ready the next time, too. */
#define EVENTS 32

const char *dialtone_version(void)
{
	return DIALTONE_VERSION;
}

static int add_path(dialtone *client, const char *directory, const char *name)
{
	struct sockaddr_un address;
	size_t length = strlen(directory) + strlen(name);
	char *path;

	if (length >= sizeof address.sun_path)
		return -ENAMETOOLONG;
	path = malloc(length + 1);
	if (!path)
		return -ENOMEM;
	memcpy(path, directory, strlen(directory));
	strcpy(path + strlen(directory), name);
	client->paths[client->path_count++] = path;
	return 0;
}

/* Where the agent is looked for: the same as SocketPath.ofClient of DialtoneAPI. */
static int find_paths(dialtone *client, const char *socket)
{
	const char *named = secure_getenv("DIALTONE_SOCKET"), *runtime = secure_getenv("XDG_RUNTIME_DIR");
	int result = 0;

	if (socket)
		return add_path(client, socket, "");
	client->is_named_by_environment = named && *named;
	if (client->is_named_by_environment)
		return add_path(client, named, "");
	if (geteuid() != 0 && runtime && *runtime)
		result = add_path(client, runtime, "/dialtone/dialtone.sock");
	return result < 0 ? result : add_path(client, SYSTEM_SOCKET, "");
}

int dialtone_new(dialtone **client, const char *socket)
{
	dialtone *made = calloc(1, sizeof *made);
	int result;

	*client = NULL;
	if (!made)
		return -ENOMEM;
	made->owner = getpid();
	made->timeout = DEFAULT_TIMEOUT;
	made->user = -1;
	made->epoll = -1;
	result = find_paths(made, socket);
	if (result == 0) {
		made->epoll = epoll_create1(EPOLL_CLOEXEC);
		if (made->epoll < 0)
			result = -errno;
	}
	if (result < 0) {
		dialtone_free(made);
		return result;
	}
	*client = made;
	return 0;
}

static bool is_childs(const dialtone *client)
{
	return client->owner != getpid();
}

/* Frees the requests that are over; all, if the handle goes. */
static void sweep(dialtone *client, bool all)
{
	dialtone_request **link = &client->requests;

	while (*link) {
		dialtone_request *request = *link;

		if (!all && request->phase != DT_OVER) {
			link = &request->next;
			continue;
		}
		*link = request->next;
		dt_request_free(request);
	}
}

void dt_leave_to_parent(dialtone *client)
{
	if (!is_childs(client))
		return;
	/* The parent has the same sockets, and the same epoll: neither is shut down or changed. */
	for (dialtone_request *request = client->requests; request; request = request->next) {
		if (request->socket >= 0)
			close(request->socket);
		request->socket = request->watched = -1;
		dt_request_end(request);
	}
}

void dialtone_free(dialtone *client)
{
	if (!client)
		return;
	dt_leave_to_parent(client);
	if (client->is_processing) {
		for (dialtone_request *request = client->requests; request; request = request->next)
			dt_request_end(request);
		client->is_freed = true;
		return;
	}
	sweep(client, true);
	if (client->epoll >= 0)
		close(client->epoll);
	for (size_t i = 0; i < client->path_count; i++)
		free(client->paths[i]);
	dt_error_clear(&client->error);
	free(client);
}

int dt_begin(dialtone *client)
{
	if (is_childs(client))
		return dt_fail(&client->error, -ECHILD,
			"This process was forked off the one that made the handle. Make another one with dialtone_new().");
	dt_error_clear(&client->error);
	return 0;
}

int dialtone_set_timeout(dialtone *client, int milliseconds)
{
	int result = dt_begin(client);

	if (result == 0)
		client->timeout = milliseconds;
	return result;
}

int dialtone_set_owner(dialtone *client, int64_t owner)
{
	int result = dt_begin(client);

	if (result == 0)
		client->user = owner;
	return result;
}

/* What a call that waits is told. */
struct answer {
	int result;
	dialtone_reply *reply;
};

static void keep(dialtone *client, int result, dialtone_reply *reply, void *data)
{
	struct answer *answer = data;

	(void)client;
	answer->result = result;
	if (!reply)
		return;
	/* The library frees its own when this returns. */
	answer->reply = malloc(sizeof *reply);
	if (!answer->reply) {
		answer->result = dt_fail_system(&client->error, "Reading the agent's answer", ENOMEM);
		return;
	}
	*answer->reply = *reply;
	json_incref(reply->parameters);
	reply->descriptor_count = 0;
}

/* How long poll(2) may wait for a time: at least until it has come. */
static int milliseconds_until(uint64_t due, uint64_t now)
{
	uint64_t milliseconds = due > now ? (due - now + 999) / 1000 : 0;

	if (due == UINT64_MAX)
		return -1;
	return milliseconds < 1000000 ? (int)milliseconds : 1000000;
}

int dialtone_call(dialtone *client, const char *method, const dialtone_value *parameters, int fd,
	dialtone_reply **reply)
{
	struct answer answer = { 0 };
	dialtone_request *request;
	int result = dt_begin(client);

	if (reply)
		*reply = NULL;
	if (result == 0)
		result = dt_request_new(client, method, (const json_t *)parameters, fd, 0, &request);
	if (result < 0)
		return result;
	request->handler = keep;
	request->data = &answer;
	for (;;) {
		struct pollfd wait;

		dt_request_step(request, dt_now());
		if (request->phase == DT_OVER)
			break;
		wait.fd = request->socket;
		wait.events = dt_request_events(request);
		if (poll(&wait, 1, milliseconds_until(dt_request_due(request), dt_now())) < 0 && errno != EINTR) {
			answer.result = dt_fail_system(&client->error, "Waiting for the agent's answer", errno);
			break;
		}
	}
	dt_request_free(request);
	if (reply && answer.result >= 0)
		*reply = answer.reply;
	else
		dialtone_reply_free(answer.reply);
	return answer.result;
}

int dialtone_start(dialtone *client, const char *method, const dialtone_value *parameters, int fd, unsigned flags,
	dialtone_handler *handler, void *data, dialtone_request **request)
{
	dialtone_request *made, **end = &client->requests;
	int result = dt_begin(client);

	if (request)
		*request = NULL;
	if (result == 0 && (!handler || (flags & ~(DIALTONE_STREAM | DIALTONE_RESUME)) || flags == DIALTONE_RESUME))
		result = dt_fail(&client->error, -EINVAL,
			"dialtone_start() needs a handler, and flags of 0, DIALTONE_STREAM or that and DIALTONE_RESUME.");
	if (result == 0 && client->is_freed)
		result = dt_fail(&client->error, -EINVAL, "The handle was freed.");
	if (result == 0)
		result = dt_request_new(client, method, (const json_t *)parameters, fd, flags, &made);
	if (result < 0)
		return result;
	made->handler = handler;
	made->data = data;
	while (*end)
		end = &(*end)->next;
	*end = made;
	if (request)
		*request = made;
	return 0;
}

void dialtone_cancel(dialtone_request *request)
{
	dialtone *client = request ? request->client : NULL;

	if (!request || is_childs(client))
		return;
	dt_request_end(request);
	/* Within a handler, the loop still goes along the list. */
	if (!client->is_processing)
		sweep(client, false);
}

int dialtone_get_fd(dialtone *client)
{
	int result = dt_begin(client);

	return result < 0 ? result : client->epoll;
}

int dialtone_get_events(dialtone *client)
{
	int result = dt_begin(client);

	return result < 0 ? result : POLLIN;
}

int dialtone_get_timeout(dialtone *client, uint64_t *microseconds)
{
	int result = dt_begin(client);

	*microseconds = UINT64_MAX;
	for (dialtone_request *request = client->requests; request && result == 0; request = request->next) {
		uint64_t due = dt_request_due(request);

		if (due < *microseconds)
			*microseconds = due;
	}
	return result;
}

void dt_unwatch(dialtone *client, dialtone_request *request)
{
	/* The kernel would do it when the last copy of the socket is closed; a child that was forked off may have one. */
	if (request->watched >= 0)
		epoll_ctl(client->epoll, EPOLL_CTL_DEL, request->watched, NULL);
	request->watched = -1;
	request->watched_for = 0;
}

/* Has epoll watch the request's socket for what it waits for. */
static void watch(dialtone *client, dialtone_request *request)
{
	short events = dt_request_events(request);
	struct epoll_event event = { .events = (events & POLLIN ? EPOLLIN : 0) | (events & POLLOUT ? EPOLLOUT : 0),
		.data.ptr = request };
	int action = request->watched < 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;

	if (request->socket < 0 || event.events == request->watched_for)
		return;
	if (epoll_ctl(client->epoll, action, request->socket, &event) < 0) {
		/* Out of memory, or of watches (epoll(7)): nothing would tell when the answer comes. */
		dt_request_fail(request, dt_fail_system(&client->error, "Watching the socket to the agent", errno));
		return;
	}
	request->watched = request->socket;
	request->watched_for = event.events;
}

int dialtone_process(dialtone *client)
{
	struct epoll_event events[EVENTS];
	dialtone_request *last;
	int result = dt_begin(client), count, done = 0;

	if (result < 0)
		return result;
	if (client->is_processing)
		return dt_fail(&client->error, -EBUSY, "A handler called dialtone_process(), which had called it.");
	count = epoll_wait(client->epoll, events, EVENTS, 0);
	if (count < 0 && errno != EINTR)
		return dt_fail_system(&client->error, "Asking which sockets to the agent are ready", errno);
	for (int i = 0; i < count; i++)
		((dialtone_request *)events[i].data.ptr)->is_ready = true;
	client->is_processing = true;
	/* What a handler starts gets its turn in the next call: a handler that tries again what fails at once would keep this
	 * one from returning. */
	for (last = client->requests; last && last->next; last = last->next)
		;
	for (dialtone_request *request = client->requests; request; request = request == last ? NULL : request->next) {
		uint64_t now = dt_now();

		if (!request->is_ready && dt_request_due(request) > now)
			continue;
		request->is_ready = false;
		done++;
		dt_request_step(request, now);
		if (request->phase != DT_OVER)
			watch(client, request);
	}
	client->is_processing = false;
	if (client->is_freed)
		dialtone_free(client);
	else
		sweep(client, false);
	return done;
}

int dialtone_wait(dialtone *client, int milliseconds)
{
	struct pollfd wait = { .events = POLLIN };
	uint64_t due, now = dt_now(), end;
	int result = dialtone_get_timeout(client, &due), count;

	if (result < 0)
		return result;
	end = milliseconds < 0 ? UINT64_MAX : now + (uint64_t)milliseconds * 1000;
	wait.fd = client->epoll;
	do {
		count = poll(&wait, 1, milliseconds_until(due < end ? due : end, now));
		now = dt_now();
	} while (count == 0 && now < due && now < end);
	if (count < 0)
		return dt_fail_system(&client->error, "Waiting for the agent", errno);
	return count > 0 || now >= due;
}
