/* Position embeddings resampled for another grid of patches, and tables of relative positions for another window,
 * against timm's (tools/goldens/regrid.py). */
#include "base/core/context.h"
#include "networks/models/fixture.h"
#include "networks/models/regrid.h"

/* Measured: 8.5e-7; timm's weights are f32. */
static const double TOLERANCE = 2e-6;

static double *formula_table(int64_t count)
{
    double *table = malloc((size_t)count * sizeof *table);
    for (int64_t i = 0; i < count; i++)
        table[i] = (float)formula("pos_embed", (uint32_t)i);
    return table;
}

static void check_tables(const char *file, att_regrid_way way)
{
    att_context *context;
    assert_int_equal(att_context_create(NULL, &context), ATT_OK);
    size_t before = att_context_allocations(context).bytes_now;
    FILE *golden = golden_open(file);
    att_regrid grid = {.way = way};
    bool shifts = way == ATT_REGRID_SHIFTS;
    int cases = 0, width;
    double worst = 0;
    for (; fscanf(golden, "%d %d %d %d %d %d", &grid.extra, &grid.from[0], &grid.from[1], &grid.to[0], &grid.to[1],
                  &width) == 6;
         cases++) {
        grid.width = width;
        int64_t count = (grid.extra + grid.to[0] * grid.to[1]) * grid.width;
        double *in = formula_table((grid.extra + grid.from[0] * grid.from[1]) * grid.width);
        double *out = malloc((size_t)count * sizeof *out);
        CHECK(context, att_regrid_table(context, &grid, in, out));
        for (int64_t i = 0; i < count; i++) {
            double expected;
            assert_int_equal(fscanf(golden, "%lf", &expected), 1);
            double error = fabs(out[i] - expected);
            if (!(error <= TOLERANCE))
                fail_msg("%d x %d to %d x %d, number %lld: %.9g instead of %.9g", grid.from[0], grid.from[1],
                         grid.to[0], grid.to[1], (long long)i, out[i], expected);
            worst = fmax(worst, error);
        }
        int64_t own_in = (int64_t)grid.from[0] * grid.from[1] * width,
                own_out = (int64_t)grid.to[0] * grid.to[1] * width;
        assert_memory_equal(in + (shifts ? own_in : 0), out + (shifts ? own_out : 0),
                            (size_t)(grid.extra * grid.width) * sizeof *in);
        free(in);
        free(out);
    }
    fclose(golden);
    assert_int_equal(cases, 8);
    print_message("largest difference %.2g\n", worst);
    assert_int_equal(att_context_allocations(context).bytes_now, before);
    att_context_destroy(&context);
}

TEST(tables_are_timm_s)
{
    check_tables("regrid.txt", ATT_REGRID_BICUBIC);
    check_tables("regrid_plain_bicubic.txt", ATT_REGRID_PLAIN_BICUBIC);
    check_tables("regrid_bilinear_antialiased.txt", ATT_REGRID_BILINEAR_ANTIALIASED);
    check_tables("regrid_bilinear.txt", ATT_REGRID_BILINEAR);
    check_tables("regrid_corners.txt", ATT_REGRID_CORNERS);
}

TEST(shifts_are_timm_s)
{
    check_tables("regrid_shifts.txt", ATT_REGRID_SHIFTS);
}

TEST(memory_may_run_out)
{
    att_settings settings = att_settings_defaults();
    settings.memory_limit = 1 << 20;
    att_context *context;
    assert_int_equal(att_context_create(&settings, &context), ATT_OK);
    size_t before = att_context_allocations(context).bytes_now;
    const att_regrid grid = {.extra = 1, .from = {2, 2}, .to = {512, 512}, .width = 1024};
    double in[1] = {0}, out[1];
    assert_fails(context, att_regrid_table(context, &grid, in, out), ATT_ERR_MEMORY, "8.0 MiB for position embeddings");
    assert_int_equal(att_context_allocations(context).bytes_now, before);
    att_context_destroy(&context);
}
