/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether a host can be reached, asked from any thread.
 */
#ifndef DIALTONE_REACH_H
#define DIALTONE_REACH_H

#include <gio/gio.h>

/* How long an agent may take to answer about an address, in milliseconds. It looks up no name for that and answers in
 * less than one; a program that waits longer is worse off than with GLib's own monitor. */
#define DIALTONE_PATIENCE 2000

/* As g_network_monitor_can_reach(): whether there is a path to one of the addresses that the connectable has, which GLib
 * looks up as for a connection. Without an agent, GLib's own monitor answers. */
gboolean dialtone_can_reach(GSocketConnectable *connectable, GCancellable *cancellable, GError **error);

/* A monitor of GLib's own, the one of the highest priority that works here; NULL if there is none. It runs in the context
 * of the thread that calls. The caller owns it. */
GNetworkMonitor *dialtone_own_monitor(void);

#endif
