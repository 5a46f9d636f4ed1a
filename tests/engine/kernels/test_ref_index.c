/* The reference kernels of ops that move elements or multiply matrices, against values computed by hand or printed by
 * PyTorch 2.15. */
#include "engine/kernels/direct.h"
#include "engine/ops/embed.h"
#include "engine/ops/matmul.h"
#include "engine/ops/merge_patches.h"
#include "engine/ops/reshape.h"
#include "engine/ops/transpose.h"
#include "engine/ops/upsample_bilinear.h"
#include "engine/ops/windows.h"

static double counted[24]; /* 0, 1, 2 ... */

TEST(transpose_permutes_axes)
{
    const att_transpose_attrs attrs = {.rank = 3, .axes = {1, 2, 0}};
    double y[12];
    DIRECT("transpose", &attrs, 2, OUTPUTS(y), SAMPLE(counted, 2, 1, 3));
    CLOSE(y, 0, 0, 3, 1, 4, 2, 5, 6, 9, 7, 10, 8, 11);
}

TEST(reshape_keeps_the_order)
{
    const att_reshape_attrs attrs = {.rank = 2, .dims = {3, 2}};
    double y[6];
    DIRECT("reshape", &attrs, 1, OUTPUTS(y), SAMPLE(counted, 2, 3));
    CLOSE(y, 0, 0, 1, 2, 3, 4, 5);
}

TEST(matmul_scales_and_takes_operands_as_they_lie)
{
    const double a[] = {1, 2, 3, 4, 5, 6}, b[] = {1, 0, 2, -1, 0.5, 0.5}; /* [2, 3], [3, 2] */
    const att_matmul_attrs plain = {.scale = 2}, b_transposed = {.scale = 1, .b_transposed = true},
                           a_transposed = {.scale = 1, .a_transposed = true};
    double y[9];
    DIRECT("matmul", &plain, 1, OUTPUTS(y), SAMPLE(a, 2, 3), SAMPLE(b, 3, 2));
    CLOSE(y, 0, 13, -1, 34, -4);
    DIRECT("matmul", &b_transposed, 1, OUTPUTS(y), SAMPLE(a, 2, 3), SAMPLE(b, 2, 3));
    CLOSE(y, 0, 7, 1.5, 16, 1.5);
    DIRECT("matmul", &a_transposed, 1, OUTPUTS(y), SAMPLE(a, 2, 3), SAMPLE(b, 2, 3));
    CLOSE(y, 0, -3, 2, 4, -3, 2.5, 6.5, -3, 3, 9);
}

/* m = torch.arange(24.).reshape(1, 4, 6, 1); r = torch.roll(m, (-1, -2), (1, 2));
 * r.view(1, 2, 2, 2, 3, 1).permute(0, 1, 3, 2, 4, 5).reshape(-1, 6, 1) */
TEST(windows_are_those_of_swin)
{
    const att_windows_attrs attrs = {
        .height = 2, .width = 3, .shift_y = 1, .shift_x = 2, .map_height = 4, .map_width = 6};
    double windows[24], map[24];
    DIRECT("windows", &attrs, 1, OUTPUTS(windows), SAMPLE(counted, 4, 6, 1));
    CLOSE(windows, 0, 8, 9, 10, 14, 15, 16, 11, 6, 7, 17, 12, 13, 20, 21, 22, 2, 3, 4, 23, 18, 19, 5, 0, 1);
    DIRECT("windows_back", &attrs, 1, OUTPUTS(map), SAMPLE(windows, 4, 6, 1));
    assert_memory_equal(map, counted, sizeof map);
}

/* timm's PatchMerging on torch.arange(12.).reshape(1, 3, 4, 1), padded to 4 rows:
 * x.reshape(B, H // 2, 2, W // 2, 2, C).permute(0, 1, 3, 4, 2, 5).flatten(3) */
TEST(merged_patches_are_those_of_timm)
{
    const att_merge_attrs attrs = {.height = 3, .width = 4};
    double y[16], x[12];
    DIRECT("merge_patches", NULL, 1, OUTPUTS(y), SAMPLE(counted, 3, 4, 1));
    CLOSE(y, 0, 0, 4, 1, 5, 2, 6, 3, 7, 8, 0, 9, 0, 10, 0, 11, 0);
    DIRECT("merge_patches_grad", &attrs, 1, OUTPUTS(x), SAMPLE(y, 2, 2, 4));
    assert_memory_equal(x, counted, sizeof x);
}

TEST(embed_takes_rows_and_an_index_outside_is_nan)
{
    const double table[] = {1, 2, 3, 4, 5, 6}, dy[] = {1, 10, 2, 20, 3, 30, 4, 40, 5, 50};
    const int32_t indices[] = {2, 0, 2, 3, -1};
    const direct_input rows[] = {SHARED(table, 3, 2), {{ATT_I32, ATT_SAMPLE, DIRECT_SHAPE(5)}, indices}};
    const direct_input back[] = {SAMPLE(dy, 5, 2), {{ATT_I32, ATT_SAMPLE, DIRECT_SHAPE(5)}, indices}};
    const att_embed_attrs attrs = {.rows = 3};
    double y[10], dtable[6] = {100};
    direct_run("embed", NULL, 1, rows, 2, OUTPUTS(y), NULL, 0);
    CLOSE(y, 0, 5, 6, 1, 2, 5, 6);
    assert_true(isnan(y[6]) && isnan(y[7]) && isnan(y[8]) && isnan(y[9]));
    direct_run("embed_grad", &attrs, 1, back, 2, OUTPUTS(dtable), NULL, 0);
    CLOSE(dtable, 0, 102, 20, 0, 0, 4, 40); /* the result is added to the previous value */
}

/* torch.nn.functional.interpolate(x, size=..., mode="bilinear", align_corners=False) of [[1, 2], [3, 5]] to 3 x 4, and
 * of torch.arange(9.).reshape(1, 1, 3, 3) ** 2 to 2 x 2 */
TEST(upsample_bilinear_is_pytorchs)
{
    const att_upsample_attrs larger = {3, 4}, smaller = {2, 2};
    const double few[] = {1, 2, 3, 5}, squares[] = {0, 1, 4, 9, 16, 25, 36, 49, 64};
    double y[12];
    DIRECT("upsample_bilinear", &larger, 1, OUTPUTS(y), SAMPLE(few, 2, 2, 1));
    CLOSE(y, 1e-15, 1, 1.25, 1.75, 2, 2, 2.375, 3.125, 3.5, 3, 3.5, 4.5, 5);
    DIRECT("upsample_bilinear", &smaller, 1, OUTPUTS(y), SAMPLE(squares, 3, 3, 1));
    CLOSE(y, 1e-15, 2.875, 8.125, 32.125, 50.875);
}

static int setup(void **state)
{
    for (int i = 0; i < 24; i++)
        counted[i] = i;
    return direct_setup(state);
}

TEST_GROUP(setup, close_context)
