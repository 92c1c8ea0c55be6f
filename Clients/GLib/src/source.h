/* SPDX-License-Identifier: Apache-2.0
 *
 * libdialtone in GLib's loop.
 */
#ifndef DIALTONE_SOURCE_H
#define DIALTONE_SOURCE_H

#include <dialtone.h>
#include <glib.h>

/* A source that runs the handle, attached to the context of the thread that calls. The handle outlives it. */
GSource *dialtone_source_attach(dialtone *client);

#endif
