/* The calls that a plan makes to kernels, recorded by a backend of the test. */
#include <stdatomic.h>

#include <attscope/ops.h>
#include <attscope/plan.h>

#include "base/core/context.h"
#include "engine/backend/backend.h"
#include "engine/graph/registry.h"
#include "engine/ops/list.h"
#include "test.h"

enum { THREADS = 8, WIDTH = 16, MOST = 2 * THREADS };

static atomic_int calls_alone, calls_shared;

/* y = x, for any number of parts. */
static att_status copy(const att_call *call)
{
    atomic_fetch_add(call->parts == 1 ? &calls_alone : &calls_shared, 1);
    int64_t begin, end;
    att_share(call->problem->group * WIDTH, 1, call->part, call->parts, &begin, &end);
    for (int64_t i = begin; i < end; i++)
        ((float *)call->out[0])[i] = ((const float *)call->in[0])[i];
    return ATT_OK;
}

/* Requests one packed layout for single samples, and another for groups. */
static att_status ask_for_packing(const att_problem *problem, att_prepared *prepared)
{
    prepared->packed_bytes = 64;
    prepared->packed_key = problem->group > 1;
    return ATT_OK;
}

static const att_kernel copies = {.op = "gelu", .name = "copies", .run = copy};
static const att_kernel packs = {.op = "linear", .name = "packs", .prepare = ask_for_packing, .run = copy};
static const att_kernel *const kernels[] = {&copies, &packs, NULL};
static const att_backend backend = {
    .name = "cpu", .memory = &att_host_memory, .kernels = kernels, .grouping = &att_host_grouping};
static const att_backend *const backends[] = {&backend, NULL};
static const att_registry registry = {.ops = att_ops, .backends = backends};

static void make(int threads, att_context **context, att_graph **graph)
{
    att_settings settings = att_settings_defaults();
    settings.threads = threads;
    assert_int_equal(att_context_create_with(&settings, &registry, context), ATT_OK);
    assert_int_equal(att_graph_create(*context, ATT_F32, graph), ATT_OK);
}

/* Groups of 4, 2 and 1 samples, two layers with the same weight: it is packed once for each layout. */
TEST(equal_packings_are_made_once)
{
    att_context *context;
    att_graph *graph;
    att_plan *plan;
    make(1, &context, &graph);
    att_value weight = att_graph_parameter(graph, "weight", att_shape_of(WIDTH, WIDTH), (att_init){0}, true);
    att_value x = att_graph_input(graph, "x", ATT_F32, att_shape_of(3, WIDTH));
    x = att_linear(graph, x, weight, ATT_NONE);
    att_graph_output(graph, "y", att_linear(graph, x, weight, ATT_NONE));
    att_plan_options options = att_plan_options_defaults();
    options.group = 4;
    assert_int_equal(att_plan_compile(graph, &options, &plan), ATT_OK);
    assert_int_equal(att_plan_describe(plan).packed_bytes, 2 * 64);
    att_plan_destroy(&plan);
    att_graph_destroy(&graph);
    att_context_destroy(&context);
}

/* Counts the calls with one part, and those of all threads together, for a batch of `count`. */
static void count_calls(att_session *session, int count)
{
    float in[MOST * WIDTH], out[MOST * WIDTH];
    for (int i = 0; i < count * WIDTH; i++)
        in[i] = (float)i;
    atomic_store(&calls_alone, 0);
    atomic_store(&calls_shared, 0);
    assert_int_equal(att_session_bind(session, "x", in), ATT_OK);
    assert_int_equal(att_session_run(session, count), ATT_OK);
    assert_int_equal(att_session_output(session, "y", 0, count, out), ATT_OK);
    assert_memory_equal(in, out, sizeof(float) * (size_t)count * WIDTH);
}

/* On eight threads a shared sample takes 1/8 + 1/16 of its time, so sharing pays for up to five samples. */
TEST(few_samples_are_shared_by_all_threads)
{
    att_context *context;
    att_graph *graph;
    att_plan *plan;
    att_weights *weights;
    att_session *session;
    make(THREADS, &context, &graph);
    att_value x = att_graph_input(graph, "x", ATT_F32, att_shape_of(WIDTH));
    att_graph_output(graph, "y", att_gelu(graph, x));
    att_plan_options options = att_plan_options_defaults();
    assert_int_equal(att_plan_compile(graph, &options, &plan), ATT_OK);
    assert_int_equal(att_weights_create(graph, "cpu", &weights), ATT_OK);
    assert_int_equal(att_session_create(plan, weights, MOST, &session), ATT_OK);
    for (int rest = 0; rest < THREADS; rest++) {
        count_calls(session, THREADS + rest);
        bool shared = rest <= 5;
        assert_int_equal(atomic_load(&calls_shared), shared ? rest * THREADS : 0);
        assert_int_equal(atomic_load(&calls_alone), THREADS + (shared ? 0 : rest));
    }
    att_session_destroy(&session);
    att_weights_destroy(&weights);
    att_plan_destroy(&plan);
    att_graph_destroy(&graph);
    att_context_destroy(&context);
}

/* --- any number of inputs and outputs ----------------------------------------------------------------------------- */

enum { MANY = 23 };

static att_status infer_mix(att_infer *infer)
{
    for (int i = 0; i < infer->in_count; i++) {
        if (infer->out_count < infer->room)
            infer->out[infer->out_count] = infer->in[i];
        infer->out_count++;
    }
    return ATT_OK;
}

/* Output i is input i + 1; the last output is the first input. */
static att_status run_mix(const att_call *call)
{
    int count = call->problem->in_count;
    for (int i = 0; call->part == 0 && i < count; i++)
        for (int64_t sample = 0; sample < call->problem->group; sample++)
            ((float *)call->out[i])[sample] = ((const float *)call->in[(i + 1) % count])[sample];
    return ATT_OK;
}

static const att_op mix = {.name = "mix", .infer = infer_mix};
static const att_op *const ops_of_many[] = {&mix, NULL};
static const att_kernel mixes = {.op = "mix", .name = "mixes", .run = run_mix};
static const att_kernel *const kernels_of_many[] = {&mixes, NULL};
static const att_backend backend_of_many = {
    .name = "cpu", .memory = &att_host_memory, .kernels = kernels_of_many, .grouping = &att_host_grouping};
static const att_backend *const backends_of_many[] = {&backend_of_many, NULL};
static const att_registry registry_of_many = {.ops = ops_of_many, .backends = backends_of_many};

TEST(an_operation_has_any_number_of_inputs_and_outputs)
{
    att_context *context;
    att_graph *graph;
    att_value in[MANY], first[MANY], second[MANY];
    char name[32];
    assert_int_equal(att_context_create_with(NULL, &registry_of_many, &context), ATT_OK);
    assert_int_equal(att_graph_create(context, ATT_F32, &graph), ATT_OK);
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "in %d", i);
        in[i] = att_graph_input(graph, name, ATT_F32, (att_shape){0});
    }
    att_emit(graph, "mix", NULL, in, MANY, first);
    att_emit(graph, "mix", NULL, first, MANY, second);
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "out %d", i);
        att_graph_output(graph, name, second[i]);
    }
    att_plan_options options = att_plan_options_defaults();
    att_plan *plan;
    att_weights *weights;
    att_session *session;
    assert_int_equal(att_plan_compile(graph, &options, &plan), ATT_OK);
    assert_int_equal(att_weights_create(graph, "cpu", &weights), ATT_OK);
    assert_int_equal(att_session_create(plan, weights, 1, &session), ATT_OK);
    float values[MANY];
    for (int i = 0; i < MANY; i++) {
        values[i] = (float)i;
        snprintf(name, sizeof name, "in %d", i);
        assert_int_equal(att_session_bind(session, name, &values[i]), ATT_OK);
    }
    assert_int_equal(att_session_run(session, 1), ATT_OK);
    for (int i = 0; i < MANY; i++) {
        float value;
        snprintf(name, sizeof name, "out %d", i);
        assert_int_equal(att_session_output(session, name, 0, 1, &value), ATT_OK);
        assert_true(value == (float)((i + 2) % MANY));
    }
    att_session_destroy(&session);
    att_weights_destroy(&weights);
    att_plan_destroy(&plan);
    att_graph_destroy(&graph);
    att_context_destroy(&context);
}
