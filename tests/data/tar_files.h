/* data/tar_files.h - for tests: writes tars of pictures, and tars of such tars, into the scratch folder. */
#ifndef TESTS_DATA_TAR_FILES_H
#define TESTS_DATA_TAR_FILES_H

#include <fcntl.h>
#include <sys/stat.h>

#include "data/pictures.h"

/* Adds a file of the scratch folder to a tar, and removes it. */
static inline void pack_moved(pack *to, const scratch *self, const char *file, const char *name)
{
    enum { MOST = 1 << 20 };
    char path[512];
    void *bytes = malloc(MOST);
    FILE *from = fopen(scratch_path(self, file, path), "rb");
    assert_non_null(from);
    size_t size = fread(bytes, 1, MOST, from);
    assert_true(size < MOST);
    fclose(from);
    pack_entry(to, name, AE_IFREG, NULL, bytes, size);
    free(bytes);
    assert_int_equal(remove(path), 0);
}

/* Adds a sample of a shard: "<key>.png", filled with `value`, and "<key>.<ending>" with the text, unless that is NULL.
 */
static inline void pack_sample(pack *to, const char *key, int value, const char *ending, const char *text)
{
    char name[256];
    snprintf(name, sizeof name, "%s.png", key);
    pack_picture(to, name, value);
    snprintf(name, sizeof name, "%s.%s", key, ending);
    if (text)
        pack_entry(to, name, AE_IFREG, NULL, text, strlen(text));
}

/* Changes a byte of a file, but not its modification time. */
static inline void damage(const char *path, long at)
{
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    fseek(file, at, at < 0 ? SEEK_END : SEEK_SET);
    int byte = fgetc(file);
    fseek(file, at, at < 0 ? SEEK_END : SEEK_SET);
    fputc(byte ^ 0x55, file);
    assert_int_equal(fclose(file), 0);
    struct timespec times[2] = {info.st_atim, info.st_mtim};
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

#endif
