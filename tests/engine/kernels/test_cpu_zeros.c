/* Weights of attention that are exactly 0, where kernels must not divide by them or invent gradients; on every tier. */
#include "engine/kernels/tiers.h"
#include "engine/ops/attention.h"
#include "engine/ops/attention_summary.h"
#include "engine/ops/list.h"
#include "engine/ops/mix_pairs.h"

enum { TOKENS = 21, PREFIX = 2 };

static void set(const case_drawn *drawn, int in, int64_t e, double value)
{
    att_element_store(drawn->in[in].dtype, (void *)drawn->data[in], e, value);
}

/* All queries attend to one token only: their own, or a prefix token. No weight is left over for distances and shifts,
 * whose means are 0. */
TEST(a_query_without_weight_on_others_has_no_distance)
{
    const att_op *op = case_op(att_ops, "attention_summary");
    const att_op_case definition = {.name = "zeros",
                                    .attrs = &(const att_attention_summary_attrs){.prefix = PREFIX},
                                    .in = {{.desc = {ATT_F32, ATT_SAMPLE, att_shape_of(1, TOKENS, ATT_STAT_COUNT)}}},
                                    .in_count = 1};
    for (int own = 0; own < 2; own++) {
        case_drawn drawn = case_draw((case_setup){context, op, &definition, ATT_F32, 1, true, 0, 0});
        case_result ours;
        for (int i = 0; i < TOKENS * ATT_STAT_COUNT; i++) {
            int stat = i % ATT_STAT_COUNT;
            set(&drawn, 0, i, stat == ATT_STAT_MAX || stat == (own ? ATT_STAT_SELF : ATT_STAT_PREFIX));
        }
        assert_true(case_run(&drawn, tiers_kernel(context, "attention_summary"), 1, 0, &ours));
        for (int s = 0; s < ATT_SUMMARY_COUNT; s++) {
            bool one = s == ATT_SUMMARY_MAX || s == (own ? ATT_SUMMARY_SELF : ATT_SUMMARY_PREFIX);
            if (case_value(&ours, 0, s) != one)
                fail_msg("figure %d is %g, expected %d", s, case_value(&ours, 0, s), one);
        }
        case_result_free(&ours);
        case_free(&drawn);
    }
}

/* The gradient of a weight that is 0 is 0, also between keys whose weights are not. */
TEST(weights_of_0_have_no_gradient)
{
    enum { OUT_ROW_MAP = 1, OUT_COLUMN_MAP };
    static const int64_t zeros[2][2] = {{1, 4 + 2}, {2, 5 + 1}}; /* keys of queries 0 and 1, in both maps */
    const att_op *op = case_op(att_ops, "mix_pairs_grad");
    const att_op_case definition = {.name = "zeros",
                                    .attrs = &(const att_mix_pairs_attrs){.attention = {.heads = 1,
                                                                                        .key_heads = 1,
                                                                                        .value_heads = 1,
                                                                                        .grid_h = 3,
                                                                                        .grid_w = 3,
                                                                                        .step_h = 1,
                                                                                        .step_w = 1,
                                                                                        .scale = 1},
                                                                          .stride = 1,
                                                                          .groups = 1},
                                    .in = {{.desc = {ATT_F32, ATT_SAMPLE, att_shape_of(3, 3, 7)}, .scale = 1},
                                           {.desc = {ATT_F32, ATT_SAMPLE, att_shape_of(4, 5, 7)}, .scale = 1},
                                           {.desc = {ATT_F32, ATT_SHARED, att_shape_of(1, 3, 4)}, .shift = 0.3},
                                           {.desc = {ATT_F32, ATT_SHARED, att_shape_of(1, 3, 5)}, .shift = 0.2}},
                                    .in_count = 4};
    case_drawn drawn = case_draw((case_setup){context, op, &definition, ATT_F32, 1, true, 0, 0});
    case_result ours;
    for (int map = 0; map < 2; map++)
        for (int i = 0; i < 2; i++)
            set(&drawn, 2 + map, zeros[map][i], 0);
    assert_true(case_run(&drawn, tiers_kernel(context, "mix_pairs_grad"), 1, 0, &ours));
    for (int map = 0; map < 2; map++)
        for (int64_t e = 0; e < 3 * (4 + map); e++) {
            bool is_zero = e == zeros[map][0] || e == zeros[map][1];
            assert_int_equal(case_value(&ours, OUT_ROW_MAP + map, e) == 0, is_zero);
        }
    case_result_free(&ours);
    case_free(&drawn);
}
