/* io/image_codec.h - what the codecs of io/image share. */
#ifndef ATT_IO_IMAGE_CODEC_H
#define ATT_IO_IMAGE_CODEC_H

#include <attscope/image.h>

typedef struct att_box {
    int x, y, width, height;
} att_box;

/* What is needed of a picture: of a size that is known only once its header was read. The box lies within the picture
 * and is not empty. */
typedef struct att_image_need {
    att_box (*box)(void *user, int width, int height);
    void *user;
} att_image_need;

/* One decoding: the file's bytes, and what is wanted. `name` is the file for messages. */
typedef struct att_image_job {
    att_context *context;
    const char *name;
    const uint8_t *bytes;
    size_t size;
    int channels;
    const att_image_limits *limits;
    const att_image_need *need; /* NULL: every pixel */
} att_image_job;

/* Whether a file begins as an image of a format that is known by name; not every one of them can be decoded. */
bool att_image_begins(const void *bytes, size_t size);

/* As att_image_decode(), with the file's name for messages. Pixels that are not needed may be undefined; the others,
 * and what is refused, do not depend on the need. */
att_status att_image_decode_named(att_context *context, const char *name, const void *bytes, size_t size, int channels,
                                  const att_image_limits *limits, const att_image_need *need, att_image *image);
/* As att_image_read(), likewise. */
att_status att_image_read_needed(att_context *context, const char *path, int channels, const att_image_limits *limits,
                                 const att_image_need *need, att_image *image);

/* Checks the sides against the limits and makes an image with undefined pixels. */
att_status att_image_make(const att_image_job *job, uint64_t width, uint64_t height, att_image *image);

/* Kinds of decoded rows, one byte a sample. */
typedef enum att_row_kind {
    ATT_ROW_GREY,
    ATT_ROW_GREY_ALPHA,
    ATT_ROW_RGB,
    ATT_ROW_RGBA,
    ATT_ROW_CMYK_INVERTED
} att_row_kind;
/* Samples per pixel. */
int att_row_samples(att_row_kind kind);
/* Writes row `y` of the image from `width` pixels of the kind. */
void att_image_put_row(att_image *image, int y, att_row_kind kind, const uint8_t *row);

/* Decoders; the bytes begin with the format's signature. */
att_status att_image_decode_jpeg(const att_image_job *job, att_image *image);
att_status att_image_decode_png(const att_image_job *job, att_image *image);
att_status att_image_decode_webp(const att_image_job *job, att_image *image);

#endif
