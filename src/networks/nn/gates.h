/* nn/gates.h - parts of attention modules for feature maps. Such a module pools a map x [h, w, C] into a few numbers
 * per channel, computes one number z per channel from these numbers, and multiplies x by sigmoid(z). */
#ifndef ATT_NN_GATES_H
#define ATT_NN_GATES_H

#include "networks/nn/width.h"

/* PyTorch's initial values of linear layers and convolutions: uniform within 1 / sqrt(inputs per output). */
att_init att_init_fan_in(int64_t inputs);

/* Batch norm in scope "bn". */
att_value att_gates_norm(const att_scope *scope, att_value x);

/* How a gate starts. From ATT_START_RANDOM it is sigmoid(z). From ATT_START_IDENTITY it is 2 sigmoid(z), and the module
 * starts with z = 0: then the gate is exactly 1, and the gradient of z is not 0. */
enum { ATT_START_RANDOM, ATT_START_IDENTITY };
extern const char *const att_gates_starts[];
#define ATT_START_OPTION                                                                                    \
    {                                                                                                       \
        .name = "start",                                                                                    \
        .meaning =                                                                                          \
            "random: the gate is sigmoid(z); identity: it is 2 sigmoid(z), and z starts at 0, so that the " \
            "network starts as without the module",                                                         \
        .high = ATT_START_IDENTITY, .choices = att_gates_starts                                             \
    }

/* Returns x (.) gate, with z [C], or [h, w, 1] for one factor per pixel. All nodes have the scope "<scope>.gate". */
att_value att_gates_apply(const att_scope *scope, att_value x, att_value z, int start);

/* Two linear layers with a ReLU between: inputs -> hidden -> outputs. Declared once; can be applied several times. */
typedef struct att_bottleneck_options {
    const char *names[2];
    int64_t inputs, hidden, outputs;
    bool bias;
    bool convolution; /* weights have the shape [O, I, 1, 1] instead of [O, I] */
    bool zero;        /* the second layer starts with zeros */
} att_bottleneck_options;

typedef struct att_bottleneck {
    att_value weight[2], bias[2];
} att_bottleneck;

att_bottleneck att_bottleneck_declare(const att_scope *scope, const att_bottleneck_options *options);
att_value att_bottleneck_apply(const att_scope *scope, const att_bottleneck *bottleneck, att_value x);

/* Returns the hidden width of a bottleneck: `given` if it is not 0, else channels / ratio. With divisor 0 the quotient
 * is rounded down, to at least 1, as in public implementations of SE networks for CIFAR and of FcaNet. Otherwise it is
 * rounded to the nearest multiple of `divisor`, at least `divisor`, as in timm. */
int64_t att_bottleneck_hidden(int64_t channels, double ratio, int64_t divisor, double given);

/* The option of every module with a bottleneck; the parameter `given` above. */
#define ATT_HIDDEN_OPTION                                                                                          \
    {                                                                                                              \
        .name = "hidden", .meaning = "width between the linear layers; 0: C / ratio", .high = 65536, .whole = true \
    }

/* ECA's convolution with weight [1, 1, k] in scope `name`, along the channels of x [C]. k: odd; 0 means floor(log2(C) /
 * 2 + 1 / 2), increased by 1 if even, and at least 3. zero: the weight starts with zeros. */
att_value att_gates_channel_conv(const att_scope *scope, const char *name, att_value x, int64_t k, bool zero);

/* Mean and standard deviation over the pixels of x [h, w, C], [C, 2]. A map of one pixel fails the graph
 * (ERR_ARGUMENT). */
att_value att_gates_style(const att_scope *scope, att_value x);

/* FcaNet's pooling of x [h, w, C]. The map is resized to H x W, its sides divided by `shrink`, at least 7. The channels
 * form 16 groups; each group uses one of the 16 best frequencies ("top16"), in units of floor(H / 7). If the number of
 * channels is not a multiple of 16 the graph fails (ERR_ARGUMENT). */
att_value att_gates_dct(const att_scope *scope, att_value x, double shrink);
/* Element e of the cosine basis [C, h, w] of att_gates_dct() for maps of h x w, as in FcaNet's files. */
double att_gates_dct_at(att_shape shape, int64_t e);

#endif
