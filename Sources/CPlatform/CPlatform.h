// SPDX-License-Identifier: Apache-2.0
//
// What Linux has and Swift's Glibc module leaves out: headers it does not list, declarations behind _GNU_SOURCE, and
// macros that are not constants.
#pragma once

#include <linux/sockios.h>
#include <pthread.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>

// strerrordesc_np(3), glibc 2.32: the kernel's text as a constant, with no buffer, no locale and no thread in it.
extern const char *strerrordesc_np(int error);

// pthread_setname_np(3): what `ps -L` and `top -H` show; 15 characters at most.
extern int pthread_setname_np(pthread_t thread, const char *name);

// accept4(2): accepts with close-on-exec and non-blocking set from the start.
extern int accept4(int socket, struct sockaddr *address, socklen_t *length, int flags);

// memfd_create(2): a file in memory that nobody can open by a name.
extern int memfd_create(const char *name, unsigned int flags);

// struct ucred, what SO_PEERCRED fills in (unix(7)).
struct platform_credentials {
    int pid;
    unsigned int uid;
    unsigned int gid;
};

enum {
#ifndef MFD_CLOEXEC
    // Of <linux/memfd.h>, which <sys/mman.h> brings along behind _GNU_SOURCE.
    MFD_CLOEXEC = 1,
#endif
    // The most descriptors the kernel lets ride on one message (SCM_MAX_FD in the kernel's include/net/scm.h).
    platform_descriptors_max = 253,
    // The room for a control message with that many.
    platform_descriptors_space = CMSG_SPACE(sizeof(int) * platform_descriptors_max),
};

// Copies the descriptors of every SCM_RIGHTS in a received message to `descriptors`, which has room for
// platform_descriptors_max of them, and returns how many there are. The caller owns them.
static inline int platform_received_descriptors(struct msghdr *message, int *descriptors) {
    int count = 0;
    for (struct cmsghdr *control = CMSG_FIRSTHDR(message); control; control = CMSG_NXTHDR(message, control)) {
        if (control->cmsg_level != SOL_SOCKET || control->cmsg_type != SCM_RIGHTS) continue;
        size_t bytes = control->cmsg_len - CMSG_LEN(0);
        memcpy(descriptors + count, CMSG_DATA(control), bytes);
        count += (int)(bytes / sizeof(int));
    }
    return count;
}

// malloc_trim(3): gives free pages of the heap back to the kernel.
extern int malloc_trim(size_t pad);
