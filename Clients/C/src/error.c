/* SPDX-License-Identifier: Apache-2.0
 *
 * The errors of the agent: which errno each is, and its sentence for a person.
 */
#define _GNU_SOURCE
#include "internal.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHORTAGE "The agent begins nothing new: {reason}. Close connections, or raise the limit (MemoryMax= or LimitNOFILE=" \
	" of dialtoned.service)."

/* A member of the error stands for {its name} in the sentence. The sentences are those of DialtoneClient's DialtoneError,
 * except for what a program in C does otherwise; a test compares them. The first that fits counts. */
static const struct known {
	const char *name;
	int number;
	const char *sentence;
	/* If set, it holds only for this method, or if this member is 0. */
	const char *method, *zero;
} known[] = {
	{ DT_CONNECTIONS "NoSuchConnection", ENOENT,
		"There is no connection \"{name}\". \"dialtone list\" lists all connections." },
	{ DT_CONNECTIONS "AmbiguousName", ENOTUNIQ,
		"Several users have a connection \"{name}\": {owners}. Say whose with dialtone_set_owner()." },
	{ DT_CONNECTIONS "NameTaken", EEXIST,
		"This user has a connection \"{name}\" already. Close it first, or choose another name." },
	{ DT_CONNECTIONS "NotOwner", EPERM,
		"The connection \"{name}\" belongs to another user. Only that user and root may do this." },
	{ DT_CONNECTIONS "InvalidRemote", EINVAL, "\"{remote}\" cannot be dialled: {reason}." },
	{ DT_CONNECTIONS "InvalidOpening", EINVAL, "The opening cannot be played: {reason}." },
	{ DT_CONNECTIONS "QuotaExceeded", EDQUOT,
		"This user has {limit} connections or subscriptions, and may have no more." },
	{ DT_CONNECTIONS "Suspended", EAGAIN, "The agent does nothing for this user for another {seconds} s: {reason}." },
	{ DT_CONNECTIONS "OutOfResources", ENOBUFS, SHORTAGE },
	{ DT_CONNECTIONS "StaleEpoch", ESTALE,
		"This socket of the connection \"{name}\" is over; its newest one is number {epoch}. Close this one, and take"
		" the connection again." },
	{ DT_CONNECTIONS "NotReady", ENOTCONN,
		"The connection \"{name}\" has no socket for that: it is {state}. \"dialtone watch {name}\" shows when that"
		" changes." },
	{ DT_CONNECTIONS "InvalidTimeout", EINVAL,
		"This timeout makes no sense for the connection \"{name}\": {reason}." },
	{ DT_CONNECTIONS "HeldByClient", EBUSY,
		"A process that cannot be seen from here has the socket of \"{name}\", until it parks it. If it is gone:"
		" \"dialtone redial {name}\".", .zero = "process" },
	{ DT_CONNECTIONS "HeldByClient", EBUSY,
		"Process {process} has the socket of \"{name}\", until it parks it or ends." },
	{ DT_CONNECTIONS "NotTaken", ENXIO,
		"Nobody has taken the socket of the connection \"{name}\", so it cannot be parked." },
	{ DT_CONNECTIONS "InvalidDescriptor", EBADF,
		"What was to become the connection \"{name}\" cannot be supervised: {reason}." },
	{ DT_CONNECTIONS "SystemFailure", EIO, "The connection \"{name}\": {reason}." },
	{ DT_CONNECTIONS "ForeignNetwork", EXDEV, "The agent refuses: {reason}." },
	{ DT_NETWORK "InvalidTarget", EINVAL, "The target makes no sense: {reason}." },
	{ DT_NETWORK "ForeignNetwork", EXDEV, "The agent refuses: {reason}." },
	{ DT_NETWORK "OutOfResources", ENOBUFS, SHORTAGE },
	{ DT_NETWORK "QuotaExceeded", EDQUOT, "This user has {limit} subscriptions, and may have no more." },
	{ "org.varlink.service.InvalidParameter", EINVAL,
		"The agent does not accept the parameter \"{parameter}\", or not this value of it." },
	{ "org.varlink.service.PermissionDenied", EPERM,
		"A configuration file names this connection, and would bring it back. Take it out there, and have the agent"
		" read its configuration again with \"systemctl reload dialtoned\".", .method = DT_CONNECTIONS "Close" },
	{ "org.varlink.service.PermissionDenied", EPERM, "The agent does not allow this user to do that." },
	{ "org.varlink.service.MethodNotFound", ENOSYS,
		"The agent has no method {method}: it is older than this program." },
	{ "org.varlink.service.MethodNotImplemented", ENOSYS,
		"The agent has no method {method}: it is older than this program." },
	{ "org.varlink.service.InterfaceNotFound", ENOSYS,
		"What listens there has no interface {interface}: it is not a Dialtone agent, or an older one." },
};

void dt_error_clear(struct dt_error *error)
{
	free(error->text);
	free(error->name);
	json_decref(error->parameters);
	memset(error, 0, sizeof *error);
}

int dt_fail(struct dt_error *error, int number, const char *format, ...)
{
	va_list arguments;

	dt_error_clear(error);
	va_start(arguments, format);
	/* Without memory there is no text; the number stays. */
	if (vasprintf(&error->text, format, arguments) < 0)
		error->text = NULL;
	va_end(arguments);
	return number;
}

int dt_fail_system(struct dt_error *error, const char *tried, int number)
{
	return dt_fail(error, -number, "%s: %s.", tried, strerrordesc_np(number));
}

/* Writes a value: text as it is, a list as its items, everything else as JSON. */
static void write_value(FILE *output, const json_t *value)
{
	char *text;

	if (json_is_string(value)) {
		fputs(json_string_value(value), output);
	} else if (json_is_array(value)) {
		for (size_t i = 0; i < json_array_size(value); i++) {
			fputs(i > 0 ? ", " : "", output);
			write_value(output, json_array_get(value, i));
		}
	} else {
		text = value ? json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT) : NULL;
		fputs(text ? text : "?", output);
		free(text);
	}
}

/* Writes the member of this name. */
static void write_member(FILE *output, const json_t *parameters, const char *name, size_t length)
{
	char key[64] = "";
	const json_t *member;
	const char *text;

	if (length < sizeof key)
		memcpy(key, name, length);
	member = json_object_get(parameters, key);
	text = strcmp(key, "state") == 0 ? json_string_value(member) : NULL;
	/* Of a connection that is ready, the agent's login keeps others away. */
	if (text && strcmp(text, "ready") == 0)
		fputs("logging in", output);
	else if (text && strcmp(text, "backingOff") == 0)
		fputs("backing off", output);
	else
		write_value(output, member);
}

/* The sentence with the error's members in it; NULL without memory. */
static char *fill_in(const char *sentence, const json_t *parameters)
{
	char *text = NULL;
	size_t size;
	FILE *output = open_memstream(&text, &size);

	if (!output)
		return NULL;
	while (*sentence) {
		size_t length = strcspn(sentence, "{");

		fwrite(sentence, 1, length, output);
		sentence += length;
		if (*sentence) {
			length = strcspn(++sentence, "}");
			write_member(output, parameters, sentence, length);
			sentence += length + 1;
		}
	}
	if (fclose(output) != 0) {
		free(text);
		return NULL;
	}
	return text;
}

static bool fits(const struct known *entry, const char *method, const char *name, const json_t *parameters)
{
	if (strcmp(entry->name, name) != 0 || (entry->method && strcmp(entry->method, method) != 0))
		return false;
	return !entry->zero || json_integer_value(json_object_get(parameters, entry->zero)) == 0;
}

int dt_fail_refused(struct dt_error *error, const char *method, const char *name, const json_t *parameters)
{
	const struct known *entry = NULL;
	char *text;

	for (size_t i = 0; i < sizeof known / sizeof *known && !entry; i++)
		if (fits(&known[i], method, name, parameters))
			entry = &known[i];
	if (entry) {
		dt_error_clear(error);
		error->text = fill_in(entry->sentence, parameters);
	} else {
		text = json_dumps(parameters, JSON_COMPACT);
		dt_fail(error, 0, "The agent refused %s: %s %s.", method, name, text ? text : "");
		free(text);
	}
	error->name = strdup(name);
	error->parameters = json_deep_copy(parameters);
	return entry ? -entry->number : -EREMOTEIO;
}

const char *dialtone_error_text(const dialtone *client)
{
	return client->error.text ? client->error.text : "";
}

const char *dialtone_error_name(const dialtone *client)
{
	return client->error.name;
}

const dialtone_value *dialtone_error_parameters(const dialtone *client)
{
	return (const dialtone_value *)client->error.parameters;
}
