/* CPU attention with several tiles of keys, odd shapes, low scores and NaN. */
#include "engine/kernels/ref/list.h"
#include "engine/kernels/tiers.h"
#include "engine/ops/attention.h"
#include "engine/ops/list.h"

#define ABSENT                           \
    {                                    \
        .desc = {.shape = {.rank = -1} } \
    }
#define PACKED(...)                            \
    {                                          \
        SAMPLE_IN(__VA_ARGS__), ABSENT, ABSENT \
    }
#define SAMPLE_IN(...)                                                       \
    {                                                                        \
        .desc = {ATT_F32, ATT_SAMPLE, att_shape_of(__VA_ARGS__)}, .scale = 1 \
    }

/* Three tiles of keys, the last with 53. Two grids: one too wide for a table of distances for each column, and one that
 * is not. */
enum { TOKENS = 2101, WIDTH = 8 };
static const att_attention_attrs long_attrs = {
    ATT_ATTENTION_HEADS(1), .prefix = 1, .grid_h = 42, .grid_w = 50, .step_h = 1, .step_w = 1, .scale = 0.35};
static const att_attention_attrs narrow_grid = {
    ATT_ATTENTION_HEADS(1), .prefix = 21, .grid_h = 80, .grid_w = 26, .step_h = 8, .step_w = 16, .scale = 0.35};

/* Whether p and ds are rounded to bf16: bf16 operands on a processor that multiplies bf16. */
static bool is_rounded_inside(bool is_bf16)
{
    return is_bf16 && att_context_has_bf16(context);
}

/* Makes scores grow from tile to tile, so that the running sum is scaled down again and again. */
static void let_keys_grow(case_drawn *drawn)
{
    void *qkv = drawn->block[0];
    att_dtype dtype = drawn->in[0].dtype;
    for (int64_t token = 0; token < TOKENS; token++)
        for (int64_t i = 0; i < 2 * WIDTH; i++) {
            double value = att_element_load(dtype, qkv, token * 3 * WIDTH + i);
            att_element_store(dtype, qkv, token * 3 * WIDTH + i,
                              i < WIDTH ? 1 + 0.1 * value : value + 2e-3 * (double)token);
        }
}

static void assert_near(const case_result *ours, const case_result *truth, int out, double limit)
{
    double difference = case_difference(ours, truth, out);
    if (getenv("ATT_SHOW_ERRORS"))
        print_message("output %d differs by %.2g\n", out, difference);
    if (!(difference <= limit))
        fail_msg("output %d differs by %g", out, difference);
}

static void compare_tiles(const case_drawn *drawn, bool is_bf16)
{
    case_result truth, ours;
    truth_run(drawn, &truth);
    assert_true(case_run(drawn, tiers_kernel(context, "attention"), 3, 0, &ours));
    assert_near(&ours, &truth, 0, is_rounded_inside(is_bf16) ? 5e-3 : 4e-6); /* 1.8e-3, 1.3e-6 */
    assert_near(&ours, &truth, 1, 1e-6);                                     /* 1.0e-7 */
    assert_near(&ours, &truth, 3, 6e-6);                                     /* 2.0e-6 */
    double difference = case_statistics_difference(&ours, &truth, 2);
    if (getenv("ATT_SHOW_ERRORS"))
        print_message("statistics differ by %.2g\n", difference);
    if (!(difference <= 6e-6)) /* 3.1e-6 */
        fail_msg("a statistic differs by %g", difference);
    case_result_free(&truth);
    case_result_free(&ours);
}

TEST(several_tiles_agree_with_the_reference)
{
    const att_op *op = case_op(att_ops, "attention");
    for (unsigned is_bf16 = 0; is_bf16 < 2; is_bf16++) {
        const att_op_case definition = {.name = "long",
                                        .attrs = is_bf16 ? &narrow_grid : &long_attrs,
                                        .in = PACKED(TOKENS, 3 * WIDTH),
                                        .in_count = ATT_ATTENTION_OPERANDS};
        case_drawn drawn = case_draw((case_setup){context, op, &definition, ATT_F32, 1, false, is_bf16, 0});
        compare_tiles(&drawn, is_bf16);
        let_keys_grow(&drawn);
        compare_tiles(&drawn, is_bf16);
        case_free(&drawn);
    }
}

/* Reading the map and statistics does not change a bit of the other outputs. */
TEST(statistics_change_no_bit)
{
    const att_op *op = case_op(att_ops, "attention");
    const att_op_case definition = {
        .name = "long", .attrs = &long_attrs, .in = PACKED(TOKENS, 3 * WIDTH), .in_count = ATT_ATTENTION_OPERANDS};
    for (unsigned is_bf16 = 0; is_bf16 < 2; is_bf16++) {
        case_drawn drawn = case_draw((case_setup){context, op, &definition, ATT_F32, 1, false, is_bf16, is_bf16});
        case_result observed, alone;
        assert_true(case_run(&drawn, tiers_kernel(context, "attention"), 1, 0, &observed));
        assert_true(case_run(&drawn, tiers_kernel(context, "attention"), 1, 1u << 2 | 1u << 3, &alone));
        for (int out = 0; out < 2; out++)
            assert_memory_equal(observed.data[out], alone.data[out],
                                (size_t)alone.count[out] * att_dtype_size(alone.desc[out].dtype));
        case_result_free(&observed);
        case_result_free(&alone);
        case_free(&drawn);
    }
}

#define GRAD_IN(tokens, heads, width)                                                        \
    {                                                                                        \
        SAMPLE_IN(tokens, (heads) * (width)), SAMPLE_IN(tokens, (heads) * (width)),          \
            {{ATT_F32, ATT_SAMPLE, att_shape_of(heads, tokens)}, 0.3, log(tokens) + 0.4, 0}, \
            SAMPLE_IN(tokens, 3 * (heads) * (width)), ABSENT, ABSENT                         \
    }

/* Compares output 0. is_bf16: all inputs that may be bf16 are; otherwise all are f32. */
static void compare_first_output(const char *name, const att_op_case *definition, bool is_bf16, int64_t group,
                                 double limit, double rounded_limit)
{
    const att_op *op = case_op(att_ops, name);
    case_drawn drawn =
        case_draw((case_setup){context, op, definition, ATT_F32, group, group > 1, is_bf16 ? op->autocast_in : 0, 0});
    case_result truth, ours;
    truth_run(&drawn, &truth);
    assert_true(case_run(&drawn, tiers_kernel(context, name), 2, 0, &ours));
    assert_near(&ours, &truth, 0, is_rounded_inside(is_bf16) ? rounded_limit : limit);
    case_result_free(&truth);
    case_result_free(&ours);
    case_free(&drawn);
}

TEST(gradients_of_several_tiles_agree_with_the_reference)
{
    const att_op_case definition = {
        .name = "long", .attrs = &long_attrs, .in = GRAD_IN(TOKENS, 1, WIDTH), .in_count = 3 + ATT_ATTENTION_OPERANDS};
    compare_first_output("attention_grad", &definition, false, 1, 2e-6, 0);   /* 6.3e-7 */
    compare_first_output("attention_grad", &definition, true, 1, 2e-6, 2e-3); /* 7.0e-4 */
}

/* Odd numbers of tokens and of columns of a head, so that the last one has no pair; rows shorter than a vector; one key
 * in the last tile. */
TEST(odd_shapes_agree_with_the_reference)
{
    static const int64_t shapes[][3] = {{1, 2, 33}, {2, 1, 1}, {50, 2, 33}, {64, 1, 24}, {197, 1, 64}, {1025, 1, 3}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int is_bf16 = 0; is_bf16 < 2; is_bf16++) {
            int64_t n = shapes[i][0], heads = shapes[i][1], width = shapes[i][2], group = n > 100 ? 1 : 2;
            const att_attention_attrs attrs = {ATT_ATTENTION_HEADS((int)heads), .scale = 1 / sqrt((double)width)};
            const att_op_case forward = {
                .name = "odd", .attrs = &attrs, .in = PACKED(n, 3 * heads * width), .in_count = ATT_ATTENTION_OPERANDS};
            const att_op_case backward = {
                .name = "odd", .attrs = &attrs, .in = GRAD_IN(n, heads, width), .in_count = 3 + ATT_ATTENTION_OPERANDS};
            compare_first_output("attention", &forward, is_bf16, group, 4e-6, 5e-3);       /* 1.5e-6, 1.9e-3 */
            compare_first_output("attention_grad", &backward, is_bf16, group, 4e-6, 6e-3); /* 1.1e-6, 3.1e-3 */
        }
}

/* Scores near -150. The padding after the last key has a score of 0, and e^150 times the weight of the lowest score. */
TEST(low_scores_leave_padding_alone)
{
    enum { N = 5 };
    const att_op *op = case_op(att_ops, "attention_grad");
    const att_op_case definition = {.name = "low",
                                    .attrs = &(const att_attention_attrs){ATT_ATTENTION_HEADS(1), .scale = 1.2},
                                    .in = {SAMPLE_IN(N, WIDTH),
                                           SAMPLE_IN(N, WIDTH),
                                           {{ATT_F32, ATT_SAMPLE, att_shape_of(1, N)}, 0.1, -152, 0},
                                           SAMPLE_IN(N, 3 * WIDTH),
                                           ABSENT,
                                           ABSENT},
                                    .in_count = 3 + ATT_ATTENTION_OPERANDS};
    for (int is_bf16 = 0; is_bf16 < 2; is_bf16++) {
        case_drawn drawn =
            case_draw((case_setup){context, op, &definition, ATT_F32, 1, false, is_bf16 ? op->autocast_in : 0, 0});
        for (int64_t i = 0; i < N * 3 * WIDTH; i++)
            if (i / WIDTH % 3 < 2)
                att_element_store(drawn.in[3].dtype, drawn.block[3], i, i / WIDTH % 3 == 0 ? 4 : -4);
        case_result truth, ours;
        truth_run(&drawn, &truth);
        assert_true(case_run(&drawn, tiers_kernel(context, "attention_grad"), 1, 0, &ours));
        assert_near(&ours, &truth, 0, is_rounded_inside(is_bf16) ? 4e-3 : 2e-5); /* 1.1e-3, 6.2e-6 */
        case_result_free(&truth);
        case_result_free(&ours);
        case_free(&drawn);
    }
}

TEST(scratch_grows_with_the_tokens_and_not_their_square)
{
    static const char *const ops[] = {"attention", "attention_grad"};
    static const int first_input[] = {0, 3};
    for (int i = 0; i < 2; i++) {
        size_t bytes[2];
        for (int size = 0; size < 2; size++) {
            const int64_t n = 8192 << size;
            const att_attention_attrs attrs = {ATT_ATTENTION_HEADS(1), .scale = 1};
            att_desc in[ATT_CASE_INPUTS] = {0}, out[ATT_CASE_OUTPUTS] = {0};
            in[first_input[i]] = (att_desc){ATT_F32, ATT_SAMPLE, att_shape_of(n, 3 * 64)};
            in[first_input[i] + 1].shape.rank = in[first_input[i] + 2].shape.rank = -1;
            for (int o = 1; o < ATT_CASE_OUTPUTS; o++)
                out[o].shape.rank = -1;
            att_problem problem = {context, ops[i], &attrs, in, out, first_input[i] + ATT_ATTENTION_OPERANDS, 1, 1, 1};
            att_prepared prepared = {0};
            const att_kernel *kernel = tiers_kernel(context, ops[i]);
            assert_int_equal(kernel->prepare(&problem, &prepared), ATT_OK);
            bytes[size] = prepared.scratch_bytes;
            if (kernel->release)
                kernel->release(context, prepared.state);
        }
        assert_true(bytes[1] < 2 * bytes[0] + 64);
        assert_true(bytes[1] < 40u << 20);
    }
}

/* The first tile of keys is excluded, and so are some of the others. */
static void exclude_keys(const case_drawn *drawn)
{
    for (int64_t key = 0; key < TOKENS; key++)
        if (key < 1100 || key % 3 == 0)
            att_element_store(ATT_F32, drawn->block[ATT_ATTENTION_KEYS], key, -INFINITY);
}

TEST(excluded_keys_agree_with_the_reference)
{
    const att_op *op = case_op(att_ops, "attention");
    const att_attention_attrs attrs = {ATT_ATTENTION_HEADS(1), .scale = 0.35};
    const att_op_case definition = {.name = "keys",
                                    .attrs = &attrs,
                                    .in = {SAMPLE_IN(3, WIDTH), SAMPLE_IN(TOKENS, WIDTH), SAMPLE_IN(TOKENS, WIDTH),
                                           ABSENT, ABSENT, ABSENT, SAMPLE_IN(TOKENS)},
                                    .in_count = ATT_ATTENTION_MOST_INPUTS};
    for (unsigned is_bf16 = 0; is_bf16 < 2; is_bf16++) {
        case_drawn drawn =
            case_draw((case_setup){context, op, &definition, ATT_F32, 1, false, is_bf16 ? op->autocast_in : 0, 0});
        exclude_keys(&drawn);
        compare_tiles(&drawn, is_bf16);
        case_free(&drawn);
    }
}

/* A NaN in one key reaches every query of its head and no other head. */
TEST(nan_stays_in_its_head)
{
    const att_op *op = case_op(att_ops, "attention");
    const att_op_case definition = {.name = "nan",
                                    .attrs = &(const att_attention_attrs){ATT_ATTENTION_HEADS(2), .scale = 0.5},
                                    .in = PACKED(50, 3 * 2 * WIDTH),
                                    .in_count = ATT_ATTENTION_OPERANDS};
    for (unsigned is_bf16 = 0; is_bf16 < 2; is_bf16++) {
        case_drawn drawn = case_draw((case_setup){context, op, &definition, ATT_F32, 1, false, is_bf16, 0});
        att_element_store(drawn.in[0].dtype, drawn.block[0], 33 * 6 * WIDTH + 2 * WIDTH, NAN);
        case_result ours;
        assert_true(case_run(&drawn, tiers_kernel(context, "attention"), 1, 1u << 2 | 1u << 3, &ours));
        for (int64_t i = 0; i < ours.count[0]; i++)
            assert_true((isnan(case_value(&ours, 0, i)) != 0) == (i / WIDTH % 2 == 0));
        case_result_free(&ours);
        case_free(&drawn);
    }
}
