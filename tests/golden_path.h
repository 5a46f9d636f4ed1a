/* golden_path.h - for tests: the paths of files in tests/goldens. */
#ifndef TESTS_GOLDEN_PATH_H
#define TESTS_GOLDEN_PATH_H

#include "test.h"

/* Writes the path of the golden file `name`, which is in $ATT_GOLDENS (set by CTest) or in tests/goldens of the working
 * directory. */
static inline void golden_path(const char *name, char *path, size_t size)
{
    const char *folder = getenv("ATT_GOLDENS");
    int length = snprintf(path, size, "%s/%s", folder ? folder : "tests/goldens", name);
    assert_in_range(length, 1, size - 1);
}

#endif
