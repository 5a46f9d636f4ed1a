/* Benchmarks: the measured matrix products are those of the graph, figures are consistent, and nothing leaks when
 * memory runs out. */
#include <unistd.h>

#include <attscope/lab/bench.h>
#include <attscope/nn.h>

#include "base/comm/threads.h"
#include "failing.h"
#include "lab/bench/clock.h"
#include "lab/bench/gemm.h"
#include "lab/bench/triad.h"

/* A ViT that is created and run within milliseconds. */
static att_option_values small_network(void)
{
    att_option_values options = att_options_none();
    att_options_set(&options, "img_size", 16);
    att_options_set(&options, "patch_size", 8);
    att_options_set(&options, "embed_dim", 32);
    att_options_set(&options, "depth", 2);
    att_options_set(&options, "num_heads", 2);
    att_options_set(&options, "num_classes", 5);
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

static double resident_bytes(void)
{
    long long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%*d %lld", &pages), 1);
    fclose(file);
    return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

/* Memory that the process allocated and freed counts in the peak. This test comes first: the others use more. */
TEST(freed_memory_still_counts_in_the_peak)
{
    const size_t held = (size_t)200 << 20;
    char *block = malloc(held);
    assert_non_null(block);
    memset(block, 1, held);
    assert_true(block[held / 2] == 1);
    double resident = resident_bytes(), peak = (double)att_clock_peak_bytes();
    assert_true(fabs(peak / resident - 1) < 0.01); /* the kernel counts pages in batches */
    free(block);
    assert_true((double)att_clock_peak_bytes() >= (double)held);
}

TEST(the_timed_products_are_those_of_the_graph)
{
    att_context *context = make_context(2);
    const char *const names[] = {"vit_tiny_patch16_224", "deit_tiny_patch16_224"};
    for (int i = 0; i < 2; i++) {
        att_option_values options = small_network();
        att_options_set(&options, "depth", 1 + i);
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

/* With more threads than rows and heads, some threads have nothing to do. */
TEST(there_may_be_more_threads_than_rows)
{
    att_context *context = make_context(7);
    att_option_values options = small_network();
    att_model *model;
    assert_int_equal(att_model_create(context, "vit_tiny_patch16_224", &options, ATT_F32, &model), ATT_OK);
    att_gemm *gemm;
    assert_int_equal(att_gemm_create(att_model_graph(model), 1, ATT_FULL, &gemm), ATT_OK);
    assert_int_equal(att_gemm_run(gemm), ATT_OK);
    att_gemm_destroy(&gemm);
    att_model_destroy(&model);
    att_context_destroy(&context);
}

/* Sums over the rows of a profile. */
typedef struct profile {
    int rows;
    double seconds, flops;
} profile;

static void add_row(void *user, const att_profile_row *row)
{
    profile *p = user;
    assert_true(row->calls > 0 && row->seconds >= 0 && row->bytes > 0);
    p->rows++;
    p->seconds += row->seconds;
    if (strncmp(row->op, "linear", 6) == 0 || strncmp(row->op, "attention", 9) == 0)
        p->flops += row->flops;
    att_bench_result rates = {.gemm_rate = 4, .memory_rate = 2};
    double floor = att_bench_floor(&rates, row);
    assert_true(floor >= row->flops / 4 && floor >= row->bytes / 2);
    assert_true(floor == row->flops / 4 || floor == row->bytes / 2);
}

TEST(figures_of_a_network_agree_with_each_other)
{
    att_context *context = make_context(2);
    att_option_values network = small_network();
    for (int training = is_sanitized(); training < 2; training++) { /* a training run includes what inference runs */
        profile p = {0};
        att_bench_options options = att_bench_options_defaults();
        options.model = "vit_tiny_patch16_224";
        options.network = &network;
        options.training = training;
        options.batch_size = 4;
        options.repeats = 3;
        options.profile = true;
        options.row = add_row;
        options.row_user = &p;
        att_bench_result r;
        assert_int_equal(att_bench_run(context, &options, &r), ATT_OK);
        assert_int_equal(r.height, 16);
        assert_true(r.images_per_second > 0 && r.gemm_rate > 0 && r.share > 0);
        double flops = (training ? 3 : 1) * 2e9 * r.gmacs;
        double share = r.images_per_second * flops / r.gemm_rate;
        /* Rounding only; measured: 2e-16. */
        assert_true(r.share > share * (1 - 1e-12) && r.share < share * (1 + 1e-12));
        assert_true(r.peak_bytes > 1 << 20);
        assert_true(r.memory_rate > 0);
        assert_true(p.rows > 5);
        /* Two threads are in kernels for at most twice the wall time. */
        assert_true(r.all_seconds >= 3 * 0.5 * r.step_seconds && p.seconds <= 2 * r.all_seconds);
        /* Softmax and recomputed layers add to the matrix products; the first layer has no gradient of its input. */
        assert_true(p.flops >= 3 * 4 * (training ? 0.9 : 1) * flops);
    }
    att_context_destroy(&context);
}

static void find_class_map(void *user, const att_profile_row *row)
{
    *(bool *)user |= strcmp(row->op, "upsampled_argmax") == 0;
}

/* The classes of a segmenter's pixels are for predictions. */
TEST(a_training_is_timed_without_predictions)
{
    att_context *context = make_context(1);
    att_option_values network = small_network();
    att_options_set_text(&network, "task", "segment");
    for (int training = 0; training < 2; training++) {
        bool found = false;
        att_bench_options options = att_bench_options_defaults();
        options.model = "vit_tiny_patch16_224";
        options.network = &network;
        options.training = training;
        options.batch_size = options.repeats = options.warmup = 1;
        options.profile = true;
        options.row = find_class_map;
        options.row_user = &found;
        att_bench_result r;
        assert_int_equal(att_bench_run(context, &options, &r), ATT_OK);
        assert_int_equal(found, !training);
    }
    att_context_destroy(&context);
}

/* Operations: 4 N^2 heads width for forward, three times that with backward. */
TEST(operations_of_attention_follow_their_formula)
{
    att_context *context = make_context(2);
    for (int pass = 0; pass < 4; pass++) {
        att_bench_attention_options options = att_bench_attention_options_defaults();
        options.tokens = 48;
        options.heads = 2;
        options.width = 8;
        options.training = pass & 1;
        options.statistics = pass & 2;
        options.repeats = 2;
        options.warmup = 1;
        att_bench_attention_result r;
        assert_int_equal(att_bench_attention(context, &options, &r), ATT_OK);
        assert_int_equal(r.images, 2 * (2048 / 48));
        assert_true(r.flops == (options.training ? 12.0 : 4.0) * 48 * 48 * 16);
        assert_true(r.image_seconds > 0 && r.gemm_rate > 0 && r.share > 0 && r.peak_bytes > 0);
    }
    att_context_destroy(&context);
}

TEST(batches_are_timed_up_to_the_largest)
{
    att_context *context = make_context(2);
    att_option_values network = small_network();
    att_bench_options options = att_bench_options_defaults();
    options.model = "vit_tiny_patch16_224";
    options.network = &network;
    options.batch_size = 3;
    att_bench *bench;
    assert_int_equal(att_bench_create(context, &options, &bench), ATT_OK);
    for (int batch = 1; batch <= 3; batch++) {
        double seconds = 0;
        assert_int_equal(att_bench_time(bench, batch, &seconds), ATT_OK);
        assert_true(seconds > 0);
    }
    double seconds = -1;
    assert_int_equal(att_bench_time(bench, 4, &seconds), ATT_ERR_ARGUMENT);
    assert_true(seconds == -1);
    att_bench_destroy(&bench);
    assert_null(bench);
    att_context_destroy(&context);
}

/* Kernels of one case follow each other, the chosen one first. */
typedef struct kernel_list {
    int rows, cases;
    char last[96];
} kernel_list;

static bool is_small(void *user, const char *op, const char *name)
{
    (void)user;
    return strcmp(op, "adamw") == 0 || strcmp(name, "demo_qkv") == 0 || strcmp(name, "demo") == 0;
}

static void add_kernel(void *user, const att_bench_kernel_row *row)
{
    kernel_list *list = user;
    char whole[96];
    snprintf(whole, sizeof whole, "%s/%s", row->op, row->name);
    assert_true(row->taken == (strcmp(whole, list->last) != 0));
    assert_true(row->seconds > 0 && row->bytes > 0);
    snprintf(list->last, sizeof list->last, "%s", whole);
    list->rows++;
    list->cases += row->taken;
}

TEST(every_backend_times_the_same_cases)
{
    att_context *context = make_context(1);
    const char *const backends[] = {"cpu", "ref"};
    int cases[2];
    for (int i = 0; i < 2; i++) {
        kernel_list list = {0};
        att_bench_kernel_options options = att_bench_kernel_options_defaults();
        options.backend = backends[i];
        options.repeats = 1;
        options.wants = is_small;
        options.row = add_kernel;
        options.row_user = &list;
        assert_int_equal(att_bench_kernels(context, &options), ATT_OK);
        assert_true(list.cases >= 10 && list.rows >= list.cases);
        cases[i] = list.cases;
    }
    assert_int_equal(cases[0], cases[1]);
    att_context_destroy(&context);
}

TEST(the_bytes_of_the_triad_are_counted_once)
{
    att_context *context = make_context(3);
    att_triad *triad;
    size_t before = att_context_allocations(context).bytes_now;
    assert_int_equal(att_triad_create(context, &triad), ATT_OK);
    double held = (double)(att_context_allocations(context).bytes_now - before), passed = att_triad_bytes(triad);
    assert_true(passed > 0.99 * (96 << 20));
    assert_true(passed <= held && held - passed < 4096); /* two arrays are read and one is written, each counted once */
    att_triad_run(triad);
    att_triad_destroy(&triad);
    assert_null(triad);
    att_context_destroy(&context);
}

TEST(wrong_options_are_refused)
{
    att_context *context = make_context(1);
    att_bench_result r = {.height = -1};
    att_bench_options options = att_bench_options_defaults();
    options.model = "vit_tiny_patch16_244";
    assert_int_equal(att_bench_run(context, &options, &r), ATT_ERR_NOT_FOUND);
    options.model = "vit_tiny_patch16_224";
    options.batch_size = 0;
    assert_int_equal(att_bench_run(context, &options, &r), ATT_ERR_ARGUMENT);
    options.batch_size = 1;
    options.repeats = 0;
    assert_int_equal(att_bench_run(context, &options, &r), ATT_ERR_ARGUMENT);
    assert_int_equal(r.height, -1);
    att_bench_attention_result a = {.images = -1};
    att_bench_attention_options attention = att_bench_attention_options_defaults();
    attention.tokens = 0;
    assert_int_equal(att_bench_attention(context, &attention, &a), ATT_ERR_ARGUMENT);
    attention.tokens = 16;
    attention.heads = 0;
    assert_int_equal(att_bench_attention(context, &attention, &a), ATT_ERR_ARGUMENT);
    attention.heads = 1;
    attention.repeats = 0;
    assert_int_equal(att_bench_attention(context, &attention, &a), ATT_ERR_ARGUMENT);
    attention.repeats = 1;
    att_bench_kernel_options kernels = att_bench_kernel_options_defaults();
    kernels.backend = "gpu";
    assert_int_equal(att_bench_kernels(context, &kernels), ATT_ERR_NOT_FOUND);
    kernels.repeats = 0;
    assert_int_equal(att_bench_kernels(context, &kernels), ATT_ERR_ARGUMENT);
    attention.backend = "gpu";
    assert_int_equal(att_bench_attention(context, &attention, &a), ATT_ERR_NOT_FOUND);
    assert_int_equal(a.images, -1);
    att_context_destroy(&context);
}

static void assert_known(att_context *context, const char *model, const char *modules)
{
    bool known = false;
    for (int m = 0; m < att_model_count(); m++)
        known = known || strcmp(att_model_at(m).name, model) == 0;
    assert_true(known);
    att_module_choice choice;
    assert_int_equal(att_module_parse(context, modules[0] ? modules : "none", &choice), ATT_OK);
}

TEST(cases_name_known_networks_and_modules)
{
    att_context *context = make_context(1);
    for (int i = 0; i < att_bench_case_count(); i++)
        assert_known(context, att_bench_case_at(i).model, att_bench_case_at(i).modules);
    for (int i = 0; i < att_bench_pattern_case_count(); i++)
        assert_known(context, att_bench_pattern_case_at(i).model, att_bench_pattern_case_at(i).modules);
    assert_string_equal(att_bench_case_at(att_bench_case_count()).name, "");
    assert_string_equal(att_bench_pattern_case_at(att_bench_pattern_case_count()).model, "");
    att_context_destroy(&context);
}

/* One run of each kind of benchmark, as small as possible. */
static att_status run_network(att_context *context)
{
    att_option_values network = small_network();
    att_options_set(&network, "depth", 1);
    att_bench_options options = att_bench_options_defaults();
    options.model = "vit_tiny_patch16_224";
    options.network = &network;
    options.training = true;
    options.batch_size = 1;
    options.repeats = options.warmup = 1;
    att_bench_result r;
    return att_bench_run(context, &options, &r);
}

static att_status run_attention(att_context *context)
{
    att_bench_attention_options options = att_bench_attention_options_defaults();
    options.tokens = 4;
    options.heads = options.width = 2;
    options.training = options.statistics = true;
    options.repeats = options.warmup = 1;
    att_bench_attention_result r;
    return att_bench_attention(context, &options, &r);
}

static bool is_product(void *user, const char *op, const char *name)
{
    (void)user;
    return strcmp(op, "linear") == 0 && strcmp(name, "demo_qkv") == 0;
}

static att_status run_kernels(att_context *context)
{
    kernel_list list = {0};
    att_bench_kernel_options options = att_bench_kernel_options_defaults();
    options.repeats = 1;
    options.wants = is_product;
    options.row = add_kernel;
    options.row_user = &list;
    return att_bench_kernels(context, &options);
}

static bool is_affine_norm(void *user, const char *pattern)
{
    (void)user;
    return strcmp(pattern, "affine_norm") == 0;
}

static void no_row(void *user, const att_bench_pattern_row *row)
{
    (void)user;
    fail_msg("%s changes the plan of a ViT", row->pattern);
}

static att_status run_patterns(att_context *context)
{
    att_option_values network = small_network();
    att_options_set(&network, "depth", 1);
    att_bench_options options = att_bench_options_defaults();
    options.model = "vit_tiny_patch16_224";
    options.network = &network;
    options.batch_size = 1;
    return att_bench_patterns(context, &options, is_affine_norm, no_row, NULL);
}

static void fail_each_allocation(att_status (*run)(att_context *), int least)
{
    failing memory = {0};
    att_settings settings = failing_settings(&memory);
    att_context *context;
    assert_int_equal(att_context_create(&settings, &context), ATT_OK);
    lack of = lack_of_memory(context, &memory);
    while (lack_again(&of))
        of.status = run(context);
    assert_true(of.allowed >= least);
    att_context_destroy(&context);
}

TEST(lack_of_memory_is_reported_without_leaks)
{
    fail_each_allocation(run_network, 20);
    fail_each_allocation(run_attention, 20);
    fail_each_allocation(run_kernels, 5);
    fail_each_allocation(run_patterns, 20);
}

/* --- several processes -------------------------------------------------------------------------------------------- */

typedef struct processes_outcome {
    att_bench_processes_result result;
    att_bench_rank ranks[MOST_RANKS];
} processes_outcome;

static const char *run_processes(att_context *context, att_comm *comm, void *user)
{
    processes_outcome *out = user;
    att_option_values network = small_network();
    att_bench_options options = att_bench_options_defaults();
    options.model = "vit_tiny_patch16_224";
    options.network = &network;
    options.batch_size = 5;
    options.repeats = 2;
    options.comm = comm;
    return att_bench_processes(context, &options, &out->result, out->ranks) == ATT_OK ? NULL
                                                                                      : att_context_message(context);
}

TEST(every_process_knows_the_figures_of_all)
{
    for (int size = 1; size <= 3; size++) {
        processes_outcome outcomes[MOST_RANKS] = {0};
        run_ranks(size, 1, run_processes, outcomes, sizeof *outcomes);
        const att_bench_processes_result *result = &outcomes[0].result;
        double sent = 0, expected = 2.0 * (size - 1) * (double)result->gradient_bytes;
        for (int i = 0; i < size; i++) {
            assert_memory_equal(&outcomes[i], &outcomes[0], sizeof outcomes[0]);
            const att_bench_rank *rank = &outcomes[0].ranks[i];
            assert_int_equal(rank->threads, 1);
            assert_true(rank->bytes_sent <= 2.0 * (double)result->gradient_bytes);
            assert_true(rank->bytes_received <= 2.0 * (double)result->gradient_bytes);
            sent += rank->bytes_sent;
        }
        /* The memory of gradients is aligned. */
        assert_true(sent <= expected && sent >= 0.99 * expected);
        assert_int_equal(result->lanes, size);
        assert_true(result->gradient_bytes > 0 && result->images_per_second > 0);
        assert_true(result->overlap >= 0 && result->overlap <= 1);
        assert_true(size == 1 ? result->alone_seconds == 0 : result->alone_seconds > 0);
    }
}
