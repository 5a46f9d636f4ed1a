/* pictures/picture.h - the writers of the formats of pictures. */
#ifndef ATT_PICTURES_PICTURE_H
#define ATT_PICTURES_PICTURE_H

#include <attscope/picture.h>

#include "base/core/text.h"

enum { ATT_PICTURE_LABEL = 14, ATT_PICTURE_FONT = 11 }; /* pixels: the row of a label, and the size of its font */

typedef struct att_picture {
    const att_picture_tile *tiles;
    int count, width, height; /* pixels */
} att_picture;

/* Each appends the file to `out`, which fails if memory is exhausted. */
att_status att_picture_png(att_context *context, const att_picture *picture, att_text *out);
att_status att_picture_svg(att_context *context, const att_picture *picture, att_text *out);
/* Appends text between tags of SVG. Control characters, which XML does not allow, are left out. */
void att_picture_svg_escape(att_text *out, const char *text);
att_status att_picture_pdf(att_context *context, const att_picture *picture, att_text *out);

#endif
