/* Images that instruments see before a measurement: block_pruning ranks blocks on images of the whole data set. */
#include "study/train/fixture.h"

static att_measurement figure_of(const att_measure *measure, const char *name)
{
    for (int i = 0; i < att_measure_count(measure); i++) {
        att_measurement m = att_measure_at(measure, i);
        if (att_measurement_is_called(&m, name))
            return m;
    }
    fail_msg("no figure %s", name);
    return (att_measurement){0};
}

typedef struct measured {
    att_network *network;
    att_measure *measure;
    att_evaluation found;
} measured;

/* Evaluates `times` times and keeps the figures of the last one. */
static measured measure(fixture *f, const char *with, int times)
{
    measured m = {0};
    assert_int_equal(att_network_wrap(f->model, f->weights, NULL, &m.network), ATT_OK);
    assert_int_equal(att_network_observe(m.network, with, "*", &m.measure), ATT_OK);
    assert_int_equal(att_measure_keep_samples(m.measure, EVAL_IMAGES), ATT_OK);
    att_evaluate_options options = att_evaluate_options_defaults();
    options.batch_size = 2;
    options.measure = m.measure;
    for (int i = 0; i < times; i++) {
        att_measure_clear(m.measure);
        assert_int_equal(att_network_evaluate(m.network, f->eval, &options, &m.found), ATT_OK);
    }
    return m;
}

static void release(measured *m)
{
    att_measure_destroy(&m->measure);
    att_network_close(&m->network);
}

/* Three of ten images: 1, 5 and 8. A second measurement ranks anew. */
FIXTURE_TEST(blocks_are_ranked_on_images_of_the_whole_data_set)
{
    static const char *const nodes[] = {"blocks.0.add2", "blocks.1.add1", "blocks.1.add2"};
    static const int spread[] = {1, 5, 8};
    for (int times = 1; times <= 2; times++) {
        measured m = measure(f, "nsi,block_pruning:by=zeta,first=3", times);
        for (int i = 0; i < 3; i++) {
            char name[96];
            snprintf(name, sizeof name, "nsi/%s/attention", nodes[i]);
            const att_measurement nsi = figure_of(m.measure, name);
            double expected = 0;
            assert_int_equal(nsi.sample_count, EVAL_IMAGES);
            for (int k = 0; k < 3; k++)
                expected += nsi.samples[spread[k]] / 3;
            snprintf(name, sizeof name, "block_pruning/%s/score", nodes[i]);
            const att_measurement score = figure_of(m.measure, name);
            assert_float_equal(score.mean, expected, 1e-6 * expected); /* measured: 2e-8 */
            assert_int_equal(score.count, 3);
        }
        const att_measurement whole = figure_of(m.measure, "block_pruning/skipped.0/top1");
        assert_int_equal(whole.count, EVAL_IMAGES);
        assert_float_equal(whole.mean, m.found.metrics[TOP1], 1e-9);
        release(&m);
    }
}

/* A second evaluation adds to the accuracy of the first ranking. */
FIXTURE_TEST(evaluations_that_share_a_measure_share_the_ranking)
{
    measured m = measure(f, "block_pruning:by=zeta,first=3", 1);
    att_evaluate_options options = att_evaluate_options_defaults();
    options.measure = m.measure;
    assert_int_equal(att_network_evaluate(m.network, f->eval, &options, NULL), ATT_OK);
    assert_int_equal(figure_of(m.measure, "block_pruning/blocks.1.add1/score").count, 3);
    assert_int_equal(figure_of(m.measure, "block_pruning/skipped.0/top1").count, 2 * EVAL_IMAGES);
    release(&m);
}

FIXTURE_TEST(a_small_data_set_ranks_on_all_its_images)
{
    measured m = measure(f, "block_pruning:by=zeta,first=100", 1);
    assert_int_equal(figure_of(m.measure, "block_pruning/blocks.1.add1/score").count, EVAL_IMAGES);
    assert_int_equal(figure_of(m.measure, "block_pruning/skipped.0/top1").count, EVAL_IMAGES);
    release(&m);
}
