#include "engine/kernels/cpu/onednn_conv.h"

#include <string.h>

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
    att_conv_spec step; /* what one run of the primitive computes: spec, or a tile of y from its padded part of x */
    bool rotated, tiled;
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

/* Whether y is computed in tiles, from copies of their parts of x. oneDNN's convolution for AVX2 passes over the whole
 * map once for a few input channels, so maps that do not fit into the cache make it slow: on a core of a Zen 3 it
 * reaches 57 GFLOP/s for 64 x 128 pixels and 128 to 512 channels, and 80 to 86 in tiles of 16 x 32. */
static bool is_tiled(const att_context *context, const att_conv_spec *spec)
{
    enum { CHANNELS = 64, ELEMENTS = 1 << 19 };
    return !(att_context_features(context) & ATT_AVX512) && spec->kind == ATT_CONV_FORWARD && spec->dtype == ATT_F32 &&
           spec->groups == 1 && spec->inputs >= CHANNELS && spec->height * spec->width * spec->inputs > ELEMENTS;
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t rows_read(const att_conv_spec *spec)
{
    return (spec->out_h - 1) * spec->stride + spec->dilation * (spec->kernel_h - 1) + 1;
}

static int64_t columns_read(const att_conv_spec *spec)
{
    return (spec->out_w - 1) * spec->stride + spec->dilation * (spec->kernel_w - 1) + 1;
}

/* The largest part of `extent` that is at most `most` if all parts are about as large. */
static int64_t even_part(int64_t extent, int64_t most)
{
    int64_t parts = (extent + most - 1) / most;
    return (extent + parts - 1) / parts;
}

static att_conv_spec tile_of(const att_conv_spec *spec)
{
    enum { COLUMNS = 32, ROWS = 16, FEWEST = 4, ELEMENTS = 3 << 17 };
    att_conv_spec tile = *spec;
    tile.samples = 1;
    tile.above = tile.left = 0;
    tile.out_w = even_part(spec->out_w, COLUMNS);
    tile.width = columns_read(&tile);
    for (int64_t rows = ROWS; rows >= FEWEST; rows /= 2) {
        tile.out_h = even_part(spec->out_h, rows);
        tile.height = rows_read(&tile);
        if (tile.height * tile.width * tile.inputs <= ELEMENTS)
            break;
    }
    return tile;
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
    const int64_t size[] = {spec->height, spec->width}, read[] = {rows_read(spec), columns_read(spec)};
    const int64_t before[] = {spec->above, spec->left};
    for (int axis = 0; axis < 2; axis++) {
        conv->stride[axis] = spec->stride;
        conv->dilation[axis] = spec->dilation - 1;
        conv->before[axis] = before[axis];
        conv->after[axis] = read[axis] - size[axis] - before[axis];
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
    att_onednn_conv settings = {.kind = conv->step.kind};
    dnnl_primitive_attr_t attr;
    dnnl_status_t status = dnnl_success;
    int created = 0;
    set_windows(&conv->step, &settings);
    while (created < DESCS && status == dnnl_success) {
        status = create_desc(&conv->step, created, &settings.desc[created]);
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
    created->tiled = !is_product(&created->spec) && is_tiled(context, &created->spec);
    created->step = created->tiled ? tile_of(&created->spec) : created->spec;
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

/* Bytes of a tile of x, and of one of y. */
static size_t tile_part(const att_conv *conv, int which)
{
    return conv->tiled ? (dnnl_memory_desc_get_size(conv->tensor[which]) + 63) / 64 * 64 : 0;
}

/* A weight gradient is computed in oneDNN's layout at the beginning of scratch and then added. Tiles of x and y are
 * there, too. */
size_t att_conv_scratch_bytes(const att_conv *conv)
{
    if (conv->product)
        return att_product_scratch_bytes(conv->product);
    size_t run = dnnl_memory_desc_get_size(conv->scratch), reorder = dnnl_memory_desc_get_size(conv->reorder_scratch);
    return conv->spec.kind == ATT_CONV_WEIGHT_GRAD ? weight_part(conv) + (run > reorder ? run : reorder)
                                                   : tile_part(conv, X) + tile_part(conv, Y) + run;
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

/* Copies the part of a sample's x [height, width, inputs] that a tile reads; above and left: where it begins, possibly
 * outside of x, where it is 0. */
static void copy_tile(const att_conv *conv, const float *x, int64_t above, int64_t left, float *tile)
{
    const att_conv_spec *spec = &conv->spec, *step = &conv->step;
    int64_t before = left < 0 ? -left : 0, end = smaller(spec->width - left, step->width);
    int64_t row = step->width * spec->inputs;
    for (int64_t i = 0; i < step->height; i++, tile += row) {
        int64_t from = above + i;
        if (from < 0 || from >= spec->height) {
            memset(tile, 0, (size_t)row * sizeof(float));
            continue;
        }
        memset(tile, 0, (size_t)(before * spec->inputs) * sizeof(float));
        memcpy(tile + before * spec->inputs, x + (from * spec->width + left + before) * spec->inputs,
               (size_t)((end - before) * spec->inputs) * sizeof(float));
        memset(tile + end * spec->inputs, 0, (size_t)((step->width - end) * spec->inputs) * sizeof(float));
    }
}

static att_status run_primitive(const att_conv *conv, const void *from, const void *weight, void *to, void *scratch)
{
    bool back = conv->spec.kind == ATT_CONV_DATA_GRAD;
    att_onednn_argument arguments[ATT_ONEDNN_ARGUMENTS] = {
        {back ? DNNL_ARG_DIFF_DST : DNNL_ARG_SRC, conv->tensor[back ? Y : X], from},
        {DNNL_ARG_WEIGHTS, conv->tensor[WEIGHT], weight},
        {back ? DNNL_ARG_DIFF_SRC : DNNL_ARG_DST, conv->tensor[back ? X : Y], to}};
    return execute(conv, conv->primitive, arguments, 3, conv->scratch, scratch);
}

/* Computes the tile of a sample's y that begins at (row, column). */
static att_status run_tile(const att_conv *conv, const float *x, const void *weight, float *y, int64_t row,
                           int64_t column, char *scratch)
{
    const att_conv_spec *spec = &conv->spec, *step = &conv->step;
    float *tile_x = (float *)scratch, *tile_y = (float *)(scratch + tile_part(conv, X));
    int64_t elements = step->out_w * spec->outputs;
    copy_tile(conv, x, row * spec->stride - spec->above, column * spec->stride - spec->left, tile_x);
    ATT_TRY(run_primitive(conv, tile_x, weight, tile_y, scratch + tile_part(conv, X) + tile_part(conv, Y)));
    for (int64_t i = 0; i < step->out_h; i++)
        memcpy(y + ((row + i) * spec->out_w + column) * spec->outputs, tile_y + i * elements,
               (size_t)elements * sizeof(float));
    return ATT_OK;
}

/* The last tiles of a row and of a column end with y, so they can overlap those before them. */
static att_status run_tiles(const att_conv *conv, const float *x, const void *weight, float *y, void *scratch)
{
    const att_conv_spec *spec = &conv->spec, *step = &conv->step;
    for (int64_t sample = 0; sample < spec->samples; sample++) {
        for (int64_t row = 0; row < spec->out_h; row += step->out_h)
            for (int64_t column = 0; column < spec->out_w; column += step->out_w)
                ATT_TRY(run_tile(conv, x, weight, y, smaller(row, spec->out_h - step->out_h),
                                 smaller(column, spec->out_w - step->out_w), scratch));
        x += spec->height * spec->width * spec->inputs;
        y += spec->out_h * spec->out_w * spec->outputs;
    }
    return ATT_OK;
}

att_status att_conv_run(const att_conv *conv, const void *from, const void *weight, void *to, void *scratch)
{
    if (is_by_rows(&conv->spec))
        return run_rows(conv, from, weight, to, scratch);
    if (conv->product)
        return att_product_run(conv->product, from, weight, NULL, to, scratch);
    return conv->tiled ? run_tiles(conv, from, weight, to, scratch) : run_primitive(conv, from, weight, to, scratch);
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
