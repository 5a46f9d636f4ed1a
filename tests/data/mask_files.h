/* data/mask_files.h - for tests: writes photographs and masks. */
#ifndef TESTS_DATA_MASK_FILES_H
#define TESTS_DATA_MASK_FILES_H

#include "base/io/jpeg.h"
#include "base/io/scratch.h"
#include "data/picture.h"

/* Writes a PNG; the arguments are those of picture_encode(). */
static inline void mask_png(const scratch *self, const char *name, int width, int height, int depth, int type,
                            const struct spng_plte *palette, const void *rows, size_t bytes)
{
    void *png;
    size_t size;
    picture_encode(width, height, depth, type, palette, rows, bytes, &png, &size);
    scratch_write_as(self, name, png, size);
    free(png);
}

/* Writes a grey mask of 8 bits. */
static inline void mask_write(const scratch *self, const char *name, int width, int height, const uint8_t *labels)
{
    mask_png(self, name, width, height, 8, SPNG_COLOR_TYPE_GRAYSCALE, NULL, labels, (size_t)(width * height));
}

/* Writes a mask of PICTURE_SIDE x PICTURE_SIDE pixels with one label. */
static inline void mask_fill(const scratch *self, const char *name, int label)
{
    uint8_t labels[PICTURE_SIDE * PICTURE_SIDE];
    memset(labels, label, sizeof labels);
    mask_write(self, name, PICTURE_SIDE, PICTURE_SIDE, labels);
}

/* Writes a JPEG, with EXIF data of this orientation unless it is 0. */
static inline void mask_jpeg(const scratch *self, const char *name, int width, int height, int orientation)
{
    const uint8_t exif[] = {0xff, 0xe1, 0, 34, 'E', 'x', 'i',  'f', 0, 0, 'M', 'M', 0, 42, 0,
                            0,    0,    8, 0,  1,   1,   0x12, 0,   3, 0, 0,   0,   1, 0,  (uint8_t)orientation,
                            0,    0,    0, 0,  0,   0};
    const jpeg_kind kind = {.width = width, .height = height, .components = 3, .across = 1, .down = 1};
    uint8_t *bytes;
    size_t size;
    jpeg_make(&kind, &bytes, &size);
    char path[512];
    FILE *file = fopen(scratch_path(self, name, path), "wb");
    assert_non_null(file);
    fwrite(bytes, 1, 2, file);
    if (orientation)
        fwrite(exif, 1, sizeof exif, file);
    fwrite(bytes + 2, 1, size - 2, file);
    assert_int_equal(fclose(file), 0);
    free(bytes);
}

#endif
