/* SPDX-License-Identifier: Apache-2.0
 *
 * The driver of the scenarios that every client library passes: commands on standard input, a line each, and an answer
 * on standard output, a line each. What a stream tells comes in between and begins with "* ".
 *
 *     path HOST, monitor-path HOST, monitor, open NAME REMOTE, adopt NAME REMOTE PORT, close NAME, redial NAME, list,
 *     take NAME, send TEXT, receive, park, abandon, forget NAME, descriptors, acknowledge NAME WAKE, quit
 */
#define _POSIX_C_SOURCE 200809L
#include <dialtone.h>

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* What the driver has taken. */
static struct {
	int socket;
	char name[256];
	int64_t epoch;
} held = { .socket = -1 };

static const char *word(const dialtone_value *value, const char *path)
{
	const char *text = dialtone_value_string(value, path);

	return text ? text : "-";
}

/* The failure of the last call, as the scenarios want it. */
static void print_error(dialtone *client, int result)
{
	const char *name = dialtone_error_name(client);

	if (name)
		name = strrchr(name, '.') + 1;
	else if (result == -ECONNREFUSED)
		name = "NotRunning";
	else if (result == -ECONNRESET)
		name = "Lost";
	else
		name = strerror(-result);
	printf("error %s %s\n", name, dialtone_error_text(client));
}

static void print_outcome(dialtone *client, int result)
{
	if (result < 0)
		print_error(client, result);
	else
		puts("ok");
}

static void print_connections(const char *prefix, const dialtone_value *value)
{
	size_t count = dialtone_value_count(value, "connections");

	printf("%s ", prefix);
	for (size_t i = 0; i < count; i++) {
		const dialtone_value *connection = dialtone_value_item(value, "connections", i);

		printf("%s%s=%s", i ? "," : "", word(connection, "name"), word(connection, "state"));
	}
	puts(count ? "" : "-");
}

static void path_told(dialtone *client, int result, dialtone_reply *reply, void *data)
{
	const dialtone_value *value;
	size_t count;

	(void)data;
	if (result < 0) {
		printf("* ");
		print_error(client, result);
	}
	if (!reply)
		return;
	value = dialtone_reply_value(reply);
	count = dialtone_value_count(value, "changes");
	printf("* path %s %s ", word(value, "path.status"), word(value, "path.reason"));
	for (size_t i = 0; i < count; i++)
		printf("%s%s", i ? "," : "", word(dialtone_value_item(value, "changes", i), NULL));
	puts(count ? "" : "-");
}

static void connections_told(dialtone *client, int result, dialtone_reply *reply, void *data)
{
	const dialtone_value *value;

	(void)data;
	if (result == DIALTONE_LOST) {
		puts("* lost");
	} else if (result < 0) {
		printf("* ");
		print_error(client, result);
	}
	if (!reply)
		return;
	value = dialtone_reply_value(reply);
	if (strcmp(word(value, "kind"), "change") == 0)
		printf("* event %" PRId64 " %s %s %s\n", dialtone_value_int(value, "sequence", -1), word(value, "event.kind"),
			word(value, "event.connection.name"), word(value, "event.connection.state"));
	else if (strcmp(word(value, "kind"), "gap") == 0)
		puts("* gap");
	else
		print_connections("* snapshot", value);
}

static void path(dialtone *client, const char *host, bool is_monitor)
{
	dialtone_value *target = dialtone_target(host, 0);
	dialtone_reply *reply;
	int result;

	if (is_monitor) {
		print_outcome(client, dialtone_monitor_path(client, target, path_told, NULL, NULL));
	} else if ((result = dialtone_get_path(client, target, &reply)) < 0) {
		print_error(client, result);
	} else {
		printf("path %s %s\n", word(dialtone_reply_value(reply), "path.status"),
			word(dialtone_reply_value(reply), "path.reason"));
		dialtone_reply_free(reply);
	}
	dialtone_value_free(target);
}

static void list(dialtone *client)
{
	dialtone_reply *reply;
	int result = dialtone_list(client, &reply);

	if (result < 0) {
		print_error(client, result);
		return;
	}
	print_connections("connections", dialtone_reply_value(reply));
	dialtone_reply_free(reply);
}

static void take(dialtone *client, const char *name)
{
	dialtone_reply *reply;
	int result = dialtone_take(client, name, NULL, &reply);

	if (result < 0) {
		print_error(client, result);
		return;
	}
	if (held.socket >= 0)
		close(held.socket);
	held.socket = dialtone_reply_take_fd(reply);
	held.epoch = dialtone_value_int(dialtone_reply_value(reply), "epoch", -1);
	snprintf(held.name, sizeof held.name, "%s", name);
	printf("taken %s %" PRId64 "\n", held.name, held.epoch);
	dialtone_reply_free(reply);
}

static void forget(dialtone *client, const char *name)
{
	dialtone_reply *reply;
	int result = dialtone_take(client, name, NULL, &reply);

	if (result >= 0)
		dialtone_reply_free(reply);
	print_outcome(client, result);
}

static void adopt(dialtone *client, const char *name, const char *remote, const char *port)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port)),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int connected = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (connected < 0 || connect(connected, (struct sockaddr *)&address, sizeof address) < 0)
		printf("error Connect %s\n", strerror(errno));
	else
		print_outcome(client, dialtone_adopt(client, name, connected, remote, NULL, NULL));
	if (connected >= 0)
		close(connected);
}

static void abandon(void)
{
	if (held.socket >= 0)
		close(held.socket);
	held.socket = -1;
}

static void send_line(const char *text)
{
	char line[4096];
	int length = snprintf(line, sizeof line, "%s\n", text);

	if (send(held.socket, line, (size_t)length, MSG_NOSIGNAL) == length)
		puts("ok");
	else
		printf("error Send %s\n", strerror(errno));
}

static void receive(void)
{
	char line[4096];
	size_t length = 0;
	ssize_t count = 0;

	/* Byte by byte: what comes after the line stays for whoever takes the socket next. */
	while (length < sizeof line && (count = recv(held.socket, line + length, 1, 0)) == 1 && line[length] != '\n')
		length++;
	if (count < 0)
		printf("error Receive %s\n", strerror(errno));
	else if (count == 0)
		puts("received-end");
	else
		printf("received %.*s\n", (int)length, line);
}

static void descriptors(void)
{
	DIR *directory = opendir("/proc/self/fd");
	int count = 0;

	while (directory && readdir(directory))
		count++;
	if (directory)
		closedir(directory);
	/* Without ".", ".." and the one that reads. */
	printf("descriptors %d\n", count - 3);
}

/* Does one command; false at the end. */
static bool obey(dialtone *client, char *line)
{
	char *words[4] = { "", "", "", "" }, *rest = strchr(line, ' ');
	int count = 0;

	if (strncmp(line, "send ", 5) == 0) {
		send_line(rest + 1);
		return true;
	}
	for (char *next = strtok(line, " "); next && count < 4; next = strtok(NULL, " "))
		words[count++] = next;
	if (strcmp(words[0], "quit") == 0)
		return false;
	if (strcmp(words[0], "path") == 0)
		path(client, words[1], false);
	else if (strcmp(words[0], "monitor-path") == 0)
		path(client, words[1], true);
	else if (strcmp(words[0], "monitor") == 0)
		print_outcome(client, dialtone_monitor(client, NULL, -1, connections_told, NULL, NULL));
	else if (strcmp(words[0], "open") == 0)
		print_outcome(client, dialtone_open(client, words[1], words[2], NULL, NULL));
	else if (strcmp(words[0], "adopt") == 0)
		adopt(client, words[1], words[2], words[3]);
	else if (strcmp(words[0], "close") == 0)
		print_outcome(client, dialtone_close(client, words[1]));
	else if (strcmp(words[0], "redial") == 0)
		print_outcome(client, dialtone_redial(client, words[1], 0));
	else if (strcmp(words[0], "list") == 0)
		list(client);
	else if (strcmp(words[0], "take") == 0)
		take(client, words[1]);
	else if (strcmp(words[0], "receive") == 0)
		receive();
	else if (strcmp(words[0], "park") == 0) {
		print_outcome(client, dialtone_park(client, held.name, held.epoch, NULL));
		abandon();
	} else if (strcmp(words[0], "abandon") == 0) {
		abandon();
		puts("ok");
	} else if (strcmp(words[0], "forget") == 0)
		forget(client, words[1]);
	else if (strcmp(words[0], "descriptors") == 0)
		descriptors();
	else if (strcmp(words[0], "acknowledge") == 0)
		print_outcome(client, dialtone_acknowledge(client, words[1], atoll(words[2])));
	else
		printf("error BadCommand %s\n", words[0]);
	return true;
}

/* Reads what there is and does each complete line; false at the end. */
static bool read_commands(dialtone *client)
{
	static char buffer[8192];
	static size_t filled;
	ssize_t count = read(STDIN_FILENO, buffer + filled, sizeof buffer - filled);
	char *end;

	if (count <= 0)
		return false;
	filled += (size_t)count;
	while ((end = memchr(buffer, '\n', filled))) {
		*end = '\0';
		if (!obey(client, buffer))
			return false;
		filled -= (size_t)(end + 1 - buffer);
		memmove(buffer, end + 1, filled);
	}
	return filled < sizeof buffer;
}

int main(void)
{
	dialtone *client;
	int result = dialtone_new(&client, NULL);

	if (result < 0) {
		fprintf(stderr, "driver: %s\n", strerror(-result));
		return 1;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (;;) {
		struct pollfd wait[2] = { { .fd = STDIN_FILENO, .events = POLLIN },
			{ .fd = dialtone_get_fd(client), .events = (short)dialtone_get_events(client) } };
		struct timespec now;
		uint64_t due, at;
		int milliseconds = -1;

		dialtone_get_timeout(client, &due);
		clock_gettime(CLOCK_MONOTONIC, &now);
		at = (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
		if (due != UINT64_MAX)
			milliseconds = due > at ? (int)((due - at) / 1000 + 1) : 0;
		if (poll(wait, 2, milliseconds) < 0 && errno != EINTR)
			break;
		if (dialtone_process(client) < 0)
			break;
		if (wait[0].revents && !read_commands(client))
			break;
	}
	abandon();
	dialtone_free(client);
	return 0;
}
