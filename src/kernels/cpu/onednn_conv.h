/* kernels/cpu/onednn_conv.h - convolutions and their gradients by oneDNN, on maps that lie channels last.
 *
 * A convolution by 1 x 1 that moves by single pixels is a matrix product and is made as one (onednn.h), except for the
 * gradient of its weight. What onednn.h says of threads and instruction sets holds here.
 */
#ifndef ATT_KERNELS_CPU_ONEDNN_CONV_H
#define ATT_KERNELS_CPU_ONEDNN_CONV_H

#include <attscope/tensor.h>

typedef enum att_conv_kind { ATT_CONV_FORWARD, ATT_CONV_DATA_GRAD, ATT_CONV_WEIGHT_GRAD } att_conv_kind;

/* x [samples, height, width, inputs], y [samples, out_h, out_w, outputs], weight [outputs, inputs / groups, kernel_h,
 * kernel_w]. Padding: `above` and `left`; below and to the right as much as y needs, which may be negative: rows of x
 * that no window sees. */
typedef struct att_conv_spec {
    att_conv_kind kind;
    int64_t samples, height, width, inputs, out_h, out_w, outputs, kernel_h, kernel_w;
    int64_t stride, dilation, groups, above, left;
    att_dtype dtype, to; /* ATT_F32, ATT_BF16: of the operands, and of the result; the weight's gradient is f32 */
    const struct att_conv *layout_of; /* whose packed weight this one takes; NULL: its own layout */
} att_conv_spec;

typedef struct att_conv att_conv;

/* As att_product_create(); ERR_UNSUPPORTED where this oneDNN has no such convolution in bf16. */
att_status att_conv_create(att_context *context, const att_conv_spec *spec, att_conv **conv);
/* NULL is allowed. */
void att_conv_destroy(att_context *context, att_conv *conv);

/* Whether the spec's forward pass and data gradient are matrix products. */
bool att_conv_is_product(const att_conv_spec *spec);

/* Whether the weight is given in a layout of its own, made by att_conv_pack(). To a product's data gradient in f32 it
 * is given as it lies: a packed copy would cost memory and hardly be faster. */
bool att_conv_is_packed(const att_conv_spec *spec);

/* Bytes that each running thread brings, aligned to 64. */
size_t att_conv_scratch_bytes(const att_conv *conv);
/* Bytes of a packed weight, with what packing itself needs behind it. */
size_t att_conv_packed_bytes(const att_conv *conv);
/* Equal keys mean equal layouts of packed weights. */
uint64_t att_conv_packed_key(const att_conv *conv);
const char *att_conv_implementation(const att_conv *conv);

att_status att_conv_pack(const att_conv *conv, const float *weight, void *packed);
/* Forward: y of x; data gradient: dx of dy. weight: packed, unless the spec's is not. */
att_status att_conv_run(const att_conv *conv, const void *from, const void *weight, void *to, void *scratch);
/* Weight gradient: dw, laid out as the weight, += its gradient. */
att_status att_conv_run_weight_grad(const att_conv *conv, const void *dy, const void *x, float *dw, void *scratch);

#endif
