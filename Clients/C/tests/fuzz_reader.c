/* SPDX-License-Identifier: Apache-2.0
 *
 * Foreign bytes: cut into messages, whatever the pieces in which they come, read, and turned into a reply or the sentence
 * of an error. The first byte says how long a piece is.
 */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_one(const char *text, size_t length)
{
	struct dt_message message;
	struct dt_error error = { 0 };
	const char *reason;

	if (dt_message_read(&message, text, length, NULL, 0, &reason) < 0)
		return;
	if (message.error) {
		if (dt_fail_refused(&error, "a.B", json_string_value(message.error), message.parameters) >= 0)
			abort();
		dt_error_clear(&error);
		json_decref(message.error);
		json_decref(message.parameters);
		return;
	}
	dialtone_value_string(dialtone_reply_value(message.reply), "connections.0.name");
	dialtone_value_int(dialtone_reply_value(message.reply), "sequence", 0);
	if (dialtone_reply_take_fd(message.reply) >= 0)
		abort();
	dialtone_reply_free(message.reply);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct dt_reader reader = { 0 };
	size_t piece = size ? data[0] + 1 : 1;
	/* What is not cut off yet. */
	const char *rest = (const char *)data + 1, *const end = (const char *)data + size;

	for (size_t at = 1; at < size; at += piece) {
		const char *text;
		size_t length, count = size - at < piece ? size - at : piece;

		if (dt_reader_append(&reader, (const char *)data + at, count, NULL, 0) < 0)
			abort();
		for (; dt_reader_next(&reader, &text, &length) == 1; rest += length + 1) {
			/* It is what stood there, up to the next NUL. */
			if (length >= (size_t)(end - rest) || memchr(rest, '\0', length + 1) != rest + length
			    || memcmp(text, rest, length) != 0)
				abort();
			read_one(text, length);
		}
	}
	if (size > 1 && memchr(rest, '\0', (size_t)(end - rest)))
		abort();
	dt_reader_clear(&reader);
	return 0;
}
