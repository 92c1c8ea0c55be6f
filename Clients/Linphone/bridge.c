/* SPDX-License-Identifier: Apache-2.0
 *
 * Tells a linphone whether it has a path to its servers, from inside of it: the library is loaded before liblinphone
 * and stands in for linphone_core_iterate(), which each linphone calls many times a second, from the one thread that
 * may touch the core. docs/linphone.md says how to use it. */
#define _GNU_SOURCE
#include <dialtone.h>
#include <dlfcn.h>
/* Our lines stand in the log among linphone's own, at the level that the user gave those. */
#define BCTBX_LOG_DOMAIN "liblinphone"
#include <linphone/core.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* LD_PRELOAD is inherited by programs that have no liblinphone. With these, the loader is content there, too. */
#pragma weak bctbx_logv
#pragma weak linphone_account_get_params
#pragma weak linphone_account_params_get_register_enabled
#pragma weak linphone_account_params_get_server_address
#pragma weak linphone_account_params_get_transport
#pragma weak linphone_address_get_domain
#pragma weak linphone_address_get_port
#pragma weak linphone_core_add_callbacks
#pragma weak linphone_core_cbs_set_global_state_changed
#pragma weak linphone_core_cbs_unref
#pragma weak linphone_core_get_account_list
#pragma weak linphone_core_get_global_state
#pragma weak linphone_core_remove_callbacks
#pragma weak linphone_core_set_network_reachable
#pragma weak linphone_factory_create_core_cbs
#pragma weak linphone_factory_get

/* Room for an interface's number and two addresses, and for an account's server. Longer ones are cut, which costs a
 * change that is not noticed. */
enum { WAY_ROOM = 128, NAME_ROOM = 256 };

/* A path that is monitored. */
struct path {
	struct path *next;
	/* The server; "" is the network as such. */
	char host[NAME_ROOM];
	int port;
	bool udp;
	/* Whether an account still has this server. */
	bool wanted;
	/* What the agent says: nothing yet; that it cannot tell, as for a name that has nothing but SRV records; or the
	 * way. */
	enum { PENDING, UNTOLD, KNOWN } state;
	/* By which interface, source address and gateway packets leave; "" where they cannot. */
	char way[WAY_ROOM];
	/* What the core acted on last. */
	bool told;
	char told_way[WAY_ROOM];
	dialtone_request *request;
};

/* The core that is served: the first of the process that is on. The others are left to themselves. */
static _Atomic(LinphoneCore *) served;
static dialtone *client;
/* The network as such is the last. */
static struct path *paths;
static LinphoneCoreCbs *callbacks;
/* The agent has told something that the core has not acted on. */
static bool news;

static void say(const char *text)
{
	bctbx_message("dialtone: %s", text);
}

static const char *text_at(const dialtone_value *value, const char *name)
{
	const char *text = dialtone_value_string(value, name);

	return text ? text : "";
}

/* Notes what the agent says of a path. */
static void told(dialtone *agent, int result, dialtone_reply *reply, void *data)
{
	struct path *path = data;
	const dialtone_value *value;

	news = true;
	path->state = result == DIALTONE_LOST ? PENDING : UNTOLD;
	if (result != DIALTONE_MORE && result != DIALTONE_LOST)
		path->request = NULL;
	if (result < 0 || result == DIALTONE_LOST) {
		say(dialtone_error_text(agent));
		return;
	}
	value = dialtone_value_at(dialtone_reply_value(reply), "path");
	if (!strcmp(text_at(value, "status"), "unknown") || !strcmp(text_at(value, "reason"), "nameUnresolved"))
		return;
	path->state = KNOWN;
	if (!strcmp(text_at(value, "status"), "unsatisfied"))
		path->way[0] = '\0';
	else
		snprintf(path->way, sizeof path->way, "%lld %s %s",
			(long long)dialtone_value_int(value, "interface.index", 0), text_at(value, "source"),
			text_at(value, "gateway"));
}

/* Puts a monitored path before the others. NULL without memory: the next turn tries again. */
static struct path *monitor(const char *host, int port, bool udp)
{
	struct path *path = calloc(1, sizeof *path);
	dialtone_value *target = host[0] ? dialtone_target(host, port) : NULL;

	if (!path || (host[0] && !target)) {
		free(path);
		dialtone_value_free(target);
		return NULL;
	}
	snprintf(path->host, sizeof path->host, "%s", host);
	path->port = port;
	path->udp = udp;
	if (target)
		dialtone_value_set_string(target, "protocol", udp ? "udp" : "tcp");
	if (dialtone_monitor_path(client, target, told, path, &path->request) < 0) {
		say(dialtone_error_text(client));
		path->state = UNTOLD;
	}
	dialtone_value_free(target);
	path->next = paths;
	paths = path;
	return path;
}

static void forget(struct path **place)
{
	struct path *path = *place;

	*place = path->next;
	dialtone_cancel(path->request);
	free(path);
}

static struct path *find(const char *host, int port, bool udp)
{
	struct path *path = paths;

	while (path && (strcmp(path->host, host) || path->port != port || path->udp != udp))
		path = path->next;
	return path;
}

/* Monitors the path to the server of an account, if it has one and registers there. */
static void want(LinphoneAccount *account)
{
	const LinphoneAccountParams *settings = linphone_account_get_params(account);
	const LinphoneAddress *server = linphone_account_params_get_server_address(settings);
	const char *domain = server ? linphone_address_get_domain(server) : NULL;
	bool udp = linphone_account_params_get_transport(settings) == LinphoneTransportUdp;
	char host[NAME_ROOM];
	struct path *path;

	if (!domain || !domain[0] || !linphone_account_params_get_register_enabled(settings))
		return;
	/* An IPv6 address is in brackets in a SIP URI (RFC 3261, section 25.1, "IPv6reference"). */
	snprintf(host, sizeof host, "%s", domain + (domain[0] == '['));
	host[strcspn(host, "]")] = '\0';
	path = find(host, linphone_address_get_port(server), udp);
	if (!path)
		path = monitor(host, linphone_address_get_port(server), udp);
	if (path)
		path->wanted = true;
}

/* Monitors the paths to the servers that there are now, and no others. */
static void follow_accounts(LinphoneCore *core)
{
	const bctbx_list_t *account;
	struct path **place;

	for (account = linphone_core_get_account_list(core); account; account = account->next)
		want(account->data);
	for (place = &paths; *place;) {
		if ((*place)->host[0] && !(*place)->wanted) {
			forget(place);
			news = true;
			continue;
		}
		(*place)->wanted = false;
		place = &(*place)->next;
	}
}

/* Tells the core what the paths come to. Down and up again has it dial and register anew: on a new way, the old
 * sockets lead nowhere. The core also asks the kernel, every 5 s; it is up where neither says that it is down. */
static void tell(LinphoneCore *core)
{
	enum { UNKNOWN, UNREACHABLE, REACHABLE } verdict = UNKNOWN;
	struct path *path, *network = paths;
	bool moved = false;

	while (network->next)
		network = network->next;
	for (path = paths; path; path = path->next) {
		const struct path *source = path->state == UNTOLD ? network : path;

		/* The network as such counts for an account of which the agent cannot tell, and without accounts. */
		if ((path == network && path != paths) || source->state != KNOWN)
			continue;
		if (verdict != REACHABLE)
			verdict = source->way[0] ? REACHABLE : UNREACHABLE;
		moved |= source->way[0] && path->told && strcmp(path->told_way, source->way);
		path->told = true;
		memcpy(path->told_way, source->way, sizeof path->told_way);
	}
	if (verdict == UNREACHABLE || moved)
		linphone_core_set_network_reachable(core, FALSE);
	/* Without the agent's word, linphone tries and finds out. */
	if (verdict != UNREACHABLE)
		linphone_core_set_network_reachable(core, TRUE);
	say(verdict == UNKNOWN ? "no word of the network" : verdict == UNREACHABLE ? "no path"
		: moved ? "the path changed" : "there is a path");
}

static void detach(LinphoneCore *core)
{
	while (paths)
		forget(&paths);
	dialtone_free(client);
	client = NULL;
	linphone_core_remove_callbacks(core, callbacks);
	linphone_core_cbs_unref(callbacks);
	atomic_store(&served, NULL);
}

static void state_changed(LinphoneCore *core, LinphoneGlobalState state, const char *message)
{
	(void)message;
	if (state != LinphoneGlobalOn && core == atomic_load(&served))
		detach(core);
}

/* Takes a core that is on, unless another one was first. */
static bool attach(LinphoneCore *core)
{
	LinphoneCore *none = NULL;

	if (core == atomic_load(&served))
		return true;
	if (linphone_core_get_global_state(core) != LinphoneGlobalOn ||
	    !atomic_compare_exchange_strong(&served, &none, core))
		return false;
	callbacks = linphone_factory_create_core_cbs(linphone_factory_get());
	linphone_core_cbs_set_global_state_changed(callbacks, state_changed);
	linphone_core_add_callbacks(core, callbacks);
	if (dialtone_new(&client, NULL) < 0 || !monitor("", 0, false)) {
		say("no memory or no descriptors are left");
		detach(core);
		return false;
	}
	return true;
}

__attribute__((visibility("default"))) void linphone_core_iterate(LinphoneCore *core)
{
	static void (*original)(LinphoneCore *);

	if (!original)
		*(void **)&original = dlsym(RTLD_NEXT, "linphone_core_iterate");
	if (attach(core)) {
		follow_accounts(core);
		dialtone_process(client);
		if (news) {
			news = false;
			tell(core);
		}
	}
	original(core);
}
