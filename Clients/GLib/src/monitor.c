/* SPDX-License-Identifier: Apache-2.0
 *
 * The verdicts of the agent: on the network as such by a stream, on a host by asking. While the agent is away, GLib's own
 * monitor answers, so that no verdict is older than the network.
 */
#include "monitor.h"
#include "reach.h"
#include "source.h"

#include <string.h>

/* What the properties say. */
struct verdict {
	gboolean is_available, is_metered;
	GNetworkConnectivity connectivity;
};

struct _DialtoneNetworkMonitor {
	GObject parent;
	dialtone *client;
	GSource *source;
	struct verdict verdict;
	/* GLib's own, while the agent is away; else NULL. */
	GNetworkMonitor *own;
};

enum { PROPERTY_AVAILABLE = 1, PROPERTY_METERED, PROPERTY_CONNECTIVITY };

static void initable_begin(GInitableIface *interface);
static void monitor_begin(GNetworkMonitorInterface *interface);

G_DEFINE_DYNAMIC_TYPE_EXTENDED(DialtoneNetworkMonitor, dialtone_network_monitor, G_TYPE_OBJECT, 0,
	G_IMPLEMENT_INTERFACE_DYNAMIC(G_TYPE_INITABLE, initable_begin)
	G_IMPLEMENT_INTERFACE_DYNAMIC(G_TYPE_NETWORK_MONITOR, monitor_begin))

void dialtone_network_monitor_register(GTypeModule *module)
{
	dialtone_network_monitor_register_type(module);
}

/* Takes a verdict over and tells what it changes; with is_change, also that something else may have changed. */
static void take_over(DialtoneNetworkMonitor *self, const struct verdict *verdict, gboolean is_change)
{
	GObject *object = G_OBJECT(self);
	struct verdict before = self->verdict;

	self->verdict = *verdict;
	g_object_ref(object);
	g_object_freeze_notify(object);
	if (before.is_available != verdict->is_available)
		g_object_notify(object, "network-available");
	if (before.is_metered != verdict->is_metered)
		g_object_notify(object, "network-metered");
	if (before.connectivity != verdict->connectivity)
		g_object_notify(object, "connectivity");
	g_object_thaw_notify(object);
	if (is_change || memcmp(&before, verdict, sizeof before) != 0)
		g_signal_emit_by_name(object, "network-changed", verdict->is_available);
	g_object_unref(object);
}

/* The verdict that a path is; FALSE for one that the agent does not have, since the kernel cannot be asked. */
static gboolean read_verdict(const dialtone_value *path, struct verdict *verdict)
{
	const char *status = dialtone_value_string(path, "status");

	if (!status || g_str_equal(status, "unknown"))
		return FALSE;
	memset(verdict, 0, sizeof *verdict);
	/* A connection that is brought up on demand is there for who uses it. */
	verdict->is_available = g_str_equal(status, "satisfied") || g_str_equal(status, "requiresConnection");
	verdict->is_metered = verdict->is_available && dialtone_value_bool(path, "expensive");
	verdict->connectivity = !verdict->is_available ? G_NETWORK_CONNECTIVITY_LOCAL
		: dialtone_value_bool(path, "supportsDNS") ? G_NETWORK_CONNECTIVITY_FULL : G_NETWORK_CONNECTIVITY_LIMITED;
	return TRUE;
}

static void own_changed(GNetworkMonitor *own, gboolean is_available, gpointer data)
{
	struct verdict verdict = { is_available, g_network_monitor_get_network_metered(own),
		g_network_monitor_get_connectivity(own) };

	take_over(data, &verdict, TRUE);
}

static void forget_own(DialtoneNetworkMonitor *self)
{
	if (self->own)
		g_signal_handlers_disconnect_by_data(self->own, self);
	g_clear_object(&self->own);
}

/* Has GLib's own monitor answer until the agent is back. */
static void fall_back(DialtoneNetworkMonitor *self)
{
	if (self->own)
		return;
	self->own = dialtone_own_monitor();
	if (!self->own)
		return;
	g_signal_connect(self->own, "network-changed", G_CALLBACK(own_changed), self);
	own_changed(self->own, g_network_monitor_get_network_available(self->own), self);
}

static void path_told(dialtone *client, int result, dialtone_reply *reply, void *data)
{
	DialtoneNetworkMonitor *self = data;
	struct verdict verdict;
	gboolean is_change;

	(void)client;
	if (!reply || !read_verdict(dialtone_value_at(dialtone_reply_value(reply), "path"), &verdict)) {
		/* Lost for a while, or refused for good: then it stays with GLib's own. */
		if (result < 0)
			g_warning("dialtone: %s GLib's own network monitor answers from now on.", dialtone_error_text(client));
		fall_back(self);
		return;
	}
	is_change = self->own || dialtone_value_count(dialtone_reply_value(reply), "changes") > 0;
	forget_own(self);
	take_over(self, &verdict, is_change);
}

/* Fails where no agent answers: GIO then takes the next monitor, which is GLib's own. */
static gboolean initialize(GInitable *initable, GCancellable *cancellable, GError **error)
{
	DialtoneNetworkMonitor *self = DIALTONE_NETWORK_MONITOR(initable);
	dialtone_reply *reply = NULL;
	gboolean is_known;
	int result;

	if (g_cancellable_set_error_if_cancelled(cancellable, error))
		return FALSE;
	result = dialtone_new(&self->client, NULL);
	if (result < 0) {
		g_set_error(error, G_IO_ERROR, g_io_error_from_errno(-result), "libdialtone: %s", g_strerror(-result));
		return FALSE;
	}
	dialtone_set_timeout(self->client, DIALTONE_PATIENCE);
	result = dialtone_get_path(self->client, NULL, &reply);
	is_known = result >= 0
		&& read_verdict(dialtone_value_at(dialtone_reply_value(reply), "path"), &self->verdict);
	dialtone_reply_free(reply);
	if (result >= 0 && is_known)
		result = dialtone_monitor_path(self->client, NULL, path_told, self, NULL);
	if (result < 0 || !is_known) {
		g_set_error(error, G_IO_ERROR, G_IO_ERROR_FAILED, "%s",
			result < 0 ? dialtone_error_text(self->client) : "The agent cannot ask the kernel about the network.");
		return FALSE;
	}
	self->source = dialtone_source_attach(self->client);
	return TRUE;
}

static gboolean can_reach(GNetworkMonitor *monitor, GSocketConnectable *connectable, GCancellable *cancellable,
	GError **error)
{
	(void)monitor;
	return dialtone_can_reach(connectable, cancellable, error);
}

static void can_reach_in_thread(GTask *task, gpointer source, gpointer connectable, GCancellable *cancellable)
{
	GError *error = NULL;

	(void)source;
	if (dialtone_can_reach(connectable, cancellable, &error))
		g_task_return_boolean(task, TRUE);
	else
		g_task_return_error(task, error);
}

static void can_reach_async(GNetworkMonitor *monitor, GSocketConnectable *connectable, GCancellable *cancellable,
	GAsyncReadyCallback callback, gpointer data)
{
	GTask *task = g_task_new(monitor, cancellable, callback, data);

	g_task_set_source_tag(task, can_reach_async);
	g_task_set_task_data(task, g_object_ref(connectable), g_object_unref);
	/* Nothing of the thread's work needs to be undone. */
	g_task_set_return_on_cancel(task, TRUE);
	g_task_run_in_thread(task, can_reach_in_thread);
	g_object_unref(task);
}

static gboolean can_reach_finish(GNetworkMonitor *monitor, GAsyncResult *result, GError **error)
{
	g_return_val_if_fail(g_task_is_valid(result, monitor), FALSE);
	return g_task_propagate_boolean(G_TASK(result), error);
}

static void get_property(GObject *object, guint property, GValue *value, GParamSpec *specification)
{
	DialtoneNetworkMonitor *self = DIALTONE_NETWORK_MONITOR(object);

	switch (property) {
	case PROPERTY_AVAILABLE: g_value_set_boolean(value, self->verdict.is_available); break;
	case PROPERTY_METERED: g_value_set_boolean(value, self->verdict.is_metered); break;
	case PROPERTY_CONNECTIVITY: g_value_set_enum(value, self->verdict.connectivity); break;
	default: G_OBJECT_WARN_INVALID_PROPERTY_ID(object, property, specification);
	}
}

static void finalize(GObject *object)
{
	DialtoneNetworkMonitor *self = DIALTONE_NETWORK_MONITOR(object);

	if (self->source)
		g_source_destroy(self->source);
	g_clear_pointer(&self->source, g_source_unref);
	g_clear_pointer(&self->client, dialtone_free);
	forget_own(self);
	G_OBJECT_CLASS(dialtone_network_monitor_parent_class)->finalize(object);
}

static void dialtone_network_monitor_init(DialtoneNetworkMonitor *self)
{
	self->verdict.connectivity = G_NETWORK_CONNECTIVITY_LOCAL;
}

static void dialtone_network_monitor_class_init(DialtoneNetworkMonitorClass *class)
{
	GObjectClass *object_class = G_OBJECT_CLASS(class);

	object_class->finalize = finalize;
	object_class->get_property = get_property;
	g_object_class_override_property(object_class, PROPERTY_AVAILABLE, "network-available");
	g_object_class_override_property(object_class, PROPERTY_METERED, "network-metered");
	g_object_class_override_property(object_class, PROPERTY_CONNECTIVITY, "connectivity");
}

static void dialtone_network_monitor_class_finalize(DialtoneNetworkMonitorClass *class)
{
	(void)class;
}

static void initable_begin(GInitableIface *interface)
{
	interface->init = initialize;
}

static void monitor_begin(GNetworkMonitorInterface *interface)
{
	interface->can_reach = can_reach;
	interface->can_reach_async = can_reach_async;
	interface->can_reach_finish = can_reach_finish;
}
