/* tasks/pixels.h - the class of each pixel of a photograph, from the logits of windows that cover it at several scales.
 *
 * A pass is the photograph resized to some size, mirrored or not, and cut into overlapping windows, each of which is
 * one image of the network. As in mmsegmentation's slide_inference(), the logits of a window are interpolated to its
 * pixels, those of windows that overlap are averaged at each pixel of the resized photograph, and the result is
 * interpolated to the pixels of the photograph. As in its SegTTAModel, the softmax of each pass is then averaged over
 * the passes. All interpolation is bilinear, without antialiasing, with PyTorch's places (align_corners false).
 *
 * Both interpolations and the average are linear in the logits and act on rows and columns alone. So a row of the
 * photograph is made of a few rows of the logits as they are, and the logits never have the size of the photograph. */
#ifndef ATT_TASKS_PIXELS_H
#define ATT_TASKS_PIXELS_H

#include <attscope/data.h>
#include <attscope/task.h>

#include "base/core/export.h"

/* Logits of the classes at the places of a map, [h, w, classes]. */
typedef struct att_pixel_logits {
    const float *values;
    int64_t h, w, classes;
} att_pixel_logits;

/* Sets *map to the output `name` [h, w, classes], F32, of sample `sample` of the answers. Returns false if there is no
 * such output. */
bool att_pixel_logits_find(const att_batch *answers, const char *name, int sample, att_pixel_logits *map);
/* Sets *map to the logits from which the classes of pixels follow, of the first sample. answers: those of a network of
 * the task `task`. Errors: ERR_UNSUPPORTED (the task gives pixels no class), ERR_MISMATCH (the network has no head). */
ATT_FOR_LAB att_status att_pixel_logits_of(att_context *context, const char *task, const att_batch *answers,
                                           att_pixel_logits *map);
/* Writes the logits at the point (x, y) of an image of width x height pixels that the map covers, interpolated between
 * the centres of its places: logits [classes]. Pixel (i, j) has its centre at (j + 1/2, i + 1/2). */
ATT_FOR_LAB void att_pixel_logits_at(const att_pixel_logits *map, int width, int height, double x, double y,
                                     float *logits);

/* The first class with the largest of `count` values; 0 if none is larger than -infinity. */
uint16_t att_pixel_class(const float *values, int64_t count);

/* Windows along one axis of a resized photograph. Window k begins at pixel min(k stride, side - length), and at 0 if
 * the window is longer than the side: what lies beyond the photograph is filled up. */
typedef struct att_slide {
    int side;   /* of the resized photograph */
    int length; /* of a window */
    int stride;
    int count;
} att_slide;
/* As many windows as cover the side: one if it is no longer than `length`. stride 1..length. */
att_slide att_slide_over(int side, int length, int stride);
int att_slide_begin(const att_slide *windows, int window);

typedef struct att_pass {
    att_slide down, across;
    bool mirrored;       /* left to right, before it is cut */
    int64_t h, w;        /* places of the logits of a window */
    const float *logits; /* [down.count][across.count][h][w][classes] */
} att_pass;

/* Sets classes[mask->height][mask->width] of *mask, the photograph's, whose sides are set: the first class with the
 * largest mean softmax; with a single pass the one with the largest logit. Bits do not depend on the number of threads.
 * Memory: for each thread a row of the photograph and one of the logits. Errors: ERR_MEMORY. */
att_status att_pixels_classify(att_context *context, const att_pass *passes, int count, int64_t classes,
                               att_mask *mask);

#endif
