#include "engine/kernels/cpu/onednn.h"

#include "base/core/error.h"
#include "base/core/memory.h"
#include "base/core/random.h"
#include "base/core/threads.h"
#include "engine/kernels/cpu/list.h"
#include "engine/kernels/cpu/onednn_inner.h"

/* Functions of libgomp, which oneDNN uses. Not every compiler has the header. */
int omp_get_max_threads(void);
void omp_set_num_threads(int threads);

#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)
const char att_cpu_version[] =
    "onednn-" TEXT(DNNL_VERSION_MAJOR) "." TEXT(DNNL_VERSION_MINOR) "." TEXT(DNNL_VERSION_PATCH);

/* --- differences between oneDNN 2 and 3--------------------------------------------------------------------------- */

static dnnl_data_type_t type_of(att_dtype dtype)
{
    return dtype == ATT_BF16 ? dnnl_bf16 : dnnl_f32;
}

#if DNNL_VERSION_MAJOR >= 3

dnnl_status_t att_onednn_desc(dnnl_memory_desc_t *desc, att_dtype dtype, int rank, const int64_t *dims,
                              const int64_t *strides)
{
    return strides ? dnnl_memory_desc_create_with_strides(desc, rank, dims, type_of(dtype), strides)
                   : dnnl_memory_desc_create_with_tag(desc, rank, dims, type_of(dtype), dnnl_format_tag_any);
}

void att_onednn_desc_free(dnnl_memory_desc_t *desc)
{
    dnnl_memory_desc_destroy(*desc);
}

dnnl_status_t att_onednn_desc_copy(dnnl_memory_desc_t *desc, att_onednn_ref from)
{
    return dnnl_memory_desc_clone(desc, from);
}

att_onednn_ref att_onednn_ref_of(const dnnl_memory_desc_t *desc)
{
    return *desc;
}

static dnnl_status_t append_sum(dnnl_post_ops_t after)
{
    return dnnl_post_ops_append_sum(after, 1, 0, dnnl_data_type_undef);
}

static dnnl_status_t matmul_create(dnnl_primitive_desc_t *created, dnnl_engine_t engine,
                                   const dnnl_memory_desc_t desc[4], bool bias, dnnl_primitive_attr_t attr)
{
    return dnnl_matmul_primitive_desc_create(created, engine, desc[0], desc[1], bias ? desc[2] : NULL, desc[3], attr);
}

static dnnl_status_t conv_forward(dnnl_primitive_desc_t *created, dnnl_engine_t engine, const att_onednn_conv *c,
                                  dnnl_primitive_attr_t attr)
{
    return dnnl_convolution_forward_primitive_desc_create(
        created, engine, dnnl_forward_training, dnnl_convolution_direct, c->desc[0], c->desc[1], NULL, c->desc[2],
        c->stride, c->dilation, c->before, c->after, attr);
}

static dnnl_status_t conv_backward(dnnl_primitive_desc_t *created, dnnl_engine_t engine, const att_onednn_conv *c,
                                   const_dnnl_primitive_desc_t forward, dnnl_primitive_attr_t attr)
{
    if (c->kind == ATT_CONV_DATA_GRAD)
        return dnnl_convolution_backward_data_primitive_desc_create(created, engine, dnnl_convolution_direct,
                                                                    c->desc[0], c->desc[1], c->desc[2], c->stride,
                                                                    c->dilation, c->before, c->after, forward, attr);
    return dnnl_convolution_backward_weights_primitive_desc_create(created, engine, dnnl_convolution_direct, c->desc[0],
                                                                   c->desc[1], NULL, c->desc[2], c->stride, c->dilation,
                                                                   c->before, c->after, forward, attr);
}

static uint64_t hash_of(uint64_t hash, att_onednn_ref desc, dnnl_query_t what, int count)
{
    const dnnl_dims_t *numbers = NULL;
    if (dnnl_memory_desc_query(desc, what, &numbers) == dnnl_success)
        for (int i = 0; i < count; i++)
            hash = att_random_key(hash, (uint64_t)(*numbers)[i], (uint64_t)i);
    return hash;
}

/* A layout that is not blocked gets a unique hash, because oneDNN 3.1 cannot describe it. */
uint64_t att_onednn_layout_hash(att_onednn_ref desc)
{
    dnnl_format_kind_t kind = dnnl_format_kind_undef;
    dnnl_data_type_t type = dnnl_data_type_undef;
    int axes = 0, blocks = 0;
    if (dnnl_memory_desc_query(desc, dnnl_query_format_kind, &kind) != dnnl_success || kind != dnnl_blocked ||
        dnnl_memory_desc_query(desc, dnnl_query_data_type, &type) != dnnl_success ||
        dnnl_memory_desc_query(desc, dnnl_query_ndims_s32, &axes) != dnnl_success ||
        dnnl_memory_desc_query(desc, dnnl_query_inner_nblks_s32, &blocks) != dnnl_success)
        return (uint64_t)(uintptr_t)desc;
    uint64_t hash = att_random_key((uint64_t)type, (uint64_t)axes, (uint64_t)blocks);
    hash = hash_of(hash, desc, dnnl_query_dims, axes);
    hash = hash_of(hash, desc, dnnl_query_padded_dims, axes);
    hash = hash_of(hash, desc, dnnl_query_strides, axes);
    hash = hash_of(hash, desc, dnnl_query_inner_blks, blocks);
    return hash_of(hash, desc, dnnl_query_inner_idxs, blocks);
}

#else

dnnl_status_t att_onednn_desc(dnnl_memory_desc_t *desc, att_dtype dtype, int rank, const int64_t *dims,
                              const int64_t *strides)
{
    return strides ? dnnl_memory_desc_init_by_strides(desc, rank, dims, type_of(dtype), strides)
                   : dnnl_memory_desc_init_by_tag(desc, rank, dims, type_of(dtype), dnnl_format_tag_any);
}

void att_onednn_desc_free(dnnl_memory_desc_t *desc)
{
    (void)desc;
}

dnnl_status_t att_onednn_desc_copy(dnnl_memory_desc_t *desc, att_onednn_ref from)
{
    *desc = *from;
    return dnnl_success;
}

att_onednn_ref att_onednn_ref_of(const dnnl_memory_desc_t *desc)
{
    return desc;
}

static dnnl_status_t append_sum(dnnl_post_ops_t after)
{
    return dnnl_post_ops_append_sum(after, 1);
}

static dnnl_status_t matmul_create(dnnl_primitive_desc_t *created, dnnl_engine_t engine,
                                   const dnnl_memory_desc_t desc[4], bool bias, dnnl_primitive_attr_t attr)
{
    dnnl_matmul_desc_t matmul;
    dnnl_status_t status = dnnl_matmul_desc_init(&matmul, &desc[0], &desc[1], bias ? &desc[2] : NULL, &desc[3]);
    return status == dnnl_success ? dnnl_primitive_desc_create(created, &matmul, attr, engine, NULL) : status;
}

static dnnl_status_t conv_forward(dnnl_primitive_desc_t *created, dnnl_engine_t engine, const att_onednn_conv *c,
                                  dnnl_primitive_attr_t attr)
{
    dnnl_convolution_desc_t conv;
    dnnl_status_t status = dnnl_dilated_convolution_forward_desc_init(
        &conv, dnnl_forward_training, dnnl_convolution_direct, &c->desc[0], &c->desc[1], NULL, &c->desc[2], c->stride,
        c->dilation, c->before, c->after);
    return status == dnnl_success ? dnnl_primitive_desc_create(created, &conv, attr, engine, NULL) : status;
}

static dnnl_status_t conv_backward(dnnl_primitive_desc_t *created, dnnl_engine_t engine, const att_onednn_conv *c,
                                   const_dnnl_primitive_desc_t forward, dnnl_primitive_attr_t attr)
{
    dnnl_convolution_desc_t conv;
    dnnl_status_t status =
        c->kind == ATT_CONV_DATA_GRAD
            ? dnnl_dilated_convolution_backward_data_desc_init(&conv, dnnl_convolution_direct, &c->desc[0], &c->desc[1],
                                                               &c->desc[2], c->stride, c->dilation, c->before, c->after)
            : dnnl_dilated_convolution_backward_weights_desc_init(&conv, dnnl_convolution_direct, &c->desc[0],
                                                                  &c->desc[1], NULL, &c->desc[2], c->stride,
                                                                  c->dilation, c->before, c->after);
    return status == dnnl_success ? dnnl_primitive_desc_create(created, &conv, attr, engine, forward) : status;
}

/* Hash of all properties that distinguish two blocked layouts of a tensor. */
uint64_t att_onednn_layout_hash(att_onednn_ref desc)
{
    const dnnl_blocking_desc_t *blocking = &desc->format_desc.blocking;
    uint64_t hash = att_random_key((uint64_t)desc->ndims, (uint64_t)desc->data_type, (uint64_t)desc->extra.flags);
    for (int i = 0; i < desc->ndims; i++) {
        hash = att_random_key(hash, (uint64_t)desc->padded_dims[i], (uint64_t)i);
        hash = att_random_key(hash, (uint64_t)desc->dims[i], (uint64_t)blocking->strides[i]);
    }
    for (int i = 0; i < blocking->inner_nblks; i++)
        hash = att_random_key(hash, (uint64_t)blocking->inner_blks[i], (uint64_t)blocking->inner_idxs[i]);
    return hash;
}

#endif

/* --- common functions--------------------------------------------------------------------------------------------- */

static dnnl_status_t add_to_result(dnnl_primitive_attr_t attr)
{
    dnnl_post_ops_t after;
    dnnl_status_t status = dnnl_post_ops_create(&after);
    if (status != dnnl_success)
        return status;
    status = append_sum(after);
    if (status == dnnl_success)
        status = dnnl_primitive_attr_set_post_ops(attr, after);
    dnnl_post_ops_destroy(after);
    return status;
}

dnnl_status_t att_onednn_attr(dnnl_primitive_attr_t *attr, bool adds)
{
    dnnl_status_t status = dnnl_primitive_attr_create(attr);
    if (status != dnnl_success)
        return status;
    status = dnnl_primitive_attr_set_scratchpad_mode(*attr, dnnl_scratchpad_mode_user);
    if (status == dnnl_success && adds)
        status = add_to_result(*attr);
    if (status != dnnl_success)
        dnnl_primitive_attr_destroy(*attr);
    return status;
}

dnnl_status_t att_onednn_conv_desc(dnnl_primitive_desc_t *created, dnnl_engine_t engine, const att_onednn_conv *conv,
                                   dnnl_primitive_attr_t attr)
{
    if (conv->kind == ATT_CONV_FORWARD)
        return conv_forward(created, engine, conv, attr);
    dnnl_primitive_desc_t forward;
    dnnl_status_t status = conv_forward(&forward, engine, conv, attr);
    if (status != dnnl_success)
        return status;
    status = conv_backward(created, engine, conv, forward, attr);
    dnnl_primitive_desc_destroy(forward);
    return status;
}

const char *att_onednn_implementation(const_dnnl_primitive_desc_t desc)
{
    const char *name = NULL;
    dnnl_status_t status = dnnl_primitive_desc_query(desc, dnnl_query_impl_info_str, 0, &name);
    return status == dnnl_success && name ? name : "";
}

int att_onednn_enter(void)
{
    int before = omp_get_max_threads();
    if (before != 1)
        omp_set_num_threads(1);
    return before;
}

void att_onednn_leave(int before)
{
    if (before != 1)
        omp_set_num_threads(before);
}

att_status att_onednn_begin(att_context *context, const char *what)
{
    static const size_t room = (size_t)32 << 20; /* the code of one primitive takes up to about 10 MiB */
#if defined(__x86_64__)
    unsigned features = att_context_features(context);
    if (!(features & ATT_AVX512_BF16))
        (void)dnnl_set_max_cpu_isa(features & ATT_AVX512 ? dnnl_cpu_isa_avx512_core
                                   : features & ATT_AVX2 ? dnnl_cpu_isa_avx2
                                                         : dnnl_cpu_isa_sse41);
#endif
    return att_memory_require(context, room, what);
}

att_status att_onednn_check(att_context *context, dnnl_status_t status, const char *what)
{
    if (status == dnnl_success)
        return ATT_OK;
    if (status == dnnl_out_of_memory)
        return att_fail(context, ATT_ERR_MEMORY, "out of memory: oneDNN has no memory for %s", what);
    if (status == dnnl_unimplemented)
        return att_fail(context, ATT_ERR_UNSUPPORTED, "oneDNN does not support %s of this shape and type", what);
    return att_fail(context, ATT_ERR_INTERNAL, "oneDNN failed with status %d for %s", (int)status, what);
}

dnnl_status_t att_onednn_execute(dnnl_engine_t engine, dnnl_primitive_t primitive, const att_onednn_argument *arguments,
                                 int count)
{
    dnnl_exec_arg_t bound[ATT_ONEDNN_ARGUMENTS];
    dnnl_stream_t stream = NULL;
    dnnl_status_t status = dnnl_stream_create(&stream, engine, dnnl_stream_in_order);
    int created = 0;
    while (created < count && status == dnnl_success) {
        bound[created].arg = arguments[created].name;
        status = dnnl_memory_create(&bound[created].memory, arguments[created].desc, engine,
                                    (void *)arguments[created].data);
        created += status == dnnl_success;
    }
    if (status == dnnl_success) {
        /* Until oneDNN 3.11 some products keep the stack pointer in a buffer of the heap, where the kernel would store
         * the registers for a handler: the heap would be destroyed (github.com/uxlfoundation/oneDNN/issues/4845). */
        sigset_t signals;
        att_signals_hold(&signals);
        int before = att_onednn_enter();
        status = dnnl_primitive_execute(primitive, stream, count, bound);
        att_onednn_leave(before);
        pthread_sigmask(SIG_SETMASK, &signals, NULL);
    }
    while (created-- > 0)
        dnnl_memory_destroy(bound[created].memory);
    dnnl_stream_destroy(stream);
    return status;
}

/* --- products ------------------------------------------------------------------------------------------------------
 */

struct att_product {
    att_context *context;
    att_product_spec spec;
    bool spaced; /* packed b is a plain matrix, whose rows are spaced; pack_desc and pack are NULL */
    dnnl_engine_t engine;
    dnnl_primitive_desc_t desc, pack_desc;
    dnnl_primitive_t matmul, pack;
    att_onednn_ref a, b, bias, to, scratch; /* descriptions from desc */
    att_onednn_ref plain, pack_scratch;     /* descriptions from pack_desc */
};

enum { A, B, BIAS, TO, DESCS };

static dnnl_status_t matrix_desc(dnnl_memory_desc_t *desc, att_dtype dtype, int64_t rows, int64_t columns,
                                 bool transposed)
{
    const dnnl_dims_t dims = {rows, columns}, strides = {transposed ? 1 : columns, transposed ? rows : 1};
    return att_onednn_desc(desc, dtype, 2, dims, strides);
}

/* Rows take an odd number of cache lines. Otherwise the lines of one column lie in few sets of the first cache level,
 * and oneDNN's product for AVX2, which does not copy b for few rows of a, is up to twice as slow. */
static int64_t spaced_stride(int64_t columns)
{
    enum { LINE = 64 / sizeof(float) };
    return ((columns + LINE - 1) / LINE | 1) * LINE;
}

static dnnl_status_t spaced_desc(dnnl_memory_desc_t *desc, int64_t rows, int64_t columns)
{
    const dnnl_dims_t dims = {rows, columns}, strides = {spaced_stride(columns), 1};
    return att_onednn_desc(desc, ATT_F32, 2, dims, strides);
}

static dnnl_status_t any_desc(dnnl_memory_desc_t *desc, att_dtype dtype, int64_t rows, int64_t columns)
{
    const dnnl_dims_t dims = {rows, columns};
    return att_onednn_desc(desc, dtype, 2, dims, NULL);
}

static dnnl_status_t create_desc(const att_product *product, int which, dnnl_memory_desc_t *desc)
{
    const att_product_spec *spec = &product->spec;
    if (which == A)
        return matrix_desc(desc, spec->dtype, spec->rows, spec->inner, spec->a_transposed);
    if (which == BIAS)
        return matrix_desc(desc, ATT_F32, 1, spec->columns, false);
    if (which == TO)
        return matrix_desc(desc, spec->to, spec->rows, spec->columns, false);
    if (spec->layout_of)
        return att_onednn_desc_copy(desc, spec->layout_of->b);
    if (product->spaced)
        return spaced_desc(desc, spec->inner, spec->columns);
    return spec->pack ? any_desc(desc, spec->dtype, spec->inner, spec->columns)
                      : matrix_desc(desc, spec->dtype, spec->inner, spec->columns, spec->b_transposed);
}

static dnnl_status_t create_matmul(att_product *product)
{
    dnnl_memory_desc_t desc[DESCS];
    dnnl_primitive_attr_t attr;
    int created = 0;
    dnnl_status_t status = dnnl_success;
    while (created < DESCS && status == dnnl_success) {
        status = create_desc(product, created, &desc[created]);
        created += status == dnnl_success;
    }
    if (status == dnnl_success)
        status = att_onednn_attr(&attr, false);
    if (status == dnnl_success) {
        status = matmul_create(&product->desc, product->engine, desc, product->spec.bias, attr);
        dnnl_primitive_attr_destroy(attr);
    }
    while (created-- > 0)
        att_onednn_desc_free(&desc[created]);
    if (status != dnnl_success)
        return status;
    product->a = dnnl_primitive_desc_query_md(product->desc, dnnl_query_src_md, 0);
    product->b = dnnl_primitive_desc_query_md(product->desc, dnnl_query_weights_md, 0);
    product->bias = dnnl_primitive_desc_query_md(product->desc, dnnl_query_weights_md, 1);
    product->to = dnnl_primitive_desc_query_md(product->desc, dnnl_query_dst_md, 0);
    product->scratch = dnnl_primitive_desc_query_md(product->desc, dnnl_query_scratchpad_md, 0);
    return dnnl_primitive_create(&product->matmul, product->desc);
}

static dnnl_status_t create_pack(att_product *product)
{
    dnnl_memory_desc_t plain;
    dnnl_primitive_attr_t attr;
    const att_product_spec *spec = &product->spec;
    dnnl_status_t status = matrix_desc(&plain, ATT_F32, spec->inner, spec->columns, spec->b_transposed);
    if (status != dnnl_success)
        return status;
    status = att_onednn_attr(&attr, false);
    if (status == dnnl_success) {
        status = dnnl_reorder_primitive_desc_create(&product->pack_desc, att_onednn_ref_of(&plain), product->engine,
                                                    product->b, product->engine, attr);
        dnnl_primitive_attr_destroy(attr);
    }
    att_onednn_desc_free(&plain);
    if (status != dnnl_success)
        return status;
    product->plain = dnnl_primitive_desc_query_md(product->pack_desc, dnnl_query_src_md, 0);
    product->pack_scratch = dnnl_primitive_desc_query_md(product->pack_desc, dnnl_query_scratchpad_md, 0);
    return dnnl_primitive_create(&product->pack, product->pack_desc);
}

static bool is_plain(const att_product *product)
{
    dnnl_memory_desc_t plain;
    const att_product_spec *spec = &product->spec;
    if (matrix_desc(&plain, ATT_F32, spec->inner, spec->columns, false) != dnnl_success)
        return false;
    bool is = att_onednn_layout_hash(product->b) == att_onednn_layout_hash(att_onednn_ref_of(&plain));
    att_onednn_desc_free(&plain);
    return is;
}

static dnnl_status_t create_all(att_product *product)
{
    dnnl_status_t status = dnnl_engine_create(&product->engine, dnnl_cpu, 0);
    if (product->spec.layout_of)
        product->spaced = product->spec.layout_of->spaced;
    if (status == dnnl_success)
        status = create_matmul(product);
    if (status == dnnl_success && product->spec.pack && !product->spec.layout_of && is_plain(product)) {
        dnnl_primitive_destroy(product->matmul);
        dnnl_primitive_desc_destroy(product->desc);
        product->matmul = NULL, product->desc = NULL;
        product->spaced = true;
        status = create_matmul(product);
    }
    if (status == dnnl_success && product->spec.pack && !product->spaced)
        status = create_pack(product);
    return status;
}

bool att_product_needs_packing(const att_context *context, const att_product_spec *spec)
{
    enum { MOST_ROWS = 287, PAGE = 4096 }; /* of oneDNN's product without copies, which then takes twice the time */
    return spec->dtype == ATT_BF16 ||
           (!spec->b_transposed && spec->rows <= MOST_ROWS && spec->columns * (int64_t)sizeof(float) % PAGE == 0 &&
            !(att_context_features(context) & ATT_AVX512));
}

att_status att_product_create(att_context *context, const att_product_spec *spec, att_product **product)
{
    ATT_TRY(att_onednn_begin(context, "a matrix product"));
    att_product *created;
    ATT_TRY(att_new(context, &created, 1, "a matrix product"));
    created->context = context;
    created->spec = *spec;
    int before = att_onednn_enter();
    dnnl_status_t status = create_all(created);
    att_onednn_leave(before);
    if (status != dnnl_success) {
        att_product_destroy(context, created);
        return att_onednn_check(context, status, "a matrix product");
    }
    *product = created;
    return ATT_OK;
}

void att_product_destroy(att_context *context, att_product *product)
{
    if (!product)
        return;
    dnnl_primitive_destroy(product->matmul);
    dnnl_primitive_destroy(product->pack);
    dnnl_primitive_desc_destroy(product->desc);
    dnnl_primitive_desc_destroy(product->pack_desc);
    dnnl_engine_destroy(product->engine);
    att_free(context, product);
}

size_t att_product_scratch_bytes(const att_product *product)
{
    return dnnl_memory_desc_get_size(product->scratch);
}

static size_t packed_part(const att_product *product)
{
    return (dnnl_memory_desc_get_size(product->b) + 63) / 64 * 64;
}

size_t att_product_packed_bytes(const att_product *product)
{
    if (!product->spec.pack)
        return 0;
    return packed_part(product) + (product->spaced ? 0 : dnnl_memory_desc_get_size(product->pack_scratch));
}

uint64_t att_product_packed_key(const att_product *product)
{
    return att_random_key(att_onednn_layout_hash(product->b), product->spec.b_transposed,
                          att_product_packed_bytes(product));
}

const char *att_product_implementation(const att_product *product)
{
    return att_onednn_implementation(product->desc);
}

/* --- running -------------------------------------------------------------------------------------------------------
 */

static void pack_spaced(const att_product_spec *spec, const float *b, float *packed)
{
    enum { ROWS = 16, COLUMNS = 8 }; /* of a tile; the lines of 8 columns fit into one set of the cache */
    const int64_t stride = spaced_stride(spec->columns);
    const int64_t row = spec->b_transposed ? 1 : spec->columns, column = spec->b_transposed ? spec->inner : 1;
    for (int64_t j = 0; j < spec->columns; j += COLUMNS)
        for (int64_t i = 0; i < spec->inner; i += ROWS)
            for (int64_t y = i; y < i + ROWS && y < spec->inner; y++)
                for (int64_t x = j; x < j + COLUMNS && x < spec->columns; x++)
                    packed[y * stride + x] = b[y * row + x * column];
}

att_status att_product_pack(const att_product *product, const float *b, void *packed)
{
    if (product->spaced) {
        pack_spaced(&product->spec, b, packed);
        return ATT_OK;
    }
    att_onednn_argument arguments[] = {
        {DNNL_ARG_FROM, product->plain, b},
        {DNNL_ARG_TO, product->b, packed},
        {DNNL_ARG_SCRATCHPAD, product->pack_scratch, (char *)packed + packed_part(product)}};
    int count = dnnl_memory_desc_get_size(product->pack_scratch) ? 3 : 2;
    return att_onednn_check(product->context, att_onednn_execute(product->engine, product->pack, arguments, count),
                            "packing a weight");
}

att_status att_product_run(const att_product *product, const void *a, const void *b, const float *bias, void *to,
                           void *scratch)
{
    att_onednn_argument arguments[ATT_ONEDNN_ARGUMENTS] = {
        {DNNL_ARG_SRC, product->a, a}, {DNNL_ARG_WEIGHTS, product->b, b}, {DNNL_ARG_DST, product->to, to}};
    int count = 3;
    if (product->spec.bias)
        arguments[count++] = (att_onednn_argument){DNNL_ARG_BIAS, product->bias, bias};
    if (att_product_scratch_bytes(product))
        arguments[count++] = (att_onednn_argument){DNNL_ARG_SCRATCHPAD, product->scratch, scratch};
    return att_onednn_check(product->context, att_onednn_execute(product->engine, product->matmul, arguments, count),
                            "running a product");
}
