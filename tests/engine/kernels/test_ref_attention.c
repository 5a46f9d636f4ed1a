/* The reference kernels of attention against values computed by hand. */
#include "engine/kernels/direct.h"
#include "engine/ops/attention.h"
#include "engine/ops/axis_terms.h"

TEST_GROUP(direct_setup, close_context)

static const double tight = 1e-14;
static const double zeros[5 * 3];

/* Two tokens, one head with one channel: q = (1, 0), k = (ln 3, 0), v = (10, 20), scale 1. Query 0 has the scores ln 3
 * and 0, so a = (3/4, 1/4); query 1 has equal scores, so a is uniform. */
static const double qkv[] = {1, 1.0986122886681098, 10, 0, 0, 20};

TEST(attention_is_softmax)
{
    const att_attention_attrs attrs = {
        ATT_ATTENTION_HEADS(1), .scale = 1, .prefix = 1, .grid_h = 1, .grid_w = 1, .step_h = 1, .step_w = 1};
    double o[2], lse[2], map[4], stats[2 * ATT_STAT_COUNT];
    DIRECT("attention", &attrs, 1, OUTPUTS(o, lse, stats, map), SAMPLE(qkv, 2, 3), ABSENT, ABSENT);
    CLOSE(o, tight, 12.5, 15);
    CLOSE(lse, tight, log(4), log(2));
    CLOSE(map, tight, 0.75, 0.25, 0.5, 0.5);
    double entropy = -0.75 * log(0.75) - 0.25 * log(0.25);
    CLOSE(stats, tight, entropy, 0.25, 0.0625, 0.015625, 0, 0.75, 0.75, 0.75, 0, 0, 0, 0, 0, 0,
          /* then the second query */ log(2), 0.5, 0.25, 0.125, 0, 0.5, 0.5, 0.5, 0, 0, 0, 0, 0, 0);
}

TEST(the_scale_multiplies_scores)
{
    const att_attention_attrs attrs = {ATT_ATTENTION_HEADS(1), .scale = 2};
    double map[4];
    DIRECT("attention", &attrs, 1, OUTPUTS(NULL, NULL, NULL, map), SAMPLE(qkv, 2, 3), ABSENT, ABSENT);
    CLOSE(map, tight, 0.9, 0.1, 0.5, 0.5);
}

/* Two samples of two tokens, two heads with one channel. With zero queries each head averages its own v. */
TEST(heads_and_samples_do_not_mix)
{
    const double x[] = {0, 0, 9, 9, 1, 10, 0, 0, 9, 9, 3, 30, 0, 0, 9, 9, 100, 1000, 0, 0, 9, 9, 300, 3000};
    const att_attention_attrs attrs = {ATT_ATTENTION_HEADS(2), .scale = 1};
    double o[8], lse[8];
    DIRECT("attention", &attrs, 2, OUTPUTS(o, lse), SAMPLE(x, 2, 6), ABSENT, ABSENT);
    CLOSE(o, tight, 2, 20, 2, 20, 200, 2000, 200, 2000);
    CLOSE(lse, tight, log(2), log(2), log(2), log(2), log(2), log(2), log(2), log(2));
}

/* Four heads of queries, one of keys and two of values, with one channel each. With zero queries, neighbouring heads
 * average the v that they share: side by side in one input, and from inputs with three queries and two keys. */
TEST(neighbouring_heads_share_keys_and_values)
{
    const att_attention_attrs attrs = {.heads = 4, .key_heads = 1, .value_heads = 2, .scale = 1};
    const double x[] = {0, 0, 0, 0, 9, 1, 10, 0, 0, 0, 0, 9, 3, 30}, q[12] = {0}, kv[] = {9, 1, 10, 9, 3, 30};
    double o[12];
    DIRECT("attention", &attrs, 1, OUTPUTS(o), SAMPLE(x, 2, 7), ABSENT, ABSENT);
    CLOSE(o, tight, 2, 2, 20, 20, 2, 2, 20, 20);
    DIRECT("attention", &attrs, 1, OUTPUTS(o), SAMPLE(q, 3, 4), SAMPLE(kv, 2, 3), ABSENT);
    CLOSE(o, tight, 2, 2, 20, 20, 2, 2, 20, 20, 2, 2, 20, 20);
}

/* Uniform attention over a class token and a grid of 2 x 2. `sum`: the sum of the distances to the other three grid
 * tokens. */
static void distance_in_steps(double step_h, double step_w, double sum)
{
    const att_attention_attrs attrs = {ATT_ATTENTION_HEADS(1), .scale = 1,      .prefix = 1, .grid_h = 2, .grid_w = 2,
                                       .step_h = step_h,       .step_w = step_w};
    double stats[5 * ATT_STAT_COUNT];
    DIRECT("attention", &attrs, 1, OUTPUTS(NULL, NULL, stats), SAMPLE(zeros, 5, 3), ABSENT, ABSENT);
    for (int i = 0; i < 5; i++) {
        double distance = i == 0 ? 0 : sum / 5, on_grid = i > 0;
        double y = i <= 2 ? on_grid : -1, x = i % 2 ? on_grid : -on_grid; /* to the other row and column */
        CLOSE(stats + ATT_STAT_COUNT * i, tight, log(5), 0.8, 0.16, 0.032, distance, 0.2, 0.2, 0.2, 0, 0.4 * y, 0.4 * x,
              0.2 * on_grid, 0.2 * on_grid, 0);
    }
}

TEST(distance_is_over_other_grid_tokens)
{
    distance_in_steps(1, 1, 1 + 1 + sqrt(2));
    distance_in_steps(3, 4, 3 + 4 + 5);
}

/* Scores of +-1e6 must not overflow: all attention is on one key, whatever the other scores are. */
TEST(large_scores_stay_finite)
{
    const double x[] = {1e3, 1e3, 1, 1e3, -1e3, 2};
    const att_attention_attrs attrs = {ATT_ATTENTION_HEADS(1), .scale = 1};
    double o[2], lse[2], stats[2 * ATT_STAT_COUNT];
    DIRECT("attention", &attrs, 1, OUTPUTS(o, lse, stats), SAMPLE(x, 2, 3), ABSENT, ABSENT);
    CLOSE(o, tight, 1, 1);
    CLOSE(lse, tight, 1e6, 1e6);
    CLOSE(stats, tight, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0);
}

/* The case of attention_is_softmax() with do = (4, 0): da = do (v - o) = (-10, 30), ds = a da = (-7.5, 7.5). */
TEST(gradients_follow_the_formula)
{
    const double d[] = {4, 0}, o[] = {12.5, 15}, lse[] = {1.3862943611198906, 0.69314718055994531};
    const att_attention_attrs attrs = {ATT_ATTENTION_HEADS(1), .scale = 1};
    double dqkv[6], norms[2];
    DIRECT("attention_grad", &attrs, 1, OUTPUTS(dqkv, norms), SAMPLE(d, 2, 1), SAMPLE(o, 2, 1), SAMPLE(lse, 1, 2),
           SAMPLE(qkv, 2, 3), ABSENT, ABSENT);
    CLOSE(dqkv, tight, -7.5 * 1.0986122886681098, -7.5, 3, 0, 7.5, 1);
    CLOSE(norms, tight, 7.5 * sqrt(2), 0);
}

static const double ln2 = 0.69314718055994531, ln3 = 1.0986122886681098;

/* Two tokens side by side and equal products. relative holds the numbers of the shifts x - x' = -1, 0, 1. */
TEST(shifts_have_numbers)
{
    const att_attention_attrs attrs = {
        ATT_ATTENTION_HEADS(1), .grid_h = 1, .grid_w = 2, .step_h = 1, .step_w = 1, .scale = 1};
    const double relative[] = {ln3, 0, ln2};
    double map[4];
    DIRECT("attention", &attrs, 1, OUTPUTS(NULL, NULL, NULL, map), SAMPLE(zeros, 2, 3), ABSENT, ABSENT,
           SHARED(relative, 3, 1), ABSENT, ABSENT);
    CLOSE(map, tight, 0.25, 0.75, 2.0 / 3, 1.0 / 3);
}

/* The last three numbers: prefix token as query, as key, as both. */
TEST(prefix_tokens_have_numbers)
{
    const att_attention_attrs attrs = {
        ATT_ATTENTION_HEADS(1), .prefix = 1, .grid_h = 1, .grid_w = 1, .step_h = 1, .step_w = 1, .scale = 1};
    const double relative[] = {ln2, ln3, 0, ln2}, of_grid[] = {ln2};
    double map[4];
    DIRECT("attention", &attrs, 1, OUTPUTS(NULL, NULL, NULL, map), SAMPLE(zeros, 2, 3), ABSENT, ABSENT,
           SHARED(relative, 4, 1), ABSENT, ABSENT);
    CLOSE(map, tight, 0.4, 0.6, 1.0 / 3, 2.0 / 3);
    DIRECT("attention", &attrs, 1, OUTPUTS(NULL, NULL, NULL, map), SAMPLE(zeros, 2, 3), ABSENT, ABSENT,
           SHARED(of_grid, 1, 1), ABSENT, ABSENT);
    CLOSE(map, tight, 0.5, 0.5, 1.0 / 3, 2.0 / 3);
}

/* A grid of two rows and one column after a prefix token; only the second query has numbers. */
TEST(queries_have_numbers_for_rows_and_columns)
{
    const att_attention_attrs attrs = {
        ATT_ATTENTION_HEADS(1), .prefix = 1, .grid_h = 2, .grid_w = 1, .step_h = 1, .step_w = 1, .scale = 1};
    const double rows[] = {0, 0, 0, ln3, 0, 0}, columns[] = {0, ln2, 0};
    double map[9];
    DIRECT("attention", &attrs, 1, OUTPUTS(NULL, NULL, NULL, map), SAMPLE(zeros, 3, 3), ABSENT, ABSENT, ABSENT,
           SAMPLE(rows, 3, 2), SAMPLE(columns, 3, 1));
    CLOSE(map, tight, 1.0 / 3, 1.0 / 3, 1.0 / 3, 1.0 / 9, 2.0 / 9, 6.0 / 9, 1.0 / 3, 1.0 / 3, 1.0 / 3);
}

/* Four tokens in a row, rolled by one: the windows are tokens 1 and 2, and tokens 3 and 0, which were not neighbours.
 */
TEST(windows_of_a_rolled_grid)
{
    const att_attention_attrs attrs = {ATT_ATTENTION_HEADS(1), .grid_h = 1, .grid_w = 4, .window_h = 1, .window_w = 2,
                                       .shift_w = 1,           .step_h = 1, .step_w = 1, .scale = 1};
    const double x[] = {0, 0, 1, 0, 0, 2, 0, 0, 4, 0, 0, 8};
    double o[4], map[8], stats[4 * ATT_STAT_COUNT];
    DIRECT("attention", &attrs, 1, OUTPUTS(o, NULL, stats, map), SAMPLE(x, 4, 3), ABSENT, ABSENT);
    CLOSE(o, tight, 1, 3, 3, 8);
    CLOSE(map, tight, 0, 1, 0.5, 0.5, 0.5, 0.5, 1, 0);
    const double first_key[] = {0, 1, 1, 3};
    for (int i = 0; i < 4; i++)
        assert_true(stats[i * ATT_STAT_COUNT + ATT_STAT_ARGMAX] == first_key[i]);
}

/* A prefix token, then two rows of one column; a head has a number for rows and then one for columns. Shifts from key
 * to query are -1, 0, 1. */
TEST(terms_of_an_axis_depend_on_the_query_and_the_shift)
{
    const att_axis_terms_attrs attrs = {.heads = 1, .width = 2, .prefix = 1, .grid_h = 2, .grid_w = 1, .scale = 2};
    const double q[] = {9, 9, 1, 10, 3, 20}, row_table[] = {100, 10, 1}, column_table[] = {7};
    double rows[6], columns[3];
    DIRECT("axis_terms", &attrs, 1, OUTPUTS(rows, columns), SAMPLE(q, 3, 2), SHARED(row_table, 3, 1),
           SHARED(column_table, 1, 1));
    CLOSE(rows, tight, 0, 0, 20, 200, 6, 60);
    CLOSE(columns, tight, 0, 140, 280);
}

TEST(causal_queries_see_no_later_keys)
{
    const att_attention_attrs attrs = {ATT_ATTENTION_HEADS(1), .scale = 1, .causal = 1};
    double map[9], stats[3 * ATT_STAT_COUNT];
    DIRECT("attention", &attrs, 1, OUTPUTS(NULL, NULL, stats, map), SAMPLE(zeros, 3, 3), ABSENT, ABSENT);
    CLOSE(map, tight, 1, 0, 0, 0.5, 0.5, 0, 1.0 / 3, 1.0 / 3, 1.0 / 3);
    CLOSE(stats + ATT_STAT_COUNT, tight, ln2);
}
