/* SPDX-License-Identifier: Apache-2.0 */
#include "internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Why a message is none of Varlink's; NULL for one that is. */
static const char *fault(const json_t *root)
{
	const json_t *parameters = json_object_get(root, "parameters");
	const json_t *continues = json_object_get(root, "continues");
	const json_t *error = json_object_get(root, "error");

	if (!json_is_object(root))
		return "it is not an object";
	if (parameters && !json_is_object(parameters))
		return "\"parameters\" is not an object";
	if (continues && !json_is_boolean(continues))
		return "\"continues\" is neither true nor false";
	if (error && !json_is_string(error))
		return "\"error\" is not a string";
	if (error && json_is_true(continues))
		return "it is an error, and more is to follow";
	return NULL;
}

int dt_message_read(struct dt_message *message, const char *text, size_t length, const int *descriptors,
	size_t descriptor_count, const char **reason)
{
	/* A server's text may hold a NUL; it is cut there when it is read. */
	json_error_t error;
	json_t *root = json_loadb(text, length, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
	json_t *parameters;

	memset(message, 0, sizeof *message);
	*reason = root ? fault(root) : "it is not JSON";
	if (*reason) {
		bool is_short = !root && json_error_code(&error) == json_error_out_of_memory;

		json_decref(root);
		dt_close_all(descriptors, descriptor_count);
		return is_short ? -ENOMEM : -EBADMSG;
	}
	parameters = json_incref(json_object_get(root, "parameters"));
	if (!parameters)
		parameters = json_object();
	message->continues = json_is_true(json_object_get(root, "continues"));
	message->error = json_incref(json_object_get(root, "error"));
	json_decref(root);
	if (message->error) {
		message->parameters = parameters;
		dt_close_all(descriptors, descriptor_count);
		return 0;
	}
	message->reply = calloc(1, sizeof *message->reply);
	if (!message->reply || !parameters) {
		free(message->reply);
		message->reply = NULL;
		json_decref(parameters);
		dt_close_all(descriptors, descriptor_count);
		return -ENOMEM;
	}
	message->reply->parameters = parameters;
	message->reply->descriptor_count = descriptor_count;
	if (descriptor_count > 0)
		memcpy(message->reply->descriptors, descriptors, descriptor_count * sizeof *descriptors);
	return 0;
}

const dialtone_value *dialtone_reply_value(const dialtone_reply *reply)
{
	return (const dialtone_value *)reply->parameters;
}

int dt_reply_place(const dialtone_reply *reply)
{
	const json_t *place = json_object_get(reply->parameters, "fileDescriptor");
	json_int_t index = json_is_integer(place) ? json_integer_value(place) : -1;

	return index >= 0 && (uint64_t)index < reply->descriptor_count ? (int)index : -1;
}

int dialtone_reply_take_fd(dialtone_reply *reply)
{
	int index = dt_reply_place(reply), descriptor;

	if (index < 0)
		return -ENOENT;
	descriptor = reply->descriptors[index];
	reply->descriptors[index] = -1;
	return descriptor < 0 ? -ENOENT : descriptor;
}

void dialtone_reply_free(dialtone_reply *reply)
{
	if (!reply)
		return;
	dt_close_all(reply->descriptors, reply->descriptor_count);
	json_decref(reply->parameters);
	free(reply);
}
