/* shared.h - for tests: optional data, which are not part of the project, in $ATT_SHARED (set by CTest). */
#ifndef ATT_TESTS_SHARED_H
#define ATT_TESTS_SHARED_H

#include <unistd.h>

#include "test.h"

enum { SHARED_PATH = 4096 };

#define SHARED_DEIT "data/weights/deit_tiny_patch16_224.safetensors"
#define SHARED_PHOTOGRAPHS "data/imagenet200/val"
#define SHARED_SYNSETS "data/imagenet200/synsets.txt"

/* Writes the path of a file or folder of $ATT_SHARED. If it is not there, prints this as the reason for a skip, and
 * returns false. */
static inline bool shared_path(const char *name, char path[SHARED_PATH])
{
    const char *folder = getenv("ATT_SHARED");
    int length = snprintf(path, SHARED_PATH, "%s/%s", folder ? folder : "../shared", name);
    assert_in_range(length, 1, SHARED_PATH - 1);
    bool there = access(path, R_OK) == 0;
    if (!there)
        print_message("skipped: ATT_SHARED has no %s\n", name);
    return there;
}

#endif
