/* If several scores are the largest, the first one's place is reported, also if they lie in different tiles of keys; on
 * every tier. */
#include "engine/kernels/tiers.h"
#include "engine/ops/attention.h"
#include "engine/ops/list.h"

enum { TOKENS = 2600, WIDTH = 8, STATS_OUT = 2 }; /* three tiles */

/* Queries are ones. Keys are zeros, except at `count` places, where they are ones. */
static void assert_first(const int *places, int count, bool is_bf16)
{
    const att_op *op = case_op(att_ops, "attention");
    const att_op_case definition = {.name = "ties",
                                    .attrs = &(const att_attention_attrs){ATT_ATTENTION_HEADS(1), .scale = 0.5},
                                    .in = {{.desc = {ATT_F32, ATT_SAMPLE, att_shape_of(TOKENS, 3 * WIDTH)}, .scale = 1},
                                           {.desc = {.shape = {.rank = -1}}},
                                           {.desc = {.shape = {.rank = -1}}}},
                                    .in_count = ATT_ATTENTION_OPERANDS};
    case_drawn drawn = case_draw((case_setup){context, op, &definition, ATT_F32, 1, false, is_bf16, 0});
    for (int i = 0; i < TOKENS; i++)
        for (int c = 0; c < WIDTH; c++) {
            bool here = false;
            for (int p = 0; p < count; p++)
                here |= places[p] == i;
            att_element_store(drawn.in[0].dtype, drawn.block[0], i * 3 * WIDTH + c, 1);
            att_element_store(drawn.in[0].dtype, drawn.block[0], i * 3 * WIDTH + WIDTH + c, here ? 1 : 0);
        }
    case_result ours;
    assert_true(case_run(&drawn, tiers_kernel(context, "attention"), 2, 0, &ours));
    assert_int_equal(ours.count[STATS_OUT], TOKENS * ATT_STAT_COUNT);
    for (int i = 0; i < TOKENS; i++)
        assert_int_equal(case_value(&ours, STATS_OUT, i * ATT_STAT_COUNT + ATT_STAT_ARGMAX), places[0]);
    case_result_free(&ours);
    case_free(&drawn);
}

TEST(the_first_of_equal_scores_counts)
{
    static const int apart[] = {700, 701, 1500, 2599}, edge[] = {1023, 1024, 2047, 2048}, later[] = {1024, 2048},
                     start[] = {0, 2599};
    for (int is_bf16 = 0; is_bf16 < 2; is_bf16++) {
        assert_first(apart, 4, is_bf16);
        assert_first(edge, 4, is_bf16);
        assert_first(later, 2, is_bf16);
        assert_first(start, 2, is_bf16);
    }
}
