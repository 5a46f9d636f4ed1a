/* fuzz_image.h - decodes bytes that begin with a format's signature, under small limits and the default limits. */
#ifndef TESTS_FUZZ_FUZZ_IMAGE_H
#define TESTS_FUZZ_FUZZ_IMAGE_H

#include "fuzz.h"

#include "base/io/image_codec.h"

static inline void fuzz_decode(const uint8_t *bytes, size_t size, int channels, const att_image_limits *limits)
{
    att_image image = {0};
    att_status status = att_image_decode(fuzz_context(), bytes, size, channels, limits, &image);
    fuzz_require((status == ATT_OK) == (image.pixels != NULL), "a decoded image has pixels");
    if (status == ATT_OK) {
        att_image_look look;
        const bool told = att_image_look_at(bytes, size, &look);
        const bool swaps = limits->exif_transpose && look.orientation > 4;
        fuzz_require(!told || (look.width == (swaps ? image.height : image.width) &&
                               look.height == (swaps ? image.width : image.height)),
                     "headers that give a size give that of the image");
        fuzz_require(image.width <= limits->side && image.height <= limits->side &&
                         (int64_t)image.width * image.height <= limits->pixels && image.channels == channels,
                     "an image is within the limits");
        uint8_t *copy = malloc((size_t)image.width * (size_t)image.height * (size_t)channels);
        fuzz_require(copy != NULL, "memory");
        memcpy(copy, image.pixels, (size_t)image.width * (size_t)image.height * (size_t)channels);
        free(copy);
    }
    att_image_free(fuzz_context(), &image);
}

/* No image larger than the limits may be decoded, whatever size the header gives. */
static inline int fuzz_image(const char *signature, size_t signature_size, const uint8_t *data, size_t size)
{
    att_image_limits limits = {.side = 512, .pixels = 1 << 16, .file_bytes = 1 << 20, .memory = (size_t)8 << 20};
    size_t before = fuzz_begin();
    uint8_t *bytes = malloc(signature_size + size);
    fuzz_require(bytes != NULL, "memory");
    memcpy(bytes, signature, signature_size);
    if (size > signature_size)
        memcpy(bytes + signature_size, data + signature_size, size - signature_size);
    size = size > signature_size ? size : signature_size;
    fuzz_decode(bytes, size, 3, &limits);
    fuzz_decode(bytes, size, 1, &limits);
    limits.exif_transpose = true;
    fuzz_decode(bytes, size, 3, &limits);
    free(bytes);
    fuzz_end(before);
    return 0;
}

#endif
