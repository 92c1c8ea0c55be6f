// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE

#include "CLabSupport.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

int clab_enter_new_network(void) {
    if (unshare(CLONE_NEWNET | CLONE_NEWNS) != 0) return -1;
    // Private first, or the mount below would appear in the namespace this thread came from.
    if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0) return -1;
    // A sysfs shows the network namespace of whoever mounted it. The kernel refuses it to a user namespace in which
    // parts of the outer /sys are hidden (as in some containers); the Lab works without.
    (void)mount("sysfs", "/sys", "sysfs", MS_NOSUID | MS_NOEXEC | MS_NODEV, NULL);
    return 0;
}

int clab_enter_network(int descriptor) { return setns(descriptor, CLONE_NEWNET); }

pid_t clab_thread_id(void) { return gettid(); }

// What the child does before it becomes the program; returns only on failure. It shares its parent's memory (vfork),
// so it calls nothing but the kernel and execvp, which does not allocate.
static void become(char *const argv[], const int standard[3]) {
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return;
    for (int signal = 1; signal < NSIG; signal++) {
        struct sigaction action;
        if (sigaction(signal, NULL, &action) != 0 || action.sa_handler == SIG_DFL) continue;
        action.sa_handler = SIG_DFL;
        (void)sigaction(signal, &action, NULL);
    }
    // Copies above 2 first: one of the three may itself be numbered 0, 1 or 2 and be overwritten by another.
    int copies[3];
    for (int i = 0; i < 3; i++) {
        if ((copies[i] = fcntl(standard[i], F_DUPFD, 3)) < 0) return;
    }
    for (int i = 0; i < 3; i++) {
        if (dup2(copies[i], i) < 0) return;
    }
    if (close_range(3, ~0U, 0) != 0) return;
    sigset_t none;
    sigemptyset(&none);
    if (sigprocmask(SIG_SETMASK, &none, NULL) != 0) return;
    execvp(argv[0], argv);
}

pid_t clab_spawn(char *const argv[], int input, int output, int error) {
    const int standard[3] = {input, output, error};
    volatile int failure = 0;
    sigset_t all, before;
    sigfillset(&all);
    // No signal handler of the parent may run in the child while the two share memory.
    pthread_sigmask(SIG_SETMASK, &all, &before);
    // vfork, not fork: it costs the same however large the test process has grown.
    pid_t pid = vfork();
    if (pid == 0) {
        become(argv, standard);
        failure = errno;
        _exit(127);
    }
    int code = pid < 0 ? errno : failure;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (code == 0) return pid;
    if (pid > 0) (void)syscall(SYS_wait4, pid, NULL, 0, NULL);
    errno = code;
    return -1;
}

int clab_watch_exit(pid_t pid) { return (int)syscall(SYS_pidfd_open, pid, 0); }

int clab_attach_tun(const char *name) {
    int descriptor = open("/dev/net/tun", O_RDWR | O_CLOEXEC);
    if (descriptor < 0) return -1;
    struct ifreq request = {.ifr_flags = IFF_TUN | IFF_NO_PI};
    strncpy(request.ifr_name, name, IFNAMSIZ - 1);
    if (ioctl(descriptor, TUNSETIFF, &request) == 0) return descriptor;
    int code = errno;
    close(descriptor);
    errno = code;
    return -1;
}

// The bare system call: the C library's would change every thread of the process.
static int become_user(uid_t user) { return (int)syscall(SYS_setresuid, -1, user, -1); }

// Root again; a thread that cannot be is of no use to anybody. Keeps errno.
static void become_root(void) {
    int code = errno;
    if (become_user(0) != 0) _exit(127);
    errno = code;
}

int clab_socket_pair_as(uid_t user, int pair[2]) {
    if (become_user(user) != 0) return -1;
    int result = socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair);
    become_root();
    return result;
}

int clab_connect_as(uid_t user, int descriptor, const struct sockaddr *address, socklen_t length) {
    if (become_user(user) != 0) return -1;
    int result = connect(descriptor, address, length);
    become_root();
    return result;
}
