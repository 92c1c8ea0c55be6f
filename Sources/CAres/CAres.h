// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <ares.h>
#include <netdb.h>
