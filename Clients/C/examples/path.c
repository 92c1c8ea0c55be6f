/* SPDX-License-Identifier: Apache-2.0
 *
 * Says whether there is a route to a host, and each change of that: path HOST */
#include <dialtone.h>
#include <stdio.h>

static void told(dialtone *client, int result, dialtone_reply *reply, void *data)
{
	const dialtone_value *path;

	/* The agent is gone, for now, or the request failed, and nothing more is told. */
	if (result < 0 || result == DIALTONE_LOST) {
		fprintf(stderr, "%s\n", dialtone_error_text(client));
		*(bool *)data = result < 0;
		return;
	}
	path = dialtone_value_at(dialtone_reply_value(reply), "path");
	if (dialtone_value_string(path, "reason"))
		printf("%s: %s\n", dialtone_value_string(path, "status"), dialtone_value_string(path, "reason"));
	else
		printf("%s\n", dialtone_value_string(path, "status"));
	fflush(stdout);
}

int main(int argc, char **argv)
{
	dialtone *client;
	dialtone_value *target;
	bool is_over = false;
	int result;

	if (argc != 2) {
		fprintf(stderr, "usage: path HOST\n");
		return 64;
	}
	if (dialtone_new(&client, NULL) < 0)
		return 71;
	target = dialtone_target(argv[1], 0);
	result = dialtone_monitor_path(client, target, told, &is_over, NULL);
	dialtone_value_free(target);
	/* A program with an event loop waits for dialtone_get_fd() and dialtone_get_timeout() instead. */
	while (result >= 0 && !is_over && (result = dialtone_wait(client, -1)) >= 0)
		result = dialtone_process(client);
	if (result < 0)
		fprintf(stderr, "%s\n", dialtone_error_text(client));
	dialtone_free(client);
	return 1;
}
