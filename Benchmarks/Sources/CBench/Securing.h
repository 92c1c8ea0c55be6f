// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>

struct bench_identity;
struct ssl_st;

// Does the server's handshake on a connection; NULL where it fails.
struct ssl_st *bench_session(int descriptor, struct bench_identity *identity);

// Does the server's handshake on a connection. The session is never ended: its memory goes with the process.
bool bench_secure(int descriptor, struct bench_identity *identity);
