#include "base/core/machine.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { PATH_BYTES = 4096, LINE_BYTES = 4096 };

/* File and key names in one version of control groups. */
typedef struct group_version {
    const char *mount, *limit, *used, *statistics;
    const char *caches[2]; /* keys in `statistics` of the page cache, which the kernel can drop */
} group_version;

static const group_version version_1 = {.mount = "/sys/fs/cgroup/memory",
                                        .limit = "memory.limit_in_bytes",
                                        .used = "memory.usage_in_bytes",
                                        .statistics = "memory.stat",
                                        .caches = {"total_inactive_file", "total_active_file"}};
static const group_version version_2 = {.mount = "/sys/fs/cgroup",
                                        .limit = "memory.max",
                                        .used = "memory.current",
                                        .statistics = "memory.stat",
                                        .caches = {"inactive_file", "active_file"}};

static FILE *open_below(const char *root, const char *path)
{
    char full[PATH_BYTES];
    int length = snprintf(full, sizeof full, "%s%s", root, path);
    return length > 0 && length < PATH_BYTES ? fopen(full, "re") : NULL;
}

/* Reads the number after `key` from a file of lines "key number" or "key: number kB". False if there is none. */
static bool keyed_number(const char *root, const char *path, const char *key, uint64_t *number)
{
    FILE *file = open_below(root, path);
    char line[LINE_BYTES];
    bool found = false;
    size_t length = strlen(key);
    while (file && !found && fgets(line, sizeof line, file))
        if (strncmp(line, key, length) == 0 && (line[length] == ' ' || line[length] == ':'))
            found = sscanf(line + length + 1, "%" SCNu64, number) == 1;
    if (file)
        fclose(file);
    return found;
}

/* Reads the number from a file that contains only a number. False if it contains no number, such as "max". */
static bool lone_number(const char *root, const char *path, uint64_t *number)
{
    FILE *file = open_below(root, path);
    bool found = file && fscanf(file, "%" SCNu64, number) == 1;
    if (file)
        fclose(file);
    return found;
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t machine_left(const char *root)
{
    static const char meminfo[] = "/proc/meminfo";
    uint64_t available, swap = 0;
    if (keyed_number(root, meminfo, "MemAvailable", &available)) {
        keyed_number(root, meminfo, "SwapFree", &swap);
        return (available + swap) * 1024;
    }
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    return pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : SIZE_MAX;
}

/* Returns the bytes that a control group has left, or UINT64_MAX if it has no limit. group: path below the mount point;
 * "" for the mount point itself. */
static uint64_t group_left(const char *root, const group_version *version, const char *group)
{
    char path[3][PATH_BYTES];
    const char *const names[] = {version->limit, version->used, version->statistics};
    for (int i = 0; i < 3; i++)
        if (snprintf(path[i], sizeof path[i], "%s%s/%s", version->mount, group, names[i]) >= PATH_BYTES)
            return UINT64_MAX;
    uint64_t limit, used, cached = 0;
    if (!lone_number(root, path[0], &limit) || !lone_number(root, path[1], &used))
        return UINT64_MAX;
    for (int i = 0; i < 2; i++) {
        uint64_t bytes = 0;
        keyed_number(root, path[2], version->caches[i], &bytes);
        cached += least(bytes, used - cached);
    }
    used -= cached;
    return used < limit ? limit - used : 0;
}

/* Returns the minimum over a group and its ancestors. In a container, `group` may be the path on the host, which does
 * not exist here; then only the mount point, the container's own group, counts. */
static uint64_t groups_left(const char *root, const group_version *version, char *group)
{
    uint64_t left = group_left(root, version, group);
    for (char *slash = strrchr(group, '/'); slash; slash = strrchr(group, '/')) {
        *slash = '\0';
        left = least(left, group_left(root, version, group));
    }
    return left;
}

static bool lists_memory(const char *controllers, size_t length)
{
    for (size_t at = 0; at < length; at += strcspn(controllers + at, ",:") + 1)
        if (strcspn(controllers + at, ",:") == 6 && strncmp(controllers + at, "memory", 6) == 0)
            return true;
    return false;
}

size_t att_machine_memory(const char *root)
{
    uint64_t left = machine_left(root);
    FILE *file = open_below(root, "/proc/self/cgroup");
    char line[LINE_BYTES];
    while (file && fgets(line, sizeof line, file)) { /* "<number>:<controllers, none in version 2>:/<path>" */
        line[strcspn(line, "\n")] = '\0';
        char *controllers = strchr(line, ':'), *group = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!group)
            continue;
        controllers++;
        size_t length = (size_t)(group - controllers);
        group++;
        if (strcmp(group, "/") == 0)
            *group = '\0';
        if (length == 0)
            left = least(left, groups_left(root, &version_2, group));
        else if (lists_memory(controllers, length))
            left = least(left, groups_left(root, &version_1, group));
    }
    if (file)
        fclose(file);
    return left < SIZE_MAX ? (size_t)left : SIZE_MAX;
}
