// SPDX-License-Identifier: Apache-2.0
//
// libseccomp, and what of it is a macro or takes a variable number of arguments, which Swift cannot call.
#pragma once

#include <errno.h>
#include <linux/sched.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>

// A filter that refuses every call with EPERM; NULL where there is no memory.
static inline scmp_filter_ctx cseccomp_refusing_all(void) { return seccomp_init(SCMP_ACT_ERRNO(EPERM)); }

// The calls by which memory could become a program only without PROT_EXEC; those by which a process could be made only
// for threads. clone3(2), whose arguments no filter sees, is unknown to the C library then, which has clone(2).
static inline int cseccomp_allow_threads_and_memory(scmp_filter_ctx filter) {
    int result = 0;
    result |= seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(mmap), 1, SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
    result |= seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(mprotect), 1, SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
    result |= seccomp_rule_add(
        filter, SCMP_ACT_ALLOW, SCMP_SYS(clone), 1, SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD, CLONE_THREAD));
    result |= seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
    return result;
}

// Calls whose arguments say what they are for: how many bytes lie in a socket, a name for a thread, and the end of this
// process by its own hand (abort(3)).
static inline int cseccomp_allow_in_part(scmp_filter_ctx filter, int process) {
    int result = 0;
    result |= seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(ioctl), 1, SCMP_A1(SCMP_CMP_EQ, FIONREAD));
    result |= seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(prctl), 1, SCMP_A0(SCMP_CMP_EQ, PR_SET_NAME));
    result |= seccomp_rule_add(
        filter, SCMP_ACT_ALLOW, SCMP_SYS(tgkill), 1, SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)process));
    return result;
}

static inline int cseccomp_allow(scmp_filter_ctx filter, int call) {
    return seccomp_rule_add(filter, SCMP_ACT_ALLOW, call, 0);
}
