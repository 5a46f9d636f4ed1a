/* kernels/cpu/onednn_conv.h - convolutions and their gradients with oneDNN, on maps with channels last.
 *
 * A 1 x 1 convolution with stride 1 runs as a matrix product (onednn.h), except for the gradient of its weight. So does
 * the data gradient if each element of x is in one window: one product for each row of dy and row of the kernel. The
 * f32 data gradient of large maps runs as a convolution with the rotated kernel. The notes on threads and instruction
 * sets in onednn.h apply here, too.
 */
#ifndef ATT_KERNELS_CPU_ONEDNN_CONV_H
#define ATT_KERNELS_CPU_ONEDNN_CONV_H

#include <attscope/tensor.h>

typedef enum att_conv_kind { ATT_CONV_FORWARD, ATT_CONV_DATA_GRAD, ATT_CONV_WEIGHT_GRAD } att_conv_kind;

/* x [samples, height, width, inputs], y [samples, out_h, out_w, outputs], weight [outputs, inputs / groups, kernel_h,
 * kernel_w]. Padding: `above` and `left`. The padding below and to the right follows from y; it is negative if no
 * window reads the last rows or columns of x. */
typedef struct att_conv_spec {
    att_conv_kind kind;
    int64_t samples, height, width, inputs, out_h, out_w, outputs, kernel_h, kernel_w;
    int64_t stride, dilation, groups, above, left;
    att_dtype dtype, to; /* ATT_F32 or ATT_BF16: of the operands, and of the result; the weight's gradient is f32 */
    bool plain;          /* a data gradient that is one f32 product reads the plain weight */
    const struct att_conv *layout_of; /* pack the weight in this convolution's layout; NULL: in a layout of its own */
} att_conv_spec;

typedef struct att_conv att_conv;

/* Like att_product_create(). ERR_UNSUPPORTED if this version of oneDNN has no such bf16 convolution. */
att_status att_conv_create(att_context *context, const att_conv_spec *spec, att_conv **conv);
/* conv may be NULL. */
void att_conv_destroy(att_context *context, att_conv *conv);

/* Whether the spec is of a data gradient with a stride, and each element of x is in exactly one window. */
bool att_conv_is_apart(const att_conv_spec *spec);
/* Whether the weight must be packed with att_conv_pack(). */
bool att_conv_is_packed(const att_conv_spec *spec);

/* Bytes of scratch for each running thread, aligned to 64. */
size_t att_conv_scratch_bytes(const att_conv *conv);
/* Bytes of a packed weight, including the scratch for packing. */
size_t att_conv_packed_bytes(const att_conv *conv);
/* Equal keys mean equal layouts of packed weights. */
uint64_t att_conv_packed_key(const att_conv *conv);
const char *att_conv_implementation(const att_conv *conv);

att_status att_conv_pack(const att_conv *conv, const float *weight, void *packed);
/* Forward: computes y from x; data gradient: dx from dy. weight: packed if att_conv_is_packed(). */
att_status att_conv_run(const att_conv *conv, const void *from, const void *weight, void *to, void *scratch);
/* Weight gradient: adds to dw, which has the weight's plain layout. */
att_status att_conv_run_weight_grad(const att_conv *conv, const void *dy, const void *x, float *dw, void *scratch);

#endif
