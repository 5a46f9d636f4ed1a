/* nn/gates.h - what attention modules of feature maps share: they pool a map x [h, w, C] into a few numbers a channel,
 * make one number z a channel of those, and scale x with sigmoid(z). */
#ifndef ATT_NN_GATES_H
#define ATT_NN_GATES_H

#include "nn/width.h"

/* How PyTorch starts a linear layer or a convolution: uniform within 1 / sqrt(inputs of an output). */
att_init att_init_fan_in(int64_t inputs);

/* Batch norm in scope "bn". */
att_value att_gates_norm(const att_scope *scope, att_value x);

/* x (.) sigmoid(z), z [C] or, a number a pixel, [h, w, 1]; both nodes bear the name "<scope>.gate". */
att_value att_gates_apply(const att_scope *scope, att_value x, att_value z);

/* Two linear layers with a ReLU between, inputs -> hidden -> outputs. Declared once, applied as often as needed. */
typedef struct att_bottleneck_options {
    const char *names[2];
    int64_t inputs, hidden, outputs;
    bool bias;
    bool convolution; /* weights [O, I, 1, 1] instead of [O, I] */
} att_bottleneck_options;

typedef struct att_bottleneck {
    att_value weight[2], bias[2];
} att_bottleneck;

att_bottleneck att_bottleneck_declare(const att_scope *scope, const att_bottleneck_options *options);
att_value att_bottleneck_apply(const att_scope *scope, const att_bottleneck *bottleneck, att_value x);

/* Width between the layers of a bottleneck: `said` where that is not 0. Otherwise channels / ratio: with divisor 0
 * rounded down, at least 1, as the public codes of SE networks for CIFAR and of FcaNet do; with another divisor rounded
 * to its nearest multiple, at least one, as timm does. */
int64_t att_bottleneck_hidden(int64_t channels, double ratio, int64_t divisor, double said);

/* The option that every module with a bottleneck has: `said` above. */
#define ATT_HIDDEN_OPTION                                                                                          \
    {                                                                                                              \
        .name = "hidden", .meaning = "width between the linear layers; 0: C / ratio", .high = 65536, .whole = true \
    }

/* ECA's weight [1, 1, k] in scope `name` along the channels of x [C]; k: odd, or 0: floor(log2(C) / 2 + 1 / 2), plus
 * one where that is even, at least 3. */
att_value att_gates_channel_conv(const att_scope *scope, const char *name, att_value x, int64_t k);

/* Mean and deviation over the pixels of x [h, w, C], [C, 2]; a map of one pixel fails the graph (ERR_ARGUMENT). */
att_value att_gates_style(const att_scope *scope, att_value x);

/* FcaNet's pooling of x [h, w, C]: 16 groups of channels, each with one of the 16 frequencies that serve best
 * ("top16"), in units of floor(H / 7), over the map brought to H x W, the sides divided by `shrink` and at least 7.
 * Channels that are no multiple of 16 fail the graph (ERR_ARGUMENT). */
att_value att_gates_dct(const att_scope *scope, att_value x, double shrink);
/* Element e of its cosines for maps of h x w, as FcaNet's files have them: [C, h, w]. */
double att_gates_dct_at(att_shape shape, int64_t e);

#endif
