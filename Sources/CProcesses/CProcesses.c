// SPDX-License-Identifier: Apache-2.0
//
// Between fork and exec nothing but system calls, each of which does what it says for this one thread. (The C library's
// setresuid(2) and its kin ask every thread of the process to follow; after a fork there is none to ask.)
#define _GNU_SOURCE
#include "CProcesses.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

// Where users have 32 bits and the first call of the name does not.
#ifdef SYS_setgroups32
#define SET_GROUPS SYS_setgroups32
#define SET_GROUP SYS_setresgid32
#define SET_USER SYS_setresuid32
#else
#define SET_GROUPS SYS_setgroups
#define SET_GROUP SYS_setresgid
#define SET_USER SYS_setresuid
#endif

_Noreturn static void fail(int report, int step) {
    struct activation_failure failure = {step, errno};
    (void)!write(report, &failure, sizeof failure);
    _exit(127);
}

static void write_number(char *text, int number) {
    char digits[12];
    int count = 0;
    do digits[count++] = (char)('0' + number % 10);
    while ((number /= 10) > 0);
    while (count > 0) *text++ = digits[--count];
    *text = 0;
}

// No signal's action is inherited: an ignored one (SIGPIPE here) would stay ignored in the program. By the system call,
// since the C library keeps two signals to itself, whoever had them ignored before.
static void reset_signals(void) {
    // The kernel's structure is smaller on every architecture; all zero is the standard action.
    const char standard[64] = {0};
    for (int number = 1; number < NSIG; number++) syscall(SYS_rt_sigaction, number, standard, (void *)0, NSIG / 8);
}

// The descriptors into their places, everything else closed but `*report` and `*leave`, which move behind them. With the
// rest go the other ends of the pipes of this child and of others.
static int place_descriptors(const struct activation_program *program, int *report, int *leave) {
    int count = (int)program->descriptor_count;
    int moved[8];
    if (count > 8) return errno = EINVAL, -1;
    // First out of the way, so that none is overwritten that another place still needs.
    for (int index = 0; index < count; index++) {
        moved[index] = fcntl(program->descriptors[index], F_DUPFD_CLOEXEC, count + 2);
        if (moved[index] < 0) return -1;
    }
    int high = fcntl(*report, F_DUPFD_CLOEXEC, count + 2);
    if (high < 0) return -1;
    *report = high;
    high = fcntl(*leave, F_DUPFD_CLOEXEC, count + 2);
    if (high < 0) return -1;
    *leave = high;
    for (int index = 0; index < count; index++)
        if (dup2(moved[index], index) < 0) return -1;
    if (dup3(*report, count, O_CLOEXEC) < 0) return -1;
    *report = count;
    if (dup3(*leave, count + 1, O_CLOEXEC) < 0) return -1;
    *leave = count + 1;
    return (int)syscall(SYS_close_range, count + 2, ~0U, 0);
}

// Waits until the parent has said that this may become the program. Where it never will, since it has ended or does not
// want it any more, nothing is run.
static int await_leave(int leave) {
    char word;
    ssize_t count;
    do count = read(leave, &word, sizeof word);
    while (count < 0 && errno == EINTR);
    if (count == sizeof word) return close(leave);
    if (count == 0) errno = ECANCELED;
    return -1;
}

static int become(const struct activation_program *program) {
    if (syscall(SET_GROUPS, (size_t)program->group_count, program->groups) != 0) return -1;
    if (syscall(SET_GROUP, program->gid, program->gid, program->gid) != 0) return -1;
    if (syscall(SET_USER, program->uid, program->uid, program->uid) != 0) return -1;
    // Believed when seen: who can come back was not left.
    if (program->uid != 0 && syscall(SET_USER, 0, 0, 0) == 0) return errno = EPERM, -1;
    return 0;
}

// No privilege that the agent has, or that a set-user-ID program would give, goes to the program.
static int drop_privileges(void) {
    if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) != 0 && errno != EINVAL) return -1;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return -1;
    // What the agent took for itself: the descriptors of a server, a place before others.
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur > 1024) {
        limit.rlim_cur = 1024;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
    errno = 0;
    if (getpriority(PRIO_PROCESS, 0) < 0 && errno == 0) setpriority(PRIO_PROCESS, 0, 0);
    umask(022);
    return 0;
}

_Noreturn static void run_child(const struct activation_program *program, int report, int leave) {
    reset_signals();
    if (setsid() < 0) fail(report, activation_step_session);
    if (place_descriptors(program, &report, &leave) != 0) fail(report, activation_step_descriptors);
    if (await_leave(leave) != 0) fail(report, activation_step_leave);
    // Users before privileges: no_new_privs forbids neither, but the capabilities go with the user.
    if (program->changes_user && become(program) != 0) fail(report, activation_step_user);
    if (drop_privileges() != 0) fail(report, activation_step_privileges);
    // As the user, since a home of the network may be closed to root.
    if (chdir(program->directory) != 0 && chdir("/") != 0) fail(report, activation_step_user);
    if (program->process_identifier) write_number(program->process_identifier, (int)getpid());
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, 0);
    int flags = -1;
    if (program->blocking >= 0) {
        flags = fcntl(program->blocking, F_GETFL);
        if (flags >= 0) fcntl(program->blocking, F_SETFL, flags & ~O_NONBLOCK);
    }
    execve(program->path, program->arguments, program->environment);
    int code = errno;
    // The flag is shared with the agent, who keeps the socket.
    if (flags >= 0) fcntl(program->blocking, F_SETFL, flags);
    errno = code;
    fail(report, activation_step_exec);
}

int activation_start(const struct activation_program *program, int *report, int *leave) {
    int ends[2], gate[2];
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return -1;
    if (pipe2(gate, O_CLOEXEC) != 0) {
        int code = errno;
        close(ends[0]);
        close(ends[1]);
        errno = code;
        return -1;
    }
    sigset_t all, before;
    sigfillset(&all);
    // No handler of this process runs in the child.
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pid_t child = fork();
    if (child == 0) run_child(program, ends[1], gate[0]);
    int code = errno;
    pthread_sigmask(SIG_SETMASK, &before, 0);
    close(ends[1]);
    close(gate[0]);
    if (child < 0) {
        close(ends[0]);
        close(gate[1]);
        errno = code;
        return -1;
    }
    *report = ends[0];
    *leave = gate[1];
    return (int)child;
}

int activation_give_leave(int leave) {
    // SIGPIPE is ignored in every process that launches programs: a child may have been killed meanwhile.
    return write(leave, "", 1) == 1 ? 0 : -1;
}

int activation_open_process(int process) {
    return (int)syscall(SYS_pidfd_open, process, 0);
}

int activation_copy_descriptor(int process_descriptor, int number) {
    return (int)syscall(SYS_pidfd_getfd, process_descriptor, number, 0);
}

int activation_peer_process(int socket) {
    // SO_PEERPIDFD of <asm-generic/socket.h>, Linux 6.5.
    const int peer_descriptor = 77;
    int descriptor = -1;
    socklen_t length = sizeof descriptor;
    if (getsockopt(socket, SOL_SOCKET, peer_descriptor, &descriptor, &length) == 0) {
        fcntl(descriptor, F_SETFD, FD_CLOEXEC);
        return descriptor;
    }
    if (errno != ENOPROTOOPT) return -1;
    struct ucred peer;
    length = sizeof peer;
    if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) return -1;
    return activation_open_process(peer.pid);
}

int activation_was_accepted(int socket, const char *path) {
    struct sockaddr_un address;
    int listens = 1, kind = 0;
    socklen_t length = sizeof listens;
    if (getsockopt(socket, SOL_SOCKET, SO_ACCEPTCONN, &listens, &length) != 0 || listens) return 0;
    length = sizeof kind;
    if (getsockopt(socket, SOL_SOCKET, SO_TYPE, &kind, &length) != 0 || kind != SOCK_STREAM) return 0;
    memset(&address, 0, sizeof address);
    length = sizeof address;
    if (getsockname(socket, (struct sockaddr *)&address, &length) != 0 || address.sun_family != AF_UNIX) return 0;
    if (strncmp(address.sun_path, path, sizeof address.sun_path) != 0) return 0;
    // The other end of a socket that connected is the listener, whose name it connected to. A client can give its own
    // socket the agent's name, in a mount namespace of its own, and connect it to any service of the machine: that
    // service's process would then count as one that connected to the agent.
    length = sizeof address;
    if (getpeername(socket, (struct sockaddr *)&address, &length) != 0) return 0;
    return length <= sizeof address.sun_family;
}

int activation_signal(int process_descriptor, int number) {
    return (int)syscall(SYS_pidfd_send_signal, process_descriptor, number, (void *)0, 0);
}

unsigned long long activation_process_identity(int process_descriptor) {
    // PID_FS_MAGIC of include/uapi/linux/magic.h, which older headers lack.
    const unsigned int process_files = 0x50494446;
    struct statfs system;
    struct stat status;
    if (fstatfs(process_descriptor, &system) != 0 || (unsigned int)system.f_type != process_files) return 0;
    return fstat(process_descriptor, &status) == 0 ? status.st_ino : 0;
}

int activation_pass_socket(const char *path, char *const *arguments) {
    char number[12];
    write_number(number, (int)getpid());
    // Above its place, so that what is opened then gets the lowest, which it leaves.
    int socket = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 4);
    if (socket < 0 || close(STDIN_FILENO) != 0 || open("/dev/null", O_RDONLY) != STDIN_FILENO) return -1;
    if (dup2(socket, 3) < 0) return -1;
    if (setenv("LISTEN_PID", number, 1) != 0) return -1;
    return execv(path, arguments);
}

int activation_open_group_file(const char *directory, const char *file, int flags) {
    // CGROUP2_SUPER_MAGIC of include/uapi/linux/magic.h.
    const unsigned int control_groups = 0x63677270;
    struct open_how how = {.flags = O_PATH | O_DIRECTORY | O_CLOEXEC, .resolve = RESOLVE_NO_SYMLINKS};
    int folder = (int)syscall(SYS_openat2, AT_FDCWD, directory, &how, sizeof how);
    if (folder < 0) return -1;
    struct statfs system;
    int found = fstatfs(folder, &system) == 0 && (unsigned int)system.f_type == control_groups;
    // Nothing can be mounted on a single file of a group: what is in the directory is of its file system.
    int opened = found ? openat(folder, file, flags | O_NOFOLLOW | O_CLOEXEC) : -2;
    int code = errno;
    close(folder);
    errno = code;
    return opened;
}

int activation_reap(int process_descriptor, int *killed, int *status) {
    siginfo_t info;
    memset(&info, 0, sizeof info);
    if (waitid(P_PIDFD, (id_t)process_descriptor, &info, WEXITED | WNOHANG) != 0) return -1;
    if (info.si_pid == 0) return 0;
    *killed = info.si_code != CLD_EXITED;
    *status = info.si_status;
    return 1;
}
