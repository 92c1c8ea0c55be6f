/* SPDX-License-Identifier: Apache-2.0
 *
 * Says what the library makes of errors: each line of standard input is a method, a space and the agent's answer to it;
 * each line of standard output is the errno's name, a space and the sentence.
 */
#define _GNU_SOURCE
#include "internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Prints the line for one answer; false where it is no error. */
static bool print_sentence(const char *method, const char *answer)
{
	struct dt_message message;
	struct dt_error error = { 0 };
	const char *reason;
	int number;

	if (dt_message_read(&message, answer, strlen(answer), NULL, 0, &reason) < 0 || !message.error)
		return false;
	number = dt_fail_refused(&error, method, json_string_value(message.error), message.parameters);
	printf("%s %s\n", strerrorname_np(-number), error.text);
	dt_error_clear(&error);
	json_decref(message.error);
	json_decref(message.parameters);
	return true;
}

int main(void)
{
	char *line = NULL, *answer;
	size_t size = 0;

	while (getline(&line, &size, stdin) > 0) {
		answer = strchr(line, ' ');
		if (answer)
			*answer++ = '\0';
		if (!answer || !print_sentence(line, answer)) {
			fprintf(stderr, "sentences: no answer that is an error: %s\n", answer ? answer : line);
			return 1;
		}
	}
	free(line);
	return 0;
}
