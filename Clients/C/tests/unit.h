/* SPDX-License-Identifier: Apache-2.0
 *
 * What the unit tests share.
 */
#ifndef UNIT_H
#define UNIT_H

#include "internal.h"
#include "stand_in.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

extern int failures;

#define check(condition) do { \
	if (!(condition)) { \
		failures++; \
		printf("%s:%d: not true: %s\n", __FILE__, __LINE__, #condition); \
	} \
} while (0)

#define check_int(actual, expected) do { \
	int64_t seen_ = (actual), wanted_ = (expected); \
	if (seen_ != wanted_) { \
		failures++; \
		printf("%s:%d: %s is %" PRId64 ", not %" PRId64 "\n", __FILE__, __LINE__, #actual, seen_, wanted_); \
	} \
} while (0)

#define check_text(actual, expected) do { \
	const char *seen_ = (actual), *wanted_ = (expected); \
	if (!seen_ || strcmp(seen_, wanted_) != 0) { \
		failures++; \
		printf("%s:%d: %s is \"%s\", not \"%s\"\n", __FILE__, __LINE__, #actual, seen_ ? seen_ : "(null)", wanted_); \
	} \
} while (0)

/* How many descriptors this process has open, and how many of them a program would inherit. */
int count_descriptors(void);
int count_inherited(void);

void reader_tests(void);
void value_tests(void);
void call_tests(void);
void stream_tests(void);

#endif
