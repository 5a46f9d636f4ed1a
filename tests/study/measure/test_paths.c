/* Contributions of attention paths: their sum is the network, in f64 on reference kernels. */
#include <attscope/measure.h>

#include "engine/ops/finite_difference.h"
#include "networks/models/fixture.h"
#include "study/measure/paths.h"

TEST_GROUP(fd_setup, close_context)

enum { SAMPLES = 2, SIDE = 12, MOST = 4096 };

/* A small network in f64 with weights and images of the formula. */
typedef struct network {
    att_model *model;
    att_graph *graph;
    att_plan *plan;
    att_weights *weights;
    att_session *session;
} network;

static void open_model(network *n, const char *name, const att_option_values *options)
{
    *n = (network){0};
    must(att_model_create(context, name, options, ATT_F64, &n->model));
    n->graph = att_model_graph(n->model);
}

static void run(network *n)
{
    static double images[SAMPLES * SIDE * SIDE * 3];
    att_plan_options options = att_plan_options_defaults();
    options.backend = "ref";
    for (size_t i = 0; i < sizeof images / sizeof *images; i++)
        images[i] = 4 * formula("image", (uint32_t)i);
    must(att_plan_compile(n->graph, &options, &n->plan));
    must(att_weights_create(n->graph, "ref", &n->weights));
    formula_fill(context, n->graph, n->weights);
    must(att_session_create(n->plan, n->weights, SAMPLES, &n->session));
    must(att_session_bind(n->session, "image", images));
    must(att_session_run(n->session, SAMPLES));
}

static void close_network(network *n)
{
    att_session_destroy(&n->session);
    att_weights_destroy(&n->weights);
    att_plan_destroy(&n->plan);
    att_model_destroy(&n->model);
}

/* Reads a probe of all samples. Returns its elements. */
static int64_t read_probe(const network *n, const char *name, att_value value, double values[MOST])
{
    int64_t count = SAMPLES * att_shape_count(att_value_shape(n->graph, value));
    assert_true(count <= MOST);
    must(att_session_output(n->session, name, 0, SAMPLES, values));
    return count;
}

/* |x - y| / |y| */
static double distance(const double *x, const double *y, int64_t count)
{
    double difference = 0, norm = 0;
    for (int64_t i = 0; i < count; i++) {
        difference += (x[i] - y[i]) * (x[i] - y[i]);
        norm += y[i] * y[i];
    }
    return sqrt(difference / norm);
}

static void add_probe(att_graph *graph, const char *name, att_value value)
{
    if (value != ATT_NONE)
        att_graph_probe(graph, name, att_combine(graph, 1, value, 0, ATT_NONE));
}

static void find(att_graph *graph, att_paths *paths)
{
    char reason[ATT_PATHS_REASON];
    if (!att_paths_find(graph, paths, reason))
        fail_msg("%s", reason);
}

/* Adds a probe if it was made. */
static void accumulate(const network *n, const char *name, att_value value, double sum[MOST])
{
    static double part[MOST];
    if (value == ATT_NONE)
        return;
    int64_t count = read_probe(n, name, value, part);
    for (int64_t i = 0; i < count; i++)
        sum[i] += part[i];
}

/* Returns the relative difference between the tokens and the sum of all contributions. */
static double sum_of_lengths(const char *name, const att_option_values *options, att_paths *paths)
{
    static double output[MOST], sum[MOST];
    network n;
    att_path_sums sums;
    char probe[32];
    open_model(&n, name, options);
    find(n.graph, paths);
    att_paths_split(n.graph, paths, &sums);
    for (int k = 0; k <= paths->longest; k++) {
        snprintf(probe, sizeof probe, "length.%d", k);
        assert_true(sums.of_length[k] != ATT_NONE);
        add_probe(n.graph, probe, sums.of_length[k]);
    }
    add_probe(n.graph, "biases", sums.biases);
    add_probe(n.graph, "others", sums.others);
    add_probe(n.graph, "output", paths->end);
    assert_int_equal(paths->others, sums.others != ATT_NONE);
    run(&n);
    memset(sum, 0, sizeof sum);
    for (int k = 0; k <= paths->longest; k++) {
        snprintf(probe, sizeof probe, "length.%d", k);
        accumulate(&n, probe, sums.of_length[k], sum);
    }
    accumulate(&n, "biases", sums.biases, sum);
    accumulate(&n, "others", sums.others, sum);
    int64_t count = read_probe(&n, "output", paths->end, output);
    close_network(&n);
    return distance(sum, output, count);
}

static att_option_values small(int depth, int heads)
{
    att_option_values options = att_options_none();
    att_options_set(&options, "img_size", SIDE), att_options_set(&options, "patch_size", 4);
    att_options_set(&options, "depth", depth), att_options_set(&options, "num_heads", heads);
    att_options_set(&options, "embed_dim", 8 * heads), att_options_set(&options, "num_classes", 3);
    return options;
}

static void check_sum(const char *name, const att_option_values *options, int layers, int heads, bool others)
{
    att_paths paths;
    double error = sum_of_lengths(name, options, &paths), binomial = 1;
    print_message("%-32s unexplained %.2g\n", name, error);
    assert_true(error < 1e-12); /* measured: at most 4e-16 */
    assert_int_equal(paths.layers, layers);
    assert_int_equal(paths.longest, layers);
    assert_int_equal(paths.others, others);
    for (int k = 0; k <= layers; k++) {
        assert_true(paths.count[k] == binomial * pow(heads, k));
        binomial = binomial * (layers - k) / (k + 1);
    }
}

TEST(all_paths_add_up_to_the_network)
{
    att_option_values plain = small(3, 2), options = plain;
    check_sum("vit_tiny_patch16_224", &plain, 3, 2, true);
    att_options_set(&options, "reg_tokens", 2), att_options_set(&options, "init_values", 0.3);
    att_options_set_text(&options, "norm_layer", "rmsnorm");
    check_sum("vit_tiny_patch16_224", &options, 3, 2, true);
    options = plain;
    att_options_set(&options, "qk_norm", 1), att_options_set(&options, "scale_attn_norm", 1);
    check_sum("vit_tiny_patch16_224", &options, 3, 2, true);
    options = plain;
    att_options_set_text(&options, "modules", "cb@after_attn");
    check_sum("vit_tiny_patch16_224", &options, 3, 2, true);
    check_sum("deit_tiny_distilled_patch16_224", &plain, 3, 2, true);
    check_sum("eva02_tiny_patch14_224", &plain, 3, 2, true);
    check_sum("beit_base_patch16_224", &plain, 3, 2, true);
}

/* The norm of a post-norm network acts on the whole stream; its attention has no content, or has it. */
TEST(norms_on_the_stream_are_part_of_the_paths)
{
    const att_option_values options = small(2, 3);
    check_sum("attention_cnn_isotropic", &options, 2, 3, true);
    check_sum("attention_cnn_content", &options, 2, 3, true);
}

/* --- single paths ------------------------------------------------------------------------------------------------- */

enum { LAYERS = 3, HEADS = 2, PATHS = 27 };

/* Choice of path `index` in base HEADS + 1. Returns its length. */
static int choice_of(int index, int choice[LAYERS])
{
    int length = 0;
    for (int layer = 0; layer < LAYERS; layer++, index /= HEADS + 1) {
        choice[layer] = index % (HEADS + 1);
        length += choice[layer] > 0;
    }
    return length;
}

/* Every path one by one: the paths of each length add up to the contribution of that length. */
TEST(single_paths_add_up_to_their_length)
{
    static double sum[LAYERS + 1][MOST], part[MOST];
    network n;
    att_paths paths;
    att_path_sums sums;
    att_value single[PATHS];
    char probe[32];
    int choice[LAYERS], seen[LAYERS + 1] = {0};
    const att_option_values options = small(LAYERS, HEADS);
    open_model(&n, "vit_tiny_patch16_224", &options);
    find(n.graph, &paths);
    att_paths_split(n.graph, &paths, &sums);
    for (int k = 0; k <= LAYERS; k++) {
        snprintf(probe, sizeof probe, "length.%d", k);
        add_probe(n.graph, probe, sums.of_length[k]);
    }
    for (int i = 0; i < PATHS; i++) {
        choice_of(i, choice);
        snprintf(probe, sizeof probe, "path.%d", i);
        single[i] = att_paths_follow(n.graph, &paths, choice);
        add_probe(n.graph, probe, single[i]);
    }
    run(&n);
    memset(sum, 0, sizeof sum);
    for (int i = 0; i < PATHS; i++) {
        int length = choice_of(i, choice);
        snprintf(probe, sizeof probe, "path.%d", i);
        accumulate(&n, probe, single[i], sum[length]);
        seen[length]++;
    }
    for (int k = 0; k <= LAYERS; k++) {
        snprintf(probe, sizeof probe, "length.%d", k);
        int64_t count = read_probe(&n, probe, sums.of_length[k], part);
        double error = distance(sum[k], part, count);
        print_message("length %d: %d paths, error %.2g\n", k, seen[k], error);
        assert_true(error < 1e-12); /* measured: at most 3e-16 */
        assert_int_equal(seen[k], paths.count[k]);
    }
    close_network(&n);
}

/* --- PyTorch ------------------------------------------------------------------------------------------------------ */

enum { WIDTH = 8 * HEADS, TOKENS = 10 };

/* Compares Frobenius norm and residual of the first image's tokens. */
static double compare(const double *tokens, double norm, double residual)
{
    double squares = 0, centred = 0;
    for (int c = 0; c < WIDTH; c++) {
        double mean = 0;
        for (int i = 0; i < TOKENS; i++)
            mean += tokens[i * WIDTH + c] / TOKENS;
        for (int i = 0; i < TOKENS; i++) {
            squares += tokens[i * WIDTH + c] * tokens[i * WIDTH + c];
            centred += (tokens[i * WIDTH + c] - mean) * (tokens[i * WIDTH + c] - mean);
        }
    }
    return fmax(fabs(sqrt(squares) / norm - 1), fabs(sqrt(centred / squares) / residual - 1));
}

/* paths.py follows each path on its own. */
TEST(contributions_are_pytorchs)
{
    static const int choices[3][LAYERS] = {{0, 2, 0}, {1, 0, 2}, {2, 1, 1}};
    static const char *const names[] = {"0-2-0", "1-0-2", "2-1-1"};
    static double tokens[MOST];
    network n;
    att_paths paths;
    att_path_sums sums;
    char probe[32], key[32];
    double norm, residual, worst = 0;
    int compared = 0;
    const att_option_values options = small(LAYERS, HEADS);
    open_model(&n, "vit_tiny_patch16_224", &options);
    find(n.graph, &paths);
    att_paths_split(n.graph, &paths, &sums);
    for (int k = 0; k <= LAYERS; k++) {
        snprintf(probe, sizeof probe, "length %d", k);
        add_probe(n.graph, probe, sums.of_length[k]);
    }
    for (int i = 0; i < 3; i++) {
        snprintf(probe, sizeof probe, "path %s", names[i]);
        add_probe(n.graph, probe, att_paths_follow(n.graph, &paths, choices[i]));
    }
    run(&n);
    FILE *file = golden_open("paths.txt");
    assert_int_equal(fscanf(file, "output %lf ", &norm), 1);
    for (char kind[16]; fscanf(file, "%15s %31s %lf %lf", kind, key, &norm, &residual) == 4; compared++) {
        snprintf(probe, sizeof probe, "%.10s %.16s", kind, key);
        assert_true(read_probe(&n, probe, paths.end, tokens) == SAMPLES * TOKENS * WIDTH);
        worst = fmax(worst, compare(tokens, norm, residual));
    }
    fclose(file);
    print_message("largest relative error %.2g\n", worst);
    assert_int_equal(compared, LAYERS + 1 + 3);
    assert_true(worst < 1e-11); /* measured: 5e-14 */
    close_network(&n);
}

/* --- other networks ----------------------------------------------------------------------------------------------- */

/* Two attentions side by side: a path takes one of them or the skip. */
TEST(layers_side_by_side_are_alternatives)
{
    att_paths paths;
    att_option_values options = small(2, 2);
    att_options_set_text(&options, "block_fn", "ParallelThingsBlock");
    double error = sum_of_lengths("vit_tiny_patch16_224", &options, &paths);
    assert_true(error < 1e-12); /* measured: 4e-16 */
    assert_int_equal(paths.layers, 4);
    assert_int_equal(paths.longest, 2);
    assert_true(paths.count[0] == 1 && paths.count[1] == 8 && paths.count[2] == 16);
}

static void check_refused(const char *name, const att_option_values *options, const char *expected)
{
    network n;
    att_paths paths;
    char reason[ATT_PATHS_REASON] = "";
    open_model(&n, name, options);
    assert_false(att_paths_find(n.graph, &paths, reason));
    if (!strstr(reason, expected))
        fail_msg("%s: \"%s\" lacks \"%s\"", name, reason, expected);
    close_network(&n);
}

TEST(other_networks_are_refused_with_the_reason)
{
    att_option_values none = att_options_none(), options = small(2, 2);
    att_options_set_text(&options, "attn_layer", "diff");
    check_refused("vit_tiny_patch16_224", &options, "\"transpose\" behind the attention in blocks.0.attn");
    check_refused("swin_tiny_patch4_window7_224", &none, "number or the width of its tokens changes");
    check_refused("mixer_s16_224", &none, "no attention layer");
    check_refused("resnet18", &none, "no residual additions of tokens");
}

/* --- the instruments ---------------------------------------------------------------------------------------------- */

static att_measurement measurement(const att_measure *measure, const char *name)
{
    for (int i = 0; i < att_measure_count(measure); i++) {
        att_measurement m = att_measure_at(measure, i);
        if (att_measurement_is_called(&m, name))
            return m;
    }
    fail_msg("no figure %s", name);
    return (att_measurement){0};
}

static double figure(const att_measure *measure, const char *name)
{
    return measurement(measure, name).mean;
}

static void check_figures(const att_measure *measure)
{
    double unexplained = figure(measure, "paths/unexplained"), shares = 0;
    char name[64];
    for (int k = 0; k <= LAYERS; k++) {
        snprintf(name, sizeof name, "paths/length.%d/share", k);
        shares += figure(measure, name);
    }
    shares += figure(measure, "paths/biases/share") + figure(measure, "paths/others/share");
    print_message("f32: unexplained %.2g, shares %.7f\n", unexplained, shares);
    assert_true(unexplained < 2e-6 && fabs(shares - 1) < 2e-6); /* measured: 1e-7, 1e-7 */
    assert_true(figure(measure, "paths/length.2/paths") == 12);
    assert_true(figure(measure, "paths/length.2/path share") == 12.0 / 27);
    /* The only path of length 0 is all paths of that length. */
    assert_true(fabs(figure(measure, "path_samples/length.0.path.0-0-0/composite") -
                     figure(measure, "paths/length.0/composite")) < 1e-6); /* measured: 0 */
    assert_true(figure(measure, "path_samples/length.3/composite") > 0);
}

/* |x|_1 |x|_inf of a probe's row of norms. */
static double squared_norm(att_session *session, const char *probe, int sample)
{
    float row[ATT_RESIDUAL_NORMS];
    assert_int_equal(att_session_output(session, probe, sample, 1, row), ATT_OK);
    return (double)row[0] * (double)row[1];
}

static void check_skip_weight(const att_measure *measure, att_session *session)
{
    double alpha = 0;
    for (int sample = 0; sample < SAMPLES; sample++) {
        double skip = squared_norm(session, "blocks.1.add1.skip", sample);
        alpha += skip / (skip + squared_norm(session, "blocks.1.add1.branch", sample)) / SAMPLES;
    }
    assert_true(alpha > 0.01 && alpha < 0.999); /* 0.992 */
    assert_true(fabs(figure(measure, "skip_weight/blocks.1.add1/mean") - alpha) < 1e-12);
}

/* Observes both images again, the second one with a pixel that is NaN. */
static void check_undefined(att_context *whole, att_measure *measure, att_session *session, float *images)
{
    images[SIDE * SIDE * 3] = NAN;
    CHECK(whole, att_session_run(session, SAMPLES));
    CHECK(whole, att_measure_observe(measure, session, SAMPLES, NULL));
    const att_measurement path = measurement(measure, "path_samples/length.0.path.0-0-0/composite");
    assert_int_equal(path.undefined, 1);
    assert_int_equal(path.count, 2 * SAMPLES);
    assert_true(isfinite(path.mean));
    assert_int_equal(measurement(measure, "path_samples/length.0/frobenius").undefined, 1);
    assert_int_equal(measurement(measure, "path_samples/length.2/composite").undefined, 2); /* of two paths */
    assert_int_equal(measurement(measure, "path_samples/length.2/frobenius").undefined, 2);
}

/* On the CPU backend in f32. Measuring twice finds the same layers, because nodes added for paths are none. */
TEST(figures_in_f32_explain_the_output)
{
    static float images[SAMPLES * SIDE * SIDE * 3];
    att_context *whole;
    network n = {0};
    att_measure *measure, *again, *all;
    const att_option_values options = small(LAYERS, HEADS);
    for (size_t i = 0; i < sizeof images / sizeof *images; i++)
        images[i] = (float)(4 * formula("image", (uint32_t)i));
    assert_int_equal(att_context_create(NULL, &whole), ATT_OK);
    CHECK(whole, att_model_create(whole, "vit_tiny_patch16_224", &options, ATT_F32, &n.model));
    n.graph = att_model_graph(n.model);
    CHECK(whole, att_measure_create(n.graph, "paths,path_samples:count=2,skip_weight", "*", &measure));
    CHECK(whole, att_measure_create(n.graph, "paths,path_samples:count=2,skip_weight", "*", &again));
    CHECK(whole, att_measure_create(n.graph, "all", "*", &all));
    assert_int_equal(att_measure_count(again), att_measure_count(measure));
    for (int i = 0; i < att_measure_instrument_count(all); i++)
        assert_false(att_measure_instrument_at(all, i).costly);
    att_plan_options plan = att_plan_options_defaults();
    CHECK(whole, att_plan_compile(n.graph, &plan, &n.plan));
    CHECK(whole, att_weights_create(n.graph, "cpu", &n.weights));
    formula_fill(whole, n.graph, n.weights);
    CHECK(whole, att_session_create(n.plan, n.weights, SAMPLES, &n.session));
    CHECK(whole, att_session_bind(n.session, "image", images));
    CHECK(whole, att_session_run(n.session, SAMPLES));
    CHECK(whole, att_measure_observe(measure, n.session, SAMPLES, NULL));
    check_figures(measure);
    check_skip_weight(measure, n.session);
    check_undefined(whole, measure, n.session, images);
    att_measure_destroy(&all), att_measure_destroy(&again), att_measure_destroy(&measure);
    close_network(&n);
    att_context_destroy(&whole);
}

/* Appends the names of all nodes. */
static int list_nodes(const char *with, char *names, size_t size)
{
    network n;
    att_measure *measure;
    const att_option_values options = small(LAYERS, HEADS);
    open_model(&n, "vit_tiny_patch16_224", &options);
    must(att_measure_create(n.graph, with, "*", &measure));
    const int count = att_measure_count(measure);
    *names = '\0';
    for (int i = 0; i < count; i++)
        snprintf(names + strlen(names), size - strlen(names), "%s ", att_measure_at(measure, i).node);
    att_measure_destroy(&measure);
    close_network(&n);
    return count;
}

TEST(samples_follow_the_options)
{
    char first[2048], again[2048], other[2048];
    /* Two statistics of two lengths and of one and two paths. */
    assert_int_equal(list_nodes("path_samples:longest=1,count=2", first, sizeof first), 2 * (2 + 1 + 2));
    list_nodes("path_samples:count=3,seed=4", first, sizeof first);
    list_nodes("path_samples:seed=4,count=3", again, sizeof again);
    list_nodes("path_samples:count=3,seed=5", other, sizeof other);
    assert_string_equal(first, again);
    assert_string_not_equal(first, other);
}
