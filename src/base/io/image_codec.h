/* io/image_codec.h - shared by the image decoders and io/image.c. */
#ifndef ATT_IO_IMAGE_CODEC_H
#define ATT_IO_IMAGE_CODEC_H

#include <attscope/image.h>

#include "base/core/export.h"

typedef struct att_box {
    int x, y, width, height;
} att_box;

/* What the headers of an image say: its size as stored, and how EXIF data turn it for display: 1: not at all; 2 to 4:
 * mirrored, or by 180 degrees; 5 to 8: width and height change places. */
typedef struct att_image_look {
    int width, height, orientation;
} att_image_look;
/* Returns false if the bytes are no image, or end before they tell. */
bool att_image_look_at(const void *bytes, size_t size, att_image_look *look);

/* Chooses the part of a picture whose pixels are needed, when the picture's size is known from its header. `box` must
 * return a non-empty box inside the picture. NULL: every pixel. */
typedef struct att_image_need {
    att_box (*box)(void *user, int width, int height);
    void *user;
    int *orientation; /* not NULL: set to the orientation in EXIF data, also if the image is turned by it */
    /* Not NULL: no pixels are needed, but what the file's headers say, with an empty image. A format that has the
     * pixels without decoding, or a file whose headers do not tell, gives the image. */
    att_image_look *look;
} att_image_need;

/* The arguments of a decoder. name: the file's name for messages. */
typedef struct att_image_job {
    att_context *context;
    const char *name;
    const uint8_t *bytes;
    size_t size;
    int channels;
    const att_image_limits *limits;
    const att_image_need *need; /* NULL: every pixel */
} att_image_job;

/* Turns and mirrors the image by an EXIF orientation, 2 to 8, into new memory. After a failure (ERR_MEMORY) it is
 * unchanged. */
att_status att_image_turn(att_context *context, const char *name, int orientation, att_image *image);
/* Where a box of the turned picture lies in the picture as it is stored, which has this width and height. */
att_box att_image_stored_box(int orientation, att_box box, int width, int height);

/* Returns the name of the image format with whose signature the bytes begin ("JPEG"), including formats that cannot be
 * decoded; NULL if there is none. */
const char *att_image_format_of(const void *bytes, size_t size);

/* Like att_image_decode(), with the file's name for messages. Pixels outside the needed box may be undefined. `need`
 * changes neither the other pixels nor which files fail. */
ATT_FOR_LAB att_status att_image_decode_named(att_context *context, const char *name, const void *bytes, size_t size,
                                              int channels, const att_image_limits *limits, const att_image_need *need,
                                              att_image *image);
/* Like att_image_read(), with `need` as above. */
att_status att_image_read_needed(att_context *context, const char *path, int channels, const att_image_limits *limits,
                                 const att_image_need *need, att_image *image);

/* Returns ERR_FORMAT or ERR_UNSUPPORTED if an image cannot have this width and height, by the job's limits. */
att_status att_image_check_size(const att_image_job *job, uint64_t width, uint64_t height);
/* Checks width and height against the limits and allocates an image with undefined pixels. */
att_status att_image_make(const att_image_job *job, uint64_t width, uint64_t height, att_image *image);

/* Formats of decoded rows, with one byte per sample. */
typedef enum att_row_kind {
    ATT_ROW_GREY,
    ATT_ROW_GREY_ALPHA,
    ATT_ROW_RGB,
    ATT_ROW_RGBA,
    ATT_ROW_CMYK_INVERTED
} att_row_kind;
/* Samples per pixel. */
int att_row_samples(att_row_kind kind);
/* Converts one row of image->width pixels and stores it as row `y` of the image. */
void att_image_put_row(att_image *image, int y, att_row_kind kind, const uint8_t *row);

/* Decoders. The caller has checked that the bytes begin with the format's signature. */
att_status att_image_decode_jpeg(const att_image_job *job, att_image *image);
att_status att_image_decode_png(const att_image_job *job, att_image *image);
att_status att_image_decode_webp(const att_image_job *job, att_image *image);

/* Decodes a PNG of one channel to its stored values: palette indices, or grey values of 1 to 16 bits that are not
 * scaled. *values: [height][width]; the caller owns it and frees it with att_free(). Pixels and limits are those of
 * job->limits; job->channels and job->need are not used. Errors: ERR_FORMAT (not a PNG; a colour PNG; corrupt),
 * ERR_UNSUPPORTED, ERR_MEMORY. */
att_status att_png_decode_values(const att_image_job *job, int *width, int *height, uint16_t **values);

#endif
