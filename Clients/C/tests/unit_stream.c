/* SPDX-License-Identifier: Apache-2.0
 *
 * Streams, and the loop that they run in.
 */
#define _GNU_SOURCE
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* What a handler was told, a word each. */
static char told[1024];
static dialtone_request *running;

static void note(dialtone *client, int result, dialtone_reply *reply, void *data)
{
	char word[64];

	(void)data;
	if (result == DIALTONE_LOST)
		snprintf(word, sizeof word, "lost ");
	else if (result < 0)
		snprintf(word, sizeof word, "failed(%d) ", result);
	else
		snprintf(word, sizeof word, "%" PRId64 "%s ", dialtone_value_int(dialtone_reply_value(reply), "sequence", -1),
			result == DIALTONE_DONE ? "." : "");
	strncat(told, word, sizeof told - strlen(told) - 1);
	check((result == DIALTONE_LOST || result < 0) == (*dialtone_error_text(client) != '\0'));
}

/* Runs the loop until the handlers were told so much, for ten seconds at most. */
static void run_until(dialtone *client, const char *expected)
{
	uint64_t end = dt_now() + 10000000;

	while (strlen(told) < strlen(expected) && dt_now() < end) {
		int result = dialtone_process(client);

		check(result >= 0);
		if (result == 0)
			check(dialtone_wait(client, 1000) >= 0);
	}
	check_text(told, expected);
}

static dialtone *begin(serve *serve)
{
	dialtone *client = NULL;

	told[0] = '\0';
	check_int(dialtone_new(&client, stand_in_start(serve)), 0);
	return client;
}

static void end(dialtone *client)
{
	dialtone_free(client);
	stand_in_stop();
}

/* Two replies at once; the next client is to go on after them, gets another one, and the end. */
static void count(int socket, int number)
{
	static const char both[] = "{\"parameters\":{\"sequence\":4},\"continues\":true}\0"
		"{\"parameters\":{\"sequence\":5},\"continues\":true}";
	const char *call = stand_in_read(socket);

	if (number == 0) {
		check(strstr(call, "\"more\": true") || strstr(call, "\"more\":true"));
		check(!strstr(call, "after"));
		send(socket, both, sizeof both, MSG_NOSIGNAL);
	} else if (number == 1) {
		/* Hung up again before anything was said: that is told once. */
	} else {
		check(strstr(call, "\"after\":5"));
		stand_in_say(socket, "{\"parameters\":{\"sequence\":6},\"continues\":true}");
		stand_in_say(socket, "{\"parameters\":{\"sequence\":7}}");
		stand_in_wait(socket);
	}
}

static void goes_on_after_a_loss(void)
{
	dialtone *client = begin(count);
	uint64_t due;

	check_int(dialtone_monitor(client, NULL, -1, note, NULL, &running), 0);
	check_int(dialtone_get_timeout(client, &due), 0);
	check_int(due, 0);
	check_int(dialtone_get_events(client), POLLIN);
	run_until(client, "4 5 lost 6 7. ");
	check_int(dialtone_get_timeout(client, &due), 0);
	check(due == UINT64_MAX);
	end(client);
}

static void names_are_sent(int socket, int number)
{
	(void)number;
	check(strstr(stand_in_read(socket), "\"names\":[\"a\",\"b\"]"));
	stand_in_say(socket, "{\"error\":\"org.dialtone.Connections.QuotaExceeded\",\"parameters\":{\"limit\":1}}");
}

static void ends_when_the_agent_refuses(void)
{
	static const char *const names[] = { "a", "b", NULL };
	dialtone *client = begin(names_are_sent);

	check_int(dialtone_monitor(client, names, -1, note, NULL, NULL), 0);
	run_until(client, "failed(-122) ");
	end(client);
}

/* An agent that has no room for a while, before it has told anything and after that. */
static void refuse_for_a_while(int socket, int number)
{
	static const char *const answers[] = {
		"{\"error\":\"org.dialtone.Connections.OutOfResources\",\"parameters\":{\"reason\":\"full\"}}",
		"{\"parameters\":{\"sequence\":4},\"continues\":true}",
		"{\"error\":\"org.dialtone.Connections.Suspended\",\"parameters\":{\"reason\":\"it crashed\",\"seconds\":5}}",
		"{\"error\":\"org.dialtone.Network.OutOfResources\",\"parameters\":{\"reason\":\"full\"}}",
		"{\"parameters\":{\"sequence\":5}}",
	};

	stand_in_read(socket);
	stand_in_say(socket, answers[number]);
}

static void waits_for_an_agent_that_refuses_for_a_while(void)
{
	dialtone *client = begin(refuse_for_a_while);

	check_int(dialtone_monitor(client, NULL, -1, note, NULL, NULL), 0);
	run_until(client, "lost 4 lost 5. ");
	end(client);
}

static void is_lost_where_nobody_listens(void)
{
	dialtone *client;
	uint64_t due;

	told[0] = '\0';
	check_int(dialtone_new(&client, "/nowhere/dialtone.sock"), 0);
	check_int(dialtone_monitor_path(client, NULL, note, NULL, NULL), 0);
	run_until(client, "lost ");
	check_int(dialtone_get_timeout(client, &due), 0);
	check(due > dt_now() && due <= dt_now() + 100000);
	/* A call fails instead. */
	told[0] = '\0';
	check_int(dialtone_start(client, "a.B", NULL, -1, 0, note, NULL, NULL), 0);
	run_until(client, "failed(-111) ");
	check_int(dialtone_start(client, "a.B", NULL, -1, DIALTONE_RESUME, note, NULL, NULL), -EINVAL);
	dialtone_free(client);
}

static void answer_once(int socket, int number)
{
	(void)number;
	if (*stand_in_read(socket))
		stand_in_say(socket, "{\"parameters\":{\"sequence\":1}}");
	stand_in_wait(socket);
}

static void count_endlessly(int socket, int number)
{
	(void)number;
	stand_in_read(socket);
	for (int i = 0; i < 3; i++)
		stand_in_say(socket, "{\"parameters\":{\"sequence\":1},\"continues\":true}");
	stand_in_wait(socket);
}

/* An answer that came in time counts, although the program looks for it too late. */
static void a_late_program_gets_its_answer(void)
{
	dialtone *client = begin(answer_once);
	struct pollfd wait = { .fd = dialtone_get_fd(client), .events = POLLIN };
	uint64_t due;

	check_int(dialtone_set_timeout(client, 200), 0);
	check_int(dialtone_start(client, "a.B", NULL, -1, 0, note, NULL, NULL), 0);
	check_int(dialtone_process(client), 1);
	check_int(poll(&wait, 1, 10000), 1);
	check_int(dialtone_get_timeout(client, &due), 0);
	while (dt_now() <= due)
		usleep(1000);
	run_until(client, "1. ");
	end(client);
}

/* As many clients wait as the kernel lets: the call waits for room, and the loop is not busy meanwhile. */
static void a_call_waits_for_room(void)
{
	dialtone *client = begin(answer_once);
	int waiting[16], count = 0;
	uint64_t due;

	/* One is served: none of those that wait leaves room later. */
	waiting[count++] = stand_in_connect();
	stand_in_await(1);
	while (count < 16 && (waiting[count] = stand_in_connect()) >= 0)
		count++;
	check(count > 0 && count < 16);
	check_int(dialtone_start(client, "a.B", NULL, -1, 0, note, NULL, NULL), 0);
	check_int(dialtone_process(client), 1);
	check_text(told, "");
	check_int(dialtone_get_timeout(client, &due), 0);
	check(due > 0 && due <= dt_now() + 20000);
	while (count > 0)
		close(waiting[--count]);
	run_until(client, "1. ");
	end(client);
}

static void start_again(dialtone *client, int result, dialtone_reply *reply, void *data)
{
	note(client, result, reply, data);
	if (strlen(told) < 100)
		check_int(dialtone_start(client, "a.B", NULL, -1, 0, start_again, NULL, NULL), 0);
}

/* What a handler starts that fails at once is told by the next call: the program gets its turn in between. */
static void a_handler_that_tries_again_keeps_nobody_waiting(void)
{
	dialtone *client;

	told[0] = '\0';
	check_int(dialtone_new(&client, "/nowhere/dialtone.sock"), 0);
	check_int(dialtone_start(client, "a.B", NULL, -1, 0, start_again, NULL, NULL), 0);
	check_int(dialtone_process(client), 1);
	check_text(told, "failed(-111) ");
	check_int(dialtone_process(client), 1);
	check_text(told, "failed(-111) failed(-111) ");
	dialtone_free(client);
}

static void cancel_it(dialtone *client, int result, dialtone_reply *reply, void *data)
{
	note(client, result, reply, data);
	check_int(dialtone_process(client), -EBUSY);
	dialtone_cancel(running);
	strcat(told, "cancelled ");
}

static void free_it(dialtone *client, int result, dialtone_reply *reply, void *data)
{
	note(client, result, reply, data);
	dialtone_free(client);
	check_int(dialtone_start(client, "a.B", NULL, -1, 0, note, NULL, NULL), -EINVAL);
	strcat(told, "freed ");
}

static void handlers_may_end_what_calls_them(void)
{
	dialtone *client = begin(count_endlessly);

	check_int(dialtone_monitor(client, NULL, -1, cancel_it, NULL, &running), 0);
	run_until(client, "1 cancelled ");
	check_int(dialtone_process(client), 0);
	check_text(told, "1 cancelled ");
	dialtone_cancel(NULL);
	/* Not begun yet. */
	check_int(dialtone_monitor(client, NULL, -1, note, NULL, &running), 0);
	dialtone_cancel(running);
	end(client);
	client = begin(count_endlessly);
	check_int(dialtone_monitor(client, NULL, -1, free_it, NULL, NULL), 0);
	while (!*told) {
		dialtone_wait(client, 1000);
		check(dialtone_process(client) >= 0);
	}
	check_text(told, "1 freed ");
	stand_in_stop();
}

/* A byte in it has the stand-in say a third reply. */
static int go_on[2];

static void count_to_three(int socket, int number)
{
	static const char both[] = "{\"parameters\":{\"sequence\":1},\"continues\":true}\0"
		"{\"parameters\":{\"sequence\":2},\"continues\":true}";
	char byte;

	(void)number;
	stand_in_read(socket);
	send(socket, both, sizeof both, MSG_NOSIGNAL);
	check_int(read(go_on[0], &byte, 1), 1);
	stand_in_say(socket, "{\"parameters\":{\"sequence\":3},\"continues\":true}");
	stand_in_wait(socket);
}

static void count_when_asked(int socket, int number)
{
	(void)number;
	stand_in_read(socket);
	stand_in_say(socket, "{\"parameters\":{\"sequence\":1},\"continues\":true}");
	stand_in_wait(socket);
}

/* The child's copy of the socket neither keeps the agent from seeing that the parent hangs up nor the loop busy. */
static void a_child_changes_nothing(void)
{
	dialtone *client = begin(count_when_asked);
	int pipe_ends[2], status;
	pid_t child;

	check_int(dialtone_monitor(client, NULL, -1, note, NULL, &running), 0);
	run_until(client, "1 ");
	check_int(pipe(pipe_ends), 0);
	child = fork();
	if (child == 0) {
		char byte;

		close(pipe_ends[1]);
		dialtone_cancel(running);
		/* Keeps its copies until the parent is done. */
		status = read(pipe_ends[0], &byte, 1) == 0 ? 0 : 1;
		dialtone_free(client);
		_exit(status);
	}
	close(pipe_ends[0]);
	check_int(dialtone_process(client), 0);
	dialtone_cancel(running);
	check_int(dialtone_wait(client, 0), 0);
	/* It returns, which it would not if the stand-in still had a client. */
	stand_in_stop();
	dialtone_free(client);
	close(pipe_ends[1]);
	waitpid(child, &status, 0);
	check_int(status, 0);
}

static pid_t child_of_handler;

static void fork_it(dialtone *client, int result, dialtone_reply *reply, void *data)
{
	note(client, result, reply, data);
	if (child_of_handler < 0)
		child_of_handler = fork();
	if (child_of_handler == 0 && data)
		dialtone_free(client);
}

/* The child returns from the handler into the loop, where nothing goes on; with is_freed, it has freed the handle. */
static void a_handler_may_fork(bool is_freed)
{
	dialtone *client;
	int status;

	check_int(pipe2(go_on, O_CLOEXEC), 0);
	client = begin(count_to_three);
	child_of_handler = -1;
	check_int(dialtone_monitor(client, NULL, -1, fork_it, is_freed ? client : NULL, NULL), 0);
	while (child_of_handler < 0) {
		dialtone_wait(client, 1000);
		check(dialtone_process(client) >= 0);
	}
	if (child_of_handler == 0) {
		bool is_quiet = strcmp(told, "1 ") == 0;

		if (!is_freed) {
			is_quiet = is_quiet && dialtone_process(client) == -ECHILD;
			dialtone_free(client);
		}
		_exit(is_quiet ? 0 : 1);
	}
	waitpid(child_of_handler, &status, 0);
	check_int(status, 0);
	check_text(told, "1 2 ");
	/* For the parent nothing ended. */
	check_int(write(go_on[1], "", 1), 1);
	run_until(client, "1 2 3 ");
	end(client);
	close(go_on[0]);
	close(go_on[1]);
}

void stream_tests(void)
{
	int before = count_descriptors();

	goes_on_after_a_loss();
	ends_when_the_agent_refuses();
	waits_for_an_agent_that_refuses_for_a_while();
	is_lost_where_nobody_listens();
	a_late_program_gets_its_answer();
	a_call_waits_for_room();
	a_handler_that_tries_again_keeps_nobody_waiting();
	handlers_may_end_what_calls_them();
	a_child_changes_nothing();
	a_handler_may_fork(false);
	a_handler_may_fork(true);
	check_int(count_descriptors(), before);
}
