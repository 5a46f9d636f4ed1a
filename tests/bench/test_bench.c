/* Benchmarks: the matrix products are those that the graph counts, figures are what they say, nothing leaks when memory
 * runs out. */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <attscope/bench.h>

#include "bench/gemm.h"

/* A ViT that is made and run within milliseconds. */
static att_model_options small_network(void)
{
    att_model_options options = att_model_options_defaults();
    options.img_size = 16;
    options.patch_size = 8;
    options.embed_dim = 32;
    options.depth = 2;
    options.num_heads = 2;
    options.num_classes = 5;
    return options;
}

static att_context *make_context(int threads)
{
    att_settings settings = att_settings_defaults();
    settings.threads = threads;
    att_context *context;
    assert_int_equal(att_context_create(&settings, &context), ATT_OK);
    return context;
}

static void products_are_the_graphs(void **state)
{
    (void)state;
    att_context *context = make_context(2);
    const char *const names[] = {"vit_tiny_patch16_224", "deit_tiny_patch16_224"};
    for (int i = 0; i < 2; i++) {
        att_model_options options = small_network();
        options.depth = 1 + i;
        att_model *model;
        assert_int_equal(att_model_create(context, names[i], &options, ATT_F32, &model), ATT_OK);
        att_gemm *gemm;
        assert_int_equal(att_gemm_create(att_model_graph(model), 3, ATT_FULL, &gemm), ATT_OK);
        assert_true(att_gemm_flops(gemm) == 2 * 3 * att_graph_cost(att_model_graph(model)).macs);
        assert_int_equal(att_gemm_run(gemm), ATT_OK);
        att_gemm_destroy(&gemm);
        assert_null(gemm);
        att_model_destroy(&model);
    }
    att_context_destroy(&context);
}

/* More threads than rows and heads: some have nothing to do. */
static void idle_threads(void **state)
{
    (void)state;
    att_context *context = make_context(7);
    att_model_options options = small_network();
    att_model *model;
    assert_int_equal(att_model_create(context, "vit_tiny_patch16_224", &options, ATT_F32, &model), ATT_OK);
    att_gemm *gemm;
    assert_int_equal(att_gemm_create(att_model_graph(model), 1, ATT_FULL, &gemm), ATT_OK);
    assert_int_equal(att_gemm_run(gemm), ATT_OK);
    att_gemm_destroy(&gemm);
    att_model_destroy(&model);
    att_context_destroy(&context);
}

static void count_row(void *user, const att_profile_row *row)
{
    assert_true(row->calls > 0 && row->seconds >= 0);
    ++*(int *)user;
}

static void figures(void **state)
{
    (void)state;
    att_context *context = make_context(2);
    att_model_options network = small_network();
    for (int training = 0; training < 2; training++) {
        int rows = 0;
        att_bench_options options = att_bench_options_defaults();
        options.model = "vit_tiny_patch16_224";
        options.network = &network;
        options.training = training;
        options.batch_size = 4;
        options.repeats = 3;
        options.profile = true;
        options.row = count_row;
        options.row_user = &rows;
        att_bench_result r;
        assert_int_equal(att_bench_run(context, &options, &r), ATT_OK);
        assert_int_equal(r.img_size, 16);
        assert_true(r.images_per_second > 0 && r.gemm_rate > 0 && r.share > 0);
        double flops = (training ? 3 : 1) * 2e9 * r.gmacs;
        double share = r.images_per_second * flops / r.gemm_rate;
        /* Rounding only: measured 2e-16. */
        assert_true(r.share > share * (1 - 1e-12) && r.share < share * (1 + 1e-12));
        assert_true(r.peak_bytes > 1 << 20);
        assert_true(rows > 5);
    }
    att_context_destroy(&context);
}

static void refusals(void **state)
{
    (void)state;
    att_context *context = make_context(1);
    att_bench_result r = {.img_size = -1};
    att_bench_options options = att_bench_options_defaults();
    options.model = "vit_tiny_patch16_244";
    assert_int_equal(att_bench_run(context, &options, &r), ATT_ERR_NOT_FOUND);
    options.model = "vit_tiny_patch16_224";
    options.batch_size = 0;
    assert_int_equal(att_bench_run(context, &options, &r), ATT_ERR_ARGUMENT);
    options.batch_size = 1;
    options.repeats = 0;
    assert_int_equal(att_bench_run(context, &options, &r), ATT_ERR_ARGUMENT);
    assert_int_equal(r.img_size, -1);
    att_context_destroy(&context);
}

static void cases_run(void **state)
{
    (void)state;
    att_context *context = make_context(1);
    for (int i = 0; i < att_bench_case_count(); i++) {
        att_bench_case c = att_bench_case_at(i);
        bool known = false;
        for (int m = 0; m < att_model_count(); m++)
            known = known || strcmp(att_model_at(m).name, c.model) == 0;
        assert_true(known);
    }
    assert_string_equal(att_bench_case_at(att_bench_case_count()).name, "");
    att_context_destroy(&context);
}

/* An allocator whose n-th call from now fails. */
typedef struct failing {
    long left;
} failing;

static void *allocate(void *user, void *old, size_t old_size, size_t size)
{
    failing *f = user;
    if (size == 0) {
        free(old);
        return NULL;
    }
    if (f->left-- == 0)
        return NULL;
    void *block = aligned_alloc(64, (size + 63) / 64 * 64);
    if (block && old)
        memcpy(block, old, old_size < size ? old_size : size);
    if (block)
        free(old);
    return block;
}

static void memory_runs_out(void **state)
{
    (void)state;
    failing f = {.left = LONG_MAX};
    att_settings settings = att_settings_defaults();
    settings.threads = 1;
    settings.allocate = allocate;
    settings.allocate_user = &f;
    att_context *context;
    assert_int_equal(att_context_create(&settings, &context), ATT_OK);
    att_model_options network = small_network();
    network.depth = 1;
    att_bench_options options = att_bench_options_defaults();
    options.model = "vit_tiny_patch16_224";
    options.network = &network;
    options.training = true;
    options.batch_size = 1;
    options.repeats = options.warmup = 1;
    size_t before = att_context_allocations(context).bytes_now;
    att_status status = ATT_ERR_MEMORY;
    int failures = 0;
    for (; status != ATT_OK; failures++) {
        f.left = failures;
        att_bench_result r;
        status = att_bench_run(context, &options, &r);
        f.left = LONG_MAX;
        assert_true(status == ATT_OK || status == ATT_ERR_MEMORY);
        assert_int_equal(att_context_allocations(context).bytes_now, before);
    }
    assert_true(failures > 20);
    att_context_destroy(&context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_are_the_graphs),
        cmocka_unit_test(idle_threads),
        cmocka_unit_test(figures),
        cmocka_unit_test(refusals),
        cmocka_unit_test(cases_run),
        cmocka_unit_test(memory_runs_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
