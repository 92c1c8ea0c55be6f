/* SPDX-License-Identifier: Apache-2.0
 *
 * Says what the network monitor of a GLib program says, by GLib's public interface alone.
 *
 *     report HOST…            one line, and ends
 *     report --watch HOST     a line at the beginning, after each change and at each SIGUSR1 (that one says
 *                             "asked: " first), until it is ended
 *     report --async HOST     asks about a host without waiting for the answer
 *     report --cancel HOST    the same, and takes it back at once
 *     report --again COUNT    makes and drops so many other monitors of the same type, and says how many
 *                             descriptors that leaves open
 *
 * GIO_USE_NETWORK_MONITOR says which monitor.
 */
#include <gio/gio.h>
#include <glib-unix.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

static const char *connectivity(GNetworkMonitor *monitor)
{
	switch (g_network_monitor_get_connectivity(monitor)) {
	case G_NETWORK_CONNECTIVITY_LOCAL: return "local";
	case G_NETWORK_CONNECTIVITY_LIMITED: return "limited";
	case G_NETWORK_CONNECTIVITY_PORTAL: return "portal";
	case G_NETWORK_CONNECTIVITY_FULL: return "full";
	}
	return "?";
}

static void print_host(GNetworkMonitor *monitor, const char *host)
{
	GSocketConnectable *address = g_network_address_new(host, 443);
	GError *error = NULL;
	gboolean is_reachable = g_network_monitor_can_reach(monitor, address, NULL, &error);

	printf(" %s=%s", host, is_reachable ? "yes" : error->message);
	g_clear_error(&error);
	g_object_unref(address);
}

static void print_network(GNetworkMonitor *monitor)
{
	printf("%s: available=%s metered=%s connectivity=%s", G_OBJECT_TYPE_NAME(monitor),
		g_network_monitor_get_network_available(monitor) ? "yes" : "no",
		g_network_monitor_get_network_metered(monitor) ? "yes" : "no", connectivity(monitor));
}

static void changed(GNetworkMonitor *monitor, gboolean is_available, gpointer host)
{
	if (is_available != g_network_monitor_get_network_available(monitor))
		puts("the signal says something else than the property");
	print_network(monitor);
	print_host(monitor, host);
	putchar('\n');
}

static struct {
	GNetworkMonitor *monitor;
	const char *host;
} watched;

static gboolean asked(gpointer data)
{
	(void)data;
	printf("asked: ");
	changed(watched.monitor, g_network_monitor_get_network_available(watched.monitor), (gpointer)watched.host);
	return G_SOURCE_CONTINUE;
}

static void notified(GNetworkMonitor *monitor, GParamSpec *property, gpointer data)
{
	(void)monitor;
	(void)data;
	printf("notified of %s\n", property->name);
}

static void finished(GObject *monitor, GAsyncResult *result, gpointer loop)
{
	GError *error = NULL;
	gboolean is_reachable = g_network_monitor_can_reach_finish(G_NETWORK_MONITOR(monitor), result, &error);

	puts(is_reachable ? "reachable" : g_error_matches(error, G_IO_ERROR, G_IO_ERROR_CANCELLED) ? "cancelled"
		: error->message);
	g_clear_error(&error);
	g_main_loop_quit(loop);
}

static void ask_later(GNetworkMonitor *monitor, const char *host, gboolean is_cancelled, GMainLoop *loop)
{
	GSocketConnectable *address = g_network_address_new(host, 443);
	GCancellable *cancellable = g_cancellable_new();

	g_network_monitor_can_reach_async(monitor, address, cancellable, finished, loop);
	if (is_cancelled)
		g_cancellable_cancel(cancellable);
	g_main_loop_run(loop);
	g_object_unref(address);
	g_object_unref(cancellable);
}

static int count_descriptors(void)
{
	GDir *directory = g_dir_open("/proc/self/fd", 0, NULL);
	int count = 0;

	while (directory && g_dir_read_name(directory))
		count++;
	g_clear_pointer(&directory, g_dir_close);
	return count;
}

static void make_again(GType type, int times)
{
	int before;

	/* The main loop opens what it needs for itself. */
	g_main_context_iteration(NULL, FALSE);
	before = count_descriptors();
	for (int i = 0; i < times; i++) {
		GObject *made = g_initable_new(type, NULL, NULL, NULL);

		/* Every second one is told something before it goes. */
		if (i % 2)
			g_main_context_iteration(NULL, FALSE);
		g_clear_object(&made);
	}
	printf("%d descriptors more\n", count_descriptors() - before);
}

int main(int argc, char **argv)
{
	GNetworkMonitor *monitor = g_network_monitor_get_default();
	GMainLoop *loop = g_main_loop_new(NULL, FALSE);

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc == 3 && g_str_equal(argv[1], "--watch")) {
		watched.monitor = monitor;
		watched.host = argv[2];
		g_unix_signal_add(SIGUSR1, asked, NULL);
		g_signal_connect(monitor, "network-changed", G_CALLBACK(changed), argv[2]);
		g_signal_connect(monitor, "notify", G_CALLBACK(notified), NULL);
		changed(monitor, g_network_monitor_get_network_available(monitor), argv[2]);
		g_main_loop_run(loop);
	} else if (argc == 3 && (g_str_equal(argv[1], "--cancel") || g_str_equal(argv[1], "--async"))) {
		ask_later(monitor, argv[2], g_str_equal(argv[1], "--cancel"), loop);
	} else if (argc == 3 && g_str_equal(argv[1], "--again")) {
		make_again(G_OBJECT_TYPE(monitor), atoi(argv[2]));
	} else {
		print_network(monitor);
		for (int i = 1; i < argc; i++)
			print_host(monitor, argv[i]);
		putchar('\n');
	}
	g_main_loop_unref(loop);
	return 0;
}
