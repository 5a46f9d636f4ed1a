/* Runs that repeat the calls of an earlier one are recorded and replayed, if the memory can record. */
#include <attscope/update.h>

#include "base/core/context.h"
#include "engine/backend/backend.h"
#include "engine/graph/registry.h"
#include "engine/kernels/cpu/list.h"
#include "engine/network.h"
#include "engine/ops/list.h"
#include "engine/session/session.h"
#include "test.h"

enum { SIZE = 8, BATCH = 3 };

/* A recorder that counts. Calls take effect while it records, so its replays do nothing. */
static struct {
    int begun, ended, replayed, released;
} counts;

static att_status count_begin(att_context *context)
{
    (void)context;
    counts.begun++;
    return ATT_OK;
}

static att_status count_end(att_context *context, void **recording)
{
    (void)context;
    counts.ended++;
    *recording = &counts;
    return ATT_OK;
}

static att_status count_replay(att_context *context, void *recording)
{
    (void)context;
    assert_ptr_equal(recording, &counts);
    counts.replayed++;
    return ATT_OK;
}

static void count_release(void *recording)
{
    assert_ptr_equal(recording, &counts);
    counts.released++;
}

static const att_recorder recorder = {count_begin, count_end, count_replay, count_release};

static void expect(int begun, int replayed, int released)
{
    assert_int_equal(counts.begun, begun);
    assert_int_equal(counts.ended, begun);
    assert_int_equal(counts.replayed, replayed);
    assert_int_equal(counts.released, released);
}

typedef struct recorded {
    att_context *context;
    att_graph *graph;
    att_weights *weights;
    att_plan *plan;
    att_session *session;
    float images[BATCH * SIZE * SIZE];
    int32_t targets[BATCH];
} recorded;

static void create(recorded *r, att_purpose purpose)
{
    static att_memory memory;
    static att_grouping grouping;
    static const att_backend backend = {
        .name = "recorded", .memory = &memory, .kernels = att_kernels_cpu, .grouping = &grouping};
    static const att_backend *const backends[] = {&backend, NULL};
    static const att_registry registry = {.ops = att_ops, .backends = backends};
    memory = att_host_memory;
    memory.recorder = &recorder;
    grouping = att_host_grouping;
    grouping.threads = 1;
    memset(&counts, 0, sizeof counts);
    network_data(r->images, r->targets, BATCH, SIZE);
    const att_plan_options options = {.purpose = purpose, .backend = "recorded"};
    assert_int_equal(att_context_create_with(NULL, &registry, &r->context), ATT_OK);
    assert_int_equal(att_graph_create(r->context, ATT_F32, &r->graph), ATT_OK);
    network_build(r->graph, SIZE);
    assert_int_equal(att_plan_compile(r->graph, &options, &r->plan), ATT_OK);
    assert_int_equal(att_weights_create(r->graph, "recorded", &r->weights), ATT_OK);
    assert_int_equal(att_weights_initialise(r->weights, 1), ATT_OK);
    assert_int_equal(att_session_create(r->plan, r->weights, BATCH, &r->session), ATT_OK);
    assert_int_equal(att_session_bind(r->session, "image", r->images), ATT_OK);
    assert_int_equal(att_session_bind(r->session, "target", r->targets), ATT_OK);
}

static void destroy(recorded *r)
{
    att_session_destroy(&r->session);
    att_weights_destroy(&r->weights);
    att_plan_destroy(&r->plan);
    att_graph_destroy(&r->graph);
    att_context_destroy(&r->context);
}

static void run(recorded *r, int batch)
{
    assert_int_equal(att_session_run(r->session, batch), ATT_OK);
}

TEST(the_second_of_two_equal_runs_is_recorded)
{
    recorded r = {0};
    create(&r, ATT_INFER);
    run(&r, BATCH);
    expect(0, 0, 0);
    run(&r, BATCH);
    expect(1, 1, 0);
    run(&r, BATCH);
    expect(1, 2, 0);
    run(&r, 1); /* another batch */
    expect(1, 2, 1);
    run(&r, 1);
    expect(2, 3, 1);
    assert_int_equal(att_session_profile(r.session, true), ATT_OK);
    run(&r, 1); /* a profile needs the calls */
    expect(2, 3, 1);
    destroy(&r);
    expect(2, 3, 2);
}

/* A replay asks nobody whether to stop. */
TEST(runs_that_may_stop_are_not_recorded)
{
    recorded r = {0};
    create(&r, ATT_INFER);
    r.session->stops = true;
    for (int i = 0; i < 3; i++)
        run(&r, BATCH);
    expect(0, 0, 0);
    destroy(&r);
}

/* The network has dropout. */
TEST(runs_with_random_draws_are_not_recorded)
{
    recorded r = {0};
    att_gradient *gradient;
    create(&r, ATT_TRAIN);
    assert_int_equal(att_gradient_create(r.weights, &gradient), ATT_OK);
    for (int i = 0; i < 3; i++)
        assert_int_equal(att_session_accumulate(r.session, gradient, BATCH, 1, 1, 1, 0), ATT_OK);
    expect(0, 0, 0);
    att_gradient_destroy(&gradient);
    destroy(&r);
}
