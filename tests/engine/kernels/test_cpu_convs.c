/* Convolutions of real networks with oneDNN: no reference implementation is chosen, slices for several threads agree,
 * and the epilogue keeps NaN. */
#include "engine/kernels/cpu/onednn_conv.h"
#include "engine/kernels/cpu/tiered.h"
#include "engine/kernels/tiers.h"
#include "engine/ops/list.h"

/* height, inputs, outputs, kernel, stride, groups; the padding is half the kernel. */
static const int64_t layers[][6] = {{32, 3, 16, 3, 1, 1},     {32, 16, 16, 3, 1, 1},   {32, 16, 64, 1, 1, 1},
                                    {32, 64, 32, 1, 2, 1},    {16, 32, 32, 3, 1, 1},   {8, 64, 64, 3, 1, 1},
                                    {8, 256, 64, 1, 1, 1},    {224, 3, 64, 7, 2, 1},   {56, 64, 64, 3, 1, 1},
                                    {56, 64, 256, 1, 1, 1},   {56, 128, 128, 3, 2, 1}, {56, 256, 512, 1, 2, 1},
                                    {14, 512, 512, 3, 1, 32}, {7, 512, 512, 3, 1, 1},  {14, 96, 96, 3, 1, 96}};

static att_conv_spec spec_of(const int64_t layer[6], att_conv_kind kind, int64_t samples)
{
    int64_t padding = layer[3] / 2, out = (layer[0] + 2 * padding - layer[3]) / layer[4] + 1;
    return (att_conv_spec){.kind = kind,
                           .samples = samples,
                           .height = layer[0],
                           .width = layer[0],
                           .inputs = layer[1],
                           .out_h = out,
                           .out_w = out,
                           .outputs = layer[2],
                           .kernel_h = layer[3],
                           .kernel_w = layer[3],
                           .stride = layer[4],
                           .dilation = 1,
                           .groups = layer[5],
                           .above = padding,
                           .left = padding};
}

TEST(no_convolution_of_a_resnet_is_a_reference_one)
{
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++)
        for (int kind = ATT_CONV_FORWARD; kind <= ATT_CONV_WEIGHT_GRAD; kind++)
            for (int64_t samples = 1; samples <= 8; samples *= 8) {
                att_conv_spec spec = spec_of(layers[i], (att_conv_kind)kind, samples);
                att_conv *conv;
                assert_int_equal(att_conv_create(context, &spec, &conv), ATT_OK);
                const char *name = att_conv_implementation(conv);
                if (!strstr(name, "brg") && !strstr(name, "brdg") && !strstr(name, "jit"))
                    fail_msg("layer %d, kind %d, %lld samples are made by %s", (int)i, kind, (long long)samples, name);
                if (att_context_features(context) & ATT_AVX512 && !strstr(name, "avx512"))
                    fail_msg("layer %d, kind %d, %lld samples are made by %s", (int)i, kind, (long long)samples, name);
                att_conv_destroy(context, conv);
            }
}

static void check_slices(const char *name)
{
    const att_op *op = case_op(att_ops, name);
    for (int i = 0; i < op->case_count; i++) {
        if (op->cases[i].bench)
            continue;
        case_drawn drawn = case_draw((case_setup){context, op, &op->cases[i], ATT_F32, 1, false, 0, 0});
        case_result whole, sliced;
        assert_true(case_run(&drawn, tiers_kernel_for(&drawn), 1, 0, &whole));
        for (int parts = 2; parts < 10; parts++) {
            assert_true(case_run(&drawn, tiers_kernel_for(&drawn), parts, 0, &sliced));
            assert_true(case_difference(&sliced, &whole, 0) < 2e-6); /* 3.1e-7 */
            case_result_free(&sliced);
        }
        case_result_free(&whole);
        case_free(&drawn);
    }
}

/* One sample cut into slices of rows, for 2 to 9 threads, gives the result of the whole. */
TEST(slices_agree_with_the_whole)
{
    check_slices("conv2d");
    check_slices("conv2d_data_grad");
    check_slices("conv_transpose2d");
}

static float relu_of(float sum, float scale, float shift, float residual)
{
    float y = sum * scale + shift + residual;
    return y < 0 ? 0 : y;
}

/* NaN in a sum survives the ReLU's maximum. */
TEST(the_epilogue_keeps_nan)
{
    enum { ROWS = 3, COLUMNS = 37, COUNT = ROWS * COLUMNS };
    float sum[COUNT], residual[COUNT], y[COUNT], scale[COLUMNS], shift[COLUMNS];
    for (int i = 0; i < COUNT; i++) {
        sum[i] = i % 11 == 5 ? NAN : (float)(i % 7) - 3;
        residual[i] = (float)(i % 5) - 2;
        scale[i % COLUMNS] = 0.5f * (float)(i % COLUMNS);
        shift[i % COLUMNS] = 4 - (float)(i % COLUMNS % 8);
    }
    att_cpu_functions(context)->finish_channels(sum, scale, shift, residual, false, 0, ROWS, COLUMNS, y, false);
    for (int i = 0; i < COUNT; i++) {
        float expected = relu_of(sum[i], scale[i % COLUMNS], shift[i % COLUMNS], residual[i]);
        assert_true(y[i] == expected || (isnan(y[i]) && isnan(sum[i])));
    }
}

/* The element (row, column, output) of y by definition. weight: [outputs, inputs, kernel_h, kernel_w]. */
static double by_definition(const att_conv_spec *spec, const float *x, const float *weight, int64_t row, int64_t column,
                            int64_t output)
{
    double sum = 0;
    for (int64_t u = 0; u < spec->kernel_h; u++)
        for (int64_t v = 0; v < spec->kernel_w; v++) {
            int64_t from_row = row * spec->stride - spec->above + u * spec->dilation;
            int64_t from_column = column * spec->stride - spec->left + v * spec->dilation;
            if (from_row < 0 || from_row >= spec->height || from_column < 0 || from_column >= spec->width)
                continue;
            for (int64_t c = 0; c < spec->inputs; c++)
                sum += (double)x[(from_row * spec->width + from_column) * spec->inputs + c] *
                       weight[((output * spec->inputs + c) * spec->kernel_h + u) * spec->kernel_w + v];
        }
    return sum;
}

static float *drawn_numbers(int64_t count, uint64_t *state)
{
    float *numbers = malloc((size_t)count * sizeof(float));
    assert_non_null(numbers);
    for (int64_t i = 0; i < count; i++) {
        *state = *state * 6364136223846793005u + 1442695040888963407u;
        numbers[i] = (float)(*state >> 40) / (1 << 23) - 1;
    }
    return numbers;
}

/* The largest difference, relative to the square root of the number of products. Every third row and column is
 * compared, and the last ones. */
static double difference_of(const att_conv_spec *spec, const float *x, const float *weight, const float *y)
{
    double largest = 0;
    for (int64_t row = 0; row < spec->out_h; row += row + 3 < spec->out_h ? 3 : 1)
        for (int64_t column = 0; column < spec->out_w; column += column + 3 < spec->out_w ? 3 : 1) {
            int64_t output = (row + column) % spec->outputs;
            double found = y[(row * spec->out_w + column) * spec->outputs + output];
            double difference = fabs(found - by_definition(spec, x, weight, row, column, output));
            largest = largest >= difference ? largest : difference;
        }
    return largest / sqrt((double)(spec->inputs * spec->kernel_h * spec->kernel_w));
}

/* y for both samples; the caller frees it. */
static float *convolved(const att_conv_spec *spec, const float *x, const float *weight)
{
    float *y = malloc((size_t)(spec->samples * spec->out_h * spec->out_w * spec->outputs) * sizeof(float));
    att_conv *conv;
    assert_int_equal(att_conv_create(context, spec, &conv), ATT_OK);
    void *packed = aligned_alloc(64, (att_conv_packed_bytes(conv) + 63) / 64 * 64);
    void *scratch = aligned_alloc(64, (att_conv_scratch_bytes(conv) + 127) / 64 * 64);
    assert_true(y && packed && scratch);
    assert_int_equal(att_conv_pack(conv, weight, packed), ATT_OK);
    assert_int_equal(att_conv_run(conv, x, packed, y, scratch), ATT_OK);
    att_conv_destroy(context, conv);
    free(packed);
    free(scratch);
    return y;
}

/* Maps above the size from which AVX2 computes in tiles, with sides that tiles do not divide. */
TEST(large_maps_are_convolved_by_definition)
{
    static const att_conv_spec specs[] = {
        {.height = 91, .width = 97, .kernel_h = 3, .kernel_w = 3, .stride = 1, .dilation = 1, .above = 1, .left = 1},
        {.height = 60, .width = 145, .kernel_h = 3, .kernel_w = 5, .stride = 2, .dilation = 1, .above = 0, .left = 2},
        {.height = 85, .width = 100, .kernel_h = 3, .kernel_w = 2, .stride = 1, .dilation = 6, .above = 6, .left = 5},
        {.height = 2900, .width = 3, .kernel_h = 3, .kernel_w = 3, .stride = 1, .dilation = 1, .above = 2, .left = 2}};
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
        att_conv_spec spec = specs[i];
        spec.samples = 2;
        spec.inputs = 64;
        spec.outputs = 24;
        spec.groups = 1;
        spec.out_h = (spec.height + 2 * spec.above - spec.dilation * (spec.kernel_h - 1) - 1) / spec.stride + 1;
        spec.out_w = (spec.width + 2 * spec.left - spec.dilation * (spec.kernel_w - 1) - 1) / spec.stride + 1;
        int64_t x_count = spec.height * spec.width * spec.inputs, y_count = spec.out_h * spec.out_w * spec.outputs;
        uint64_t state = i;
        float *x = drawn_numbers(2 * x_count, &state);
        float *weight = drawn_numbers(spec.outputs * spec.inputs * spec.kernel_h * spec.kernel_w, &state);
        float *y = convolved(&spec, x, weight);
        for (int sample = 0; sample < 2; sample++)
            assert_true(difference_of(&spec, x + sample * x_count, weight, y + sample * y_count) < 4e-6); /* 1.1e-6 */
        free(x);
        free(weight);
        free(y);
    }
}

/* The size of a slice depends on the number of threads, and with it whether it is computed in tiles: bits do not. */
TEST(a_slice_has_the_bits_of_the_whole)
{
    att_conv_spec whole = {.samples = 1,
                           .height = 92,
                           .width = 97,
                           .inputs = 64,
                           .out_h = 92,
                           .out_w = 97,
                           .outputs = 24,
                           .kernel_h = 3,
                           .kernel_w = 3,
                           .stride = 1,
                           .dilation = 1,
                           .groups = 1,
                           .above = 1,
                           .left = 1};
    att_conv_spec slice = whole;
    slice.out_h = 40;
    slice.height = 41;
    uint64_t state = 7;
    float *x = drawn_numbers(whole.height * whole.width * whole.inputs, &state);
    float *weight = drawn_numbers(whole.outputs * whole.inputs * 9, &state);
    float *expected = convolved(&whole, x, weight), *found = convolved(&slice, x, weight);
    assert_memory_equal(found, expected, (size_t)(slice.out_h * slice.out_w * slice.outputs) * sizeof(float));
    free(x);
    free(weight);
    free(expected);
    free(found);
}
