/* network/pixels.h - images in memory as the inputs of a run. */
#ifndef ATT_TESTS_NETWORK_PIXELS_H
#define ATT_TESTS_NETWORK_PIXELS_H

#include <attscope/network.h>

/* The only input of a run. */
typedef struct one_input {
    att_batch batch;
    att_field field;
    const void *data[1];
} one_input;

/* Images [count, height, width, channels of the network]. */
static inline const att_batch *images_of(const att_network *network, const float *pixels, int count, int height,
                                         int width, one_input *input)
{
    input->field = att_model_input_at(att_network_model(network), 0).field;
    input->field.shape.dims[0] = height;
    input->field.shape.dims[1] = width;
    input->data[0] = pixels;
    input->batch = (att_batch){.count = count, .field_count = 1, .fields = &input->field, .data = input->data};
    return &input->batch;
}

static inline att_status run_pixels(att_network *network, const float *pixels, int count, int height, int width,
                                    att_batch *answers)
{
    one_input input;
    return att_network_run(network, images_of(network, pixels, count, height, width, &input), answers);
}

#endif
