/* SPDX-License-Identifier: Apache-2.0
 *
 * The entry points by which GIO loads the module.
 */
#include "monitor.h"

/* Called by GIO: makes the monitor known. */
void g_io_module_load(GIOModule *module)
{
	/* Its type stays registered, and so must its code. */
	g_type_module_use(G_TYPE_MODULE(module));
	dialtone_network_monitor_register(G_TYPE_MODULE(module));
	/* GLib's own have 20 (netlink) and 30 (NetworkManager), that of a sandbox 40 (portal): there the portal's service
	 * asks, outside of the sandbox. */
	g_io_extension_point_implement(G_NETWORK_MONITOR_EXTENSION_POINT_NAME, DIALTONE_TYPE_NETWORK_MONITOR,
		DIALTONE_EXTENSION_NAME, 35);
}

/* Called by GIO, never for a module that is in use. */
void g_io_module_unload(GIOModule *module)
{
	(void)module;
}

/* Called by gio-querymodules: what the module is for, so that GIO loads it only for that. */
char **g_io_module_query(void)
{
	char *points[] = { (char *)G_NETWORK_MONITOR_EXTENSION_POINT_NAME, NULL };

	return g_strdupv(points);
}
