/* data/mask_files.h - for tests: writes photographs and masks. */
#ifndef TESTS_DATA_MASK_FILES_H
#define TESTS_DATA_MASK_FILES_H

#include "base/io/jpeg.h"
#include "base/io/scratch.h"
#include "data/picture.h"

/* Opens <folder>/<name> for writing, and creates missing folders. */
static inline FILE *mask_file(const scratch *self, const char *name)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", self->folder, name);
    for (char *slash = strchr(path + strlen(self->folder) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(path, 0777);
        *slash = '/';
    }
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    return file;
}

static inline void mask_text(const scratch *self, const char *name, const char *text)
{
    FILE *file = mask_file(self, name);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

/* Writes a PNG. rows: as libspng takes them, with samples of 16 bits in the machine's byte order. palette: NULL: none.
 */
static inline void mask_png(const scratch *self, const char *name, int width, int height, int depth, int type,
                            const struct spng_plte *palette, const void *rows, size_t bytes)
{
    spng_ctx *encoder = spng_ctx_new(SPNG_CTX_ENCODER);
    struct spng_ihdr header = {
        .width = (uint32_t)width, .height = (uint32_t)height, .bit_depth = (uint8_t)depth, .color_type = (uint8_t)type};
    size_t size;
    int error = 0;
    spng_set_option(encoder, SPNG_ENCODE_TO_BUFFER, 1);
    assert_int_equal(spng_set_ihdr(encoder, &header), 0);
    if (palette)
        assert_int_equal(spng_set_plte(encoder, (struct spng_plte *)(uintptr_t)palette), 0);
    assert_int_equal(spng_encode_image(encoder, rows, bytes, SPNG_FMT_PNG, SPNG_ENCODE_FINALIZE), 0);
    void *png = spng_get_png_buffer(encoder, &size, &error);
    FILE *file = mask_file(self, name);
    assert_int_equal(fwrite(png, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
    free(png);
    spng_ctx_free(encoder);
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
    FILE *file = mask_file(self, name);
    fwrite(bytes, 1, 2, file);
    if (orientation)
        fwrite(exif, 1, sizeof exif, file);
    fwrite(bytes + 2, 1, size - 2, file);
    assert_int_equal(fclose(file), 0);
    free(bytes);
}

#endif
