// SPDX-License-Identifier: Apache-2.0
//
// The agent's client. It looks for the few words that it needs in the agent's JSON.
#define _GNU_SOURCE

#include "Sleeper.h"

#include <CAsking.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

// One conversation: a JSON object and a zero byte each way, descriptors beside it. -1 where there is none.
struct conversation {
    const char *path;
    int socket;
    int descriptor;
    size_t filled, used;
    char buffer[1 << 18];
};

static void hang_up(struct conversation *agent) {
    if (agent->socket >= 0) close(agent->socket);
    agent->socket = -1;
    agent->filled = agent->used = 0;
}

// Sends a call, over a new connection if there is none; as often as it takes.
static void call(struct conversation *agent, const char *text) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s", agent->path);
    for (;; usleep(2000)) {
        if (agent->socket < 0) {
            agent->socket = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
            if (connect(agent->socket, (struct sockaddr *)&address, sizeof address) != 0) {
                hang_up(agent);
                continue;
            }
        }
        if (send(agent->socket, text, strlen(text) + 1, MSG_NOSIGNAL) > 0) return;
        hang_up(agent);
    }
}

// The next message, until the one after it is asked for; NULL where the agent is gone.
static const char *message(struct conversation *agent) {
    memmove(agent->buffer, agent->buffer + agent->used, agent->filled - agent->used);
    agent->filled -= agent->used;
    agent->used = 0;
    while (memchr(agent->buffer, 0, agent->filled) == NULL) {
        char control[CMSG_SPACE(sizeof(int))];
        struct iovec part = {agent->buffer + agent->filled, sizeof agent->buffer - agent->filled};
        struct msghdr header = {
            .msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
        ssize_t count = recvmsg(agent->socket, &header, MSG_CMSG_CLOEXEC);
        if (count <= 0) {
            hang_up(agent);
            return NULL;
        }
        struct cmsghdr *rights = CMSG_FIRSTHDR(&header);
        if (rights != NULL && rights->cmsg_type == SCM_RIGHTS)
            memcpy(&agent->descriptor, CMSG_DATA(rights), sizeof(int));
        agent->filled += (size_t)count;
    }
    agent->used = strlen(agent->buffer) + 1;
    return agent->buffer;
}

// Calls and returns the answer, if need be from the next agent.
static const char *answer(struct conversation *agent, const char *text) {
    for (;;) {
        call(agent, text);
        const char *reply = message(agent);
        if (reply != NULL) return reply;
    }
}

// The number behind a word; -1 where the word or the number is missing.
static long long number(const char *text, const char *word) {
    const char *place = strstr(text, word);
    if (place == NULL || place[strlen(word)] < '0' || place[strlen(word)] > '9') return -1;
    return atoll(place + strlen(word));
}

// Takes the flow, answers what is there, and parks it. `patience` is for the first question. False without a flow.
static bool serve(struct conversation *agent, const char *name, int patience) {
    char text[512];
    snprintf(
        text, sizeof text, "{\"method\":\"org.dialtone.Connections.Take\",\"parameters\":{\"name\":\"%s\"}}", name);
    const char *reply = answer(agent, text);
    if (strstr(reply, "\"error\"") != NULL) return false;
    long long epoch = number(reply, "\"epoch\":");
    int flow = agent->descriptor;
    int state = asking_answer(flow, patience);
    while (state == 1) state = asking_answer(flow, 0);
    close(flow);
    snprintf(
        text, sizeof text,
        "{\"method\":\"org.dialtone.Connections.Park\",\"parameters\":{\"name\":\"%s\",\"epoch\":%lld}}", name, epoch);
    // One that is over, or was parked by a call whose answer was lost, is refused, and that is all right.
    answer(agent, text);
    return true;
}

static struct conversation *conversation(const char *path) {
    struct conversation *agent = calloc(1, sizeof *agent);
    if (agent == NULL) fail("calloc");
    agent->path = path;
    agent->socket = agent->descriptor = -1;
    return agent;
}

// Follows the events of a connection and serves it: as soon as it stands, and then when it is woken.
static void follow(struct conversation *agent, struct conversation *events, const char *name) {
    char text[512];
    long long sequence = -1, served = -1;
    bool is_known = false;
    for (;;) {
        char after[64] = "";
        if (sequence >= 0) snprintf(after, sizeof after, ",\"after\":%lld", sequence);
        snprintf(
            text, sizeof text,
            "{\"method\":\"org.dialtone.Connections.Monitor\",\"parameters\":{\"names\":[\"%s\"]%s},\"more\":true}",
            name, after);
        call(events, text);
        const char *event;
        while ((event = message(events)) != NULL) {
            long long latest = number(event, "\"sequence\":"), wake = number(event, "\"wake\":");
            bool is_new = sequence < 0;
            if (latest > sequence) sequence = latest;
            if (strstr(event, "\"kind\":\"opened\"") != NULL) is_known = false;
            // Nobody is woken for a flow that nobody has had.
            if (!is_known && strstr(event, "\"state\":\"ready\"") != NULL) {
                is_known = serve(agent, name, 1000);
            } else if (wake > served) {
                // Of one wake there are several events.
                served = wake;
                serve(agent, name, 1000);
            }
            if (is_new) {
                puts("following");
                fflush(stdout);
            }
        }
    }
}

int run_taker(const char *path, const char *name, bool stops) {
    struct conversation *agent = conversation(path);
    if (!stops) follow(agent, conversation(path), name);
    for (;;) {
        serve(agent, name, 10000);
        raise(SIGSTOP);
    }
}
