/* SPDX-License-Identifier: MIT */
/* Tests how much host memory a store may take: of the machine, and of cgroups of both versions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "shim/sleep/host_room.h"
#include "tree.h"

#define MIB (1ull << 20)
#define MACHINE (8192 - 512) /* of 8 GiB */

static const char *why;

static uint64_t room(void)
{
	why = NULL;
	return ss_host_room(tree, &why);
}

static int begin(void **state)
{
	tree_begin();
	tree_file("proc/meminfo", "MemTotal:       99999999 kB\nMemFree:          12345 kB\n"
				  "MemAvailable:    8388608 kB\nBuffers: 1 kB\n");
	return 0;
}

static int end(void **state)
{
	tree_end();
	return 0;
}

static void test_machine(void **state)
{
	assert_int_equal(room(), MACHINE * MIB);
	assert_non_null(strstr(why, "machine"));
	tree_file("proc/meminfo", "MemAvailable: 1024 kB\n");
	assert_int_equal(room(), 0);
	/* What is not known limits nothing. */
	tree_file("proc/meminfo", "MemFree: 1024 kB\n");
	assert_true(room() == UINT64_MAX);
	assert_true(ss_host_room("/nonexistent", &why) == UINT64_MAX);
}

static void test_v2(void **state)
{
	tree_file("proc/self/cgroup", "0::/a/b\n");
	tree_file("sys/fs/cgroup/a/b/memory.max", "max\n");
	tree_file("sys/fs/cgroup/a/b/memory.current", "4096\n");
	assert_int_equal(room(), MACHINE * MIB);
	/* Of the cgroup itself: 1000 MiB, of which 600 are used, 100 by files that were read. */
	tree_file("sys/fs/cgroup/a/b/memory.max", "1048576000\n");
	tree_file("sys/fs/cgroup/a/b/memory.current", "629145600\n");
	tree_file("sys/fs/cgroup/a/b/memory.stat", "anon 5\nfile 7\ninactive_anon 9\n"
						   "inactive_file 104857600\nslab 3\n");
	assert_int_equal(room(), (1000 - 600 + 100 - 64) * MIB);
	assert_non_null(strstr(why, "cgroup"));
	tree_file("sys/fs/cgroup/a/b/memory.high", "943718400\n");
	assert_int_equal(room(), (900 - 600 + 100 - 64) * MIB);
	/* Of one above it. */
	tree_file("sys/fs/cgroup/a/memory.max", "209715200\n");
	tree_file("sys/fs/cgroup/a/memory.current", "104857600\n");
	assert_int_equal(room(), (100 - 64) * MIB);
	/* More is used than is allowed. */
	tree_file("sys/fs/cgroup/a/memory.current", "304857600\n");
	assert_int_equal(room(), 0);
}

/* A container that sees the name of the host, and its own files at the mount. */
static void test_container(void **state)
{
	tree_file("proc/self/cgroup", "0::/system.slice/docker-123.scope\n");
	tree_file("sys/fs/cgroup/memory.max", "314572800\n");
	tree_file("sys/fs/cgroup/memory.current", "104857600\n");
	assert_int_equal(room(), (200 - 64) * MIB);
	tree_file("proc/self/cgroup", "0::/\n");
	assert_int_equal(room(), (200 - 64) * MIB);
	tree_file("proc/self/cgroup", "0::/../../other\n");
	assert_int_equal(room(), (200 - 64) * MIB);
}

static void test_v1(void **state)
{
	tree_file("proc/self/cgroup", "9:name=systemd:/x\n4:cpu,cpuacct:/c\n"
				      "3:hugetlb,memory:/job/step\n0::/\n");
	tree_file("sys/fs/cgroup/memory/job/step/memory.limit_in_bytes", "9223372036854771712\n");
	tree_file("sys/fs/cgroup/memory/job/step/memory.usage_in_bytes", "104857600\n");
	assert_int_equal(room(), MACHINE * MIB);
	tree_file("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "419430400\n");
	tree_file("sys/fs/cgroup/memory/job/memory.usage_in_bytes", "209715200\n");
	tree_file("sys/fs/cgroup/memory/job/memory.stat", "cache 1\ninactive_file 5\n"
							  "total_inactive_file 104857600\n");
	assert_int_equal(room(), (400 - 200 + 100 - 64) * MIB);
	/* Both versions are mounted: the least counts. */
	tree_file("sys/fs/cgroup/unified/memory.max", "209715200\n");
	tree_file("sys/fs/cgroup/unified/memory.current", "0\n");
	assert_int_equal(room(), (200 - 64) * MIB);
}

/* Nonsense limits nothing, and ends nothing. */
static void test_nonsense(void **state)
{
	static const char *const lines[] = {
		"",           ":", "::", "0::", "0:x", "1:memory:", "1:memory:x", "1:,,memory,:/",
		"\n\n0::/a\n"};
	char longer[6000];

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		tree_file("proc/self/cgroup", lines[i]);
		assert_int_equal(room(), MACHINE * MIB);
	}
	memset(longer, 'a', sizeof(longer));
	memcpy(longer, "0::/", 4);
	longer[sizeof(longer) - 1] = '\0';
	tree_file("proc/self/cgroup", longer);
	assert_int_equal(room(), MACHINE * MIB);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_machine, begin, end),
		cmocka_unit_test_setup_teardown(test_v2, begin, end),
		cmocka_unit_test_setup_teardown(test_container, begin, end),
		cmocka_unit_test_setup_teardown(test_v1, begin, end),
		cmocka_unit_test_setup_teardown(test_nonsense, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
