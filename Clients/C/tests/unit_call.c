/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls that wait, with an agent that answers well, badly, late or never.
 */
#define _GNU_SOURCE
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static void ignore(dialtone *client, int result, dialtone_reply *reply, void *data)
{
	(void)client;
	(void)result;
	(void)reply;
	(void)data;
}

/* What the stand-in answers. */
static const char *answer;
static size_t passed;

static void answer_in_pieces(int socket, int number)
{
	(void)number;
	if (!*stand_in_read(socket))
		return;
	for (size_t i = 0; i <= strlen(answer); i++)
		send(socket, answer + i, 1, MSG_NOSIGNAL);
	stand_in_wait(socket);
}

static void answer_without_end(int socket, int number)
{
	(void)number;
	stand_in_read(socket);
	send(socket, answer, strlen(answer), MSG_NOSIGNAL);
}

/* As an agent without room does: it says so to a client that has not said anything. */
static void refuse_at_once(int socket, int number)
{
	(void)number;
	stand_in_say(socket, answer);
}

static void answer_endlessly(int socket, int number)
{
	char *piece = malloc(1 << 20);

	(void)number;
	stand_in_read(socket);
	memset(piece, 'x', 1 << 20);
	while (send(socket, piece, 1 << 20, MSG_NOSIGNAL) > 0)
		;
	free(piece);
}

static void answer_never(int socket, int number)
{
	(void)number;
	stand_in_wait(socket);
}

static void pass_descriptors(int socket, int number)
{
	(void)number;
	stand_in_read(socket);
	stand_in_pass(socket, answer, passed);
	stand_in_wait(socket);
}

static void count_passed(int socket, int number)
{
	char text[64];

	(void)number;
	stand_in_read(socket);
	snprintf(text, sizeof text, "{\"parameters\":{\"passed\":%zu}}", stand_in_passed());
	stand_in_say(socket, text);
	stand_in_wait(socket);
}

static void return_the_call(int socket, int number)
{
	const char *call = stand_in_read(socket);
	char *text = malloc(strlen(call) + 32);

	(void)number;
	sprintf(text, "{\"parameters\":%s}", call);
	stand_in_say(socket, text);
	stand_in_wait(socket);
	free(text);
}

/* An object with more text than fits into a socket at once. */
static dialtone_value *much(void)
{
	char *text = malloc(1 << 19);
	dialtone_value *value = dialtone_value_new();

	memset(text, 'x', (1 << 19) - 1);
	text[(1 << 19) - 1] = '\0';
	check_int(dialtone_value_set_string(value, "text", text), 0);
	free(text);
	return value;
}

static dialtone *begin(serve *serve)
{
	dialtone *client = NULL;

	check_int(dialtone_new(&client, stand_in_start(serve)), 0);
	/* Under valgrind, on a busy machine, half a megabyte takes longer than a call may by itself. */
	check_int(dialtone_set_timeout(client, 600000), 0);
	return client;
}

static void end(dialtone *client)
{
	dialtone_free(client);
	stand_in_stop();
}

/* Lists, and returns what came of it; nothing may be left open. */
static int list(dialtone *client)
{
	dialtone_reply *reply;
	int result = dialtone_list(client, &reply);

	check((result < 0) == !reply);
	dialtone_reply_free(reply);
	return result;
}

static void answers_in_pieces(void)
{
	dialtone *client = begin(answer_in_pieces);
	dialtone_reply *reply;

	answer = "{\"parameters\":{\"connections\":[{\"name\":\"a\",\"state\":\"ready\"}]}}";
	check_int(dialtone_list(client, &reply), 0);
	check_text(dialtone_value_string(dialtone_reply_value(reply), "connections.0.state"), "ready");
	check_int(dialtone_reply_take_fd(reply), -ENOENT);
	dialtone_reply_free(reply);
	answer = "{\"parameters\":{},\"continues\":true}";
	check_int(list(client), -EBADMSG);
	answer = "nonsense";
	check_int(list(client), -EBADMSG);
	check(strstr(dialtone_error_text(client), "is not one of Varlink: it is not JSON"));
	check(!dialtone_error_name(client));
	end(client);
}

static void errors_of_the_agent(void)
{
	dialtone *client = begin(answer_in_pieces);

	answer = "{\"error\":\"org.dialtone.Connections.NotReady\",\"parameters\":{\"name\":\"a\",\"state\":\"waiting\"}}";
	check_int(dialtone_take(client, "a", NULL, NULL), -ENOTCONN);
	check(strstr(dialtone_error_text(client), "The connection \"a\" has no socket for that: it is waiting."));
	check_text(dialtone_error_name(client), "org.dialtone.Connections.NotReady");
	check_text(dialtone_value_string(dialtone_error_parameters(client), "state"), "waiting");
	answer = "{\"error\":\"org.dialtone.Connections.AmbiguousName\",\"parameters\":{\"name\":\"a\",\"owners\":[0,7]}}";
	check_int(dialtone_close(client, "a"), -ENOTUNIQ);
	check(strstr(dialtone_error_text(client), "connection \"a\": 0, 7."));
	/* Members that are missing, and an error that is new. */
	answer = "{\"error\":\"org.dialtone.Connections.StaleEpoch\"}";
	check_int(dialtone_park(client, "a", 1, NULL), -ESTALE);
	answer = "{\"error\":\"org.example.Later\",\"parameters\":{\"x\":1}}";
	check_int(list(client), -EREMOTEIO);
	check_text(dialtone_error_text(client),
		"The agent refused org.dialtone.Connections.List: org.example.Later {\"x\":1}.");
	answer = "{}";
	check_int(list(client), 0);
	check_text(dialtone_error_text(client), "");
	end(client);
}

static void answers_that_break_off(void)
{
	dialtone *client = begin(answer_without_end);
	dialtone_value *large = much();

	answer = "{\"parameters\":";
	check_int(list(client), -ECONNRESET);
	answer = "";
	check_int(list(client), -ECONNRESET);
	end(client);
	client = begin(refuse_at_once);
	answer = "{\"error\":\"org.dialtone.Connections.OutOfResources\",\"parameters\":{\"reason\":\"full\"}}";
	check_int(list(client), -ENOBUFS);
	/* It has hung up before all was sent. */
	check_int(dialtone_call(client, "a.B", large, -1, NULL), -ENOBUFS);
	dialtone_value_free(large);
	end(client);
}

static void answers_that_are_too_long_or_late(void)
{
	dialtone *client = begin(answer_endlessly);

	check_int(list(client), -EMSGSIZE);
	end(client);
	client = begin(answer_never);
	check_int(dialtone_set_timeout(client, 50), 0);
	check_int(list(client), -ETIMEDOUT);
	end(client);
}

static void nobody_there(void)
{
	char path[200];
	dialtone *client;

	memset(path, 'x', sizeof path - 1);
	path[sizeof path - 1] = '\0';
	check_int(dialtone_new(&client, path), -ENAMETOOLONG);
	check(!client);
	check_int(dialtone_new(&client, "/nowhere/dialtone.sock"), 0);
	check_int(list(client), -ECONNREFUSED);
	check(strstr(dialtone_error_text(client), "nothing listens on /nowhere/dialtone.sock."));
	dialtone_free(client);
}

static void descriptors_of_an_answer(void)
{
	dialtone *client = begin(pass_descriptors);
	dialtone_reply *reply;
	int before = count_descriptors(), descriptor;

	answer = "{\"parameters\":{\"fileDescriptor\":1,\"epoch\":3}}";
	passed = 2;
	check_int(dialtone_take(client, "a", NULL, &reply), 0);
	descriptor = dialtone_reply_take_fd(reply);
	check(descriptor >= 0 && fcntl(descriptor, F_GETFD) == FD_CLOEXEC);
	check_int(dialtone_reply_take_fd(reply), -ENOENT);
	dialtone_reply_free(reply);
	close(descriptor);
	/* Nobody takes it out. */
	check_int(dialtone_take(client, "a", NULL, NULL), 0);
	/* An answer that wants none, an error, a place that is not there, more than there may be. */
	answer = "{\"parameters\":{}}";
	check_int(list(client), 0);
	answer = "{\"error\":\"x.y\"}";
	check_int(list(client), -EREMOTEIO);
	answer = "{\"parameters\":{\"fileDescriptor\":2}}";
	check_int(dialtone_take(client, "a", NULL, NULL), -EBADMSG);
	answer = "{\"parameters\":{\"fileDescriptor\":-1}}";
	check_int(dialtone_take(client, "a", NULL, NULL), -EBADMSG);
	passed = DT_DESCRIPTOR_LIMIT + 1;
	check_int(list(client), -EBADMSG);
	/* The last client hangs up before the stand-in has closed its side. */
	dialtone_free(client);
	stand_in_stop();
	check_int(count_descriptors(), before - 2);
}

static void a_process_without_descriptors(void)
{
	dialtone *client;
	struct rlimit limit, tight;
	int highest;

	/* valgrind keeps the limit of descriptors to itself: the kernel never hears of it. */
	if (getenv("UNDER_VALGRIND")) {
		puts("skipped under valgrind: a process without descriptors");
		return;
	}
	client = begin(pass_descriptors);
	answer = "{\"parameters\":{\"fileDescriptor\":0}}";
	passed = DT_DESCRIPTOR_LIMIT;
	check_int(list(client), 0);
	getrlimit(RLIMIT_NOFILE, &limit);
	/* Room for the client's socket, the stand-in's and what that passes a copy of; not for so many copies. */
	highest = open("/dev/null", O_RDONLY | O_CLOEXEC);
	close(highest);
	tight = limit;
	tight.rlim_cur = (rlim_t)highest + DT_DESCRIPTOR_LIMIT / 2;
	setrlimit(RLIMIT_NOFILE, &tight);
	check_int(dialtone_take(client, "a", NULL, NULL), -EBADMSG);
	check(strstr(dialtone_error_text(client), "this process may open no more"));
	setrlimit(RLIMIT_NOFILE, &limit);
	end(client);
}

static void what_is_sent(void)
{
	dialtone *client = begin(return_the_call);
	dialtone_value *settings = dialtone_value_new(), *large = much(), *list;
	dialtone_reply *reply;
	char *text;

	dialtone_value_set_int(settings, "priority", 6);
	check_int(dialtone_open(client, NULL, "tcp://h:1", settings, &reply), 0);
	text = dialtone_value_print(dialtone_reply_value(reply));
	check_text(text, "{\"method\":\"org.dialtone.Connections.Open\",\"parameters\":{\"remote\":\"tcp://h:1\","
		"\"settings\":{\"priority\":6}}}");
	free(text);
	dialtone_reply_free(reply);
	check_int(dialtone_set_owner(client, 1000), 0);
	check_int(dialtone_call(client, "a.B", settings, -1, &reply), 0);
	check_int(dialtone_value_int(dialtone_reply_value(reply), "parameters.priority", 0), 6);
	dialtone_reply_free(reply);
	check_int(dialtone_close(client, "\xff"), -EINVAL);
	check_int(dialtone_call(client, "\xff", NULL, -1, NULL), -EINVAL);
	check_int(dialtone_value_parse(&list, "[]"), 0);
	check_int(dialtone_call(client, "a.B", list, -1, NULL), -EINVAL);
	dialtone_value_free(list);
	check_int(dialtone_adopt(client, "a", -1, NULL, NULL, NULL), -EBADF);
	check_int(dialtone_adopt(client, "a", 987654, NULL, NULL, NULL), -EBADF);
	check_int(dialtone_call(client, "a.B", large, -1, &reply), 0);
	check_text(dialtone_value_string(dialtone_reply_value(reply), "parameters.text"), dialtone_value_string(large, "text"));
	dialtone_reply_free(reply);
	dialtone_value_free(settings);
	dialtone_value_free(large);
	end(client);
}

static int passed_with(dialtone *client, const dialtone_value *parameters, int descriptor)
{
	dialtone_reply *reply;
	int count;

	check_int(dialtone_call(client, "a.B", parameters, descriptor, &reply), 0);
	count = (int)dialtone_value_int(dialtone_reply_value(reply), "passed", -1);
	dialtone_reply_free(reply);
	return count;
}

static void descriptors_go_along_once(void)
{
	dialtone *client = begin(count_passed);
	dialtone_value *large = much();
	dialtone_request *request;
	int sent = open("/dev/null", O_RDWR | O_CLOEXEC), inherited = count_inherited();

	check_int(passed_with(client, NULL, -1), 0);
	check_int(passed_with(client, NULL, sent), 1);
	check_int(passed_with(client, large, sent), 1);
	check_int(dialtone_start(client, "a.B", NULL, sent, 0, ignore, NULL, &request), 0);
	check_int(dialtone_process(client), 1);
	check_int(count_inherited(), inherited);
	dialtone_cancel(request);
	/* It is still the caller's. */
	check_int(close(sent), 0);
	dialtone_value_free(large);
	end(client);
}

static void a_child_is_refused(void)
{
	dialtone *client = begin(answer_in_pieces);
	int status;
	pid_t child;

	answer = "{}";
	check_int(list(client), 0);
	child = fork();
	if (child == 0) {
		int result = dialtone_list(client, NULL);
		bool is_told = strstr(dialtone_error_text(client), "forked off") != NULL;

		is_told = is_told && dialtone_process(client) == -ECHILD && dialtone_get_fd(client) == -ECHILD;
		dialtone_free(client);
		_exit(result == -ECHILD && is_told ? 0 : 1);
	}
	waitpid(child, &status, 0);
	check_int(status, 0);
	check_int(list(client), 0);
	end(client);
}

void call_tests(void)
{
	int before = count_descriptors();

	answers_in_pieces();
	errors_of_the_agent();
	answers_that_break_off();
	answers_that_are_too_long_or_late();
	nobody_there();
	descriptors_of_an_answer();
	a_process_without_descriptors();
	what_is_sent();
	descriptors_go_along_once();
	a_child_is_refused();
	check_int(count_descriptors(), before);
}
