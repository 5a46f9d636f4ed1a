#include "engine/kernels/cpu/onednn_conv.h"

#include "base/core/error.h"
#include "base/core/memory.h"
#include "base/core/random.h"
#include "engine/kernels/cpu/onednn.h"
#include "engine/kernels/cpu/onednn_inner.h"

enum { X, WEIGHT, Y, DESCS };

/* Either a matrix product, of all pixels or of a row at a time, or a primitive with a reorder. The reorder converts the
 * plain weight to the primitive's layout; for weight gradients, it converts back and adds. */
struct att_conv {
    att_context *context;
    att_conv_spec spec; /* what is computed: if `rotated`, the convolution of dy */
    bool rotated;
    att_product *product;
    dnnl_engine_t engine;
    dnnl_primitive_desc_t desc, reorder_desc;
    dnnl_primitive_t primitive, reorder;
    att_onednn_ref tensor[DESCS], scratch; /* descriptions from desc */
    att_onednn_ref plain, reorder_scratch; /* descriptions from reorder_desc */
};

/* Whether the convolution is computed as one matrix product. Never true of weight gradients. */
static bool is_product(const att_conv_spec *spec)
{
    return spec->kernel_h == 1 && spec->kernel_w == 1 && spec->stride == 1 && spec->groups == 1 && spec->above == 0 &&
           spec->left == 0 && spec->kind != ATT_CONV_WEIGHT_GRAD;
}

bool att_conv_is_apart(const att_conv_spec *spec)
{
    return spec->kind == ATT_CONV_DATA_GRAD && spec->stride > 1 && spec->kernel_h == spec->stride &&
           spec->kernel_w == spec->stride && spec->dilation == 1 && spec->groups == 1 && spec->above == 0 &&
           spec->left == 0 && spec->height == spec->stride * spec->out_h && spec->width == spec->stride * spec->out_w;
}

/* Whether the convolution is computed row by row: each row of dy, times the weights of a row of the kernel, is a row of
 * dx. Rows of few pixels make products too small to be fast. */
static bool is_by_rows(const att_conv_spec *spec)
{
    enum { FEWEST = 8 };
    return att_conv_is_apart(spec) && spec->out_w >= FEWEST;
}

/* Whether a data gradient is computed as the convolution of dy with the kernel rotated by 180 degrees. oneDNN's data
 * gradient in f32 is slow if dy has many channels and does not fit into the level 2 cache: it reaches 150 to 225
 * GFLOP/s on a core on which the convolution reaches 265 (28 x 28 to 128 x 128 pixels, 256 and 512 channels). An f32
 * result of bf16 operands, which other steps finish, is possible only as a convolution. */
static bool is_rotated(const att_conv_spec *spec)
{
    enum { CHANNELS = 256, ELEMENTS = 1 << 18 };
    return spec->kind == ATT_CONV_DATA_GRAD && spec->to == ATT_F32 && spec->stride == 1 && spec->groups == 1 &&
           !is_product(spec) && spec->above <= spec->dilation * (spec->kernel_h - 1) &&
           spec->left <= spec->dilation * (spec->kernel_w - 1) && spec->outputs >= CHANNELS &&
           spec->out_h * spec->out_w * spec->outputs > ELEMENTS;
}

static att_conv_spec rotated_of(const att_conv_spec *spec)
{
    att_conv_spec rotated = *spec;
    rotated.kind = ATT_CONV_FORWARD;
    rotated.height = spec->out_h;
    rotated.width = spec->out_w;
    rotated.inputs = spec->outputs;
    rotated.out_h = spec->height;
    rotated.out_w = spec->width;
    rotated.outputs = spec->inputs;
    rotated.above = spec->dilation * (spec->kernel_h - 1) - spec->above;
    rotated.left = spec->dilation * (spec->kernel_w - 1) - spec->left;
    return rotated;
}

bool att_conv_is_packed(const att_conv_spec *spec)
{
    return !spec->plain || spec->dtype != ATT_F32 || !is_product(spec);
}

/* --- creating----------------------------------------------------------------------------------------------------- */

static att_status make_product(att_conv *conv)
{
    const att_conv_spec *spec = &conv->spec;
    bool back = spec->kind == ATT_CONV_DATA_GRAD;
    att_product_spec product = {.rows = is_by_rows(spec) ? spec->out_w : spec->samples * spec->out_h * spec->out_w,
                                .inner = back ? spec->outputs : spec->inputs,
                                .columns = back ? spec->kernel_w * spec->inputs : spec->outputs,
                                .dtype = spec->dtype,
                                .to = spec->to,
                                .b_transposed = !back,
                                .pack = att_conv_is_packed(spec)};
    product.layout_of = product.pack && spec->layout_of ? spec->layout_of->product : NULL;
    return att_product_create(conv->context, &product, &conv->product);
}

static dnnl_status_t map_desc(dnnl_memory_desc_t *desc, att_dtype dtype, int64_t samples, int64_t height, int64_t width,
                              int64_t channels)
{
    const int64_t dims[] = {samples, channels, height, width};
    const int64_t strides[] = {height * width * channels, 1, width * channels, channels};
    return att_onednn_desc(desc, dtype, 4, dims, strides);
}

/* The weight's plain layout, or any layout that oneDNN prefers. */
static dnnl_status_t weight_desc(dnnl_memory_desc_t *desc, att_dtype dtype, const att_conv_spec *spec, bool plain)
{
    int64_t taps = spec->kernel_h * spec->kernel_w, seen = spec->inputs / spec->groups;
    const int64_t dims[] = {spec->groups, spec->outputs / spec->groups, seen, spec->kernel_h, spec->kernel_w};
    const int64_t strides[] = {dims[1] * seen * taps, seen * taps, taps, spec->kernel_w, 1};
    int skip = spec->groups == 1;
    return att_onednn_desc(desc, dtype, 5 - skip, dims + skip, plain ? strides + skip : NULL);
}

static dnnl_status_t create_desc(const att_conv_spec *spec, int which, dnnl_memory_desc_t *desc)
{
    att_dtype x = spec->kind == ATT_CONV_DATA_GRAD ? spec->to : spec->dtype;
    att_dtype y = spec->kind == ATT_CONV_FORWARD ? spec->to : spec->dtype;
    if (which == X)
        return map_desc(desc, x, spec->samples, spec->height, spec->width, spec->inputs);
    if (which == Y)
        return map_desc(desc, y, spec->samples, spec->out_h, spec->out_w, spec->outputs);
    if (spec->layout_of)
        return att_onednn_desc_copy(desc, spec->layout_of->tensor[WEIGHT]);
    return weight_desc(desc, spec->kind == ATT_CONV_WEIGHT_GRAD ? ATT_F32 : spec->dtype, spec, false);
}

static void set_windows(const att_conv_spec *spec, att_onednn_conv *conv)
{
    const int64_t size[] = {spec->height, spec->width}, to[] = {spec->out_h, spec->out_w};
    const int64_t kernel[] = {spec->kernel_h, spec->kernel_w}, before[] = {spec->above, spec->left};
    for (int axis = 0; axis < 2; axis++) {
        conv->stride[axis] = spec->stride;
        conv->dilation[axis] = spec->dilation - 1;
        conv->before[axis] = before[axis];
        conv->after[axis] =
            (to[axis] - 1) * spec->stride + spec->dilation * (kernel[axis] - 1) + 1 - size[axis] - before[axis];
    }
}

static void query_descs(att_conv *conv)
{
    static const dnnl_query_t queries[][DESCS] = {
        [ATT_CONV_FORWARD] = {dnnl_query_src_md, dnnl_query_weights_md, dnnl_query_dst_md},
        [ATT_CONV_DATA_GRAD] = {dnnl_query_diff_src_md, dnnl_query_weights_md, dnnl_query_diff_dst_md},
        [ATT_CONV_WEIGHT_GRAD] = {dnnl_query_src_md, dnnl_query_diff_weights_md, dnnl_query_diff_dst_md}};
    for (int i = 0; i < DESCS; i++)
        conv->tensor[i] = dnnl_primitive_desc_query_md(conv->desc, queries[conv->spec.kind][i], 0);
    conv->scratch = dnnl_primitive_desc_query_md(conv->desc, dnnl_query_scratchpad_md, 0);
}

static dnnl_status_t create_primitive(att_conv *conv)
{
    att_onednn_conv settings = {.kind = conv->spec.kind};
    dnnl_primitive_attr_t attr;
    dnnl_status_t status = dnnl_success;
    int created = 0;
    set_windows(&conv->spec, &settings);
    while (created < DESCS && status == dnnl_success) {
        status = create_desc(&conv->spec, created, &settings.desc[created]);
        created += status == dnnl_success;
    }
    if (status == dnnl_success)
        status = att_onednn_attr(&attr, false);
    if (status == dnnl_success) {
        status = att_onednn_conv_desc(&conv->desc, conv->engine, &settings, attr);
        dnnl_primitive_attr_destroy(attr);
    }
    while (created-- > 0)
        att_onednn_desc_free(&settings.desc[created]);
    if (status != dnnl_success)
        return status;
    query_descs(conv);
    return dnnl_primitive_create(&conv->primitive, conv->desc);
}

static dnnl_status_t create_reorder(att_conv *conv)
{
    bool back = conv->spec.kind == ATT_CONV_WEIGHT_GRAD;
    dnnl_memory_desc_t plain;
    dnnl_primitive_attr_t attr;
    dnnl_status_t status = weight_desc(&plain, ATT_F32, &conv->spec, true);
    if (status != dnnl_success)
        return status;
    status = att_onednn_attr(&attr, back);
    if (status == dnnl_success) {
        att_onednn_ref outside = att_onednn_ref_of(&plain), inside = conv->tensor[WEIGHT];
        status = dnnl_reorder_primitive_desc_create(&conv->reorder_desc, back ? inside : outside, conv->engine,
                                                    back ? outside : inside, conv->engine, attr);
        dnnl_primitive_attr_destroy(attr);
    }
    att_onednn_desc_free(&plain);
    if (status != dnnl_success)
        return status;
    conv->plain = dnnl_primitive_desc_query_md(conv->reorder_desc, back ? dnnl_query_dst_md : dnnl_query_src_md, 0);
    conv->reorder_scratch = dnnl_primitive_desc_query_md(conv->reorder_desc, dnnl_query_scratchpad_md, 0);
    return dnnl_primitive_create(&conv->reorder, conv->reorder_desc);
}

static att_status create_all(att_conv *conv)
{
    if (is_product(&conv->spec) || is_by_rows(&conv->spec))
        return make_product(conv);
    ATT_TRY(att_onednn_begin(conv->context, "a convolution"));
    int before = att_onednn_enter();
    dnnl_status_t status = dnnl_engine_create(&conv->engine, dnnl_cpu, 0);
    if (status == dnnl_success)
        status = create_primitive(conv);
    if (status == dnnl_success)
        status = create_reorder(conv);
    att_onednn_leave(before);
    return att_onednn_check(conv->context, status, "a convolution");
}

att_status att_conv_create(att_context *context, const att_conv_spec *spec, att_conv **conv)
{
    att_conv *created;
    ATT_TRY(att_new(context, &created, 1, "a convolution"));
    created->context = context;
    created->rotated = is_rotated(spec);
    created->spec = created->rotated ? rotated_of(spec) : *spec;
    att_status status = create_all(created);
    if (status != ATT_OK) {
        att_conv_destroy(context, created);
        return status;
    }
    *conv = created;
    return ATT_OK;
}

void att_conv_destroy(att_context *context, att_conv *conv)
{
    if (!conv)
        return;
    att_product_destroy(context, conv->product);
    dnnl_primitive_destroy(conv->primitive);
    dnnl_primitive_destroy(conv->reorder);
    dnnl_primitive_desc_destroy(conv->desc);
    dnnl_primitive_desc_destroy(conv->reorder_desc);
    dnnl_engine_destroy(conv->engine);
    att_free(context, conv);
}

/* --- sizes -------------------------------------------------------------------------------------------------------- */

static size_t weight_part(const att_conv *conv)
{
    return (dnnl_memory_desc_get_size(conv->tensor[WEIGHT]) + 63) / 64 * 64;
}

/* A weight gradient is computed in oneDNN's layout at the beginning of scratch and then added. */
size_t att_conv_scratch_bytes(const att_conv *conv)
{
    if (conv->product)
        return att_product_scratch_bytes(conv->product);
    size_t run = dnnl_memory_desc_get_size(conv->scratch), reorder = dnnl_memory_desc_get_size(conv->reorder_scratch);
    return conv->spec.kind == ATT_CONV_WEIGHT_GRAD ? weight_part(conv) + (run > reorder ? run : reorder) : run;
}

/* Of one row of the kernel. */
static size_t row_part(const att_conv *conv)
{
    return (att_product_packed_bytes(conv->product) + 63) / 64 * 64;
}

static size_t scratch_part(const att_conv *conv)
{
    return (dnnl_memory_desc_get_size(conv->reorder_scratch) + 63) / 64 * 64;
}

/* Elements of one row of the kernel. */
static int64_t row_elements(const att_conv_spec *spec)
{
    return spec->outputs * spec->kernel_w * spec->inputs;
}

size_t att_conv_packed_bytes(const att_conv *conv)
{
    const att_conv_spec *spec = &conv->spec;
    if (is_by_rows(spec))
        return (size_t)spec->kernel_h * row_part(conv) + (size_t)row_elements(spec) * sizeof(float);
    if (conv->product)
        return att_product_packed_bytes(conv->product);
    size_t plain = conv->rotated ? (size_t)(row_elements(spec) * spec->kernel_h) * sizeof(float) : 0;
    return weight_part(conv) + scratch_part(conv) + plain;
}

uint64_t att_conv_packed_key(const att_conv *conv)
{
    return conv->product ? att_random_key(att_product_packed_key(conv->product), is_by_rows(&conv->spec), 0)
                         : att_random_key(att_onednn_layout_hash(conv->tensor[WEIGHT]), att_conv_packed_bytes(conv), 1);
}

const char *att_conv_implementation(const att_conv *conv)
{
    return conv->product ? att_product_implementation(conv->product) : att_onednn_implementation(conv->desc);
}

/* --- running ------------------------------------------------------------------------------------------------------ */

/* Passes `scratch` only if the primitive needs any. */
static att_status execute(const att_conv *conv, dnnl_primitive_t primitive, att_onednn_argument *arguments, int count,
                          att_onednn_ref scratch, void *memory)
{
    if (dnnl_memory_desc_get_size(scratch))
        arguments[count++] = (att_onednn_argument){DNNL_ARG_SCRATCHPAD, scratch, memory};
    return att_onednn_check(conv->context, att_onednn_execute(conv->engine, primitive, arguments, count),
                            "running a convolution");
}

/* The weights of row u of the kernel as [outputs, kernel_w, inputs]. */
static void copy_row(const att_conv_spec *spec, const float *weight, int64_t u, float *row)
{
    for (int64_t o = 0; o < spec->outputs; o++)
        for (int64_t v = 0; v < spec->kernel_w; v++)
            for (int64_t c = 0; c < spec->inputs; c++)
                *row++ = weight[((o * spec->inputs + c) * spec->kernel_h + u) * spec->kernel_w + v];
}

static att_status pack_rows(const att_conv *conv, const float *weight, char *packed)
{
    float *row = (float *)(packed + (size_t)conv->spec.kernel_h * row_part(conv));
    for (int64_t u = 0; u < conv->spec.kernel_h; u++) {
        copy_row(&conv->spec, weight, u, row);
        ATT_TRY(att_product_pack(conv->product, row, packed + (size_t)u * row_part(conv)));
    }
    return ATT_OK;
}

/* weight [inputs, outputs, kernel_h, kernel_w] as [outputs, inputs, kernel_h, kernel_w], with both axes of the kernel
 * reversed. */
static void rotate(const att_conv_spec *spec, const float *weight, float *rotated)
{
    int64_t taps = spec->kernel_h * spec->kernel_w;
    for (int64_t o = 0; o < spec->outputs; o++)
        for (int64_t c = 0; c < spec->inputs; c++)
            for (int64_t tap = taps - 1; tap >= 0; tap--)
                *rotated++ = weight[(c * spec->outputs + o) * taps + tap];
}

att_status att_conv_pack(const att_conv *conv, const float *weight, void *packed)
{
    if (is_by_rows(&conv->spec))
        return pack_rows(conv, weight, packed);
    if (conv->product)
        return att_product_pack(conv->product, weight, packed);
    if (conv->rotated) {
        float *rotated = (float *)((char *)packed + weight_part(conv) + scratch_part(conv));
        rotate(&conv->spec, weight, rotated);
        weight = rotated;
    }
    att_onednn_argument arguments[ATT_ONEDNN_ARGUMENTS] = {{DNNL_ARG_FROM, conv->plain, weight},
                                                           {DNNL_ARG_TO, conv->tensor[WEIGHT], packed}};
    return execute(conv, conv->reorder, arguments, 2, conv->reorder_scratch, (char *)packed + weight_part(conv));
}

static att_status run_rows(const att_conv *conv, const char *from, const char *weight, char *to, void *scratch)
{
    const att_conv_spec *spec = &conv->spec;
    size_t y_row = (size_t)(spec->out_w * spec->outputs) * att_dtype_size(spec->dtype);
    size_t x_row = (size_t)(spec->width * spec->inputs) * att_dtype_size(spec->to);
    for (int64_t row = 0; row < spec->samples * spec->height; row++) {
        const void *weights = weight + (size_t)(row % spec->kernel_h) * row_part(conv);
        ATT_TRY(att_product_run(conv->product, from + (size_t)(row / spec->kernel_h) * y_row, weights, NULL,
                                to + (size_t)row * x_row, scratch));
    }
    return ATT_OK;
}

att_status att_conv_run(const att_conv *conv, const void *from, const void *weight, void *to, void *scratch)
{
    if (is_by_rows(&conv->spec))
        return run_rows(conv, from, weight, to, scratch);
    if (conv->product)
        return att_product_run(conv->product, from, weight, NULL, to, scratch);
    bool back = conv->spec.kind == ATT_CONV_DATA_GRAD;
    att_onednn_argument arguments[ATT_ONEDNN_ARGUMENTS] = {
        {back ? DNNL_ARG_DIFF_DST : DNNL_ARG_SRC, conv->tensor[back ? Y : X], from},
        {DNNL_ARG_WEIGHTS, conv->tensor[WEIGHT], weight},
        {back ? DNNL_ARG_DIFF_SRC : DNNL_ARG_DST, conv->tensor[back ? X : Y], to}};
    return execute(conv, conv->primitive, arguments, 3, conv->scratch, scratch);
}

att_status att_conv_run_weight_grad(const att_conv *conv, const void *dy, const void *x, float *dw, void *scratch)
{
    void *rest = (char *)scratch + weight_part(conv);
    att_onednn_argument arguments[ATT_ONEDNN_ARGUMENTS] = {{DNNL_ARG_SRC, conv->tensor[X], x},
                                                           {DNNL_ARG_DIFF_DST, conv->tensor[Y], dy},
                                                           {DNNL_ARG_DIFF_WEIGHTS, conv->tensor[WEIGHT], scratch}};
    ATT_TRY(execute(conv, conv->primitive, arguments, 3, conv->scratch, rest));
    att_onednn_argument add[ATT_ONEDNN_ARGUMENTS] = {{DNNL_ARG_FROM, conv->tensor[WEIGHT], scratch},
                                                     {DNNL_ARG_TO, conv->plain, dw}};
    return execute(conv, conv->reorder, add, 2, conv->reorder_scratch, rest);
}
