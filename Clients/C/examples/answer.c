/* SPDX-License-Identifier: Apache-2.0
 *
 * Takes a connection as soon as its server has said something, answers one line, and parks it: answer NAME */
#include <dialtone.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Reads one line, byte by byte: what follows stays for the next program. */
static size_t read_line(int socket, char *line, size_t size)
{
	size_t length = 0;

	while (length + 1 < size && recv(socket, line + length, 1, 0) == 1 && line[length] != '\n')
		length++;
	line[length] = '\0';
	return length;
}

int main(int argc, char **argv)
{
	char line[1024], answer[1100];
	dialtone *client;
	dialtone_reply *reply;
	int result, socket;

	if (argc != 2) {
		fprintf(stderr, "usage: answer NAME\n");
		return 64;
	}
	if (dialtone_new(&client, NULL) < 0)
		return 71;
	dialtone_set_timeout(client, -1);
	result = dialtone_take(client, argv[1], "data", &reply);
	if (result >= 0) {
		socket = dialtone_reply_take_fd(reply);
		read_line(socket, line, sizeof line);
		printf("%s\n", line);
		snprintf(answer, sizeof answer, "GOT %s\n", line);
		send(socket, answer, strlen(answer), MSG_NOSIGNAL);
		/* The agent has a copy of the socket, and wakes the next program when the server speaks again. */
		result = dialtone_park(client, argv[1], dialtone_value_int(dialtone_reply_value(reply), "epoch", 0), NULL);
		close(socket);
		dialtone_reply_free(reply);
	}
	if (result < 0)
		fprintf(stderr, "%s\n", dialtone_error_text(client));
	dialtone_free(client);
	return result < 0;
}
