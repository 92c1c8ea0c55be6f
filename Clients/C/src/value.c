/* SPDX-License-Identifier: Apache-2.0
 *
 * A dialtone_value is a json_t under another name, so that no type of the JSON library is part of the interface.
 */
#include "internal.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The longest name of a member that a path may have; the interface's longest has 28 bytes. */
#define NAME_LIMIT 128

/* The next component of a path, and the rest behind it. */
struct step {
	char name[NAME_LIMIT + 1];
	/* Whether it is a number: a place in a list. */
	bool is_index;
	size_t index;
	/* NULL where it is the last one. */
	const char *rest;
};

static bool read_step(struct step *step, const char *path)
{
	size_t length = strcspn(path, ".");

	if (length == 0 || length > NAME_LIMIT)
		return false;
	memcpy(step->name, path, length);
	step->name[length] = '\0';
	step->rest = path[length] ? path + length + 1 : NULL;
	step->is_index = strspn(step->name, "0123456789") == length;
	/* A list of 10^9 items does not fit into a message. */
	if (step->is_index && length > 9)
		return false;
	step->index = step->is_index ? strtoul(step->name, NULL, 10) : 0;
	return true;
}

static json_t *child(const json_t *parent, const struct step *step)
{
	return step->is_index ? json_array_get(parent, step->index) : json_object_get(parent, step->name);
}

static json_t *find(const dialtone_value *value, const char *path)
{
	const json_t *current = (const json_t *)value;
	struct step step;

	while (current && path && *path) {
		if (!read_step(&step, path))
			return NULL;
		current = child(current, &step);
		path = step.rest;
	}
	return (json_t *)current;
}

/* Makes member the child of parent at this step, which takes it over. */
static int attach(json_t *parent, const struct step *step, json_t *member)
{
	int result = -1;

	if (!member)
		return -ENOMEM;
	if (step->is_index && json_is_array(parent) && step->index < json_array_size(parent))
		result = json_array_set_new(parent, step->index, member);
	else if (step->is_index && json_is_array(parent) && step->index == json_array_size(parent))
		result = json_array_append_new(parent, member);
	else if (!step->is_index && json_is_object(parent))
		result = json_object_set_new(parent, step->name, member);
	else {
		json_decref(member);
		return -EINVAL;
	}
	/* Of names that are no UTF-8, or for want of memory; the former is the program's mistake. */
	return result < 0 ? -EINVAL : 0;
}

/* Sets what is at path to member, which it takes over. */
static int set(dialtone_value *value, const char *path, json_t *member)
{
	json_t *current = (json_t *)value;
	struct step step, next;
	int result = -EINVAL;

	if (!path || !read_step(&step, path))
		goto fail;
	while (step.rest) {
		json_t *inner = child(current, &step);

		if (!read_step(&next, step.rest))
			goto fail;
		if (!inner) {
			inner = next.is_index ? json_array() : json_object();
			result = attach(current, &step, inner);
			if (result < 0)
				goto fail;
			result = -EINVAL;
		}
		current = inner;
		step = next;
	}
	return attach(current, &step, member);
fail:
	json_decref(member);
	return result;
}

dialtone_value *dialtone_value_new(void)
{
	return (dialtone_value *)json_object();
}

int dialtone_value_parse(dialtone_value **value, const char *json)
{
	json_error_t error;
	json_t *root = json_loads(json, JSON_REJECT_DUPLICATES, &error);

	*value = (dialtone_value *)root;
	if (root)
		return 0;
	return json_error_code(&error) == json_error_out_of_memory ? -ENOMEM : -EINVAL;
}

char *dialtone_value_print(const dialtone_value *value)
{
	return json_dumps((const json_t *)value, JSON_ENCODE_ANY | JSON_COMPACT);
}

void dialtone_value_free(dialtone_value *value)
{
	json_decref((json_t *)value);
}

int dialtone_value_set_string(dialtone_value *value, const char *path, const char *text)
{
	json_t *member = json_string(text);

	/* Text that is no UTF-8, or no memory. */
	return member ? set(value, path, member) : -EINVAL;
}

int dialtone_value_set_int(dialtone_value *value, const char *path, int64_t number)
{
	return set(value, path, json_integer(number));
}

int dialtone_value_set_real(dialtone_value *value, const char *path, double number)
{
	return isfinite(number) ? set(value, path, json_real(number)) : -EINVAL;
}

int dialtone_value_set_bool(dialtone_value *value, const char *path, bool truth)
{
	return set(value, path, json_boolean(truth));
}

int dialtone_value_set(dialtone_value *value, const char *path, const dialtone_value *member)
{
	return set(value, path, json_deep_copy((const json_t *)member));
}

const dialtone_value *dialtone_value_at(const dialtone_value *value, const char *path)
{
	return (const dialtone_value *)find(value, path);
}

size_t dialtone_value_count(const dialtone_value *value, const char *path)
{
	return json_array_size(find(value, path));
}

const dialtone_value *dialtone_value_item(const dialtone_value *value, const char *path, size_t index)
{
	return (const dialtone_value *)json_array_get(find(value, path), index);
}

const char *dialtone_value_string(const dialtone_value *value, const char *path)
{
	return json_string_value(find(value, path));
}

int64_t dialtone_value_int(const dialtone_value *value, const char *path, int64_t otherwise)
{
	const json_t *member = find(value, path);

	return json_is_integer(member) ? json_integer_value(member) : otherwise;
}

double dialtone_value_real(const dialtone_value *value, const char *path, double otherwise)
{
	const json_t *member = find(value, path);

	return json_is_number(member) ? json_number_value(member) : otherwise;
}

bool dialtone_value_bool(const dialtone_value *value, const char *path)
{
	return json_is_true(find(value, path));
}

dialtone_value *dialtone_target(const char *host, int port)
{
	dialtone_value *target = dialtone_value_new();

	if (!target || dialtone_value_set_string(target, "host", host) < 0
	    || (port != 0 && dialtone_value_set_int(target, "port", port) < 0)) {
		dialtone_value_free(target);
		return NULL;
	}
	return target;
}
