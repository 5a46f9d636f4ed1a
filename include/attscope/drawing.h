/* attscope/drawing.h - an answer painted into its photograph, and the colours of classes.
 *
 *     att_drawing drawing = {0};
 *     if (att_network_run_images(network, &photograph, 1, &answer) == ATT_OK &&
 *         att_network_draw(network, &answer, NULL, &photograph, &drawing) == ATT_OK &&
 *         att_drawing_write_image(context, &drawing, "street.png") == ATT_OK)
 *         ... att_drawing_write_index(context, &drawing, "street.classes.png") ...
 *     att_drawing_free(context, &drawing);
 */
#ifndef ATTSCOPE_DRAWING_H
#define ATTSCOPE_DRAWING_H

#include <attscope/data.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A zeroed struct is an empty drawing. */
typedef struct att_drawing {
    att_image image;  /* three channels, in the photograph's size */
    att_mask classes; /* the class of each pixel of the photograph; ATT_MASK_NONE where the network did not see it.
                         Empty if answers of the task do not give each pixel a class */
    int class_count;  /* of the network */
    uint8_t *colours; /* [class_count][3]: red, green and blue of each class */
} att_drawing;

/* Frees what the drawing owns and makes it empty; an empty drawing is allowed. context: that of the network. */
ATT_API void att_drawing_free(att_context *context, att_drawing *drawing);

/* Write a PNG atomically (att_file_replace()). Errors of both: those of att_file_replace().
 *
 * The index has the number of its class in each pixel. With at most 255 classes it has 8 bits and a palette of the
 * classes' colours, so that other programs show them; 255 stands for "no class". With more classes it has 16 bits and
 * no palette, and 65535 stands for "no class". ERR_ARGUMENT if `classes` is empty. */
ATT_API ATT_MUST_CHECK att_status att_drawing_write_image(att_context *context, const att_drawing *drawing,
                                                          const char *path);
ATT_API ATT_MUST_CHECK att_status att_drawing_write_index(att_context *context, const att_drawing *drawing,
                                                          const char *path);

/* Writes colours [count][3] that are easy to tell apart, the same ones at every call, of which the first do not depend
 * on `count`. They are chosen from the colours whose channels are each 0, 32, 64, ..., 224 or 255, with a difference of
 * at least 96 between the largest and the smallest, so that none is grey. Class 0 is blue (0, 96, 255); each further
 * class has the colour with the largest distance from the nearest colour before it, in OKLab (Ottosson 2020). From
 * class 255 on, they repeat. */
ATT_API void att_class_colours(int count, uint8_t *colours);

#ifdef __cplusplus
}
#endif
#endif
