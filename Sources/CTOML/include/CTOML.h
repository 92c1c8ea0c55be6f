// SPDX-License-Identifier: Apache-2.0
//
// toml++ behind one C function: a document goes in as text and comes out as a walk over its nodes.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define CTOML_NOEXCEPT noexcept
extern "C" {
#else
#define CTOML_NOEXCEPT
#endif

/// What a node is. `CTOML_END` closes the array or table that was begun last and not yet closed.
typedef enum {
    CTOML_STRING,
    CTOML_INTEGER,
    CTOML_FLOAT,
    CTOML_BOOLEAN,
    CTOML_TIME,
    CTOML_ARRAY,
    CTOML_TABLE,
    CTOML_END,
} ctoml_kind;

/// Bytes of UTF-8 that are neither terminated nor kept beyond the call that gets them.
typedef struct {
    const char *bytes;
    size_t length;
} ctoml_text;

/// Lines and columns count from one; a column is a code point. Zero: not known.
typedef struct {
    uint32_t line;
    uint32_t column;
} ctoml_position;

/// One node of the document.
typedef struct {
    ctoml_kind kind;
    ctoml_position position;
    /// Under which key it stands in its table; empty in an array.
    ctoml_text key;
    ctoml_position key_position;
    /// The value, in the field of its kind; `text` is a string, or a date or time as it is written in TOML.
    ctoml_text text;
    int64_t integer;
    double number;
    bool boolean;
} ctoml_node;

/// Why a document was refused.
typedef void (*ctoml_refused)(void *context, ctoml_position position, ctoml_text message);
/// The next node.
typedef void (*ctoml_visited)(void *context, const ctoml_node *node);

/// Parses `document`. Calls `visited` for each node, the members of an array in their order and those of a table in
/// the order of their keys; or, if the document is no TOML, `refused` once and `visited` never.
void ctoml_parse(ctoml_text document, void *context, ctoml_visited visited, ctoml_refused refused)
    CTOML_NOEXCEPT;

#ifdef __cplusplus
}
#endif
