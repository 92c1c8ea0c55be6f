// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE

#include "CBench.h"
#include "Securing.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { capacity = 65536, bench_message_size = 16384 };

struct bench_stamper {
    int descriptor;
    enum bench_source source;
    char end;
    atomic_size_t count;
    int64_t stamps[capacity];
    // What was accepted, stamp by stamp, up to `closed` closed again.
    int connections[capacity];
    size_t closed;
    struct bench_identity *identity;
    pthread_mutex_t lock;
    char last[bench_message_size];
};

// The TCP header of an IPv4 packet, if it has one.
static const struct tcphdr *tcp_header(const unsigned char *bytes, size_t count) {
    const struct iphdr *ip = (const struct iphdr *)bytes;
    if (count < sizeof *ip || ip->protocol != IPPROTO_TCP) return NULL;
    size_t start = ip->ihl * 4u;
    return count < start + sizeof(struct tcphdr) ? NULL : (const struct tcphdr *)(bytes + start);
}

static bool accepts(const struct bench_stamper *stamper) {
    switch (stamper->source) {
    case BENCH_CONNECTIONS:
    case BENCH_SESSIONS:
    case BENCH_ANSWERS: return true;
    case BENCH_NOTICES:
    case BENCH_MESSAGES:
    case BENCH_SYNS:
    case BENCH_ENDS: return false;
    }
    return false;
}

static bool counts(const struct bench_stamper *stamper, const unsigned char *bytes, size_t count) {
    const struct tcphdr *tcp = NULL;
    switch (stamper->source) {
    case BENCH_MESSAGES: return memchr(bytes, stamper->end, count) != NULL;
    case BENCH_SYNS: return (tcp = tcp_header(bytes, count)) != NULL && tcp->syn && !tcp->ack;
    case BENCH_ENDS: return (tcp = tcp_header(bytes, count)) != NULL && (tcp->fin || tcp->rst);
    case BENCH_NOTICES:
    case BENCH_CONNECTIONS:
    case BENCH_SESSIONS:
    case BENCH_ANSWERS: return true;
    }
    return false;
}

// Does what comes before an accepted connection counts, and says when it did.
static bool begin(const struct bench_stamper *stamper, int connection, int64_t *at) {
    struct asking_answer answer = {0};
    int64_t sent_at;
    if (stamper->source == BENCH_SESSIONS && !bench_secure(connection, stamper->identity)) return false;
    if (stamper->source == BENCH_ANSWERS && asking_ask(connection, 1, 2, &sent_at, &answer) != ASKING_ANSWERED)
        return false;
    *at = stamper->source == BENCH_ANSWERS ? answer.read_at : bench_now();
    return true;
}

// Keeps the beginning of the last message among some that were read; the byte that ends it is none of it.
static void keep(struct bench_stamper *stamper, const char *bytes, size_t count) {
    const char *end = memrchr(bytes, stamper->end, count);
    const char *before = end == bytes ? NULL : memrchr(bytes, stamper->end, (size_t)(end - bytes));
    const char *start = before == NULL ? bytes : before + 1;
    size_t size = (size_t)(end - start) < bench_message_size ? (size_t)(end - start) : bench_message_size - 1;
    pthread_mutex_lock(&stamper->lock);
    memcpy(stamper->last, start, size);
    stamper->last[size] = 0;
    pthread_mutex_unlock(&stamper->lock);
}

static void *run(void *argument) {
    struct bench_stamper *stamper = argument;
    unsigned char bytes[65536];
    for (;;) {
        ssize_t count = accepts(stamper)
            ? accept4(stamper->descriptor, NULL, NULL, SOCK_CLOEXEC)
            : read(stamper->descriptor, bytes, sizeof bytes);
        int64_t now = bench_now();
        if (accepts(stamper) && count >= 0 && !begin(stamper, (int)count, &now)) {
            close((int)count);
            continue;
        }
        if (count < 0 && (errno == EINTR || errno == ENOBUFS)) continue;
        // The other end is gone; whoever waits for a stamp says so.
        if (count < 0 || (count == 0 && stamper->source == BENCH_MESSAGES)) return NULL;
        size_t index = atomic_load_explicit(&stamper->count, memory_order_relaxed);
        if (index == capacity || !counts(stamper, bytes, (size_t)count)) continue;
        stamper->stamps[index] = now;
        if (accepts(stamper)) stamper->connections[index] = (int)count;
        if (stamper->source == BENCH_MESSAGES) keep(stamper, (const char *)bytes, (size_t)count);
        atomic_store_explicit(&stamper->count, index + 1, memory_order_release);
    }
}

static struct bench_stamper *start(
    int descriptor, enum bench_source source, char end, struct bench_identity *identity) {
    struct bench_stamper *stamper = calloc(1, sizeof *stamper);
    if (stamper == NULL) return NULL;
    stamper->descriptor = descriptor;
    stamper->source = source;
    stamper->end = end;
    stamper->identity = identity;
    pthread_mutex_init(&stamper->lock, NULL);
    pthread_t thread;
    if (pthread_create(&thread, NULL, run, stamper) != 0) {
        free(stamper);
        return NULL;
    }
    pthread_detach(thread);
    return stamper;
}

struct bench_stamper *bench_start_stamper(int descriptor, enum bench_source source, char end) {
    return start(descriptor, source, end, NULL);
}

struct bench_stamper *bench_start_securing(int descriptor, struct bench_identity *identity) {
    return start(descriptor, BENCH_SESSIONS, 0, identity);
}

void bench_close_connections(struct bench_stamper *stamper) {
    size_t count = bench_stamp_count(stamper);
    while (stamper->closed < count) close(stamper->connections[stamper->closed++]);
}

size_t bench_stamp_count(const struct bench_stamper *stamper) {
    return atomic_load_explicit(&stamper->count, memory_order_acquire);
}

int64_t bench_stamp(const struct bench_stamper *stamper, size_t index) { return stamper->stamps[index]; }

bool bench_last_contains(struct bench_stamper *stamper, const char *text) {
    pthread_mutex_lock(&stamper->lock);
    bool does = strstr(stamper->last, text) != NULL;
    pthread_mutex_unlock(&stamper->lock);
    return does;
}

// Binds a new socket, or closes it.
static int bound(int descriptor, const void *address, socklen_t length) {
    if (descriptor < 0 || bind(descriptor, address, length) == 0) return descriptor;
    int code = errno;
    close(descriptor);
    errno = code;
    return -1;
}

int bench_open_notices(void) {
    struct sockaddr_nl address = {
        .nl_family = AF_NETLINK,
        .nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR | RTMGRP_IPV4_ROUTE | RTMGRP_IPV6_ROUTE |
                     RTMGRP_IPV4_RULE,
    };
    return bound(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE), &address, sizeof address);
}

int bench_open_packets(void) { return socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC, htons(ETH_P_IP)); }

int bench_open_listener(uint16_t port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    int descriptor = bound(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), &address, sizeof address);
    if (descriptor >= 0 && listen(descriptor, 4096) != 0) return -1;
    return descriptor;
}

int bench_accept(int listener) {
    struct pollfd wait = {.fd = listener, .events = POLLIN};
    if (poll(&wait, 1, 5000) == 1) return accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    errno = ETIMEDOUT;
    return -1;
}

int bench_call(const char *path, const char *method) {
    char text[256];
    int length = snprintf(text, sizeof text, "{\"method\":\"%s\"}", method) + 1;
    int agent = bench_connect_unix(path);
    if (agent < 0) return -1;
    ssize_t count = send(agent, text, (size_t)length, MSG_NOSIGNAL);
    char reply[65536];
    do {
        count = count > 0 ? recv(agent, reply, sizeof reply, 0) : -1;
    } while (count > 0 && reply[count - 1] != 0);
    close(agent);
    return count > 0 ? 0 : -1;
}

int bench_connect_unix(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strncpy(address.sun_path, path, sizeof address.sun_path - 1);
    int descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (descriptor < 0 || connect(descriptor, (struct sockaddr *)&address, sizeof address) == 0) return descriptor;
    int code = errno;
    close(descriptor);
    errno = code;
    return -1;
}

int bench_open_changer(void) {
    struct sockaddr_nl address = {.nl_family = AF_NETLINK};
    return bound(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE), &address, sizeof address);
}

struct request {
    struct nlmsghdr header;
    struct rtmsg route;
    char attributes[64];
};

static void put(struct request *request, unsigned short type, uint32_t value) {
    struct rtattr *attribute = (struct rtattr *)((char *)request + NLMSG_ALIGN(request->header.nlmsg_len));
    attribute->rta_type = type;
    attribute->rta_len = RTA_LENGTH(sizeof value);
    memcpy(RTA_DATA(attribute), &value, sizeof value);
    request->header.nlmsg_len = NLMSG_ALIGN(request->header.nlmsg_len) + RTA_ALIGN(attribute->rta_len);
}

// The request to add or remove `route`, unless it is there or not there already.
static struct request request(const struct bench_route *route, bool add) {
    struct request request = {
        .header = {
            .nlmsg_len = NLMSG_LENGTH(sizeof(struct rtmsg)),
            .nlmsg_type = add ? RTM_NEWROUTE : RTM_DELROUTE,
            .nlmsg_flags = NLM_F_REQUEST | (add ? NLM_F_CREATE | NLM_F_EXCL : 0),
        },
        .route = {
            .rtm_family = AF_INET,
            .rtm_dst_len = route->length,
            .rtm_table = RT_TABLE_MAIN,
            .rtm_protocol = add ? RTPROT_STATIC : 0,
            .rtm_scope = add ? RT_SCOPE_UNIVERSE : RT_SCOPE_NOWHERE,
            .rtm_type = add ? RTN_UNICAST : 0,
        },
    };
    if (route->length > 0) put(&request, RTA_DST, htonl(route->prefix));
    put(&request, RTA_GATEWAY, htonl(route->gateway));
    if (route->metric > 0) put(&request, RTA_PRIORITY, route->metric);
    return request;
}

// Sends requests that lie end to end. Nothing comes back but a refusal, and that is there by now.
static int change(int changer, const void *requests, size_t size) {
    if (send(changer, requests, size, 0) < 0) return -1;
    struct { struct nlmsghdr header; struct nlmsgerr error; char rest[512]; } answer;
    if (recv(changer, &answer, sizeof answer, MSG_DONTWAIT) < 0) return errno == EAGAIN ? 0 : -1;
    errno = answer.header.nlmsg_type == NLMSG_ERROR ? -answer.error.error : EPROTO;
    return errno == 0 ? 0 : -1;
}

int bench_change_route(int changer, const struct bench_route *route, bool add) {
    struct request single = request(route, add);
    return change(changer, &single, single.header.nlmsg_len);
}

// The route to the prefix that lies `number` prefixes of the same length after that of `first`.
static struct bench_route following(const struct bench_route *first, uint32_t number) {
    struct bench_route route = *first;
    route.prefix += number << (32 - first->length);
    return route;
}

int bench_add_routes(int changer, const struct bench_route *first, uint32_t count) {
    // The kernel copies what is sent into one buffer, and takes some 200 KiB.
    static char batch[64 * 1024];
    size_t size = 0;
    for (uint32_t number = 0; number < count; number++) {
        struct bench_route route = following(first, number);
        struct request next = request(&route, true);
        memcpy(batch + size, &next, next.header.nlmsg_len);
        size += NLMSG_ALIGN(next.header.nlmsg_len);
        if (size + sizeof next <= sizeof batch && number + 1 < count) continue;
        if (change(changer, batch, size) != 0) return -1;
        size = 0;
    }
    return 0;
}

int bench_churn_routes(int changer, const struct bench_route *first, uint32_t count, uint32_t bursts) {
    enum { burst = 10, nanoseconds = 1000000 };
    struct timespec next;
    clock_gettime(CLOCK_MONOTONIC, &next);
    uint32_t number = 0;
    for (uint32_t done = 0; done < bursts; done++) {
        // One system call each, as a routing daemon makes them; removed and added again one after the other.
        for (int half = 0; half < burst; half++) {
            struct bench_route route = following(first, number);
            if (bench_change_route(changer, &route, half % 2) != 0) return -1;
            if (half % 2) number = (number + 1) % count;
        }
        next.tv_nsec += nanoseconds;
        if (next.tv_nsec >= 1000000000) {
            next.tv_nsec -= 1000000000;
            next.tv_sec++;
        }
        // Late ones follow without a pause, so that the pace holds.
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
    }
    return 0;
}
