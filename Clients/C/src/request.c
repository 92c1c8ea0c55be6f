/* SPDX-License-Identifier: Apache-2.0
 *
 * One call or stream on a connection of its own: connects, sends, reads. A stream that goes on over restarts of the
 * agent begins anew when it is lost.
 */
#define _GNU_SOURCE
#include "internal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define MILLISECONDS UINT64_C(1000)
/* The kernel refuses a Unix connection at once when too many clients wait (EAGAIN), and does not tell when there is room.
 * An agent that is busy is back within milliseconds; one that is stuck is worth five seconds. */
#define REFUSAL_PAUSE (20 * MILLISECONDS)
#define REFUSALS 250
/* How long until an agent that is gone is looked for again; each pause is twice as long as the one before. An agent takes
 * about a second to restart. */
#define SHORTEST_PAUSE (100 * MILLISECONDS)
#define LONGEST_PAUSE (5000 * MILLISECONDS)

uint64_t dt_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

int dt_request_new(dialtone *client, const char *method, const json_t *parameters, int descriptor, unsigned flags,
	dialtone_request **request)
{
	json_t *checked = json_string(method);
	dialtone_request *made;

	*request = NULL;
	json_decref(checked);
	if (!checked || (parameters && !json_is_object(parameters)))
		return dt_fail(&client->error, -EINVAL, "A call needs a method whose name is UTF-8, and as its parameters an"
			" object or nothing.");
	made = calloc(1, sizeof *made);
	if (!made)
		return dt_fail_system(&client->error, "Making a call", ENOMEM);
	made->client = client;
	made->socket = made->descriptor = made->watched = -1;
	made->flags = flags;
	made->deadline = UINT64_MAX;
	if (!(flags & DIALTONE_STREAM) && client->timeout >= 0)
		made->deadline = dt_now() + (uint64_t)client->timeout * MILLISECONDS;
	made->method = strdup(method);
	made->parameters = parameters ? json_deep_copy(parameters) : json_object();
	if (!made->method || !made->parameters) {
		dt_request_free(made);
		return dt_fail_system(&client->error, "Making a call", ENOMEM);
	}
	if (descriptor >= 0) {
		made->descriptor = fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
		if (made->descriptor < 0) {
			int number = errno;

			dt_request_free(made);
			return dt_fail_system(&client->error, "Copying the descriptor for the agent", number);
		}
	}
	*request = made;
	return 0;
}

static void hang_up(dialtone_request *request)
{
	dt_unwatch(request->client, request);
	if (request->socket >= 0) {
		/* A child that was forked off may have a copy: the agent is to notice all the same. */
		shutdown(request->socket, SHUT_RDWR);
		close(request->socket);
	}
	request->socket = -1;
	dt_reader_clear(&request->reader);
	free(request->bytes);
	request->bytes = NULL;
}

void dt_request_end(dialtone_request *request)
{
	hang_up(request);
	if (request->descriptor >= 0)
		close(request->descriptor);
	request->descriptor = -1;
	request->phase = DT_OVER;
}

void dt_request_free(dialtone_request *request)
{
	dt_request_end(request);
	free(request->method);
	json_decref(request->parameters);
	free(request);
}

static void tell(dialtone_request *request, int result, dialtone_reply *reply)
{
	request->handler(request->client, result, reply, request->data);
	/* A handler that forks returns in the child, too. */
	dt_leave_to_parent(request->client);
}

void dt_request_fail(dialtone_request *request, int result)
{
	dt_request_end(request);
	tell(request, result, NULL);
}

/* Ends the request with the failure that the handle has noted, or has it go on when the agent is back. */
static void lose(dialtone_request *request, int result, uint64_t now)
{
	bool was_lost = request->is_lost;

	if (!(request->flags & DIALTONE_RESUME)) {
		dt_request_fail(request, result);
		return;
	}
	hang_up(request);
	request->pause = request->pause ? request->pause * 2 : SHORTEST_PAUSE;
	if (request->pause > LONGEST_PAUSE)
		request->pause = LONGEST_PAUSE;
	request->connect_at = now + request->pause;
	request->phase = DT_CONNECTING;
	request->is_lost = true;
	if (!was_lost)
		tell(request, DIALTONE_LOST, NULL);
}

/* Writes the call as it goes over the socket. */
static int encode(dialtone_request *request)
{
	json_t *call = json_pack("{s:s, s:O}", "method", request->method, "parameters", request->parameters);

	if (call && (request->flags & DIALTONE_STREAM) && json_object_set_new(call, "more", json_true()) < 0) {
		json_decref(call);
		call = NULL;
	}
	request->bytes = call ? json_dumps(call, JSON_COMPACT) : NULL;
	json_decref(call);
	if (!request->bytes)
		return -ENOMEM;
	/* With its NUL, which ends the message. */
	request->length = strlen(request->bytes) + 1;
	request->sent = 0;
	return 0;
}

static int not_running(dialtone *client)
{
	if (client->is_named_by_environment)
		return dt_fail(&client->error, -ECONNREFUSED,
			"The agent does not run on %s, which DIALTONE_SOCKET names. Start one there with \"dialtoned --socket"
			" %s\", or unset the variable to use the machine's.", client->paths[0], client->paths[0]);
	return dt_fail(&client->error, -ECONNREFUSED,
		"The agent is not running: nothing listens on %s%s%s. Start it with \"systemctl start dialtoned\";"
		" DIALTONE_SOCKET names another socket.", client->paths[0], client->path_count > 1 ? " or " : "",
		client->path_count > 1 ? client->paths[1] : "");
}

/* Connects to the first path on which somebody listens. Returns a socket, -EAGAIN for one that is to be tried again in a
 * moment, or another failure that is noted. */
static int connect_to_agent(dialtone *client)
{
	for (size_t i = 0; i < client->path_count; i++) {
		struct sockaddr_un address = { .sun_family = AF_UNIX };
		int descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		int number;

		if (descriptor < 0)
			return dt_fail_system(&client->error, "Making a socket to reach the agent", errno);
		/* dialtone_new() has seen to it that it fits. */
		strcpy(address.sun_path, client->paths[i]);
		if (connect(descriptor, (struct sockaddr *)&address, sizeof address) == 0)
			return descriptor;
		number = errno;
		close(descriptor);
		if (number == EACCES || number == EPERM)
			return dt_fail(&client->error, -EACCES,
				"The agent's socket %s is not open to this user. It is open to the group dialtone: \"usermod -aG"
				" dialtone USER\" lets a user in, from the next login on.", client->paths[i]);
		if (number == EAGAIN)
			return dt_fail(&client->error, -EAGAIN,
				"The agent at %s does not accept clients. See what it is doing with \"systemctl status dialtoned\".",
				client->paths[i]);
		if (number != ENOENT && number != ECONNREFUSED)
			return dt_fail_system(&client->error, "Connecting to the agent", number);
	}
	return not_running(client);
}

static void begin(dialtone_request *request, uint64_t now)
{
	dialtone *client = request->client;
	int result = connect_to_agent(client);

	if (result == -EAGAIN && ++request->refusals <= REFUSALS) {
		request->connect_at = now + REFUSAL_PAUSE;
		return;
	}
	request->refusals = 0;
	if (result == -ECONNREFUSED || result == -EAGAIN) {
		lose(request, result, now);
	} else if (result < 0) {
		dt_request_fail(request, result);
	} else {
		request->socket = result;
		request->phase = DT_SENDING;
		if (encode(request) < 0)
			dt_request_fail(request, dt_fail_system(&client->error, "Writing the call", ENOMEM));
	}
}

/* Sends what is left of the call; its descriptor rides on the first byte. */
static ssize_t send_some(dialtone_request *request)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr alignment;
	} control = { 0 };
	struct iovec part = { request->bytes + request->sent, request->length - request->sent };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };

	if (request->descriptor >= 0 && request->sent == 0) {
		struct cmsghdr *header;

		message.msg_control = control.bytes;
		message.msg_controllen = sizeof control.bytes;
		header = CMSG_FIRSTHDR(&message);
		header->cmsg_level = SOL_SOCKET;
		header->cmsg_type = SCM_RIGHTS;
		header->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(header), &request->descriptor, sizeof(int));
	}
	return sendmsg(request->socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void send_call(dialtone_request *request)
{
	while (request->sent < request->length) {
		ssize_t count = send_some(request);

		if (count < 0 && errno == EINTR)
			continue;
		if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
			return;
		/* An agent that hung up may have said why before. */
		if (count < 0)
			break;
		request->sent += (size_t)count;
	}
	free(request->bytes);
	request->bytes = NULL;
	request->phase = DT_READING;
}

/* Takes one message of the agent. */
static void take_message(dialtone_request *request, const char *text, size_t length)
{
	dialtone *client = request->client;
	int descriptors[DT_DESCRIPTOR_LIMIT];
	size_t count = dt_reader_take_descriptors(&request->reader, descriptors);
	struct dt_message message;
	const char *reason;
	int result = dt_message_read(&message, text, length, descriptors, count, &reason);

	if (result == -ENOMEM) {
		dt_request_fail(request, dt_fail_system(&client->error, "Reading the agent's answer", ENOMEM));
		return;
	}
	if (result == 0 && message.continues && !(request->flags & DIALTONE_STREAM)) {
		dialtone_reply_free(message.reply);
		reason = "more is to follow, which was not asked for";
		result = -EBADMSG;
	}
	if (result < 0) {
		dt_request_fail(request, dt_fail(&client->error, result, "The agent's answer to %s is not one of Varlink: %s.",
			request->method, reason));
		return;
	}
	if (message.error) {
		result = dt_fail_refused(&client->error, request->method, json_string_value(message.error),
			message.parameters);
		json_decref(message.error);
		json_decref(message.parameters);
		/* OutOfResources and Suspended, which the agent takes back by itself. */
		if (result == -ENOBUFS || result == -EAGAIN)
			lose(request, result, dt_now());
		else
			dt_request_fail(request, result);
		return;
	}
	request->is_lost = false;
	request->pause = 0;
	if (strcmp(request->method, DT_CONNECTIONS "Monitor") == 0) {
		json_t *sequence = json_object_get(message.reply->parameters, "sequence");

		if (json_is_integer(sequence))
			json_object_set(request->parameters, "after", sequence);
	}
	if (!message.continues)
		dt_request_end(request);
	tell(request, message.continues ? DIALTONE_MORE : DIALTONE_DONE, message.reply);
	dialtone_reply_free(message.reply);
}

static void read_answers(dialtone_request *request, uint64_t now)
{
	dialtone *client = request->client;
	const char *text;
	size_t length;
	int filled = dt_reader_fill(&request->reader, request->socket), result;

	if (filled == -EBADMSG)
		dt_request_fail(request, dt_fail(&client->error, filled, "With the agent's answer to %s came too many"
			" descriptors, or this process may open no more of them.", request->method));
	else if (filled == -ENOMEM)
		dt_request_fail(request, dt_fail_system(&client->error, "Reading the agent's answer", ENOMEM));
	else if (filled < 0)
		lose(request, dt_fail(&client->error, -ECONNRESET,
			"The agent hung up before it answered %s (%s). See why with \"journalctl -u dialtoned\".",
			request->method, filled == -ECONNRESET ? "end of the stream" : strerrordesc_np(-filled)), now);
	if (filled <= 0)
		return;
	/* A handler may end the request, which clears the reader. */
	while (request->phase == DT_READING && (result = dt_reader_next(&request->reader, &text, &length)) != 0) {
		if (result < 0)
			dt_request_fail(request, dt_fail(&client->error, result, "The agent's answer to %s is longer than %zu bytes.",
				request->method, DT_MESSAGE_LIMIT));
		else
			take_message(request, text, length);
	}
}

void dt_request_step(dialtone_request *request, uint64_t now)
{
	/* An answer that is there counts, however late it is looked for. */
	if (request->phase == DT_READING)
		read_answers(request, now);
	if (request->phase != DT_OVER && now >= request->deadline) {
		dt_request_fail(request, dt_fail(&request->client->error, -ETIMEDOUT, "The agent did not answer %s in time. See"
			" what it is doing with \"systemctl status dialtoned\".", request->method));
		return;
	}
	if (request->phase == DT_CONNECTING && now >= request->connect_at)
		begin(request, now);
	if (request->phase == DT_SENDING)
		send_call(request);
}

uint64_t dt_request_due(const dialtone_request *request)
{
	if (request->phase == DT_OVER)
		return UINT64_MAX;
	if (request->phase == DT_CONNECTING && request->connect_at < request->deadline)
		return request->connect_at;
	return request->deadline;
}

short dt_request_events(const dialtone_request *request)
{
	switch (request->phase) {
	case DT_SENDING: return POLLOUT;
	case DT_READING: return POLLIN;
	case DT_CONNECTING:
	case DT_OVER: break;
	}
	return 0;
}
