/* The engine does not assume host memory or a single image size, and survives failing allocations. */
#include <sys/mman.h>
#include <unistd.h>

#include <attscope/update.h>

#include "base/core/context.h"
#include "base/core/memory.h"
#include "engine/backend/backend.h"
#include "engine/graph/registry.h"
#include "engine/kernels/cpu/list.h"
#include "engine/network.h"
#include "engine/ops/list.h"
#include "engine/session/session.h"
#include "engine/weights/weights.h"
#include "failing.h"

enum { SIZE = 8, BATCH = 5, MAX_BLOCKS = 256 };

/* --- memory that only kernels can read ---------------------------------------------------------------------------- */

static struct {
    void *block;
    size_t bytes;
} blocks[MAX_BLOCKS];
static int block_count;

static size_t pages(size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return (bytes + page - 1) / page * page;
}

static void protect_all(int protection)
{
    for (int i = 0; i < block_count; i++)
        if (mprotect(blocks[i].block, blocks[i].bytes, protection) != 0)
            abort();
}

static void enter(void)
{
    protect_all(PROT_READ | PROT_WRITE);
}

static void leave(void)
{
    protect_all(PROT_NONE);
}

static void *guarded_allocate(att_context *context, size_t bytes)
{
    (void)context;
    void *block = mmap(NULL, pages(bytes), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (block == MAP_FAILED || block_count == MAX_BLOCKS)
        return NULL;
    blocks[block_count].block = block;
    blocks[block_count++].bytes = pages(bytes);
    return block;
}

static void guarded_release(att_context *context, void *block, size_t bytes)
{
    (void)context;
    for (int i = 0; i < block_count; i++)
        if (blocks[i].block == block) {
            munmap(block, pages(bytes));
            blocks[i] = blocks[--block_count];
            return;
        }
    abort();
}

/* Whether a kernel was called since the last wait. */
static bool pending;

static void guarded_leave(void)
{
    leave();
    pending = true;
}

static void guarded_wait(void)
{
    pending = false;
}

static void guarded_copy_out(void *to, const void *from, size_t bytes)
{
    assert_false(pending);
    enter();
    memcpy(to, from, bytes);
    leave();
}

static size_t guarded_limit = SIZE_MAX;

static size_t guarded_left(const att_context *of)
{
    (void)of;
    return guarded_limit;
}

static void guarded_copy(void *to, const void *from, size_t bytes)
{
    enter();
    memcpy(to, from, bytes);
    leave();
}

static void guarded_clear(void *block, size_t bytes)
{
    enter();
    memset(block, 0, bytes);
    leave();
}

static const att_memory guarded_memory = {.allocate = guarded_allocate,
                                          .release = guarded_release,
                                          .copy_in = guarded_copy,
                                          .copy_out = guarded_copy_out,
                                          .clear = guarded_clear,
                                          .host = false,
                                          .enter = enter,
                                          .leave = guarded_leave,
                                          .wait = guarded_wait,
                                          .left = guarded_left};

/* --- one update and one evaluation ---------------------------------------------------------------------------------
 */

typedef struct objects {
    att_context *context;
    att_graph *graph;
    att_weights *weights;
    att_plan *train, *infer;
    att_session *trainer, *runner;
    att_gradient *gradient;
    att_update *update;
} objects;

static void release(objects *it)
{
    att_update_destroy(&it->update);
    att_gradient_destroy(&it->gradient);
    att_session_destroy(&it->trainer);
    att_session_destroy(&it->runner);
    att_weights_destroy(&it->weights);
    att_plan_destroy(&it->train);
    att_plan_destroy(&it->infer);
    att_graph_destroy(&it->graph);
}

#define STEP(call)                \
    do {                          \
        att_status status = call; \
        if (status != ATT_OK)     \
            return status;        \
    } while (0)

static att_status bind(att_session *session, const float *images, const int32_t *targets)
{
    STEP(att_session_bind(session, "features", images));
    STEP(att_session_bind(session, "image", images));
    return att_session_bind(session, "target", targets);
}

/* A derived output, which is computed once through a constant: it is in the backend's memory too. */
static void add_derived_output(att_graph *graph)
{
    static const int32_t rows[] = {2, 0};
    att_value table = network_parameter(graph, "table", att_shape_of(3, 4), 1);
    att_value read = att_embed(graph, table, att_graph_constant(graph, ATT_I32, att_shape_of(2), rows));
    att_value x = att_graph_input(graph, "features", ATT_F32, att_shape_of(4));
    att_graph_output(graph, "beside", att_linear(graph, x, att_tanh(graph, read), ATT_NONE));
}

static att_status work(objects *it, int size, float *logits)
{
    float images[BATCH * 16 * 16];
    int32_t targets[BATCH];
    double norm;
    network_data(images, targets, BATCH, size);
    STEP(att_graph_create(it->context, ATT_F32, &it->graph));
    network_build(it->graph, size);
    add_derived_output(it->graph);
    att_plan_options train = {.purpose = ATT_TRAIN, .backend = "cpu", .group = 2};
    att_plan_options infer = att_plan_options_defaults();
    STEP(att_plan_compile(it->graph, &train, &it->train));
    STEP(att_plan_compile(it->graph, &infer, &it->infer));
    STEP(att_weights_create(it->graph, "cpu", &it->weights));
    STEP(att_weights_initialise(it->weights, 1));
    STEP(att_session_create(it->train, it->weights, BATCH, &it->trainer));
    STEP(att_gradient_create(it->weights, &it->gradient));
    STEP(att_update_create(it->gradient, &(att_update_options){.backend = "cpu", .optimizer = "sgd"}, &it->update));
    STEP(att_session_create(it->infer, it->weights, BATCH, &it->runner));
    STEP(bind(it->trainer, images, targets));
    STEP(bind(it->runner, images, targets));
    STEP(att_session_accumulate(it->trainer, it->gradient, BATCH, 1.0 / BATCH, 1, 0, 0));
    STEP(att_update_reduce(it->update, &norm));
    STEP(att_update_apply(it->update, &(att_hyper){.lr = 0.1, .momentum = 0.9, .update = 1}));
    STEP(att_session_run(it->runner, BATCH));
    return att_session_output(it->runner, "logits", 0, BATCH, logits);
}

TEST(host_code_never_reads_arenas)
{
    const att_backend guarded = {
        .name = "cpu", .memory = &guarded_memory, .kernels = att_kernels_cpu, .grouping = &att_host_grouping};
    const att_backend *const backends[] = {&guarded, NULL};
    const att_registry registry = {.ops = att_ops, .backends = backends};
    att_settings settings = att_settings_defaults();
    settings.threads = 1;
    float with_guard[BATCH * NETWORK_CLASSES], without[BATCH * NETWORK_CLASSES];
    float with_guard_and_limit[BATCH * NETWORK_CLASSES];
    objects it = {0};
    assert_int_equal(att_context_create_with(&settings, &registry, &it.context), ATT_OK);
    assert_int_equal(work(&it, SIZE, with_guard), ATT_OK);
    release(&it);
    assert_int_equal(block_count, 0);
    guarded_limit = 1000;
    assert_int_equal(work(&it, SIZE, with_guard_and_limit), ATT_ERR_MEMORY);
    guarded_limit = SIZE_MAX;
    release(&it);
    assert_int_equal(block_count, 0);
    att_context_destroy(&it.context);
    assert_int_equal(att_context_create(&settings, &it.context), ATT_OK);
    assert_int_equal(work(&it, SIZE, without), ATT_OK);
    release(&it);
    att_context_destroy(&it.context);
    assert_memory_equal(with_guard, without, sizeof without);
}

TEST(weights_in_different_memories_are_not_overlaid)
{
    const att_backend guarded = {
        .name = "cpu", .memory = &guarded_memory, .kernels = att_kernels_cpu, .grouping = &att_host_grouping};
    const att_backend host = {
        .name = "ref", .memory = &att_host_memory, .kernels = att_kernels_cpu, .grouping = &att_host_grouping};
    const att_backend *const backends[] = {&guarded, &host, NULL};
    const att_registry registry = {.ops = att_ops, .backends = backends};
    att_context *context;
    att_weights *parts[2], *covered = NULL;
    assert_int_equal(att_context_create_with(NULL, &registry, &context), ATT_OK);
    for (int i = 0; i < 2; i++) {
        att_graph *graph;
        assert_int_equal(att_graph_create(context, ATT_F32, &graph), ATT_OK);
        network_parameter(graph, i ? "a" : "b", att_shape_of(3), 1);
        assert_int_equal(att_weights_create(graph, backends[i]->name, &parts[i]), ATT_OK);
        att_graph_destroy(&graph);
    }
    assert_int_equal(att_weights_overlay(parts[0], parts[1], &covered), ATT_ERR_MISMATCH);
    assert_null(covered);
    for (int i = 0; i < 2; i++)
        att_weights_destroy(&parts[i]);
    att_context_destroy(&context);
}

TEST(two_image_sizes_share_the_weights)
{
    float alone[BATCH * NETWORK_CLASSES], beside[BATCH * NETWORK_CLASSES], other[BATCH * NETWORK_CLASSES];
    objects small = {0}, large = {0};
    assert_int_equal(att_context_create(NULL, &small.context), ATT_OK);
    large.context = small.context;
    assert_int_equal(work(&small, 8, alone), ATT_OK);
    assert_int_equal(work(&large, 16, other), ATT_OK);
    float images[BATCH * 8 * 8];
    int32_t targets[BATCH];
    network_data(images, targets, BATCH, 8);
    assert_int_equal(bind(small.runner, images, targets), ATT_OK);
    assert_int_equal(att_session_run(small.runner, BATCH), ATT_OK);
    assert_int_equal(att_session_output(small.runner, "logits", 0, BATCH, beside), ATT_OK);
    assert_memory_equal(alone, beside, sizeof alone);
    release(&small);
    release(&large);
    att_context_destroy(&small.context);
}

/* --- failing allocations ------------------------------------------------------------------------------------------ */

TEST(every_allocation_may_fail)
{
    failing memory = {0};
    att_settings settings = failing_settings(&memory);
    objects it = {0};
    float logits[BATCH * NETWORK_CLASSES];
    assert_int_equal(att_context_create(&settings, &it.context), ATT_OK);
    lack of = lack_of_memory(it.context, &memory);
    while (lack_again(&of)) {
        of.status = work(&it, SIZE, logits);
        if (of.status != ATT_OK)
            assert_message_has(&it, "memory");
        release(&it);
    }
    assert_true(of.allowed > 50);
    att_context_destroy(&it.context);
}

TEST(lack_of_memory_leaves_a_session_that_remembers_nothing)
{
    failing memory = {0};
    att_settings settings = failing_settings(&memory);
    att_context *own;
    att_graph *graph;
    att_plan *plan;
    att_weights *weights;
    att_session *session;
    bool frozen[64];
    att_plan_options options = att_plan_options_defaults();
    options.purpose = ATT_TRAIN;
    assert_int_equal(att_context_create(&settings, &own), ATT_OK);
    CHECK(own, att_graph_create(own, ATT_F32, &graph));
    network_build(graph, SIZE);
    for (int i = 0; i < att_graph_parameter_count(graph); i++)
        frozen[i] = strncmp(att_graph_parameter_at(graph, i).name, "head", 4) != 0;
    options.frozen = frozen;
    CHECK(own, att_plan_compile(graph, &options, &plan));
    CHECK(own, att_weights_create(graph, "cpu", &weights));
    CHECK(own, att_session_create(plan, weights, BATCH, &session));
    lack of = lack_of_memory(own, &memory);
    while (lack_again(&of)) {
        of.status = att_session_remember(session, 3);
        assert_true((of.status == ATT_OK) == (session->remembered != NULL));
        att_remembered_destroy(session);
    }
    att_session_destroy(&session);
    att_weights_destroy(&weights);
    att_plan_destroy(&plan);
    att_graph_destroy(&graph);
    att_context_destroy(&own);
}
