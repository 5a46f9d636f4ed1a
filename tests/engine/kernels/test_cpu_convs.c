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
