/* io/golden.h - for tests: reads lines of tests/goldens/preprocess.txt, and computes the hash used there. */
#ifndef TESTS_IO_GOLDEN_H
#define TESTS_IO_GOLDEN_H

#include <inttypes.h>

#include <attscope/image.h>

#include "golden_path.h"
#include "io/scratch.h"

static inline uint64_t golden_hash(const void *bytes, size_t count)
{
    const uint8_t *byte = bytes;
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < count; i++)
        hash = (hash ^ byte[i]) * UINT64_C(0x100000001b3);
    return hash;
}

/* Returns the image of "resize" and "crop" lines; the caller frees its pixels. */
static inline att_image golden_noise(int width, int height, int channels)
{
    size_t count = (size_t)width * (size_t)height * (size_t)channels;
    att_image image = {width, height, channels, malloc(count)};
    uint32_t state = 12345;
    for (size_t i = 0; i < count; i++) {
        state = state * 1664525 + 1013904223;
        image.pixels[i] = (uint8_t)(state >> 24);
    }
    return image;
}

/* Calls check(self, rest of the line) for each line that begins with `word`. Returns the number of these lines. */
static inline int golden_each(scratch *self, const char *word, void (*check)(scratch *self, const char *line))
{
    char path[4096], line[512];
    golden_path("preprocess.txt", path, sizeof(path));
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    size_t length = strlen(word);
    int count = 0;
    while (fgets(line, sizeof(line), file) != NULL) {
        if (strncmp(line, word, length) != 0 || line[length] != ' ')
            continue;
        line[strcspn(line, "\n")] = '\0';
        check(self, line + length + 1);
        count++;
    }
    fclose(file);
    return count;
}

#endif
