/* SPDX-License-Identifier: Apache-2.0
 *
 * GNetworkMonitor with the agent's verdicts.
 */
#ifndef DIALTONE_NETWORK_MONITOR_H
#define DIALTONE_NETWORK_MONITOR_H

#include <gio/gio.h>

/* By which GIO_USE_NETWORK_MONITOR names it. */
#define DIALTONE_EXTENSION_NAME "dialtone"

#define DIALTONE_TYPE_NETWORK_MONITOR dialtone_network_monitor_get_type()
G_DECLARE_FINAL_TYPE(DialtoneNetworkMonitor, dialtone_network_monitor, DIALTONE, NETWORK_MONITOR, GObject)

/* Registers the type for the module that has its code. */
void dialtone_network_monitor_register(GTypeModule *module);

#endif
