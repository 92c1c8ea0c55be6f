// SPDX-License-Identifier: Apache-2.0
//
// The header as C++ reads it, and the shared library as a C++ program links it.
#include <dialtone.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

int main()
{
	dialtone *client = nullptr;
	dialtone_reply *reply = nullptr;
	dialtone_value *settings = dialtone_value_new();
	std::uint64_t due = 0;
	bool is_right = std::strlen(dialtone_version()) > 0 && dialtone_new(&client, "/nowhere/dialtone.sock") == 0;

	is_right = is_right && dialtone_value_set_bool(settings, "makeBeforeBreak", false) == 0;
	is_right = is_right && dialtone_open(client, "name", "tcp://127.0.0.1:1", settings, &reply) == -ECONNREFUSED;
	is_right = is_right && reply == nullptr && dialtone_get_timeout(client, &due) == 0 && due == UINT64_MAX;
	dialtone_value_free(settings);
	dialtone_free(client);
	return is_right ? 0 : 1;
}
