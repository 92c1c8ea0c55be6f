/* SPDX-License-Identifier: Apache-2.0
 *
 * The tests that need no agent. They end with status 1 if one fails, and print what they saw.
 */
#include "unit.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

int failures;

int count_descriptors(void)
{
	DIR *directory = opendir("/proc/self/fd");
	int count = 0;

	while (directory && readdir(directory))
		count++;
	if (directory)
		closedir(directory);
	/* Without ".", ".." and the one that reads. */
	return count - 3;
}

int count_inherited(void)
{
	int count = 0;

	for (int i = 0; i < 256; i++)
		count += fcntl(i, F_GETFD) == 0;
	return count;
}

int main(void)
{
	/* What hangs ends. valgrind on a busy machine is slow, and does not hang. */
	alarm(getenv("UNDER_VALGRIND") ? 600 : 120);
	setvbuf(stdout, NULL, _IOLBF, 0);
	reader_tests();
	value_tests();
	call_tests();
	stream_tests();
	printf("%s\n", failures ? "failed" : "passed");
	return failures != 0;
}
