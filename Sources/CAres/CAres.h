// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <ares.h>
#include <netdb.h>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

// ares_search and ares_set_socket_functions are marked as deprecated from 1.28 and 1.33 on, for successors that 1.18
// (Debian 12) does not have. Both still work in 1.34.

static inline void cares_search(
    ares_channel channel, const char *name, int type, ares_callback callback, void *argument) {
    ares_search(channel, name, 1 /* the Internet's class */, type, callback, argument);
}

static inline void cares_set_socket_functions(
    ares_channel channel, const struct ares_socket_functions *functions, void *data) {
    ares_set_socket_functions(channel, functions, data);
}

#pragma GCC diagnostic pop

// Versions from 1.31 on keep answers for their time to live, and a channel that has kept one does not notice that the
// network, and with it the name servers' view, has become another. Returns the option's bit; 0 where there is no cache.
static inline int cares_without_cache(struct ares_options *options) {
#ifdef ARES_OPT_QUERY_CACHE
    options->qcache_max_ttl = 0;
    return ARES_OPT_QUERY_CACHE;
#else
    (void)options;
    return 0;
#endif
}
