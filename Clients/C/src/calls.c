/* SPDX-License-Identifier: Apache-2.0
 *
 * The methods of the interface, each with its parameters.
 */
#include "internal.h"

#include <errno.h>
#include <stdio.h>

/* The parameters of one call. The first failure is kept: the functions that add to it then do nothing. */
struct parameters {
	dialtone *client;
	dialtone_value *value;
	int result;
};

static struct parameters begin(dialtone *client)
{
	struct parameters made = { .client = client, .result = dt_begin(client) };

	if (made.result == 0) {
		made.value = dialtone_value_new();
		if (!made.value)
			made.result = dt_fail_system(&client->error, "Making a call", ENOMEM);
	}
	return made;
}

static void note(struct parameters *parameters, int result, const char *key)
{
	if (result < 0)
		parameters->result = dt_fail(&parameters->client->error, result,
			"\"%s\" cannot be given to the agent: it is not UTF-8, or there is no memory.", key);
}

static void add_string(struct parameters *parameters, const char *key, const char *text)
{
	if (parameters->result == 0 && text)
		note(parameters, dialtone_value_set_string(parameters->value, key, text), key);
}

static void add_int(struct parameters *parameters, const char *key, int64_t number)
{
	if (parameters->result == 0)
		note(parameters, dialtone_value_set_int(parameters->value, key, number), key);
}

static void add_value(struct parameters *parameters, const char *key, const dialtone_value *member)
{
	if (parameters->result == 0 && member)
		note(parameters, dialtone_value_set(parameters->value, key, member), key);
}

/* Whose connection a name means, where root says so. */
static void add_owner(struct parameters *parameters)
{
	if (parameters->client->user >= 0)
		add_int(parameters, "owner", parameters->client->user);
}

static struct parameters begin_named(dialtone *client, const char *name)
{
	struct parameters made = begin(client);

	add_string(&made, "name", name);
	add_owner(&made);
	return made;
}

static int finish(struct parameters *parameters, const char *method, int fd, dialtone_reply **reply)
{
	int result = parameters->result;

	if (reply)
		*reply = NULL;
	if (result == 0)
		result = dialtone_call(parameters->client, method, parameters->value, fd, reply);
	dialtone_value_free(parameters->value);
	return result;
}

/* The stream goes on over restarts of the agent. */
static int finish_stream(struct parameters *parameters, const char *method, dialtone_handler *handler, void *data,
	dialtone_request **request)
{
	int result = parameters->result;

	if (request)
		*request = NULL;
	if (result == 0)
		result = dialtone_start(parameters->client, method, parameters->value, -1, DIALTONE_STREAM | DIALTONE_RESUME,
			handler, data, request);
	dialtone_value_free(parameters->value);
	return result;
}

int dialtone_get_path(dialtone *client, const dialtone_value *target, dialtone_reply **reply)
{
	struct parameters parameters = begin(client);

	add_value(&parameters, "target", target);
	return finish(&parameters, DT_NETWORK "GetPath", -1, reply);
}

int dialtone_list(dialtone *client, dialtone_reply **reply)
{
	struct parameters parameters = begin(client);

	return finish(&parameters, DT_CONNECTIONS "List", -1, reply);
}

int dialtone_open(dialtone *client, const char *name, const char *remote, const dialtone_value *settings,
	dialtone_reply **reply)
{
	struct parameters parameters = begin(client);

	add_string(&parameters, "remote", remote);
	add_string(&parameters, "name", name);
	add_value(&parameters, "settings", settings);
	return finish(&parameters, DT_CONNECTIONS "Open", -1, reply);
}

int dialtone_close(dialtone *client, const char *name)
{
	struct parameters parameters = begin_named(client, name);

	return finish(&parameters, DT_CONNECTIONS "Close", -1, NULL);
}

int dialtone_redial(dialtone *client, const char *name, int64_t milliseconds)
{
	struct parameters parameters = begin_named(client, name);

	if (milliseconds != 0)
		add_int(&parameters, "afterMilliseconds", milliseconds);
	return finish(&parameters, DT_CONNECTIONS "Redial", -1, NULL);
}

int dialtone_take(dialtone *client, const char *name, const char *until, dialtone_reply **reply)
{
	struct parameters parameters = begin_named(client, name);
	dialtone_reply *taken;
	int result;

	add_string(&parameters, "until", until);
	result = finish(&parameters, DT_CONNECTIONS "Take", -1, &taken);
	if (reply)
		*reply = NULL;
	if (result < 0)
		return result;
	if (dt_reply_place(taken) < 0)
		result = dt_fail(&client->error, -EBADMSG,
			"The agent's answer to Take came without the socket. Take it again: the agent keeps a copy.");
	if (result == 0 && reply)
		*reply = taken;
	else
		dialtone_reply_free(taken);
	return result;
}

int dialtone_park(dialtone *client, const char *name, int64_t epoch, const dialtone_value *opening)
{
	struct parameters parameters = begin_named(client, name);

	add_int(&parameters, "epoch", epoch);
	add_value(&parameters, "opening", opening);
	return finish(&parameters, DT_CONNECTIONS "Park", -1, NULL);
}

int dialtone_adopt(dialtone *client, const char *name, int fd, const char *remote, const dialtone_value *settings,
	dialtone_reply **reply)
{
	struct parameters parameters = begin(client);

	if (parameters.result == 0 && fd < 0)
		parameters.result = dt_fail(&client->error, -EBADF, "%d is not a descriptor.", fd);
	add_string(&parameters, "name", name);
	add_int(&parameters, "fileDescriptor", 0);
	add_string(&parameters, "remote", remote);
	add_value(&parameters, "settings", settings);
	return finish(&parameters, DT_CONNECTIONS "Adopt", fd, reply);
}

int dialtone_acknowledge(dialtone *client, const char *name, int64_t wake)
{
	struct parameters parameters = begin_named(client, name);

	add_int(&parameters, "wake", wake);
	return finish(&parameters, DT_CONNECTIONS "Acknowledge", -1, NULL);
}

int dialtone_monitor_path(dialtone *client, const dialtone_value *target, dialtone_handler *handler, void *data,
	dialtone_request **request)
{
	struct parameters parameters = begin(client);

	add_value(&parameters, "target", target);
	return finish_stream(&parameters, DT_NETWORK "MonitorPath", handler, data, request);
}

int dialtone_monitor(dialtone *client, const char *const *names, int64_t after, dialtone_handler *handler, void *data,
	dialtone_request **request)
{
	struct parameters parameters = begin(client);
	dialtone_value *list = NULL;

	if (parameters.result == 0 && names)
		note(&parameters, dialtone_value_parse(&list, "[]"), "names");
	for (size_t i = 0; parameters.result == 0 && names && names[i]; i++) {
		char place[24];

		snprintf(place, sizeof place, "%zu", i);
		note(&parameters, dialtone_value_set_string(list, place, names[i]), "names");
	}
	add_value(&parameters, "names", list);
	dialtone_value_free(list);
	add_owner(&parameters);
	if (after >= 0)
		add_int(&parameters, "after", after);
	return finish_stream(&parameters, DT_CONNECTIONS "Monitor", handler, data, request);
}

int dialtone_keepalive(dialtone *client, const char *name, int64_t milliseconds, bool wake_machine,
	dialtone_handler *handler, void *data, dialtone_request **request)
{
	struct parameters parameters = begin_named(client, name);

	add_int(&parameters, "timeoutMilliseconds", milliseconds);
	if (wake_machine && parameters.result == 0)
		note(&parameters, dialtone_value_set_bool(parameters.value, "wakeMachine", true), "wakeMachine");
	return finish_stream(&parameters, DT_CONNECTIONS "KeepAlive", handler, data, request);
}
