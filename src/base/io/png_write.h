/* io/png_write.h - encodes images as PNG. */
#ifndef ATT_IO_PNG_WRITE_H
#define ATT_IO_PNG_WRITE_H

#include <attscope/image.h>

#include "base/core/text.h"

/* Appends the image, of 1 or 3 channels, to `out`. Errors: ERR_MEMORY. */
ATT_FOR_LAB att_status att_png_write(att_context *context, const att_image *image, att_text *out);

#endif
