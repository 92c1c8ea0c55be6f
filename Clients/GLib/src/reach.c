/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "reach.h"
#include "monitor.h"

#include <dialtone.h>
#include <errno.h>
#include <net/if.h>
#include <string.h>

GNetworkMonitor *dialtone_own_monitor(void)
{
	GIOExtensionPoint *point = g_io_extension_point_lookup(G_NETWORK_MONITOR_EXTENSION_POINT_NAME);
	GNetworkMonitor *monitor = NULL;

	/* In the order of their priorities. */
	for (GList *each = g_io_extension_point_get_extensions(point); each && !monitor; each = each->next) {
		GType type = g_io_extension_get_type(each->data);

		if (type == DIALTONE_TYPE_NETWORK_MONITOR)
			continue;
		if (g_type_is_a(type, G_TYPE_INITABLE))
			monitor = g_initable_new(type, NULL, NULL, NULL);
		else
			monitor = g_object_new(type, NULL);
	}
	return monitor;
}

/* The target that a socket address is; NULL for one that is no address of a network. */
static dialtone_value *target_of(GSocketAddress *address)
{
	GInetSocketAddress *inet = G_IS_INET_SOCKET_ADDRESS(address) ? G_INET_SOCKET_ADDRESS(address) : NULL;
	char *host = inet ? g_inet_address_to_string(g_inet_socket_address_get_address(inet)) : NULL;
	dialtone_value *target = host ? dialtone_target(host, g_inet_socket_address_get_port(inet)) : NULL;
	char interface[IF_NAMESIZE];

	g_free(host);
	/* A link-local address means nothing without its link. */
	if (target && g_socket_address_get_family(address) == G_SOCKET_FAMILY_IPV6
	    && g_inet_socket_address_get_scope_id(inet) != 0
	    && if_indextoname(g_inet_socket_address_get_scope_id(inet), interface))
		dialtone_value_set_string(target, "interface", interface);
	return target;
}

/* Asks about one address. Returns 1 for a path, 0 for none with the reason, or what libdialtone says where the agent does
 * not know. */
static int ask(dialtone *client, GSocketAddress *address, char **reason)
{
	dialtone_value *target = target_of(address);
	dialtone_reply *reply;
	const char *status, *why;
	int result;

	if (!target)
		return -EAFNOSUPPORT;
	result = dialtone_get_path(client, target, &reply);
	dialtone_value_free(target);
	if (result < 0)
		return result;
	status = dialtone_value_string(dialtone_reply_value(reply), "path.status");
	why = dialtone_value_string(dialtone_reply_value(reply), "path.reason");
	if (!status || g_str_equal(status, "unknown")) {
		result = -ENODATA;
	} else {
		result = !g_str_equal(status, "unsatisfied");
		g_free(*reason);
		*reason = g_strdup(why ? why : status);
	}
	dialtone_reply_free(reply);
	return result;
}

static gboolean can_reach_by_own(GSocketConnectable *connectable, GCancellable *cancellable, GError **error)
{
	/* It reads the routes when it is made, and is not used for longer than that. Nobody runs its context. */
	GMainContext *context = g_main_context_new();
	GNetworkMonitor *own;
	gboolean is_reachable = FALSE;

	g_main_context_push_thread_default(context);
	own = dialtone_own_monitor();
	if (own)
		is_reachable = g_network_monitor_can_reach(own, connectable, cancellable, error);
	else
		g_set_error_literal(error, G_IO_ERROR, G_IO_ERROR_NETWORK_UNREACHABLE, "There is no network monitor.");
	g_clear_object(&own);
	g_main_context_pop_thread_default(context);
	g_main_context_unref(context);
	return is_reachable;
}

/* Asks about each address until one has a path. Returns as ask(); -ECANCELED with error set where GLib could not look the
 * addresses up. */
static int ask_about_all(dialtone *client, GSocketConnectable *connectable, GCancellable *cancellable, char **reason,
	GError **error)
{
	/* As GLib's own monitor: behind a proxy, it is the proxy that must be reached. */
	GSocketAddressEnumerator *addresses = g_socket_connectable_proxy_enumerate(connectable);
	GSocketAddress *address;
	GError *failure = NULL;
	int result = 0;
	gboolean is_asked = FALSE;

	while (result == 0 && (address = g_socket_address_enumerator_next(addresses, cancellable, &failure))) {
		is_asked = TRUE;
		result = ask(client, address, reason);
		g_object_unref(address);
	}
	g_object_unref(addresses);
	/* An enumerator reports a failure only where it has had no address. */
	if (failure && (!is_asked || g_error_matches(failure, G_IO_ERROR, G_IO_ERROR_CANCELLED))) {
		g_propagate_error(error, failure);
		return -ECANCELED;
	}
	g_clear_error(&failure);
	return result;
}

gboolean dialtone_can_reach(GSocketConnectable *connectable, GCancellable *cancellable, GError **error)
{
	dialtone *client = NULL;
	char *reason = NULL;
	/* A handle of its own: this may be any thread. */
	int result = dialtone_new(&client, NULL);

	if (result >= 0) {
		dialtone_set_timeout(client, DIALTONE_PATIENCE);
		result = ask_about_all(client, connectable, cancellable, &reason, error);
		dialtone_free(client);
	}
	if (result == 0)
		g_set_error(error, G_IO_ERROR, G_IO_ERROR_HOST_UNREACHABLE, "Host unreachable: %s", reason ? reason : "no address");
	g_free(reason);
	if (result < 0 && result != -ECANCELED)
		return can_reach_by_own(connectable, cancellable, error);
	return result > 0;
}
