/* SPDX-License-Identifier: MIT */
/* Why there is no device, on machines that are made of files. */
#include <errno.h>
#include <grp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli/no_device.h"

#define NODE "/sys/class/kfd/kfd/topology/nodes/1/properties"
#define NOBODY 65534

static char top[256];

/* A file with its directories. */
static void make(const char *name, const char *text)
{
	char path[600];
	FILE *f;

	snprintf(path, sizeof(path), "%s%s", top, name);
	for (char *c = strchr(path + strlen(top) + 1, '/'); c; c = strchr(c + 1, '/')) {
		*c = '\0';
		assert_true(mkdir(path, 0755) == 0 || errno == EEXIST);
		*c = '/';
	}
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static void drop(const char *name)
{
	char command[700];

	snprintf(command, sizeof(command), "rm -rf '%s%s'", top, name);
	assert_int_equal(system(command), 0);
}

static void mode(const char *name, mode_t bits)
{
	char path[600];

	snprintf(path, sizeof(path), "%s%s", top, name);
	assert_int_equal(chmod(path, bits), 0);
}

/* A machine on which nothing is wrong, with two gfx90a. */
static int machine(void **state)
{
	(void)state;
	strcpy(top, "/tmp/somashim-no-device.XXXXXX");
	if (!mkdtemp(top) || chmod(top, 0755) != 0)
		return 1;
	unsetenv("ROCR_VISIBLE_DEVICES");
	unsetenv("HIP_VISIBLE_DEVICES");
	unsetenv("CUDA_VISIBLE_DEVICES");
	unsetenv("GPU_DEVICE_ORDINAL");
	make("/proc/1/cgroup", "0::/init.scope\n");
	make("/sys/bus/pci/devices/0000:00:00.0/vendor", "0x8086\n");
	make("/sys/bus/pci/devices/0000:00:00.0/class", "0x030000\n");
	make("/sys/bus/pci/devices/0000:01:00.0/vendor", "0x1002\n");
	make("/sys/bus/pci/devices/0000:01:00.0/class", "0x120000\n");
	make("/sys/module/amdgpu/version", "6.12\n");
	make("/sys/class/kfd/kfd/topology/nodes/0/properties", "cpu_cores_count 8\nsimd_count 0\n");
	make(NODE, "cpu_cores_count 0\nsimd_count 416\ngfx_target_version 90010\n");
	make("/sys/class/kfd/kfd/topology/nodes/2/properties",
	     "cpu_cores_count 0\nsimd_count 416\ngfx_target_version 90010\n");
	make("/dev/kfd", "");
	make("/dev/dri/renderD128", "");
	return 0;
}

static int remove_machine(void **state)
{
	(void)state;
	drop("");
	return 0;
}

static void says(const char *library, const char *words)
{
	char why[SS_NO_DEVICE_BYTES];

	ss_no_device_reason(top, library, why);
	if (!strstr(why, words))
		fail_msg("'%s' does not say '%s'", why, words);
}

/* The same as a user who owns nothing here. Root may open everything. */
static void says_to_nobody(const char *words)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		char why[SS_NO_DEVICE_BYTES];

		if (getuid() == 0 && (setgroups(0, NULL) || setgid(NOBODY) || setuid(NOBODY)))
			_exit(2);
		ss_no_device_reason(top, NULL, why);
		if (!strstr(why, words))
			fprintf(stderr, "'%s' does not say '%s'\n", why, words);
		_exit(!strstr(why, words));
	}
	assert_true(waitpid(pid, &status, 0) == pid);
	assert_int_equal(status, 0);
}

static void the_hardware_comes_first(void **state)
{
	(void)state;
	drop("/dev/kfd");
	says(NULL, "/dev/kfd is missing, although the kernel module amdgpu is loaded");
	make("/.dockerenv", "");
	says(NULL, "missing in this container: start it with --device=/dev/kfd --device=/dev/dri");
	drop("/.dockerenv");
	make("/proc/1/cgroup", "0::/kubepods/burstable/pod1\n");
	says(NULL, "missing in this container");
	make("/proc/1/cgroup", "0::/\n");
	drop("/sys/module/amdgpu");
	says(NULL, "because the kernel module amdgpu is not loaded");
	drop("/sys/bus/pci/devices/0000:01:00.0");
	setenv("HIP_VISIBLE_DEVICES", "", 1); /* as batch systems set it where there is none */
	says(NULL, "no GPU of AMD on its PCI bus");
}

static void a_file_that_may_not_be_opened_is_named_with_its_group(void **state)
{
	char words[600], path[600];
	struct group *group;
	struct stat st;

	(void)state;
	snprintf(path, sizeof(path), "%s/dev/kfd", top);
	assert_int_equal(stat(path, &st), 0);
	group = getgrgid(st.st_gid);
	snprintf(words, sizeof(words), "/dev/kfd cannot be opened: it is for the group %s (%u)",
		 group ? group->gr_name : "", (unsigned)st.st_gid);
	mode("/dev/kfd", 0);
	says_to_nobody(group ? words : "/dev/kfd cannot be opened: it is for the group with");
	make("/run/.containerenv", "");
	says_to_nobody("(start the container with --group-add)");
	drop("/run/.containerenv");
	mode("/dev/kfd", 0666);
	mode("/dev/dri/renderD128", 0);
	says_to_nobody("/dev/dri/renderD128 cannot be opened: it is for the group");
	make("/dev/dri/renderD129", ""); /* one is enough */
	mode("/dev/dri/renderD129", 0666);
	says_to_nobody("no variable hides a device");
	drop("/dev/dri");
	says_to_nobody("no /dev/dri/renderD*");
}

static void a_variable_that_hides_all_is_named(void **state)
{
	(void)state;
	setenv("HIP_VISIBLE_DEVICES", "1,0", 1);
	says(NULL, "no variable hides a device");
	/* There is no third one, and the list ends there */
	setenv("HIP_VISIBLE_DEVICES", "2,0", 1);
	says(NULL, "HIP_VISIBLE_DEVICES='2,0' leaves no device");
	setenv("HIP_VISIBLE_DEVICES", "-1", 1);
	says(NULL, "HIP_VISIBLE_DEVICES='-1' leaves no device");
	setenv("HIP_VISIBLE_DEVICES", "1", 1);
	/* Leaves one, whose number is 0 */
	setenv("ROCR_VISIBLE_DEVICES", "GPU-0123456789abcdef", 1);
	says(NULL, "HIP_VISIBLE_DEVICES='1' leaves no device");
	setenv("ROCR_VISIBLE_DEVICES", "", 1);
	says(NULL, "ROCR_VISIBLE_DEVICES='' leaves no device");
	unsetenv("ROCR_VISIBLE_DEVICES");
	unsetenv("HIP_VISIBLE_DEVICES");
	setenv("CUDA_VISIBLE_DEVICES", "NoDevFiles", 1);
	says(NULL, "CUDA_VISIBLE_DEVICES='NoDevFiles' leaves no device");
	unsetenv("CUDA_VISIBLE_DEVICES");
	setenv("GPU_DEVICE_ORDINAL", "7", 1);
	says(NULL, "GPU_DEVICE_ORDINAL='7' leaves no device");
}

static void a_runtime_that_does_not_know_the_device_is_named(void **state)
{
	char hip[600];

	(void)state;
	snprintf(hip, sizeof(hip), "%s/lib/libamdhip64.so.7", top);
	make("/lib/libamdhip64.so.7", "gfx90a");
	make("/lib/libhsa-runtime64.so.1", "xx amdgcn-amd-amdhsa--gfx90c gfx942 xx");
	says(hip, "this machine has a gfx90a, which ");
	says(hip, "/lib/libhsa-runtime64.so.1 does not know");
	make("/lib/libhsa-runtime64.so.1", "xx amdgcn-amd-amdhsa--gfx90a xx");
	says(hip, "the kernel offers 2 GPUs (gfx90a)");
	make(NODE, "simd_count 0\n");
	make("/sys/class/kfd/kfd/topology/nodes/2/properties", "simd_count 0\n");
	says(hip, "the kernel offers no GPU for compute");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, machine, remove_machine)
	const struct CMUnitTest tests[] = {
		TEST(the_hardware_comes_first),
		TEST(a_file_that_may_not_be_opened_is_named_with_its_group),
		TEST(a_variable_that_hides_all_is_named),
		TEST(a_runtime_that_does_not_know_the_device_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
