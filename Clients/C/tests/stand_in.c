/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "stand_in.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static struct {
	char directory[32];
	struct sockaddr_un address;
	int socket;
	serve *serve;
	pthread_t thread;
	/* How many connections it has accepted. */
	atomic_int accepted;
} server;

/* Without what a test rests on, it has no meaning. */
static void require(int is_done, const char *what)
{
	if (is_done)
		return;
	perror(what);
	exit(2);
}

static void *accept_clients(void *unused)
{
	int socket;

	for (int number = 0; (socket = accept4(server.socket, NULL, NULL, SOCK_CLOEXEC)) >= 0; number++) {
		server.accepted = number + 1;
		server.serve(socket, number);
		close(socket);
	}
	return unused;
}

const char *stand_in_start(serve *serve)
{
	strcpy(server.directory, "/tmp/dialtone-c-XXXXXX");
	require(mkdtemp(server.directory) != NULL, "mkdtemp");
	server.serve = serve;
	server.accepted = 0;
	server.address.sun_family = AF_UNIX;
	snprintf(server.address.sun_path, sizeof server.address.sun_path, "%s/socket", server.directory);
	server.socket = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	require(bind(server.socket, (struct sockaddr *)&server.address, sizeof server.address) == 0, "bind");
	/* A short queue: a test fills it. */
	require(listen(server.socket, 1) == 0, "listen");
	require(pthread_create(&server.thread, NULL, accept_clients, NULL) == 0, "pthread_create");
	return server.address.sun_path;
}

void stand_in_stop(void)
{
	shutdown(server.socket, SHUT_RDWR);
	pthread_join(server.thread, NULL);
	close(server.socket);
	unlink(server.address.sun_path);
	rmdir(server.directory);
}

int stand_in_connect(void)
{
	int made = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (connect(made, (struct sockaddr *)&server.address, sizeof server.address) == 0)
		return made;
	require(errno == EAGAIN, "connect");
	close(made);
	return -1;
}

void stand_in_await(int count)
{
	while (server.accepted < count)
		usleep(1000);
}

static size_t passed;

/* Reads one byte, and closes the descriptors that came with it. */
static ssize_t read_byte(int socket, char *byte)
{
	union {
		char bytes[CMSG_SPACE(8 * sizeof(int))];
		struct cmsghdr alignment;
	} control;
	struct iovec part = { byte, 1 };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes,
		.msg_controllen = sizeof control.bytes };
	ssize_t count = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
	struct cmsghdr *header = count > 0 ? CMSG_FIRSTHDR(&message) : NULL;
	int descriptors[8];

	if (!header)
		return count;
	memcpy(descriptors, CMSG_DATA(header), header->cmsg_len - CMSG_LEN(0));
	for (size_t i = 0; i < (header->cmsg_len - CMSG_LEN(0)) / sizeof(int); i++, passed++)
		close(descriptors[i]);
	return count;
}

const char *stand_in_read(int socket)
{
	static char call[1 << 21];
	size_t count = 0;

	passed = 0;
	while (count < sizeof call) {
		if (read_byte(socket, call + count) != 1)
			return "";
		if (call[count++] == '\0')
			return call;
	}
	return "";
}

size_t stand_in_passed(void)
{
	return passed;
}

void stand_in_say(int socket, const char *text)
{
	send(socket, text, strlen(text) + 1, MSG_NOSIGNAL);
}

void stand_in_pass(int socket, const char *text, size_t count)
{
	union {
		char bytes[CMSG_SPACE(64 * sizeof(int))];
		struct cmsghdr alignment;
	} control = { 0 };
	struct iovec part = { (char *)text, strlen(text) + 1 };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes,
		.msg_controllen = CMSG_SPACE(count * sizeof(int)) };
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);
	int descriptors[64], opened = open("/dev/null", O_RDWR | O_CLOEXEC);

	/* The client gets a copy of its own for each. */
	for (size_t i = 0; i < count; i++)
		descriptors[i] = opened;
	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(count * sizeof(int));
	memcpy(CMSG_DATA(header), descriptors, count * sizeof(int));
	require(sendmsg(socket, &message, MSG_NOSIGNAL) > 0, "sendmsg");
	close(opened);
}

void stand_in_wait(int socket)
{
	char byte;

	while (recv(socket, &byte, 1, 0) > 0)
		;
}
