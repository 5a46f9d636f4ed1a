/* data/pictures.h - for tests: writes data sets of tiny PNGs whose pixels identify the image. */
#ifndef TESTS_DATA_PICTURES_H
#define TESTS_DATA_PICTURES_H

#include "base/io/pack.h"
#include "data/picture.h"

/* Writes an image to <folder>/<name>, and creates missing folders. */
static inline void picture_write_sized(const scratch *self, const char *name, int value, int width, int height)
{
    void *bytes;
    size_t size;
    picture_make_sized(value, width, height, &bytes, &size);
    scratch_write_as(self, name, bytes, size);
    free(bytes);
}

static inline void picture_write(const scratch *self, const char *name, int value)
{
    picture_write_sized(self, name, value, PICTURE_SIDE, PICTURE_SIDE);
}

static inline void pack_picture(pack *to, const char *name, int value)
{
    void *bytes;
    size_t size;
    picture_make(value, &bytes, &size);
    pack_entry(to, name, AE_IFREG, NULL, bytes, size);
    free(bytes);
}

/* Writes an archive of images filled with 0, 1, 2, ... under these names. */
static inline void pictures_pack(const char *path, const char *kind, const char *const *names, int count)
{
    pack made = pack_open(path, kind);
    for (int i = 0; i < count; i++)
        pack_picture(&made, names[i], i);
    pack_close(&made);
}

/* Writes <folder>/<split>-images-idx3-ubyte and its labels: image i is filled with i % 256, its label is i % 7. */
static inline void idx_write(const scratch *self, const char *split, int images, int labels)
{
    char path[512];
    uint8_t header[16] = {0, 0, 8, 3,           0, 0, (uint8_t)(images >> 8), (uint8_t)images, 0, 0, 0, PICTURE_SIDE,
                          0, 0, 0, PICTURE_SIDE};
    snprintf(path, sizeof(path), "%s/%s-images-idx3-ubyte", self->folder, split);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    fwrite(header, 1, 16, file);
    for (int i = 0; i < images * PICTURE_SIDE * PICTURE_SIDE; i++)
        fputc(i / (PICTURE_SIDE * PICTURE_SIDE), file);
    fclose(file);
    snprintf(path, sizeof(path), "%s/%s-labels-idx1-ubyte", self->folder, split);
    file = fopen(path, "wb");
    assert_non_null(file);
    header[3] = 1;
    header[6] = (uint8_t)(labels >> 8);
    header[7] = (uint8_t)labels;
    fwrite(header, 1, 8, file);
    for (int i = 0; i < labels; i++)
        fputc(i % 7, file);
    fclose(file);
}

#endif
