/* io/golden.h - for tests: reads lines of tests/goldens/preprocess.txt, and computes the hash used there. */
#ifndef TESTS_IO_GOLDEN_H
#define TESTS_IO_GOLDEN_H

#include <inttypes.h>

#include <attscope/image.h>

#include "base/io/scratch.h"
#include "golden_path.h"

static inline uint64_t golden_hash(const void *bytes, size_t count)
{
    const uint8_t *byte = bytes;
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < count; i++)
        hash = (hash ^ byte[i]) * UINT64_C(0x100000001b3);
    return hash;
}

/* Paints the picture of tools/goldens/augment.py. */
static inline void golden_paint(const att_image *image)
{
    uint32_t s = 12345;
    uint8_t *to = image->pixels;
    for (int y = 0; y < image->height; y++)
        for (int x = 0; x < image->width; x++)
            for (int c = 0; c < image->channels; c++) {
                s = s * 1664525u + 1013904223u;
                *to++ = (uint8_t)((s >> 24) / 2 + (uint32_t)((3 * x + 2 * y + 20 * c) % 128));
            }
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
