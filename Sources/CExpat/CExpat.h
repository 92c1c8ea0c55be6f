// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <expat.h>

// From 2.6.0 on, expat waits for more input before it tries a token again that was cut. A stream whose other end waits
// for an answer would stand still.
static inline void cexpat_read_at_once(XML_Parser parser) {
#if XML_MAJOR_VERSION > 2 || (XML_MAJOR_VERSION == 2 && XML_MINOR_VERSION >= 6)
    XML_SetReparseDeferralEnabled(parser, XML_FALSE);
#else
    (void)parser;
#endif
}
