/* Every sample of a batch gives the same result for any batch size, number of threads and group size, including the
 * remainder of a batch. */
#include "engine/network.h"
#include "test.h"

enum { SIZE = 8, MOST = 23, CLASSES = NETWORK_CLASSES };

/* Computes the logits of the first n samples for every n, and compares them with those of the first call with one
 * thread. */
static void infer(int threads, int group, float first[MOST][CLASSES])
{
    att_settings settings = att_settings_defaults();
    settings.threads = threads;
    att_context *context;
    att_graph *graph;
    att_weights *weights;
    att_plan *plan;
    att_session *session;
    assert_int_equal(att_context_create(&settings, &context), ATT_OK);
    assert_int_equal(att_graph_create(context, ATT_F32, &graph), ATT_OK);
    network_build(graph, SIZE);
    att_plan_options options = {.purpose = ATT_INFER, .backend = "cpu", .group = group};
    assert_int_equal(att_plan_compile(graph, &options, &plan), ATT_OK);
    assert_int_equal(att_weights_create(graph, "cpu", &weights), ATT_OK);
    att_graph_destroy(&graph);
    assert_int_equal(att_weights_initialise(weights, 5), ATT_OK);
    assert_int_equal(att_session_create(plan, weights, MOST, &session), ATT_OK);
    float images[MOST * SIZE * SIZE], logits[MOST][CLASSES];
    int32_t targets[MOST];
    network_data(images, targets, MOST, SIZE);
    assert_int_equal(att_session_bind(session, "image", images), ATT_OK);
    assert_int_equal(att_session_bind(session, "target", targets), ATT_OK);
    for (int batch = MOST; batch >= 1; batch--) {
        assert_int_equal(att_session_run(session, batch), ATT_OK);
        memset(logits, 0xff, sizeof logits);
        assert_int_equal(att_session_output(session, "logits", 0, batch, logits), ATT_OK);
        if (batch == MOST && threads == 1)
            memcpy(first, logits, sizeof logits);
        for (int i = 0; i < batch; i++)
            for (int c = 0; c < CLASSES; c++)
                /* Measured: 0. Products with another number of rows may use other kernels of oneDNN. */
                if (!(fabsf(logits[i][c] - first[i][c]) <= 2e-6f))
                    fail_msg("%d threads, groups of %d, image %d of %d: logit %d is %g instead of %g", threads, group,
                             i, batch, c, (double)logits[i][c], (double)first[i][c]);
        /* Stale results of an earlier run must not hide missing ones. */
        memset(images, batch % 2 ? 0x7f : 0, sizeof images);
        assert_int_equal(att_session_run(session, MOST), ATT_OK);
        network_data(images, targets, MOST, SIZE);
    }
    att_session_destroy(&session);
    att_weights_destroy(&weights);
    att_plan_destroy(&plan);
    att_context_destroy(&context);
}

TEST(every_sample_of_a_batch_is_computed)
{
    float first[MOST][CLASSES];
    const int threads[] = {1, 2, 3, 5, 8}, groups[] = {1, 4};
    for (size_t g = 0; g < sizeof groups / sizeof *groups; g++)
        for (size_t t = 0; t < sizeof threads / sizeof *threads; t++)
            infer(threads[t], groups[g], first);
}
