// SPDX-License-Identifier: Apache-2.0
//
// What Linux has and Swift's Glibc module leaves out: headers it does not list, and declarations behind _GNU_SOURCE.
#pragma once

#include <linux/sockios.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/timerfd.h>

// strerrordesc_np(3), glibc 2.32: the kernel's text as a constant, with no buffer, no locale and no thread in it.
extern const char *strerrordesc_np(int error);

// pthread_setname_np(3): what `ps -L` and `top -H` show; 15 characters at most.
extern int pthread_setname_np(pthread_t thread, const char *name);
