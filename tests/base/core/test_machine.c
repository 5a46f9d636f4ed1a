/* The memory that a machine has left, read from a folder that stands for its "/". */
#include <sys/stat.h>

#include "base/core/machine.h"
#include "test.h"

enum { PATH = 512 };
static const size_t KIB = 1024, GIB = (size_t)1 << 30;

/* Writes `text` to <root><path> and creates missing folders. */
static void put(const char *root, const char *path, const char *text)
{
    char full[PATH];
    assert_true(snprintf(full, sizeof full, "%s%s", root, path) < PATH);
    for (char *slash = strchr(full + strlen(root) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(full, 0777);
        *slash = '/';
    }
    FILE *file = fopen(full, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static int make_root(void **state)
{
    static char root[] = "/tmp/attscope-machine-XXXXXX";
    memcpy(root + sizeof root - 7, "XXXXXX", 6);
    *state = mkdtemp(root);
    if (!*state)
        return -1;
    put(root, "/proc/meminfo",
        "MemTotal:       24684084 kB\nMemFree:         1000000 kB\nMemAvailable:    8388608 kB\nMemAvailableX: 1 kB\n");
    return 0;
}

static int remove_root(void **state)
{
    char command[PATH];
    snprintf(command, sizeof command, "rm -rf '%s'", (const char *)*state);
    return system(command);
}

#define ROOT_TEST(name) TEST_WITH(name, const char *root, make_root, remove_root)

ROOT_TEST(the_system_says_what_is_available)
{
    assert_int_equal(att_machine_memory(root), 8 * GIB);
    put(root, "/proc/meminfo", "MemAvailable: 1048576 kB\nSwapTotal: 4194304 kB\nSwapFree: 2097152 kB\n");
    assert_int_equal(att_machine_memory(root), 3 * GIB);
}

ROOT_TEST(without_memavailable_the_systems_memory_counts)
{
    put(root, "/proc/meminfo", "MemTotal: 1 kB\n");
    size_t whole = att_machine_memory(root);
    assert_true(whole > 64 * KIB * KIB);
    assert_int_equal(whole % KIB, 0);
}

/* Inner and outer control groups. Cached files of a group count as free. */
ROOT_TEST(a_group_s_limit_counts)
{
    put(root, "/proc/self/cgroup", "0::/a.slice/b.scope\n");
    put(root, "/sys/fs/cgroup/a.slice/memory.max", "4294967296\n");
    put(root, "/sys/fs/cgroup/a.slice/memory.current", "3221225472\n");
    put(root, "/sys/fs/cgroup/a.slice/memory.stat",
        "anon 1073741824\nfile 2147483648\ninactive_file 1610612736\nactive_file 536870912\n");
    put(root, "/sys/fs/cgroup/a.slice/b.scope/memory.max", "max\n");
    put(root, "/sys/fs/cgroup/a.slice/b.scope/memory.current", "3221225472\n");
    assert_int_equal(att_machine_memory(root), 3 * GIB);
    /* without statistics, all of it counts as used */
    put(root, "/sys/fs/cgroup/a.slice/b.scope/memory.max", "3758096384\n");
    assert_int_equal(att_machine_memory(root), GIB / 2);
    put(root, "/sys/fs/cgroup/a.slice/b.scope/memory.current", "3758096385\n");
    assert_int_equal(att_machine_memory(root), 0);
}

/* Statistics may be a moment older or newer than their sum, so more may be cached than is used. */
ROOT_TEST(more_cached_than_used_memory_means_nothing_is_used)
{
    put(root, "/proc/self/cgroup", "0::/a\n");
    put(root, "/sys/fs/cgroup/a/memory.max", "1073741824\n");
    put(root, "/sys/fs/cgroup/a/memory.current", "536870912\n");
    put(root, "/sys/fs/cgroup/a/memory.stat", "inactive_file 402653184\nactive_file 402653184\n");
    assert_int_equal(att_machine_memory(root), GIB);
}

/* In a container, the mount shows the container's own group, while the path is the one outside. */
ROOT_TEST(a_container_s_limit_counts)
{
    put(root, "/proc/self/cgroup", "0::/docker/0123456789abcdef\n");
    put(root, "/sys/fs/cgroup/memory.max", "1073741824\n");
    put(root, "/sys/fs/cgroup/memory.current", "536870912\n");
    assert_int_equal(att_machine_memory(root), GIB / 2);
    put(root, "/proc/self/cgroup", "0::/\n");
    assert_int_equal(att_machine_memory(root), GIB / 2);
}

ROOT_TEST(groups_of_the_first_version_count)
{
    put(root, "/proc/self/cgroup", "9:name=systemd:/\n5:cpu,cpuacct:/x\n4:hugetlb,memory:/job/7\n0::/\nnonsense\n");
    put(root, "/sys/fs/cgroup/memory/job/7/memory.limit_in_bytes", "2147483648\n");
    put(root, "/sys/fs/cgroup/memory/job/7/memory.usage_in_bytes", "1610612736\n");
    put(root, "/sys/fs/cgroup/memory/job/7/memory.stat",
        "inactive_file 0\nactive_file 0\ntotal_inactive_file 268435456\ntotal_active_file 268435456\n");
    put(root, "/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"); /* no limit */
    put(root, "/sys/fs/cgroup/memory/memory.usage_in_bytes", "20000000000\n");
    assert_int_equal(att_machine_memory(root), GIB);
    put(root, "/proc/self/cgroup", "4:memoryless:/job/7\n");
    assert_int_equal(att_machine_memory(root), 8 * GIB);
}
