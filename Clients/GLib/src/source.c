/* SPDX-License-Identifier: Apache-2.0 */
#include "source.h"

struct source {
	GSource parent;
	dialtone *client;
};

/* GLib's times are those of CLOCK_MONOTONIC in microseconds, too. */
static void set_time(struct source *source)
{
	uint64_t due;

	if (dialtone_get_timeout(source->client, &due) == 0)
		g_source_set_ready_time(&source->parent, due > G_MAXINT64 ? -1 : (gint64)due);
}

static gboolean dispatch(GSource *parent, GSourceFunc callback, gpointer data)
{
	struct source *source = (struct source *)parent;

	(void)callback;
	(void)data;
	/* In a child process there is nothing to do: the handle is the parent's. */
	if (dialtone_process(source->client) < 0)
		return G_SOURCE_REMOVE;
	/* A handler may have ended the source, and the handle with it. */
	if (g_source_is_destroyed(parent))
		return G_SOURCE_REMOVE;
	set_time(source);
	return G_SOURCE_CONTINUE;
}

GSource *dialtone_source_attach(dialtone *client)
{
	static GSourceFuncs functions = { .dispatch = dispatch };
	GSource *made = g_source_new(&functions, sizeof(struct source));
	GMainContext *context = g_main_context_ref_thread_default();

	((struct source *)made)->client = client;
	g_source_add_unix_fd(made, dialtone_get_fd(client), G_IO_IN);
	set_time((struct source *)made);
	g_source_attach(made, context);
	g_main_context_unref(context);
	return made;
}
