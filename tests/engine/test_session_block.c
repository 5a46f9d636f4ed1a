/* Sessions that share one block of memory: the same bits as with memory of their own, whatever ran between. */
#include <math.h>

#include "engine/fixture.h"
#include "engine/session/block.h"
#include "engine/session/session.h"

enum { SIZES = 3, BATCH = 4, MOST_SIDE = 12 };
static const int sides[SIZES] = {12, 6, 8};

static att_value batch_norm(att_graph *graph, att_value x)
{
    att_shape shape = att_shape_of(NETWORK_WIDTH);
    att_graph_scope(graph, "bn");
    att_value gamma = network_parameter(graph, "bn.weight", shape, 1),
              beta = network_parameter(graph, "bn.bias", shape, 1);
    return att_batch_norm(graph, x, gamma, beta, att_graph_buffer(graph, "bn.mean", shape, 0),
                          att_graph_buffer(graph, "bn.variance", shape, 1), NULL);
}

/* Every size has the same parameters, and a constant of its own. */
static att_graph *network_of(int side)
{
    att_graph *graph = make_graph();
    float ramp[MOST_SIDE * MOST_SIDE * NETWORK_WIDTH];
    const int tokens = side * side / 4;
    for (int i = 0; i < tokens * NETWORK_WIDTH; i++)
        ramp[i] = (float)(i % 7) / 7;
    att_value image = att_graph_input(graph, "image", ATT_F32, att_shape_of(side, side, 1));
    att_value target = att_graph_input(graph, "target", ATT_I32, (att_shape){0});
    att_value x = network_linear(graph, "patch", att_patchify(graph, image, 2, 2), NETWORK_WIDTH);
    x = att_add(graph, x, att_graph_constant(graph, ATT_F32, att_shape_of(tokens, NETWORK_WIDTH), ramp));
    x = att_relu(graph, batch_norm(graph, x));
    x = att_dropout(graph, network_linear(graph, "fc", x, NETWORK_WIDTH), 0.1);
    att_value logits = network_linear(graph, "head", att_token_mean(graph, x, 0), NETWORK_CLASSES);
    att_graph_output(graph, "logits", logits);
    att_graph_output(graph, "loss", att_cross_entropy(graph, logits, target, 0.1));
    return graph;
}

/* Trains with batches of changing sizes, two of them in each update. Returns a digest of the weights and all losses. */
static void train(bool shared, int first, char digest[ATT_WEIGHTS_DIGEST], float losses[12 * BATCH])
{
    static const int order[12] = {0, 1, 0, 2, 2, 1, 1, 0, 2, 0, 0, 1};
    static float images[BATCH * MOST_SIDE * MOST_SIDE];
    int32_t targets[BATCH];
    att_plan *plans[SIZES];
    att_session *sessions[SIZES];
    att_session_block *block = NULL;
    att_gradient *gradient;
    att_update *update;
    att_weights *weights;
    att_plan_options options = att_plan_options_defaults();
    options.purpose = ATT_TRAIN;
    for (int i = 0; i < SIZES; i++) {
        att_graph *graph = network_of(sides[i]);
        CHECK(context, att_plan_compile(graph, &options, &plans[i]));
        if (i == 0)
            CHECK(context, att_weights_create(graph, "cpu", &weights));
        att_graph_destroy(&graph);
    }
    CHECK(context, att_weights_initialise(weights, 5));
    if (shared)
        CHECK(context, att_session_block_create(plans[first], BATCH, &block));
    for (int i = 0; i < SIZES; i++)
        CHECK(context, att_session_create_in(plans[i], weights, BATCH, block, &sessions[i]));
    CHECK(context, att_gradient_create(weights, &gradient));
    const att_update_options with = {.backend = "cpu", .optimizer = "sgd"};
    CHECK(context, att_update_create(gradient, &with, &update));
    for (int i = 0; i < 12; i++) {
        att_session *session = sessions[order[i]];
        double norm;
        network_data(images, targets, BATCH, sides[order[i]]);
        images[0] = (float)i;
        CHECK(context, att_session_bind(session, "image", images));
        CHECK(context, att_session_bind(session, "target", targets));
        if (i % 2 == 0)
            att_gradient_begin(gradient);
        if (block && block->last != session)
            memset(block->values, 0xff, block->bytes); /* NaN: what other sessions left is not read */
        CHECK(context, att_session_accumulate(session, gradient, BATCH, 0.5 / BATCH, 3, i / 2, i % 2 * BATCH));
        CHECK(context, att_session_output(session, "loss", 0, BATCH, losses + i * BATCH));
        if (i % 2 == 0)
            continue;
        CHECK(context, att_update_reduce(update, &norm));
        CHECK(context, att_update_apply(update, &(att_hyper){.lr = 0.1, .momentum = 0.9, .update = i / 2 + 1}));
    }
    CHECK(context, att_weights_digest(weights, digest));
    att_update_destroy(&update);
    att_gradient_destroy(&gradient);
    for (int i = 0; i < SIZES; i++)
        att_session_destroy(&sessions[i]);
    att_session_block_destroy(&block);
    for (int i = 0; i < SIZES; i++)
        att_plan_destroy(&plans[i]);
    att_weights_destroy(&weights);
}

/* The block of a smaller plan lacks room for the others, which then have memory of their own in part. */
TEST(a_shared_block_changes_no_bit)
{
    char own[ATT_WEIGHTS_DIGEST], shared[ATT_WEIGHTS_DIGEST];
    float own_losses[12 * BATCH], losses[12 * BATCH];
    train(false, 0, own, own_losses);
    for (int first = 0; first < SIZES; first++) {
        train(true, first, shared, losses);
        assert_string_equal(shared, own);
        assert_memory_equal(losses, own_losses, sizeof losses);
    }
}

/* The weights do not change between the runs, so each session's packed weights would do, had they not been lost. */
TEST(inferences_share_a_block)
{
    static const char *const outputs[] = {"logits", NULL};
    static float images[BATCH * MOST_SIDE * MOST_SIDE];
    float logits[6][BATCH * NETWORK_CLASSES];
    int32_t targets[BATCH];
    att_plan_options options = att_plan_options_defaults();
    att_plan *plans[SIZES];
    att_session *sessions[SIZES];
    att_session_block *block;
    att_weights *weights = NULL;
    options.outputs = outputs;
    for (int i = 0; i < SIZES; i++) {
        att_graph *graph = network_of(sides[i]);
        CHECK(context, att_plan_compile(graph, &options, &plans[i]));
        if (!weights)
            CHECK(context, att_weights_create(graph, "cpu", &weights));
        att_graph_destroy(&graph);
    }
    CHECK(context, att_weights_initialise(weights, 5));
    CHECK(context, att_session_block_create(plans[0], BATCH, &block));
    for (int i = 0; i < SIZES; i++)
        CHECK(context, att_session_create_in(plans[i], weights, BATCH, block, &sessions[i]));
    for (int run = 0; run < 6; run++) {
        att_session *session = sessions[run % SIZES];
        memset(block->values, 0xff, block->bytes);
        network_data(images, targets, BATCH, sides[run % SIZES]);
        CHECK(context, att_session_bind(session, "image", images));
        CHECK(context, att_session_run(session, BATCH));
        CHECK(context, att_session_output(session, "logits", 0, BATCH, logits[run]));
        assert_true(isfinite(logits[run][0]));
    }
    assert_memory_equal(logits[3], logits[0], 3 * sizeof *logits);
    for (int i = 0; i < SIZES; i++)
        att_session_destroy(&sessions[i]);
    att_session_block_destroy(&block);
    for (int i = 0; i < SIZES; i++)
        att_plan_destroy(&plans[i]);
    att_weights_destroy(&weights);
}

TEST(sessions_in_the_block_of_the_largest_need_no_more)
{
    att_plan_options options = att_plan_options_defaults();
    att_plan *plans[SIZES];
    att_session *sessions[SIZES];
    att_session_block *block;
    att_weights *weights = NULL;
    options.purpose = ATT_TRAIN;
    for (int i = 0; i < SIZES; i++) {
        att_graph *graph = network_of(sides[i]);
        CHECK(context, att_plan_compile(graph, &options, &plans[i]));
        if (!weights)
            CHECK(context, att_weights_create(graph, "cpu", &weights));
        att_graph_destroy(&graph);
    }
    CHECK(context, att_session_block_create(plans[0], 32, &block));
    assert_true(block->bytes >= att_session_bytes(plans[0], 32));
    assert_true(block->bytes < att_session_bytes(plans[0], 32) + 8192); /* measured: 2432 more */
    for (int i = 0; i < SIZES; i++) {
        int64_t before = (int64_t)att_context_allocations(context).bytes_now;
        CHECK(context, att_session_create_in(plans[i], weights, 32, block, &sessions[i]));
        int64_t grown = (int64_t)att_context_allocations(context).bytes_now - before;
        if (grown > (int64_t)att_session_bytes(plans[i], 32) / 4)
            fail_msg("session %d took %lld bytes beside the block", i, (long long)grown);
        assert_true(sessions[i]->block_used <= block->bytes);
    }
    for (int i = 0; i < SIZES; i++)
        att_session_destroy(&sessions[i]);
    att_session_block_destroy(&block);
    for (int i = 0; i < SIZES; i++)
        att_plan_destroy(&plans[i]);
    att_weights_destroy(&weights);
}
