/* study/networks.h - for tests: opens small networks, and makes an image for them. */
#ifndef TESTS_STUDY_NETWORKS_H
#define TESTS_STUDY_NETWORKS_H

#include <attscope/attscope.h>

#include "context.h"
#include "formula.h"

SHARED_CONTEXT(threads, 2)

enum { CLASSES = 10, MOST_SIDE = 56 };

typedef struct option {
    const char *name, *text;
    double number;
} option;

/* A network with CLASSES classes for images of side x side pixels. patch_h: 0: not an option of the network. options:
 * up to one without a name. */
static inline att_network *open_small(const char *model, int side, int patch_h, int patch_w, const option *options,
                                      att_network_options how)
{
    att_option_values values = att_options_none();
    att_network *network = NULL;
    how.options = &values;
    att_options_set_sides(&values, "img_size", side, side);
    att_options_set(&values, "num_classes", CLASSES);
    if (patch_h)
        att_options_set_sides(&values, "patch_size", patch_h, patch_w);
    for (const option *o = options; o->name; o++)
        if (o->text)
            att_options_set_text(&values, o->name, o->text);
        else
            att_options_set(&values, o->name, o->number);
    must(att_network_open(context, model, &how, &network));
    return network;
}

/* Copy the values of a parameter from or to floats. dtype: of the network. */
static inline void set_values(att_weights *weights, int index, const float *values, int64_t count, att_dtype dtype)
{
    double *wide = malloc((size_t)count * sizeof *wide);
    assert_non_null(wide);
    for (int64_t e = 0; e < count; e++)
        wide[e] = (double)values[e];
    must(att_weights_set(weights, -1, index, dtype == ATT_F64 ? (const void *)wide : values, count));
    free(wide);
}

static inline void get_values(const att_weights *weights, int index, float *values, int64_t count, att_dtype dtype)
{
    double *wide = malloc((size_t)count * sizeof *wide);
    assert_non_null(wide);
    must(att_weights_get(weights, -1, index, dtype == ATT_F64 ? (void *)wide : values, count));
    for (int64_t e = 0; dtype == ATT_F64 && e < count; e++)
        values[e] = (float)wide[e];
    free(wide);
}

/* An image of side x side pixels; valid until the next call. */
static inline att_batch image_input(int side)
{
    static float pixels[MOST_SIDE * MOST_SIDE * 3];
    static att_field field = {.name = "image", .dtype = ATT_F32};
    static const void *data[1] = {pixels};
    field.shape = (att_shape){3, {side, side, 3}};
    for (int i = 0; i < side * side * 3; i++)
        pixels[i] = (float)(4 * formula("image", (uint32_t)i));
    return (att_batch){.count = 1, .field_count = 1, .fields = &field, .data = data};
}

static inline double larger(double a, double b)
{
    return a > b ? a : b;
}

#endif
