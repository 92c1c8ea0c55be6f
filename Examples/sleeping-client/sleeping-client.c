/* SPDX-License-Identifier: Apache-2.0
 *
 * A client that sleeps until its server speaks: takes the connection, reads, answers, parks. Needs nothing but libc.
 *
 *     cc -o sleeping-client sleeping-client.c
 *     ./sleeping-client NAME URL        for instance: ./sleeping-client chat tcp://192.0.2.7:7000
 *
 * The server speaks lines. A new session begins with "HELLO NAME"; each line that comes is answered by "GOT ...".
 * A program of yours has a JSON library; this one looks for the few words that it needs.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* One conversation with dialtoned: a JSON object and a zero byte each way, descriptors beside it (Varlink). */
struct agent {
	int socket;
	int descriptor;		/* the one that came with the last reply, or -1 */
	size_t filled, used;	/* of buffer; what the last reply took of it */
	char buffer[1 << 20];
};

static char **arguments;

/* It was restarted, or is about to be. The connection outlives that: begin anew. */
static void agent_gone(void)
{
	puts("the agent is gone");
	fflush(stdout);
	sleep(1);
	execv("/proc/self/exe", arguments);
	perror("beginning anew");
	exit(1);
}

static struct agent *agent_connect(void)
{
	struct agent *agent = calloc(1, sizeof *agent);
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	const char *path = getenv("DIALTONE_SOCKET"), *runtime = getenv("XDG_RUNTIME_DIR");

	if (path)
		snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
	else if (geteuid() == 0)
		snprintf(address.sun_path, sizeof address.sun_path, "/run/dialtone/dialtone.sock");
	else
		snprintf(address.sun_path, sizeof address.sun_path, "%s/dialtone/dialtone.sock", runtime ? runtime : "");
	agent->descriptor = -1;
	agent->socket = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (connect(agent->socket, (struct sockaddr *)&address, sizeof address))
		agent_gone();
	return agent;
}

static void agent_send(struct agent *agent, const char *call)
{
	if (send(agent->socket, call, strlen(call) + 1, MSG_NOSIGNAL) < 0)
		agent_gone();
}

/* The next reply, until the one after it is asked for. */
static const char *agent_reply(struct agent *agent)
{
	memmove(agent->buffer, agent->buffer + agent->used, agent->filled - agent->used);
	agent->filled -= agent->used;
	agent->used = 0;
	while (!memchr(agent->buffer, 0, agent->filled)) {
		char control[CMSG_SPACE(sizeof(int))];
		struct iovec part = { agent->buffer + agent->filled, sizeof agent->buffer - agent->filled };
		struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1,
			.msg_control = control, .msg_controllen = sizeof control };
		/* Not recv: a descriptor that nobody asks for is lost. */
		ssize_t count = recvmsg(agent->socket, &message, MSG_CMSG_CLOEXEC);
		struct cmsghdr *header = CMSG_FIRSTHDR(&message);

		if (count <= 0)
			agent_gone();
		if (header && header->cmsg_type == SCM_RIGHTS)
			memcpy(&agent->descriptor, CMSG_DATA(header), sizeof(int));
		agent->filled += count;
	}
	agent->used = strlen(agent->buffer) + 1;
	return agent->buffer;
}

/* Answers all lines that have come. One that has only begun is waited for: parked is between two messages. */
static void answer(int flow)
{
	char line[65536], reply[65536 + 8];
	size_t length = 0;

	for (;;) {
		ssize_t count = recv(flow, line + length, 1, length ? 0 : MSG_DONTWAIT);

		if (count <= 0)
			return;
		if (line[length] != '\n') {
			if (++length == sizeof line)
				return;
			continue;
		}
		printf("read %.*s\n", (int)length, line);
		fflush(stdout);
		send(flow, reply, snprintf(reply, sizeof reply, "GOT %.*s\n", (int)length, line), MSG_NOSIGNAL);
		length = 0;
	}
}

/* Takes the flow, reads what there is, answers, and parks it; again if another flow has taken its place. */
static int serve(struct agent *agent, const char *name)
{
	for (;;) {
		char call[512];
		const char *reply;
		int is_over, has_session, epoch, flow;

		snprintf(call, sizeof call,
			"{\"method\":\"org.dialtone.Connections.Take\",\"parameters\":{\"name\":\"%s\"}}", name);
		agent_send(agent, call);
		reply = agent_reply(agent);
		if (strstr(reply, "\"error\""))
			return strstr(reply, "NotReady") ? 0 : (fprintf(stderr, "%s\n", reply), exit(1), 0);
		is_over = strstr(reply, "\"isOver\":true") != NULL;
		has_session = strstr(reply, "\"session\":\"open\"") != NULL;
		epoch = atoi(strstr(reply, "\"epoch\":") + 8);
		flow = agent->descriptor;
		if (!has_session && !is_over) {
			snprintf(call, sizeof call, "HELLO %s\n", name);
			send(flow, call, strlen(call), MSG_NOSIGNAL);
		}
		answer(flow);
		close(flow);
		if (is_over)
			continue;
		snprintf(call, sizeof call,
			"{\"method\":\"org.dialtone.Connections.Park\",\"parameters\":{\"name\":\"%s\",\"epoch\":%d}}",
			name, epoch);
		agent_send(agent, call);
		/* StaleEpoch: the line was lost meanwhile, and another flow is there. */
		if (!strstr(agent_reply(agent), "StaleEpoch"))
			return 1;
	}
}

/* Whether the connection has a wake that nobody has acknowledged: its number. A report of one is an object. */
static int has_standing_wake(const char *event)
{
	static const char member[] = "\"wake\":";

	while ((event = strstr(event, member))) {
		event += sizeof member - 1;
		if (*event >= '0' && *event <= '9')
			return 1;
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct agent *agent, *events;
	char call[1024];
	int is_greeted = 0;

	if (argc != 3) {
		fprintf(stderr, "usage: %s NAME URL\n", argv[0]);
		return 64;
	}
	arguments = argv;
	agent = agent_connect();
	events = agent_connect();
	snprintf(call, sizeof call,
		"{\"method\":\"org.dialtone.Connections.Monitor\",\"parameters\":{\"names\":[\"%s\"]},\"more\":true}", argv[1]);
	agent_send(events, call);
	snprintf(call, sizeof call,
		"{\"method\":\"org.dialtone.Connections.Open\",\"parameters\":{\"name\":\"%s\",\"remote\":\"%s\"}}",
		argv[1], argv[2]);
	agent_send(agent, call);
	/* NameTaken: an earlier run opened it. */
	if (strstr(agent_reply(agent), "\"error\"") && !strstr(agent->buffer, "NameTaken")) {
		fprintf(stderr, "%s\n", agent->buffer);
		return 1;
	}
	for (;;) {
		/* First what there is, then each change. */
		const char *event = agent_reply(events);
		/* The first flow is nobody's yet; from then on a wake says that there is something to do. */
		int is_first = !is_greeted && strstr(event, "\"state\":\"ready\"");

		if (is_first || has_standing_wake(event))
			is_greeted |= serve(agent, argv[1]);
	}
}
