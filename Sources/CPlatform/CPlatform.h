// SPDX-License-Identifier: Apache-2.0
//
// What Linux has and Swift's Glibc module leaves out: headers it does not list, declarations behind _GNU_SOURCE, and
// macros that are not constants.
#pragma once

#include <linux/sockios.h>
#include <pthread.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

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

// pidfd_open(2), of which glibc has a wrapper only since 2.36.
static inline int platform_pidfd_open(int process) {
    return (int)syscall(SYS_pidfd_open, process, 0);
}

enum {
    // Of <asm-generic/socket.h>, Linux 6.5: a pidfd of the process that connected. Alike on all machines Swift knows.
    platform_SO_PEERPIDFD = 77,
    // Likewise, Linux 5.14: a number for the network namespace that a socket belongs to, never used again.
    platform_SO_NETNS_COOKIE = 71,
    // Likewise, Linux 6.16: whether a peer may send descriptors to this Unix socket.
    platform_SO_PASSRIGHTS = 83,
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

// Reads what is there, with the descriptors that ride on it: how many there are goes to `count`, the rest is as above.
// `flags` are those of the message (MSG_TRUNC, MSG_CTRUNC).
static inline ssize_t platform_receive(
    int socket, void *bytes, size_t length, int *descriptors, int *count, int *flags) {
    struct iovec vector = {.iov_base = bytes, .iov_len = length};
    union {
        char bytes[platform_descriptors_space];
        struct cmsghdr header;
    } control;
    struct msghdr message = {
        .msg_iov = &vector, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
    ssize_t received = recvmsg(socket, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    *count = received < 0 ? 0 : platform_received_descriptors(&message, descriptors);
    *flags = message.msg_flags;
    return received;
}

// Sends what the socket takes now, with `count` descriptors (up to platform_descriptors_max) riding on the first byte.
static inline ssize_t platform_send(
    int socket, const void *bytes, size_t length, const int *descriptors, int count) {
    struct iovec vector = {.iov_base = (void *)bytes, .iov_len = length};
    struct msghdr message = {.msg_iov = &vector, .msg_iovlen = 1};
    union {
        char bytes[platform_descriptors_space];
        struct cmsghdr header;
    } control;
    if (count > 0) {
        message.msg_control = control.bytes;
        message.msg_controllen = CMSG_SPACE(sizeof(int) * (size_t)count);
        memset(control.bytes, 0, message.msg_controllen);
        struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
        rights->cmsg_level = SOL_SOCKET;
        rights->cmsg_type = SCM_RIGHTS;
        rights->cmsg_len = CMSG_LEN(sizeof(int) * (size_t)count);
        memcpy(CMSG_DATA(rights), descriptors, sizeof(int) * (size_t)count);
    }
    return sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

// malloc_trim(3): gives free pages of the heap back to the kernel.
extern int malloc_trim(size_t pad);

// prctl(2) with PR_SET_DUMPABLE; Swift calls no function with a variable number of arguments.
static inline int platform_forbid_dumps(void) {
    return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}
