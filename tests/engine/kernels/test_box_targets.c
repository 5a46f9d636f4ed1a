/* Anchors and boxes that a detector learns from, against numbers computed by hand; which ones are drawn. */
#include "engine/kernels/direct.h"
#include "engine/ops/binary_cross_entropy.h"
#include "engine/ops/box_targets.h"
#include "engine/ops/smooth_l1.h"

TEST_GROUP(direct_setup, close_context)

static const att_run first_run = {.seed = 1, .step = 1};

#define RUN(op, attrs, run, position, out, ...)                   \
    direct_run(op, attrs, 1, (const direct_input[]){__VA_ARGS__}, \
               (int)(sizeof((const direct_input[]){__VA_ARGS__}) / sizeof(direct_input)), out, run, position)

static void expect_whole(const int32_t *got, const int32_t *expected, int count)
{
    for (int i = 0; i < count; i++)
        if (got[i] != expected[i])
            fail_msg("number %d is %d, expected %d", i, got[i], expected[i]);
}
#define WHOLE(got, ...) \
    expect_whole(got, (const int32_t[]){__VA_ARGS__}, (int)(sizeof((const int32_t[]){__VA_ARGS__}) / sizeof(int32_t)))

/* --- anchors ------------------------------------------------------------------------------------------------------ */

/* A row of three places, 16 pixels apart. Squares have 16 pixels; the others, with rounded sides, 22 x 12 and 12 x 22.
 */
enum { ANCHORS = 9 };
static att_anchor_sample_attrs row_of_anchors(att_best_match best)
{
    return (att_anchor_sample_attrs){
        .sampling = {.positive = 0.7, .negative = 0.3, .crowd = 1, .share = 0.5, .best = best, .samples = 100},
        .size = 16,
        .stride = {{16, 16}},
        .sides = {{1, 3}},
        .levels = 1,
        .rounded = 1};
}

static void sample_anchors(const att_anchor_sample_attrs *attrs, const double *truth, int rows, int32_t *classes,
                           int32_t *columns, double *deltas)
{
    RUN("anchor_sample", attrs, &first_run, 0, OUTPUTS(classes, columns, deltas), SAMPLE(truth, rows, 5));
}

TEST(anchors_are_positive_or_negative_by_their_overlap)
{
    /* The square at (16, 0) but for 2 of its 16 columns: overlap 7/8; with the wide one at (16, 0) 168 / 312. */
    const double truth[] = {8, -8, 22, 8, 4};
    const att_anchor_sample_attrs attrs = row_of_anchors(ATT_BEST_NONE);
    int32_t classes[ANCHORS], columns[ANCHORS];
    double deltas[4 * ANCHORS];
    sample_anchors(&attrs, truth, 1, classes, columns, deltas);
    WHOLE(classes, 0, 0, 0, -1, 1, -1, 0, 0, 0);
    WHOLE(columns, -1, -1, -1, -1, 0, -1, -1, -1, -1);
    for (int i = 0; i < 4 * ANCHORS; i++)
        if (i / 4 != 4)
            assert_float_equal(deltas[i], 0, 0);
    CLOSE(deltas + 16, 1e-15, -1.0 / 16, 0, log(14.0 / 16), 0);
}

/* Both boxes have their largest overlap, 0.625 and 0.125, with the same anchor. */
TEST(the_best_anchor_of_a_box_is_positive)
{
    const double truth[] = {8, -8, 18, 8, 0, 10, 0, 18, 4, 1};
    att_anchor_sample_attrs attrs = row_of_anchors(ATT_BEST_NONE);
    int32_t classes[ANCHORS], columns[ANCHORS];
    double deltas[4 * ANCHORS];
    sample_anchors(&attrs, truth, 2, classes, columns, deltas);
    WHOLE(classes, 0, 0, 0, -1, -1, -1, 0, 0, 0);
    attrs.sampling.best = ATT_BEST_OF_CANDIDATE;
    sample_anchors(&attrs, truth, 2, classes, columns, deltas);
    WHOLE(classes, 0, 0, 0, -1, 1, -1, 0, 0, 0);
    CLOSE(deltas + 16, 1e-15, -3.0 / 16, 0, log(10.0 / 16), 0);
    attrs.sampling.best = ATT_BEST_OF_BOX;
    sample_anchors(&attrs, truth, 2, classes, columns, deltas);
    WHOLE(classes, 0, 0, 0, -1, 1, -1, 0, 0, 0);
    CLOSE(deltas + 16, 1e-15, -2.0 / 16, 2.0 / 16, log(8.0 / 16), log(4.0 / 16));
}

TEST(the_best_anchor_needs_the_least_overlap)
{
    const double truth[] = {40, -2, 44, 2, 0}; /* overlap 0.045 with one anchor, 0 with the others */
    att_anchor_sample_attrs attrs = row_of_anchors(ATT_BEST_OF_BOX);
    int32_t classes[ANCHORS], columns[ANCHORS];
    double deltas[4 * ANCHORS];
    sample_anchors(&attrs, truth, 1, classes, columns, deltas);
    WHOLE(classes, 0, 0, 0, 0, 0, 0, 1, 0, 0);
    attrs.sampling.least = 0.3;
    sample_anchors(&attrs, truth, 1, classes, columns, deltas);
    WHOLE(classes, 0, 0, 0, 0, 0, 0, 0, 0, 0);
}

/* A box that no anchor overlaps makes none of them positive, though all have its largest overlap, 0. */
TEST(without_boxes_all_anchors_are_negative)
{
    const double truth[] = {0, 0, 0, 0, 0, 45, -2, 50, 2, 2}; /* right of the last anchor */
    const att_anchor_sample_attrs attrs = row_of_anchors(ATT_BEST_OF_CANDIDATE);
    int32_t classes[ANCHORS], columns[ANCHORS];
    double deltas[4 * ANCHORS];
    sample_anchors(&attrs, truth, 2, classes, columns, deltas);
    WHOLE(classes, 0, 0, 0, 0, 0, 0, 0, 0, 0);
}

TEST(anchors_in_a_crowd_are_neither)
{
    const double truth[] = {5, -11, 27, 11, -1, 24, -8, 40, 8, 0};
    att_anchor_sample_attrs attrs = row_of_anchors(ATT_BEST_NONE);
    int32_t classes[ANCHORS], columns[ANCHORS];
    double deltas[4 * ANCHORS];
    sample_anchors(&attrs, truth, 2, classes, columns, deltas);
    WHOLE(classes, 0, 0, 0, 0, 0, 0, -1, 1, -1);
    attrs.sampling.crowd = 0.5;
    sample_anchors(&attrs, truth, 2, classes, columns, deltas);
    WHOLE(classes, 0, 0, 0, -1, -1, -1, -1, 1, -1);
    const double same[] = {5, -11, 27, 11, -1, 8, -8, 24, 8, 0}; /* the true box lies in the crowd */
    sample_anchors(&attrs, same, 2, classes, columns, deltas);
    WHOLE(classes, 0, 0, 0, -1, -1, -1, 0, 0, 0);
}

/* --- boxes -------------------------------------------------------------------------------------------------------- */

static att_box_sample_attrs boxes_of(int samples, bool background_first)
{
    return (att_box_sample_attrs){
        .sampling = {.positive = 0.5, .negative = 0.5, .crowd = 0.5, .share = 0.25, .samples = samples},
        .weights = {10, 10, 5, 5},
        .classes = 3,
        .background_first = background_first};
}

TEST(boxes_are_sampled_with_the_true_boxes)
{
    enum { S = 12 };
    const double proposals[] = {0, 0, 10, 10, 0, 0, 10, 8, 20, 20, 30, 30, 0, 0, 10, 4}, truth[] = {0, 0, 10, 10, 2};
    att_box_sample_attrs attrs = boxes_of(S, true);
    const int32_t all = 4, two = 2;
    int32_t classes[S], columns[S], count;
    double boxes[4 * S], deltas[4 * S];
    RUN("box_sample", &attrs, &first_run, 0, OUTPUTS(boxes, classes, columns, deltas, &count), SAMPLE(proposals, 4, 4),
        CLASSES(&all), SAMPLE(truth, 1, 5));
    assert_int_equal(count, S);
    WHOLE(classes, 3, 3, 0, 0, 3, -1, -1, -1, -1, -1, -1, -1);
    WHOLE(columns, 3, 3, -1, -1, 3, -1, -1, -1, -1, -1, -1, -1);
    direct_close(boxes, proposals, 16, 0);
    CLOSE(boxes + 16, 0, 0, 0, 10, 10);
    direct_close(boxes + 20, proposals, 16, 0); /* the samples again, to the last row */
    CLOSE(boxes + 36, 0, 0, 0, 10, 10, 0, 0, 10, 10, 0, 0, 10, 8);
    CLOSE(deltas, 1e-15, 0, 0, 0, 0, 0, 1.25, 0, 5 * log(1.25), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    attrs.background_first = false;
    RUN("box_sample", &attrs, &first_run, 0, OUTPUTS(boxes, classes, columns, deltas, &count), SAMPLE(proposals, 4, 4),
        CLASSES(&two), SAMPLE(truth, 1, 5));
    assert_int_equal(count, S);
    WHOLE(classes, 2, 2, 2, -1);
}

/* The true box, though it lies in the crowd, is learned from. */
TEST(proposals_in_a_crowd_are_not_sampled)
{
    enum { S = 12 };
    const double proposals[] = {0, 0, 10, 10, 0, 0, 10, 30, 20, 20, 30, 30};
    const double truth[] = {0, 0, 10, 10, 2, 0, 0, 14, 14, -1};
    const att_box_sample_attrs attrs = boxes_of(S, true);
    const int32_t given = 3;
    int32_t classes[S], columns[S], count;
    double boxes[4 * S], deltas[4 * S];
    RUN("box_sample", &attrs, &first_run, 0, OUTPUTS(boxes, classes, columns, deltas, &count), SAMPLE(proposals, 3, 4),
        CLASSES(&given), SAMPLE(truth, 2, 5));
    assert_int_equal(count, S);
    WHOLE(classes, 0, 0, 3, -1);
}

TEST(without_candidates_there_are_no_boxes)
{
    enum { S = 3 };
    const att_box_sample_attrs attrs = boxes_of(S, true);
    const double proposals[4] = {0, 0, 10, 10}, truth[5] = {0};
    const int32_t none = 0;
    int32_t classes[S], columns[S], count;
    double boxes[4 * S], deltas[4 * S];
    RUN("box_sample", &attrs, &first_run, 0, OUTPUTS(boxes, classes, columns, deltas, &count), SAMPLE(proposals, 1, 4),
        CLASSES(&none), SAMPLE(truth, 1, 5));
    assert_int_equal(count, 0);
    WHOLE(classes, -1, -1, -1);
    CLOSE(boxes, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
}

enum { MANY = 20, DRAWN = 5 };

/* Marks which of MANY background proposals are drawn. position: in the batch of all processes. */
static void draw(uint64_t seed, int64_t step, int64_t position, int drawn[MANY])
{
    att_box_sample_attrs attrs = boxes_of(DRAWN, true);
    const att_run run = {.seed = seed, .step = step};
    const double truth[5] = {0};
    const int32_t given = MANY;
    double proposals[4 * MANY], boxes[4 * DRAWN];
    int32_t count;
    for (int i = 0; i < MANY; i++)
        memcpy(proposals + (ptrdiff_t)4 * i, (const double[]){i, 0, i + 1, 1}, sizeof(double[4]));
    RUN("box_sample", &attrs, &run, position, OUTPUTS(boxes, NULL, NULL, NULL, &count), SAMPLE(proposals, MANY, 4),
        CLASSES(&given), SAMPLE(truth, 1, 5));
    assert_int_equal(count, DRAWN);
    for (int i = 0; i < DRAWN; i++) {
        drawn[(int)boxes[4 * i]]++;
        assert_true(i == 0 || boxes[4 * i] > boxes[4 * (i - 1)]);
    }
}

TEST(draws_follow_from_seed_update_and_position)
{
    int a[MANY] = {0}, b[MANY] = {0}, seed[MANY] = {0}, step[MANY] = {0}, position[MANY] = {0};
    draw(1, 2, 3, a), draw(1, 2, 3, b), draw(2, 2, 3, seed), draw(1, 3, 3, step), draw(1, 2, 4, position);
    assert_memory_equal(a, b, sizeof a);
    assert_memory_not_equal(a, seed, sizeof a);
    assert_memory_not_equal(a, step, sizeof a);
    assert_memory_not_equal(a, position, sizeof a);
}

/* 2000 draws of a quarter: 500 +- 19 for each. */
TEST(every_box_is_drawn_equally_often)
{
    int drawn[MANY] = {0};
    for (int step = 0; step < 2000; step++)
        draw(7, step, 0, drawn);
    for (int i = 0; i < MANY; i++)
        assert_in_range(drawn[i], 500 - 80, 500 + 80);
}

/* A quarter at most are positive; negative ones fill the rest. */
TEST(positive_boxes_are_drawn_to_their_share)
{
    enum { S = 8, P = 16 };
    const att_box_sample_attrs attrs = boxes_of(S, true);
    const int32_t given = P;
    const double truth[] = {0, 0, 10, 10, 1};
    double proposals[4 * P];
    int32_t classes[S], count, positive = 0;
    for (int i = 0; i < P; i++)
        memcpy(proposals + (ptrdiff_t)4 * i, (const double[]){i < 8 ? 0 : 50, 0, i < 8 ? 10 : 60, 10},
               sizeof(double[4]));
    RUN("box_sample", &attrs, &first_run, 0, OUTPUTS(NULL, classes, NULL, NULL, &count), SAMPLE(proposals, P, 4),
        CLASSES(&given), SAMPLE(truth, 1, 5));
    assert_int_equal(count, S);
    for (int i = 0; i < S; i++)
        positive += classes[i] > 0;
    assert_int_equal(positive, 2);
}

/* --- losses ------------------------------------------------------------------------------------------------------- */

#define INTEGERS(data_, ...)                                      \
    {                                                             \
        {ATT_I32, ATT_SAMPLE, DIRECT_SHAPE(__VA_ARGS__)}, (data_) \
    }

TEST(classes_that_are_left_out_add_nothing_to_binary_cross_entropy)
{
    static const att_binary_cross_entropy_attrs sum = {.positive_weight = 1, .sum = 1};
    const double logits[] = {1, -2, 3}, one = 1;
    int32_t target[] = {1, ATT_NO_CLASS, 0};
    double loss, slopes[3];
    DIRECT("binary_cross_entropy", &sum, 1, OUTPUTS(&loss), SAMPLE(logits, 3), INTEGERS(target, 3));
    DIRECT("binary_cross_entropy_grad", &sum, 1, OUTPUTS(slopes), SCALARS(&one), SAMPLE(logits, 3),
           INTEGERS(target, 3));
    CLOSE(&loss, 1e-15, log1p(exp(-1)) + log1p(exp(3)));
    CLOSE(slopes, 1e-15, -1 / (1 + exp(1)), 0, 1 / (1 + exp(-3)));
    target[0] = 2;
    DIRECT("binary_cross_entropy", &sum, 1, OUTPUTS(&loss), SAMPLE(logits, 3), INTEGERS(target, 3));
    assert_true(isnan(loss));
}

TEST(rows_that_are_left_out_add_nothing_to_smooth_l1)
{
    static const att_smooth_l1_attrs beta = {.beta = 0.5};
    const double x[] = {0, 0, 3, 0.25, 9, 9, 9, 9}, target[] = {1, 0, 5, 5}, two = 2;
    int32_t columns[] = {1, ATT_NO_CLASS};
    double loss, dx[8], dtarget[4];
    DIRECT("smooth_l1", &beta, 1, OUTPUTS(&loss), SAMPLE(x, 2, 4), SAMPLE(target, 2, 2), INTEGERS(columns, 2));
    DIRECT("smooth_l1_grad", &beta, 1, OUTPUTS(dx, dtarget), SCALARS(&two), SAMPLE(x, 2, 4), SAMPLE(target, 2, 2),
           INTEGERS(columns, 2));
    CLOSE(&loss, 1e-15, 2 - 0.25 + 0.0625);
    CLOSE(dx, 1e-15, 0, 0, 2, 1, 0, 0, 0, 0);
    CLOSE(dtarget, 1e-15, -2, -1, 0, 0);
    columns[1] = 2;
    DIRECT("smooth_l1", &beta, 1, OUTPUTS(&loss), SAMPLE(x, 2, 4), SAMPLE(target, 2, 2), INTEGERS(columns, 2));
    assert_true(isnan(loss));
}
