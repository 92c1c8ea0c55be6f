// SPDX-License-Identifier: Apache-2.0
//
// A user of the agent's socket who wants too much, and one beside who wants little:
//
//   lab-neighbour SOCKET beside ATTACK CONNECTIONS CALLS   what it is like beside the greedy one
//   lab-neighbour SOCKET garbage CONNECTIONS               leaves connections behind that no process has
//   lab-neighbour SOCKET hold CONNECTIONS                  opens so many and keeps them until its input ends
//   lab-neighbour SOCKET unread CONNECTIONS                likewise, with answers on each of them that it does not read
//   lab-neighbour SOCKET linger                            sends what takes long to close, and stays until its input ends
//   lab-neighbour SOCKET lock DIRECTORY                    takes a connection, keeps its socket locked and has it closed;
//                                                          until its input ends
//
// ATTACK is one of: explain, deep, keys, list, churn, none. The greedy user is 65533 and the other one 65532 where this
// is started as root; otherwise both are the one that starts it. It ends by itself within two minutes.
#define _GNU_SOURCE

#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { GREEDY = 65533, MODEST = 65532, DEPTH = 30000, KEYS = 4800, MOST_CALLS = 4096 };

// How many calls of one connection wait for their answers. More would stay in the client's socket.
enum { PIPELINED = 4 };

// The most descriptors that the kernel lets ride on one message (SCM_MAX_FD).
enum { MOST_RIGHTS = 253 };

// For so many seconds a call waits for its answer, before it counts as one that nobody served.
enum { PATIENCE = 10 };

// For so many milliseconds the modest one makes new calls, however few they have become: a figure that comes late is none.
enum { LONGEST_STAY = 20000 };

static const char *path;

static void fail(const char *operation) {
    fprintf(stderr, "lab-neighbour: %s: %s\n", operation, strerror(errno));
    exit(71);
}

static void become(uid_t user) {
    if (geteuid() == 0 && syscall(SYS_setresuid, user, user, user) != 0) fail("becoming another user");
}

static int make_connection(int flags) {
    int number = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);
    if (number < 0) return -1;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    struct timeval patience = {.tv_sec = PATIENCE};
    setsockopt(number, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setsockopt(number, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    if (connect(number, (struct sockaddr *)&address, sizeof address) == 0) return number;
    close(number);
    return -1;
}

// The call that the greedy one repeats, with its NUL; returns its length.
static size_t make_call(const char *attack, char *call, size_t room) {
    char *end = call;
    if (strcmp(attack, "deep") == 0) {
        end = stpcpy(end, "{\"method\":\"org.varlink.service.GetInfo\",\"parameters\":{\"x\":");
        memset(end, '[', DEPTH);
        memset(end + DEPTH, ']', DEPTH);
        end = stpcpy(end + 2 * DEPTH, "}}");
    } else if (strcmp(attack, "keys") == 0) {
        end = stpcpy(end, "{\"method\":\"org.dialtone.Network.GetPath\",\"parameters\":{");
        for (int i = 0; i < KEYS; i++) end += sprintf(end, "%s\"k%d\":1", i > 0 ? "," : "", i);
        end = stpcpy(end, "}}");
    } else if (strcmp(attack, "list") == 0) {
        end = stpcpy(end, "{\"method\":\"org.dialtone.Connections.List\"}");
    } else if (strcmp(attack, "churn") == 0) {
        // Two calls, two answers; what is opened is refused at once by this machine.
        end = stpcpy(end, "{\"method\":\"org.dialtone.Connections.Open\",\"parameters\":"
                          "{\"remote\":\"tcp://127.0.0.1:1\",\"name\":\"churn\"}}");
        *end++ = 0;
        end = stpcpy(end, "{\"method\":\"org.dialtone.Connections.Close\",\"parameters\":{\"name\":\"churn\"}}");
    } else {
        end = stpcpy(end, "{\"method\":\"org.dialtone.Network.Explain\",\"parameters\":{\"target\":"
                          "{\"host\":\"127.0.0.1\"}}}");
    }
    *end++ = 0;
    if ((size_t)(end - call) > room) fail("a call too long");
    return (size_t)(end - call);
}

struct greedy {
    int number;
    // How many calls were written, the last one up to `offset`; and how many answers came.
    unsigned long asked, answered;
    size_t offset;
};

static void ask(struct greedy *one, const char *call, size_t length, unsigned per_call) {
    while (one->asked * per_call < one->answered + PIPELINED * per_call) {
        ssize_t count = send(one->number, call + one->offset, length - one->offset, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (count <= 0) return;
        one->offset += (size_t)count;
        if (one->offset < length) return;
        one->offset = 0;
        one->asked++;
    }
}

// Asks for ever on so many connections, and counts the answers.
static void be_greedy(const char *attack, int connections, int ready, atomic_ulong *answers) {
    static char call[2 * DEPTH + 65536], room[65536];
    size_t length = make_call(attack, call, sizeof call);
    unsigned per_call = 0;
    for (size_t i = 0; i < length; i++) per_call += call[i] == 0;
    become(GREEDY);
    int poll = epoll_create1(EPOLL_CLOEXEC);
    struct greedy *all = calloc((size_t)connections, sizeof *all);
    if (poll < 0 || all == NULL) fail("beginning");
    int made = 0;
    for (int i = 0; i < connections; i++) {
        all[i].number = make_connection(0);
        if (all[i].number < 0) continue;
        struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLET, .data.ptr = &all[i]};
        if (epoll_ctl(poll, EPOLL_CTL_ADD, all[i].number, &event) != 0) fail("watching");
        made++;
    }
    if (write(ready, &made, sizeof made) != sizeof made) _exit(71);
    struct epoll_event events[64];
    for (;;) {
        int count = epoll_wait(poll, events, 64, -1);
        for (int i = 0; i < count; i++) {
            struct greedy *one = events[i].data.ptr;
            ssize_t bytes;
            while ((bytes = recv(one->number, room, sizeof room, MSG_DONTWAIT)) > 0) {
                unsigned long ends = 0;
                for (ssize_t j = 0; j < bytes; j++) ends += room[j] == 0;
                one->answered += ends;
                atomic_fetch_add(answers, ends);
            }
            if (bytes == 0 || (bytes < 0 && errno != EAGAIN)) {
                // Hung up on: once more.
                close(one->number);
                *one = (struct greedy){.number = make_connection(SOCK_NONBLOCK)};
                struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLET, .data.ptr = one};
                if (one->number >= 0) epoll_ctl(poll, EPOLL_CTL_ADD, one->number, &event);
                atomic_fetch_add(answers, 1);
                continue;
            }
            ask(one, call, length, per_call);
        }
    }
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6;
}

static int compare(const void *one, const void *other) {
    double left = *(const double *)one, right = *(const double *)other;
    return left < right ? -1 : left > right;
}

// Whether a call is answered, on `*number` or, where that was hung up on, nowhere.
static int is_answered(int number) {
    static const char call[] = "{\"method\":\"org.varlink.service.GetInfo\"}";
    char room[8192];
    if (send(number, call, sizeof call, MSG_NOSIGNAL) != sizeof call) return 0;
    for (;;) {
        ssize_t bytes = recv(number, room, sizeof room, 0);
        if (bytes <= 0) return 0;
        if (room[bytes - 1] == 0) return 1;
    }
}

// Calls so often, on one connection and, for every eighth call, on a new one; prints what that was like.
static void be_modest(const char *word, int calls, atomic_ulong *answers) {
    static double took[MOST_CALLS], between[MOST_CALLS];
    int steady = make_connection(0), served = 0, made = 0;
    double end = now() + LONGEST_STAY;
    for (; made < calls && now() < end; made++) {
        int i = made;
        unsigned long before = atomic_load(answers);
        double begun = now();
        int number = i % 8 == 7 ? make_connection(0) : steady;
        int answered = number >= 0 && is_answered(number);
        if (answered) {
            took[served] = now() - begun;
            between[served] = (double)(atomic_load(answers) - before);
            served++;
        }
        if (number >= 0 && number != steady) close(number);
        // What is answered late must not be taken for the next answer.
        if (!answered && number == steady) {
            close(steady);
            steady = make_connection(0);
        }
        usleep(2000);
    }
    qsort(took, (size_t)served, sizeof *took, compare);
    qsort(between, (size_t)served, sizeof *between, compare);
    int last = served > 0 ? served - 1 : 0;
    // The middle of what the greedy one got meanwhile, so that a hiccup of this machine's decides nothing.
    printf("%s calls=%d served=%d p50=%.3f p99=%.3f max=%.3f between=%.0f\n", word, made, served, took[last / 2],
           took[last * 99 / 100], took[last], between[last / 2]);
    fflush(stdout);
}

static void live_beside(const char *attack, int connections, int calls) {
    atomic_ulong *answers = mmap(NULL, sizeof *answers, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int ends[2];
    if (answers == MAP_FAILED || pipe(ends) != 0) fail("beginning");
    pid_t greedy = 0;
    pid_t modest = fork();
    if (modest < 0) fail("forking");
    if (modest == 0) {
        alarm(120);
        become(MODEST);
        be_modest("alone", calls, answers);
        _exit(0);
    }
    int status;
    waitpid(modest, &status, 0);
    if (strcmp(attack, "none") != 0) {
        greedy = fork();
        if (greedy < 0) fail("forking");
        if (greedy == 0) {
            alarm(120);
            be_greedy(attack, connections, ends[1], answers);
        }
        int made = 0;
        if (read(ends[0], &made, sizeof made) != sizeof made) fail("waiting for the greedy one");
        printf("connected=%d\n", made);
        fflush(stdout);
        // It is at work when so many were answered, or when nothing more comes of it.
        for (int i = 0; i < 200 && atomic_load(answers) < (unsigned long)connections; i++) usleep(10000);
    }
    modest = fork();
    if (modest < 0) fail("forking");
    if (modest == 0) {
        alarm(120);
        become(MODEST);
        be_modest("beside", calls, answers);
        _exit(0);
    }
    waitpid(modest, &status, 0);
    if (greedy > 0) {
        kill(greedy, SIGKILL);
        waitpid(greedy, NULL, 0);
    }
    printf("answers=%lu\n", atomic_load(answers));
}

// Sends a connection over itself, and others with it: closed here, they are held by messages that wait on one another.
static void leave_garbage(int connections) {
    become(GREEDY);
    static const char call[] = "{\"method\":\"org.dialtone.Connections.Monitor\",\"more\":true}";
    int made = 0, cycle = make_connection(0);
    if (cycle < 0) fail("connecting");
    if (send(cycle, call, sizeof call, MSG_NOSIGNAL) != sizeof call) fail("asking");
    char room[65536];
    if (recv(cycle, room, sizeof room, 0) <= 0) fail("the stream");
    while (made < connections) {
        int numbers[MOST_RIGHTS], taken = 0;
        for (; taken < MOST_RIGHTS && made + taken < connections; taken++) {
            numbers[taken] = made + taken == 0 ? dup(cycle) : make_connection(SOCK_NONBLOCK);
            if (numbers[taken] < 0) break;
        }
        char byte = ' ', control[CMSG_SPACE(sizeof numbers)] = {0};
        struct iovec vector = {.iov_base = &byte, .iov_len = 1};
        struct msghdr header = {.msg_iov = &vector,
                                .msg_iovlen = 1,
                                .msg_control = control,
                                .msg_controllen = CMSG_SPACE((size_t)taken * sizeof *numbers)};
        struct cmsghdr *message = CMSG_FIRSTHDR(&header);
        message->cmsg_level = SOL_SOCKET;
        message->cmsg_type = SCM_RIGHTS;
        message->cmsg_len = CMSG_LEN((size_t)taken * sizeof *numbers);
        memcpy(CMSG_DATA(message), numbers, (size_t)taken * sizeof *numbers);
        int sent = taken > 0 && sendmsg(cycle, &header, MSG_NOSIGNAL | MSG_DONTWAIT) == 1;
        for (int i = 0; i < taken; i++) close(numbers[i]);
        if (!sent) break;
        made += taken;
    }
    printf("left=%d\n", made);
}

// A socket whose last close waits for a thousand seconds, since its peer takes nothing of what was written.
static int make_lingering(void) {
    static char bytes[65536];
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), near = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    if (bind(listener, (struct sockaddr *)&address, length) != 0 || listen(listener, 1) != 0 ||
        getsockname(listener, (struct sockaddr *)&address, &length) != 0 ||
        connect(near, (struct sockaddr *)&address, length) != 0 || accept(listener, NULL, NULL) < 0)
        fail("connecting a socket that lingers");
    while (send(near, bytes, sizeof bytes, MSG_DONTWAIT) > 0) {}
    struct linger linger = {.l_onoff = 1, .l_linger = 1000};
    setsockopt(near, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
    return near;
}

// Sends bytes with a descriptor on the first, which is closed here.
static void pass(int number, int passed, const char *bytes, size_t length, int flags) {
    char control[CMSG_SPACE(sizeof passed)] = {0};
    struct iovec vector = {.iov_base = (void *)bytes, .iov_len = length};
    struct msghdr header = {
        .msg_iov = &vector, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    struct cmsghdr *message = CMSG_FIRSTHDR(&header);
    message->cmsg_level = SOL_SOCKET;
    message->cmsg_type = SCM_RIGHTS;
    message->cmsg_len = CMSG_LEN(sizeof passed);
    memcpy(CMSG_DATA(message), &passed, sizeof passed);
    if (sendmsg(number, &header, MSG_NOSIGNAL | flags) != (ssize_t)length) fail("passing a descriptor");
    close(passed);
}

// Sends a socket that lingers: by itself, in the queue of another socket, and out of band.
static void linger(void) {
    static const char call[] = "{\"method\":\"org.varlink.service.GetInfo\"}";
    become(GREEDY);
    int first = make_connection(0), second = make_connection(0), third = make_connection(0), ends[2];
    if (first < 0 || second < 0 || third < 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) fail("connecting");
    pass(first, make_lingering(), call, sizeof call, 0);
    pass(ends[1], make_lingering(), " ", 1, 0);
    close(ends[1]);
    pass(second, ends[0], call, sizeof call, 0);
    pass(third, make_lingering(), " ", 1, MSG_OOB);
    send(third, call, sizeof call, MSG_NOSIGNAL);
    printf("sent\n");
    fflush(stdout);
    char byte;
    while (read(0, &byte, 1) > 0) {}
}

// Asks for much on so many connections, begins one more call on each, and reads nothing.
static void leave_unread(int connections) {
    static const char call[] = "{\"method\":\"org.varlink.service.GetInterfaceDescription\",\"parameters\":"
                               "{\"interface\":\"org.dialtone.Connections\"}}";
    static char more[60000];
    become(GREEDY);
    memset(more, 'x', sizeof more);
    int *all = calloc((size_t)connections, sizeof *all), made = 0, waiting = 0;
    if (all == NULL) fail("beginning");
    for (int i = 0; i < connections; i++) {
        int number = make_connection(SOCK_NONBLOCK), sent = 0;
        if (number < 0) continue;
        for (; sent < 20 && send(number, call, sizeof call, MSG_NOSIGNAL) == sizeof call; sent++) {}
        send(number, more, sizeof more, MSG_NOSIGNAL);
        all[made++] = number;
    }
    // Until each has what its socket takes, of which no more comes, or was hung up on.
    for (int i = 0; i < made; i++) {
        char byte;
        int unread = 0, before = -1;
        errno = 0;
        while (recv(all[i], &byte, 1, MSG_PEEK | MSG_DONTWAIT) != 0 && errno != ECONNRESET &&
               ioctl(all[i], FIONREAD, &unread) == 0 && (unread == 0 || unread != before)) {
            before = unread;
            usleep(10000);
        }
        // What is turned away gets a refusal of some hundred bytes.
        waiting += unread > 1024;
    }
    printf("asked=%d waiting=%d\n", made, waiting);
    fflush(stdout);
    char byte;
    while (read(0, &byte, 1) > 0) {}
}

// Answers all that the kernel asks of a file system with one file, but for the file's content: of that it tells `asked`.
static void serve_files(int device, int asked) {
    static char request[FUSE_MIN_READ_BUFFER + 4096];
    for (;;) {
        ssize_t count = read(device, request, sizeof request);
        if (count < 0 && errno == ENODEV) _exit(0);
        if (count < (ssize_t)sizeof(struct fuse_in_header)) continue;
        const struct fuse_in_header *in = (const void *)request;
        struct {
            struct fuse_out_header header;
            union {
                struct fuse_init_out init;
                struct fuse_entry_out entry;
                struct fuse_attr_out attributes;
                struct fuse_open_out open;
            };
        } out = {.header = {.len = sizeof out.header, .unique = in->unique}};
        int is_file = in->opcode == FUSE_LOOKUP || in->nodeid == 2;
        struct fuse_attr attributes = {.ino = is_file ? 2 : 1,
                                       .size = is_file ? 65536 : 0,
                                       .mode = is_file ? S_IFREG | 0444 : S_IFDIR | 0755,
                                       .nlink = 1,
                                       .blksize = 4096};
        switch (in->opcode) {
        case FUSE_INIT:
            out.init = (struct fuse_init_out){.major = FUSE_KERNEL_VERSION, .minor = FUSE_KERNEL_MINOR_VERSION, .max_write = 4096};
            out.header.len += sizeof out.init;
            break;
        case FUSE_LOOKUP:
            out.entry = (struct fuse_entry_out){.nodeid = 2, .entry_valid = 1000, .attr_valid = 1000, .attr = attributes};
            out.header.len += sizeof out.entry;
            break;
        case FUSE_GETATTR:
            out.attributes = (struct fuse_attr_out){.attr_valid = 1000, .attr = attributes};
            out.header.len += sizeof out.attributes;
            break;
        case FUSE_OPEN: out.header.len += sizeof out.open; break;
        case FUSE_READ: if (write(asked, "r", 1) != 1) _exit(71); continue;
        case FUSE_FLUSH:
        case FUSE_RELEASE: break;
        case FUSE_FORGET:
        case FUSE_INTERRUPT: continue;
        default: out.header.error = -ENOSYS;
        }
        if (write(device, &out, out.header.len) < 0 && errno == ENODEV) _exit(0);
    }
}

// A call, its answer in `room`, and the descriptor that came with it, or -1.
static int call_for(int number, const char *text, char *room, size_t size) {
    if (send(number, text, strlen(text) + 1, MSG_NOSIGNAL) < 0) fail("calling");
    int passed = -1;
    for (size_t length = 0; length == 0 || room[length - 1] != 0;) {
        char control[CMSG_SPACE(sizeof passed)];
        struct iovec vector = {.iov_base = room + length, .iov_len = size - length};
        struct msghdr header = {
            .msg_iov = &vector, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
        ssize_t count = recvmsg(number, &header, MSG_CMSG_CLOEXEC);
        if (count <= 0) fail("waiting for an answer");
        struct cmsghdr *message = CMSG_FIRSTHDR(&header);
        if (message != NULL && message->cmsg_type == SCM_RIGHTS) memcpy(&passed, CMSG_DATA(message), sizeof passed);
        length += (size_t)count;
    }
    return passed;
}

static int taken;
static void *page;

// The kernel copies the page with the socket locked, and waits for it.
static void *send_nothing(void *unused) {
    (void)unused;
    send(taken, page, 4096, MSG_NOSIGNAL);
    return NULL;
}

// Keeps the socket of a connection locked by a send of a page that never comes.
static void lock_socket(const char *directory) {
    char text[512], room[65536], byte;
    int device = open("/dev/fuse", O_RDWR | O_CLOEXEC), asked[2];
    snprintf(text, sizeof text, "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other", device);
    if (device < 0 || pipe(asked) != 0 || unshare(CLONE_NEWNS) != 0 ||
        mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 || mount("lab", directory, "fuse", 0, text) != 0)
        fail("mounting a file system");
    pid_t server = fork();
    if (server < 0) fail("forking");
    if (server == 0) {
        alarm(120);
        // Who started it is to end it.
        become(GREEDY);
        serve_files(device, asked[1]);
    }
    // Its end, with the last descriptor of the device, ends the file system and whatever waits for it.
    close(device);
    become(GREEDY);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    if (bind(listener, (struct sockaddr *)&address, length) != 0 || listen(listener, 8) != 0 ||
        getsockname(listener, (struct sockaddr *)&address, &length) != 0)
        fail("listening");
    int number = make_connection(0);
    if (number < 0) fail("connecting");
    snprintf(text, sizeof text,
             "{\"method\":\"org.dialtone.Connections.Open\",\"parameters\":{\"remote\":\"tcp://127.0.0.1:%d\",\"name\":\"x\"}}",
             ntohs(address.sin_port));
    call_for(number, text, room, sizeof room);
    if (accept(listener, NULL, NULL) < 0) fail("accepting");
    for (taken = -1; taken < 0; usleep(10000))
        taken = call_for(number, "{\"method\":\"org.dialtone.Connections.Take\",\"parameters\":{\"name\":\"x\"}}", room, sizeof room);
    snprintf(text, sizeof text, "%s/nothing", directory);
    int at_nothing = open(text, O_RDONLY | O_CLOEXEC);
    page = mmap(NULL, 4096, PROT_READ, MAP_SHARED, at_nothing, 0);
    pthread_t thread;
    if (at_nothing < 0 || page == MAP_FAILED || pthread_create(&thread, NULL, send_nothing, NULL) != 0) fail("sending");
    if (read(asked[0], &byte, 1) != 1) fail("waiting for the send");
    printf("locked\n");
    fflush(stdout);
    call_for(number, "{\"method\":\"org.dialtone.Connections.Close\",\"parameters\":{\"name\":\"x\"}}", room, sizeof room);
    printf("closed %s\n", room);
    fflush(stdout);
    while (read(0, &byte, 1) > 0) {}
    if (kill(server, SIGKILL) != 0) fail("ending the file system");
    waitpid(server, NULL, 0);
    pthread_join(thread, NULL);
}

static void hold(int connections) {
    become(GREEDY);
    int made = 0;
    for (int i = 0; i < connections; i++) {
        int number = make_connection(0);
        if (number < 0) break;
        // One that is turned away is closed at once.
        made += is_answered(number);
    }
    printf("held=%d\n", made);
    fflush(stdout);
    char byte;
    while (read(0, &byte, 1) > 0) {}
}

int main(int count, char *arguments[]) {
    alarm(120);
    signal(SIGPIPE, SIG_IGN);
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
    if (count >= 3) path = arguments[1];
    if (count == 6 && strcmp(arguments[2], "beside") == 0) {
        int calls = atoi(arguments[5]);
        live_beside(arguments[3], atoi(arguments[4]), calls < MOST_CALLS ? calls : MOST_CALLS);
    } else if (count == 4 && strcmp(arguments[2], "garbage") == 0) {
        leave_garbage(atoi(arguments[3]));
    } else if (count == 4 && strcmp(arguments[2], "hold") == 0) {
        hold(atoi(arguments[3]));
    } else if (count == 4 && strcmp(arguments[2], "unread") == 0) {
        leave_unread(atoi(arguments[3]));
    } else if (count == 4 && strcmp(arguments[2], "lock") == 0) {
        lock_socket(arguments[3]);
    } else if (count == 3 && strcmp(arguments[2], "linger") == 0) {
        linger();
    } else {
        fputs("usage: lab-neighbour SOCKET beside ATTACK CONNECTIONS CALLS | garbage CONNECTIONS | "
              "hold CONNECTIONS | unread CONNECTIONS | linger | lock DIRECTORY\n",
              stderr);
        return 64;
    }
    return 0;
}
