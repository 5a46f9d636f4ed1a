#include "lab/bench/gemm.h"
#include "engine/ops/attention.h"
#include "engine/ops/conv2d.h"

#include <stdatomic.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/threads.h"
#include "engine/backend/kernel.h"
#include "engine/graph/graph.h"
#include "engine/kernels/cpu/onednn.h"

/* `items` products of one shape, computed `layers` times per pass. A linear layer is one product, whose rows are split
 * into one block per thread. Attention has many small products; each thread computes whole products. */
typedef struct shape {
    int64_t layers, items, rows, inner, columns;
    bool is_linear, b_transposed;
    int64_t block; /* rows per thread */
    att_product *product, *last;
    void *packed;
} shape;

struct att_gemm {
    att_context *context;
    att_dtype dtype; /* type of operands and results */
    ATT_LIST(shape) shapes;
    void *a, *b, *to;
    char *scratch; /* per thread */
    size_t scratch_bytes;
    const shape *current;
    atomic_int status;
};

/* --- the network's shapes ----------------------------------------------------------------------------------------- */

static att_status add_shape(att_gemm *gemm, const shape *added)
{
    for (int i = 0; i < gemm->shapes.count; i++) {
        shape *s = &gemm->shapes.items[i];
        if (s->items == added->items && s->rows == added->rows && s->inner == added->inner &&
            s->columns == added->columns && s->is_linear == added->is_linear &&
            s->b_transposed == added->b_transposed) {
            s->layers += added->layers;
            return ATT_OK;
        }
    }
    size_t bytes = (size_t)(gemm->shapes.count + 1) * sizeof(shape);
    shape *grown = att_reallocate(gemm->context, gemm->shapes.items, bytes);
    if (!grown)
        return att_fail_memory(gemm->context, bytes, "the shapes of matrix products");
    gemm->shapes.items = grown;
    grown[gemm->shapes.count++] = *added;
    return ATT_OK;
}

static int64_t last_dim(att_shape s)
{
    return s.rank > 0 ? s.dims[s.rank - 1] : 1;
}

static att_status add_linear(att_gemm *gemm, const att_graph *graph, const att_node *node, int64_t batch)
{
    att_shape x = att_value_shape(graph, node->in[0]), y = att_value_shape(graph, node->out[0]);
    shape added = {.layers = 1,
                   .items = 1,
                   .rows = batch * (att_shape_count(x) / last_dim(x)),
                   .inner = last_dim(x),
                   .columns = last_dim(y),
                   .is_linear = true,
                   .b_transposed = true};
    return add_shape(gemm, &added);
}

/* Adds a transposed convolution as a product of its input and the weight: per group, all pixels that an input pixel
 * adds to are a row of the result. */
static att_status add_transposed(att_gemm *gemm, const att_graph *graph, const att_node *node, int64_t batch)
{
    att_shape weight = att_value_shape(graph, node->in[1]), x = att_value_shape(graph, node->in[0]);
    int64_t groups = ATT_ATTRS(node, conv)->groups;
    shape added = {.layers = groups,
                   .items = 1,
                   .rows = batch * (att_shape_count(x) / last_dim(x)),
                   .inner = weight.dims[0] / groups,
                   .columns = att_shape_count(weight) / weight.dims[0],
                   .is_linear = true,
                   .b_transposed = true};
    return add_shape(gemm, &added);
}

/* Adds a convolution as a product on columns (im2col): per group, the window of each output pixel (C / groups times the
 * kernel's area) by the weights of the group. */
static att_status add_convolution(att_gemm *gemm, const att_graph *graph, const att_node *node, int64_t batch)
{
    att_shape weight = att_value_shape(graph, node->in[1]), y = att_value_shape(graph, node->out[0]);
    int64_t groups = ATT_ATTRS(node, conv)->groups;
    shape added = {.layers = groups,
                   .items = 1,
                   .rows = batch * (att_shape_count(y) / last_dim(y)),
                   .inner = att_shape_count(weight) / weight.dims[0],
                   .columns = weight.dims[0] / groups,
                   .is_linear = true,
                   .b_transposed = true};
    return add_shape(gemm, &added);
}

static att_status add_attention(att_gemm *gemm, const att_graph *graph, const att_node *node, int64_t batch)
{
    att_attention_operand operand[ATT_ATTENTION_OPERANDS];
    att_attention_operands(graph, node, operand);
    const att_attention_operand *q = &operand[ATT_ATTENTION_Q], *v = &operand[ATT_ATTENTION_V];
    shape scores = {.layers = 1,
                    .items = batch * q->heads,
                    .rows = q->tokens,
                    .inner = q->width,
                    .columns = v->tokens,
                    .b_transposed = true};
    shape values = {.layers = 1, .items = batch * q->heads, .rows = q->tokens, .inner = v->tokens, .columns = v->width};
    ATT_TRY(add_shape(gemm, &scores));
    return add_shape(gemm, &values);
}

static att_status find_shapes(att_gemm *gemm, const att_graph *graph, int64_t batch)
{
    for (int i = 0; i < graph->nodes.count; i++) {
        const att_node *node = &graph->nodes.items[i];
        if (strcmp(node->op->name, "linear") == 0)
            ATT_TRY(add_linear(gemm, graph, node, batch));
        else if (strcmp(node->op->name, "conv2d") == 0)
            ATT_TRY(add_convolution(gemm, graph, node, batch));
        else if (strcmp(node->op->name, "conv_transpose2d") == 0)
            ATT_TRY(add_transposed(gemm, graph, node, batch));
        else if (strcmp(node->op->name, "attention") == 0)
            ATT_TRY(add_attention(gemm, graph, node, batch));
    }
    return ATT_OK;
}

/* --- creation ----------------------------------------------------------------------------------------------------- */

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

static att_status make_product(att_gemm *gemm, const shape *s, int64_t rows, att_product **product)
{
    att_product_spec spec = {.rows = rows,
                             .inner = s->inner,
                             .columns = s->columns,
                             .dtype = gemm->dtype,
                             .to = gemm->dtype,
                             .b_transposed = s->b_transposed,
                             .pack = s->is_linear};
    ATT_TRY(att_product_create(gemm->context, &spec, product));
    gemm->scratch_bytes = larger(gemm->scratch_bytes, att_product_scratch_bytes(*product));
    return ATT_OK;
}

static att_status make_products(att_gemm *gemm, shape *s)
{
    int64_t threads = s->is_linear ? att_context_threads(gemm->context) : 1;
    s->block = (s->rows + threads - 1) / threads;
    ATT_TRY(make_product(gemm, s, s->block, &s->product));
    int64_t rest = s->rows % s->block;
    if (rest > 0)
        ATT_TRY(make_product(gemm, s, rest, &s->last));
    if (s->last && s->is_linear && att_product_packed_key(s->last) != att_product_packed_key(s->product))
        return att_fail(gemm->context, ATT_ERR_INTERNAL, "oneDNN packs for %lld and %lld rows differently",
                        (long long)s->block, (long long)rest);
    return ATT_OK;
}

/* Fills a buffer with numbers in the range of activations; multiplying zeros could be faster. */
static void fill(att_dtype dtype, void *to, size_t count)
{
    uint32_t state = 1;
    for (size_t i = 0; i < count; i++) {
        state = state * 1664525u + 1013904223u;
        float number = (float)(state >> 8) * 0x1p-23f - 1;
        if (dtype == ATT_F32) {
            ((float *)to)[i] = number;
            continue;
        }
        uint32_t bits;
        memcpy(&bits, &number, sizeof bits);
        ((uint16_t *)to)[i] = (uint16_t)(bits >> 16);
    }
}

static att_status make_buffer(att_gemm *gemm, att_dtype dtype, size_t count, void **buffer)
{
    size_t size = att_dtype_size(dtype);
    *buffer = att_allocate_array(gemm->context, count, size);
    if (!*buffer)
        return att_fail_memory(gemm->context, count * size, "matrix products");
    fill(dtype, *buffer, count);
    return ATT_OK;
}

static att_status pack_weights(att_gemm *gemm, shape *s)
{
    if (!s->is_linear)
        return ATT_OK;
    size_t bytes = att_product_packed_bytes(s->product);
    s->packed = att_allocate(gemm->context, bytes);
    if (!s->packed)
        return att_fail_memory(gemm->context, bytes, "packed weights");
    return att_product_pack(s->product, gemm->b, s->packed);
}

static att_status make_all(att_gemm *gemm, const att_graph *graph, int batch)
{
    ATT_TRY(find_shapes(gemm, graph, batch));
    size_t a = 0, b = 0, to = 0;
    for (int i = 0; i < gemm->shapes.count; i++) {
        shape *s = &gemm->shapes.items[i];
        ATT_TRY(make_products(gemm, s));
        a = larger(a, (size_t)(s->items * s->rows * s->inner));
        b = larger(b, (size_t)(s->items * s->inner * s->columns));
        to = larger(to, (size_t)(s->items * s->rows * s->columns));
    }
    ATT_TRY(make_buffer(gemm, gemm->dtype, a, &gemm->a));
    ATT_TRY(make_buffer(gemm, ATT_F32, b, &gemm->b));
    ATT_TRY(make_buffer(gemm, gemm->dtype, to, &gemm->to));
    for (int i = 0; i < gemm->shapes.count; i++)
        ATT_TRY(pack_weights(gemm, &gemm->shapes.items[i]));
    fill(gemm->dtype, gemm->b, b);
    gemm->scratch_bytes = (gemm->scratch_bytes + 63) / 64 * 64;
    size_t bytes = gemm->scratch_bytes * (size_t)att_context_threads(gemm->context);
    gemm->scratch = att_allocate(gemm->context, bytes);
    return gemm->scratch || bytes == 0 ? ATT_OK : att_fail_memory(gemm->context, bytes, "oneDNN's scratch");
}

att_status att_gemm_create(const att_graph *graph, int batch, att_precision precision, att_gemm **gemm)
{
    att_context *context = att_graph_context(graph);
    att_gemm *created;
    ATT_TRY(att_new(context, &created, 1, "matrix products"));
    created->context = context;
    created->dtype = precision == ATT_MIXED ? ATT_BF16 : ATT_F32;
    att_status status = make_all(created, graph, batch);
    if (status == ATT_OK)
        *gemm = created;
    else
        att_gemm_destroy(&created);
    return status;
}

void att_gemm_destroy(att_gemm **gemm)
{
    if (!gemm || !*gemm)
        return;
    att_context *context = (*gemm)->context;
    for (int i = 0; i < (*gemm)->shapes.count; i++) {
        shape *s = &(*gemm)->shapes.items[i];
        att_product_destroy(context, s->product);
        att_product_destroy(context, s->last);
        att_free(context, s->packed);
    }
    att_free(context, (*gemm)->shapes.items);
    att_free(context, (*gemm)->a);
    att_free(context, (*gemm)->b);
    att_free(context, (*gemm)->to);
    att_free(context, (*gemm)->scratch);
    att_free(context, *gemm);
    *gemm = NULL;
}

/* --- running ------------------------------------------------------------------------------------------------------ */

double att_gemm_flops(const att_gemm *gemm)
{
    double flops = 0;
    for (int i = 0; i < gemm->shapes.count; i++) {
        const shape *s = &gemm->shapes.items[i];
        flops += 2.0 * (double)(s->layers * s->items * s->rows) * (double)(s->inner * s->columns);
    }
    return flops;
}

static void *at(const att_gemm *gemm, void *buffer, int64_t element)
{
    return (char *)buffer + (size_t)element * att_dtype_size(gemm->dtype);
}

static att_status run_rows(const att_gemm *gemm, const shape *s, int thread, void *scratch)
{
    int64_t first = thread * s->block;
    if (first >= s->rows)
        return ATT_OK;
    const att_product *product = first + s->block <= s->rows ? s->product : s->last;
    return att_product_run(product, at(gemm, gemm->a, first * s->inner), s->packed, NULL,
                           at(gemm, gemm->to, first * s->columns), scratch);
}

static att_status run_items(const att_gemm *gemm, const shape *s, int thread, void *scratch)
{
    int64_t begin, end;
    att_share(s->items, 1, thread, att_context_threads(gemm->context), &begin, &end);
    for (int64_t i = begin; i < end; i++)
        ATT_TRY(att_product_run(s->product, at(gemm, gemm->a, i * s->rows * s->inner),
                                at(gemm, gemm->b, i * s->inner * s->columns), NULL,
                                at(gemm, gemm->to, i * s->rows * s->columns), scratch));
    return ATT_OK;
}

static void work(void *user, int thread)
{
    att_gemm *gemm = user;
    const shape *s = gemm->current;
    void *scratch = gemm->scratch ? gemm->scratch + (size_t)thread * gemm->scratch_bytes : NULL;
    att_status status = s->is_linear ? run_rows(gemm, s, thread, scratch) : run_items(gemm, s, thread, scratch);
    if (status != ATT_OK)
        atomic_store(&gemm->status, status);
}

att_status att_gemm_run(att_gemm *gemm)
{
    atomic_store(&gemm->status, ATT_OK);
    for (int i = 0; i < gemm->shapes.count; i++) {
        gemm->current = &gemm->shapes.items[i];
        for (int64_t layer = 0; layer < gemm->current->layers; layer++)
            att_threads_run(gemm->context, att_context_threads(gemm->context), work, gemm);
    }
    return (att_status)atomic_load(&gemm->status);
}
