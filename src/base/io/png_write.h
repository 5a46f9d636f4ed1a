/* io/png_write.h - encodes images as PNG. */
#ifndef ATT_IO_PNG_WRITE_H
#define ATT_IO_PNG_WRITE_H

#include <attscope/image.h>

#include "base/core/text.h"

/* Appends the image, of 1 or 3 channels, to `out`. Errors: ERR_MEMORY. */
ATT_FOR_LAB att_status att_png_write(att_context *context, const att_image *image, att_text *out);

enum { ATT_PNG_COLOURS = 256 };
/* Appends an image of numbers [height][width]. With a palette [ATT_PNG_COLOURS][3] they are indices of 8 bits; of
 * larger numbers the low byte is kept. palette NULL: grey values of 16 bits. Errors: ERR_MEMORY. */
att_status att_png_write_indices(att_context *context, int width, int height, const uint16_t *indices,
                                 const uint8_t *palette, att_text *out);

#endif
