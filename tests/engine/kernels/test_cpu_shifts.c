/* Moments of shifts in rows of attention that are sharp, on every tier: each row keeps the digits of its own variances,
 * however small they are beside the square of the shift. */
#include "engine/kernels/tiers.h"
#include "engine/ops/attention.h"
#include "engine/ops/attention_summary.h"
#include "engine/ops/list.h"

/* Two tiles of keys, of which the second begins with key 1024. */
enum { PREFIX = 1, HEIGHT = 33, WIDTH = 32, TOKENS = PREFIX + HEIGHT * WIDTH, CHANNELS = 8, STRONG = 3, STATS_OUT = 2 };

/* The scores of all queries: those of the strong keys, and 0 for all others. */
typedef struct row_of_scores {
    const char *name;
    struct {
        int key, score; /* score 0: no key */
    } strong[STRONG];
} row_of_scores;

static const row_of_scores rows[] = {
    {"one key", {{300, 24}}},
    {"one key in the last tile", {{1050, 24}}},
    {"a stronger key in the last tile", {{12, 9}, {1040, 30}}},
    {"a stronger key in the first tile", {{1000, 30}, {1056, 12}}},
    {"equal keys", {{300, 24}, {340, 24}}},
    {"equal keys on the border of tiles", {{1023, 24}, {1024, 24}}},
    {"equal keys that are weaker than one in the last tile", {{7, 5}, {900, 5}, {1030, 28}}},
    {"a prefix token, then a key", {{0, 30}, {700, 24}}},
    {"a prefix token, a key and one in the last tile", {{0, 30}, {3, 15}, {1033, 28}}},
    {"a prefix token, then two keys of the first vector", {{0, 30}, {2, 26}, {3, 8}}},
    {"no key", {{0, 0}}},
};

static void set_scores(const case_drawn *drawn, const row_of_scores *row)
{
    for (int64_t i = 0; i < TOKENS; i++)
        for (int64_t c = 0; c < 2 * CHANNELS; c++)
            att_element_store(drawn->in[0].dtype, drawn->block[0], i * 3 * CHANNELS + c, c == 0);
    for (int s = 0; s < STRONG; s++)
        if (row->strong[s].score > 0)
            att_element_store(drawn->in[0].dtype, drawn->block[0], row->strong[s].key * 3 * CHANNELS + CHANNELS,
                              row->strong[s].score);
}

static double stat_of(const case_result *result, int64_t query, int stat)
{
    return case_value(result, STATS_OUT, query * ATT_STAT_COUNT + stat);
}

/* The largest difference, relative to the row's own variances; of mean shifts, relative to the longest. */
static double difference_of_row(const case_result *ours, const case_result *truth, int64_t query)
{
    double yy = stat_of(truth, query, ATT_STAT_YY), xx = stat_of(truth, query, ATT_STAT_XX);
    const double units[] = {HEIGHT, WIDTH, yy, xx, sqrt(yy * xx)};
    double worst = 0;
    for (int i = 0; i <= ATT_STAT_YX - ATT_STAT_Y; i++) {
        double difference = fabs(stat_of(ours, query, ATT_STAT_Y + i) - stat_of(truth, query, ATT_STAT_Y + i));
        if (isnan(difference) || (difference > 0 && units[i] == 0))
            return INFINITY;
        worst = difference == 0 ? worst : fmax(worst, difference / units[i]);
    }
    return worst;
}

static void compare_rows(const row_of_scores *row, bool is_bf16)
{
    const att_op *op = case_op(att_ops, "attention");
    const att_attention_attrs attrs = {ATT_ATTENTION_HEADS(1),
                                       .prefix = PREFIX,
                                       .grid_h = HEIGHT,
                                       .grid_w = WIDTH,
                                       .step_h = 1,
                                       .step_w = 1,
                                       .scale = 1};
    const att_op_case definition = {
        .name = "shifts",
        .attrs = &attrs,
        .in = {{.desc = {ATT_F32, ATT_SAMPLE, att_shape_of(TOKENS, 3 * CHANNELS)}, .scale = 1},
               {.desc = {.shape = {.rank = -1}}},
               {.desc = {.shape = {.rank = -1}}}},
        .in_count = ATT_ATTENTION_OPERANDS};
    case_drawn drawn = case_draw((case_setup){context, op, &definition, ATT_F32, 1, false, is_bf16, 0});
    case_result truth, ours;
    double worst = 0;
    set_scores(&drawn, row);
    truth_run(&drawn, &truth);
    assert_true(case_run(&drawn, tiers_kernel(context, "attention"), 2, 0, &ours));
    for (int64_t query = 0; query < TOKENS; query++)
        worst = fmax(worst, difference_of_row(&ours, &truth, query));
    if (getenv("ATT_SHOW_ERRORS"))
        print_message("%s: %.2g\n", row->name, worst);
    if (!(worst <= 2e-5)) /* 7.0e-6 */
        fail_msg("%s: a moment of shifts differs by %g", row->name, worst);
    case_result_free(&truth);
    case_result_free(&ours);
    case_free(&drawn);
}

TEST(variances_keep_their_digits)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int is_bf16 = 0; is_bf16 < 2; is_bf16++)
            compare_rows(&rows[i], is_bf16);
}

enum { QUERIES = 201 };

/* Mean shifts are 13.7 rows and -7.3 columns, and differ by `step` between even and odd queries. */
static void compare_between(double step)
{
    const att_op *op = case_op(att_ops, "attention_summary");
    const att_op_case definition = {.name = "shifts",
                                    .attrs = &(const att_attention_summary_attrs){.prefix = PREFIX},
                                    .in = {{.desc = {ATT_F32, ATT_SAMPLE, att_shape_of(1, QUERIES, ATT_STAT_COUNT)}}},
                                    .in_count = 1};
    case_drawn drawn = case_draw((case_setup){context, op, &definition, ATT_F32, 1, true, 0, 0});
    case_result truth, ours;
    for (int i = 0; i < QUERIES; i++) {
        att_element_store(ATT_F32, (void *)drawn.data[0], i * ATT_STAT_COUNT + ATT_STAT_Y, 13.7 + i % 2 * step);
        att_element_store(ATT_F32, (void *)drawn.data[0], i * ATT_STAT_COUNT + ATT_STAT_X, -7.3 - i % 2 * step);
    }
    truth_run(&drawn, &truth);
    assert_true(case_run(&drawn, tiers_kernel(context, "attention_summary"), 1, 0, &ours));
    for (int s = ATT_SUMMARY_BETWEEN_YY; s <= ATT_SUMMARY_BETWEEN_YX; s++) {
        double found = case_value(&ours, 0, s), expected = case_value(&truth, 0, s);
        if (getenv("ATT_SHOW_ERRORS"))
            print_message("step %g: %g, error %.2g\n", step, expected, fabs(found - expected));
        if (!(fabs(found - expected) <= 1e-6 * step * step)) /* 3.6e-7 */
            fail_msg("column %d is %g instead of %g", s, found, expected);
    }
    case_result_free(&truth);
    case_result_free(&ours);
    case_free(&drawn);
}

TEST(variances_between_queries_keep_their_digits)
{
    compare_between(1);
    compare_between(1e-3);
    compare_between(1e-5);
    compare_between(0);
}
