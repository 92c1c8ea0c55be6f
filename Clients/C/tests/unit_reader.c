/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages out of bytes, and values.
 */
#define _GNU_SOURCE
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

static const char two[] = "{\"a\":1}\0{\"b\":2}";

static int null_descriptor(void)
{
	return open("/dev/null", O_RDWR | O_CLOEXEC);
}

static void split_anywhere(void)
{
	for (size_t cut = 0; cut <= sizeof two; cut++) {
		struct dt_reader reader = { 0 };
		const char *message;
		size_t length, found = 0;

		for (int half = 0; half < 2; half++) {
			size_t from = half ? cut : 0, to = half ? sizeof two : cut;

			check_int(dt_reader_append(&reader, two + from, to - from, NULL, 0), 0);
			while (dt_reader_next(&reader, &message, &length) == 1) {
				check_text(message, found ? "{\"b\":2}" : "{\"a\":1}");
				check_int(length, 7);
				found++;
			}
		}
		check_int(found, 2);
		dt_reader_clear(&reader);
	}
}

static void too_long(void)
{
	struct dt_reader reader = { 0 };
	char *bytes = malloc(DT_MESSAGE_LIMIT + 2);
	const char *message;
	size_t length;

	memset(bytes, 'x', DT_MESSAGE_LIMIT + 1);
	bytes[DT_MESSAGE_LIMIT] = '\0';
	check_int(dt_reader_append(&reader, bytes, DT_MESSAGE_LIMIT + 1, NULL, 0), 0);
	check_int(dt_reader_next(&reader, &message, &length), 1);
	check_int(length, DT_MESSAGE_LIMIT);
	/* One more is too many, and is known without the end. */
	bytes[DT_MESSAGE_LIMIT] = 'x';
	check_int(dt_reader_append(&reader, bytes, DT_MESSAGE_LIMIT + 1, NULL, 0), 0);
	check_int(dt_reader_next(&reader, &message, &length), -EMSGSIZE);
	dt_reader_clear(&reader);
	free(bytes);
}

static void descriptors_belong_to_the_last_byte(void)
{
	struct dt_reader reader = { 0 };
	int sent = null_descriptor(), taken[DT_DESCRIPTOR_LIMIT];
	const char *message;
	size_t length;

	check_int(dt_reader_append(&reader, two, sizeof two, &sent, 1), 0);
	check_int(dt_reader_next(&reader, &message, &length), 1);
	check_int(dt_reader_take_descriptors(&reader, taken), 0);
	check_int(dt_reader_next(&reader, &message, &length), 1);
	check_int(dt_reader_take_descriptors(&reader, taken), 1);
	check_int(taken[0], sent);
	close(sent);
	dt_reader_clear(&reader);
}

static void descriptors_are_closed_with_the_reader(void)
{
	int before = count_descriptors(), many[DT_DESCRIPTOR_LIMIT + 1];
	struct dt_reader reader = { 0 };

	for (int i = 0; i < 3; i++)
		many[i] = null_descriptor();
	check_int(dt_reader_append(&reader, "{", 1, many, 3), 0);
	for (int i = 0; i < DT_DESCRIPTOR_LIMIT - 2; i++)
		many[i] = null_descriptor();
	check_int(dt_reader_append(&reader, "}", 1, many, DT_DESCRIPTOR_LIMIT - 2), -EBADMSG);
	check_int(count_descriptors(), before + 3);
	dt_reader_clear(&reader);
	check_int(count_descriptors(), before);
}

static int read_message(const char *text, const char **reason)
{
	struct dt_message message;
	int result = dt_message_read(&message, text, strlen(text), NULL, 0, reason);

	dialtone_reply_free(message.reply);
	json_decref(message.error);
	json_decref(message.parameters);
	return result;
}

static void what_is_no_message(void)
{
	static const char *const bad[] = { "", "{", "nonsense", "[]", "1", "\"x\"", "{}{}", "{\"a\":1,\"a\":2}",
		"{\"parameters\":[]}", "{\"parameters\":null}", "{\"continues\":1}", "{\"error\":1}",
		"{\"error\":\"x\",\"continues\":true}", "{\"parameters\":{\"n\":99999999999999999999}}", "{\"a\":\"\xff\"}" };
	static const char *const good[] = { "{}", "{\"parameters\":{}}", "{\"continues\":false}",
		"{\"error\":\"x.y\",\"parameters\":{\"n\":1}}", "{\"later\":\"additions\"}" };
	const char *reason;

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		if (read_message(bad[i], &reason) == -EBADMSG)
			continue;
		failures++;
		printf("taken for a message: %s\n", bad[i]);
	}
	for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
		if (read_message(good[i], &reason) == 0)
			continue;
		failures++;
		printf("not taken for a message: %s: %s\n", good[i], reason);
	}
}

void reader_tests(void)
{
	split_anywhere();
	too_long();
	descriptors_belong_to_the_last_byte();
	descriptors_are_closed_with_the_reader();
	what_is_no_message();
}

void value_tests(void)
{
	dialtone_value *value = dialtone_value_new(), *list, *target = dialtone_target("example.com", 5061);
	char *text;

	check_int(dialtone_value_set_string(value, "keepalive.protocol", "crlf"), 0);
	check_int(dialtone_value_set_int(value, "keepalive.intervalMilliseconds", 120000), 0);
	check_int(dialtone_value_set_real(value, "backoff.factor", 1.5), 0);
	check_int(dialtone_value_set_bool(value, "makeBeforeBreak", false), 0);
	check_int(dialtone_value_set_string(value, "opening.0.send", "A"), 0);
	check_int(dialtone_value_set_string(value, "opening.1.send", "C"), 0);
	check_int(dialtone_value_set_string(value, "opening.1.send", "B"), 0);
	text = dialtone_value_print(value);
	check_text(text, "{\"keepalive\":{\"protocol\":\"crlf\",\"intervalMilliseconds\":120000},\"backoff\":{\"factor\":1.5},"
		"\"makeBeforeBreak\":false,\"opening\":[{\"send\":\"A\"},{\"send\":\"B\"}]}");
	free(text);

	check_int(dialtone_value_set_int(value, "", 1), -EINVAL);
	check_int(dialtone_value_set_int(value, "a..b", 1), -EINVAL);
	check_int(dialtone_value_set_int(value, "opening.7.send", 1), -EINVAL);
	check_int(dialtone_value_set_int(value, "opening.99999999999999999999", 1), -EINVAL);
	check_int(dialtone_value_set_int(value, "opening.name", 1), -EINVAL);
	check_int(dialtone_value_set_int(value, "makeBeforeBreak.x", 1), -EINVAL);
	check_int(dialtone_value_set_real(value, "backoff.factor", NAN), -EINVAL);
	check_int(dialtone_value_set_string(value, "name", "\xff"), -EINVAL);
	check_int(dialtone_value_set(value, "copy", value), 0);

	check_text(dialtone_value_string(value, "copy.opening.1.send"), "B");
	check(!dialtone_value_string(value, "backoff.factor"));
	check(!dialtone_value_string(value, "opening.2.send"));
	check(!dialtone_value_string(value, "keepalive.protocol.x"));
	check(!dialtone_value_string(NULL, "x"));
	check_int(dialtone_value_int(value, "keepalive.intervalMilliseconds", -1), 120000);
	check_int(dialtone_value_int(value, "keepalive.protocol", -1), -1);
	check(dialtone_value_real(value, "backoff.factor", 0) == 1.5);
	check(!dialtone_value_bool(value, "makeBeforeBreak"));
	check_int(dialtone_value_count(value, "opening"), 2);
	check_int(dialtone_value_count(value, "keepalive"), 0);
	check_text(dialtone_value_string(dialtone_value_item(value, "opening", 0), "send"), "A");
	check(!dialtone_value_item(value, "opening", 2));

	check_int(dialtone_value_parse(&list, "[{\"send\":\"x\"}]"), 0);
	check_int(dialtone_value_count(list, NULL), 1);
	dialtone_value_free(list);
	check_int(dialtone_value_parse(&list, "{"), -EINVAL);
	check(!list);
	check(!dialtone_target("\xff", 0));
	check_int(dialtone_value_int(target, "port", 0), 5061);
	dialtone_value_free(target);
	dialtone_value_free(value);
}
