/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* How much is read at a time. */
#define PIECE ((size_t)64 << 10)

void dt_close_all(const int *descriptors, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (descriptors[i] >= 0)
			close(descriptors[i]);
}

/* Makes room for so many more bytes. */
static int reserve(struct dt_reader *reader, size_t count)
{
	size_t capacity = reader->capacity ? reader->capacity : PIECE;
	char *bytes;

	if (reader->start > 0) {
		memmove(reader->bytes, reader->bytes + reader->start, reader->count - reader->start);
		reader->count -= reader->start;
		reader->searched -= reader->start;
		reader->start = 0;
	}
	/* It does not overflow: a message has a limit, and so has a piece. */
	while (capacity - reader->count < count)
		capacity *= 2;
	if (capacity == reader->capacity)
		return 0;
	bytes = realloc(reader->bytes, capacity);
	if (!bytes)
		return -ENOMEM;
	reader->bytes = bytes;
	reader->capacity = capacity;
	return 0;
}

/* Notes that bytes came, with these descriptors. */
static int added(struct dt_reader *reader, size_t count, const int *descriptors, size_t descriptor_count)
{
	uint64_t message = reader->taken;

	if (descriptor_count == 0) {
		reader->count += count;
		return 0;
	}
	/* The message of the last byte; a NUL belongs to the message that it ends. */
	for (size_t i = reader->start; i + 1 < reader->count + count; i++)
		message += reader->bytes[i] == '\0';
	reader->count += count;
	if (descriptor_count > DT_DESCRIPTOR_LIMIT - reader->descriptor_count) {
		dt_close_all(descriptors, descriptor_count);
		return -EBADMSG;
	}
	for (size_t i = 0; i < descriptor_count; i++) {
		reader->descriptors[reader->descriptor_count].number = descriptors[i];
		reader->descriptors[reader->descriptor_count++].message = message;
	}
	return 0;
}

int dt_reader_append(struct dt_reader *reader, const char *bytes, size_t count, const int *descriptors,
	size_t descriptor_count)
{
	int result = reserve(reader, count);

	if (result < 0) {
		dt_close_all(descriptors, descriptor_count);
		return result;
	}
	if (count > 0)
		memcpy(reader->bytes + reader->count, bytes, count);
	return added(reader, count, descriptors, descriptor_count);
}

/* The descriptors of a message, as recvmsg(2) gives them; returns how many there are. */
static size_t received(struct msghdr *message, int *descriptors)
{
	size_t count = 0;

	for (struct cmsghdr *header = CMSG_FIRSTHDR(message); header; header = CMSG_NXTHDR(message, header)) {
		size_t size = header->cmsg_len - CMSG_LEN(0);

		if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS)
			continue;
		memcpy(descriptors + count, CMSG_DATA(header), size);
		count += size / sizeof(int);
	}
	return count;
}

int dt_reader_fill(struct dt_reader *reader, int socket)
{
	union {
		char bytes[CMSG_SPACE(DT_DESCRIPTOR_LIMIT * sizeof(int))];
		struct cmsghdr alignment;
	} control;
	struct iovec part;
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes,
		.msg_controllen = sizeof control.bytes };
	int descriptors[sizeof control.bytes / sizeof(int)];
	size_t descriptor_count;
	ssize_t count;
	int result = reserve(reader, PIECE);

	if (result < 0)
		return result;
	part.iov_base = reader->bytes + reader->count;
	part.iov_len = PIECE;
	do
		count = recvmsg(socket, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	while (count < 0 && errno == EINTR);
	if (count < 0)
		return errno == EAGAIN || errno == EWOULDBLOCK ? 0 : -errno;
	descriptor_count = received(&message, descriptors);
	/* More than there is room for, or than this process may open: the kernel has dropped some. */
	if (message.msg_flags & MSG_CTRUNC) {
		dt_close_all(descriptors, descriptor_count);
		return -EBADMSG;
	}
	if (count == 0) {
		dt_close_all(descriptors, descriptor_count);
		return -ECONNRESET;
	}
	result = added(reader, (size_t)count, descriptors, descriptor_count);
	return result < 0 ? result : 1;
}

int dt_reader_next(struct dt_reader *reader, const char **message, size_t *length)
{
	char *end = NULL;

	if (reader->searched < reader->count)
		end = memchr(reader->bytes + reader->searched, '\0', reader->count - reader->searched);
	*length = (end ? (size_t)(end - reader->bytes) : reader->count) - reader->start;
	if (*length > DT_MESSAGE_LIMIT)
		return -EMSGSIZE;
	if (!end) {
		reader->searched = reader->count;
		return 0;
	}
	*message = reader->bytes + reader->start;
	reader->start = reader->searched = reader->start + *length + 1;
	reader->taken++;
	return 1;
}

size_t dt_reader_take_descriptors(struct dt_reader *reader, int *descriptors)
{
	size_t count = 0, kept = 0;

	for (size_t i = 0; i < reader->descriptor_count; i++) {
		if (reader->descriptors[i].message < reader->taken)
			descriptors[count++] = reader->descriptors[i].number;
		else
			reader->descriptors[kept++] = reader->descriptors[i];
	}
	reader->descriptor_count = kept;
	return count;
}

void dt_reader_clear(struct dt_reader *reader)
{
	for (size_t i = 0; i < reader->descriptor_count; i++)
		close(reader->descriptors[i].number);
	free(reader->bytes);
	memset(reader, 0, sizeof *reader);
}
