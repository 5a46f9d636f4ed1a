/* The data of the experiments: convex hulls, texts, samples; and small runs. */
#include <unistd.h>

#include "lab/papers/experiments/fixture.h"

#include <attscope/ops.h>

#include "lab/papers/experiments/circle.h"
#include "lab/papers/experiments/hull_vertices.h"
#include "lab/papers/experiments/learn.h"
#include "lab/papers/experiments/list.h"
#include "lab/papers/experiments/texts.h"

/* --- convex hulls ------------------------------------------------------------------------------------------------- */

static void check_hull(const double (*points)[2], int count, const char *expected)
{
    bool vertex[ATT_HULL_MOST];
    char found[ATT_HULL_MOST + 1] = "";
    att_hull_vertices(points, count, vertex);
    for (int i = 0; i < count; i++)
        found[i] = vertex[i] ? '1' : '0';
    assert_string_equal(found, expected);
}

TEST(vertices_of_simple_hulls_are_found)
{
    check_hull((const double[][2]){{0, 0}}, 1, "1");
    check_hull((const double[][2]){{0, 0}, {1, 2}}, 2, "11");
    check_hull((const double[][2]){{0, 0}, {2, 0}, {1, 1}, {2, 2}, {0, 2}}, 5, "11011");
}

TEST(points_on_an_edge_are_no_vertices)
{
    check_hull((const double[][2]){{0, 0}, {1, 0}, {2, 0}, {2, 2}, {1, 2}, {0, 2}, {0, 1}, {2, 1}}, 8, "10110100");
    check_hull((const double[][2]){{3, 3}, {1, 1}, {2, 2}, {0, 0}}, 4, "1001");          /* all on one line */
    check_hull((const double[][2]){{0.1, 5}, {0.1, 7}, {0.1, 6}}, 3, "110");             /* a vertical line */
    check_hull((const double[][2]){{0, 0}, {0, 0}, {1, 0}, {0, 1}, {1, 0}}, 5, "11111"); /* equal points */
    check_hull((const double[][2]){{4, 4}, {4, 4}, {4, 4}}, 3, "111");
}

/* A whole number in [-2^44, 2^44). */
static int64_t draw_whole(uint32_t index)
{
    return (int64_t)floor(formula("high", index) * 0x1p32) * 4096 + (int64_t)(formula("low", index) * 4096);
}

/* Points that are on one line, or beside it by 1: their areas differ by far less than the rounding errors of products.
 * With c = 2 b - a + (0, shift), twice the area is shift (b_x - a_x). */
TEST(the_side_of_a_line_is_exact)
{
    for (uint32_t i = 0; i < 3000; i++) {
        const int64_t ax = draw_whole(4 * i), ay = draw_whole(4 * i + 1), bx = draw_whole(4 * i + 2);
        const int64_t by = draw_whole(4 * i + 3), shift = (int64_t)(i % 3) - 1;
        const double a[] = {(double)ax, (double)ay}, b[] = {(double)bx, (double)by};
        const double c[] = {(double)(2 * bx - ax), (double)(2 * by - ay + shift)};
        int expected = (int)shift * ((bx > ax) - (bx < ax));
        assert_int_equal(att_hull_side(a, b, c), expected);
        assert_int_equal(att_hull_side(b, c, a), expected);
        assert_int_equal(att_hull_side(c, b, a), -expected);
    }
}

/* Point i is a vertex if some line through it has all other points strictly on one side. */
static bool is_extreme(const double (*points)[2], int count, int i)
{
    for (int direction = 0; direction < 3600; direction++) {
        double x = cos(direction * 6.283185307179586 / 3600), y = sin(direction * 6.283185307179586 / 3600);
        bool first = true;
        for (int k = 0; k < count; k++)
            first = first && (k == i || x * points[k][0] + y * points[k][1] < x * points[i][0] + y * points[i][1]);
        if (first)
            return true;
    }
    return false;
}

TEST(hulls_of_random_points_are_right)
{
    enum { HULLS = 100, POINTS = 10 };
    int missed = 0;
    for (uint32_t hull = 0; hull < HULLS; hull++) {
        double points[POINTS][2];
        bool vertex[POINTS];
        for (uint32_t i = 0; i < POINTS * 2; i++)
            points[i / 2][i % 2] = formula("hull", hull * POINTS * 2 + i);
        att_hull_vertices((const double(*)[2])points, POINTS, vertex);
        for (int i = 0; i < POINTS; i++) {
            bool extreme = is_extreme((const double(*)[2])points, POINTS, i);
            assert_true(vertex[i] || !extreme);
            missed += vertex[i] && !extreme; /* an angle of less than 0.1 degrees outside */
        }
    }
    assert_true(missed <= 3); /* measured: 0 */
}

/* --- samples ------------------------------------------------------------------------------------------------------ */

typedef struct made {
    att_arena arena;
    att_san_spec spec;
    att_samples training, evaluation;
} made;

static void make(const att_experiment *experiment, uint64_t seed, made *m)
{
    const att_experiment_options options = {.repeats = 1, .seeds = 1, .seed = seed};
    *m = (made){.arena = {.context = context}};
    const att_experiment_job job = {
        .context = context, .experiment = experiment, .options = &options, .arena = &m->arena};
    m->spec = att_experiment_spec(&job);
    must(att_experiment_make(&job, &m->spec, &m->training, &m->evaluation));
}

TEST(samples_depend_on_the_seed_alone)
{
    const att_experiment *const all[] = {&att_experiment_sort, &att_experiment_hull, &att_experiment_memorize};
    for (int i = 0; i < 3; i++) {
        made a, b, other;
        make(all[i], 5, &a);
        make(all[i], 5, &b);
        make(all[i], 6, &other);
        size_t x = (size_t)a.training.count * a.training.x_bytes;
        size_t target = (size_t)a.training.count * a.training.target_bytes;
        assert_memory_equal(a.training.x, b.training.x, x);
        assert_memory_equal(a.training.target, b.training.target, target);
        assert_memory_not_equal(a.training.x, other.training.x, x);
        if (a.evaluation.count > 0)
            assert_memory_not_equal(a.training.x, a.evaluation.x, a.evaluation.x_bytes);
        att_arena_free(&a.arena);
        att_arena_free(&b.arena);
        att_arena_free(&other.arena);
    }
}

TEST(digits_are_uniform_and_their_classes_sorted)
{
    made m;
    int counts[10] = {0};
    make(&att_experiment_sort, 1, &m);
    assert_int_equal(m.training.count, 1000);
    assert_int_equal(m.evaluation.count, 200);
    for (int i = 0; i < 1000; i++) {
        const int32_t *x = (const int32_t *)m.training.x + i * 8, *target = (const int32_t *)m.training.target + i * 8;
        int difference[10] = {0};
        for (int n = 0; n < 8; n++) {
            assert_in_range(x[n], 0, 9);
            counts[x[n]]++;
            difference[x[n]]++;
            difference[target[n]]--;
            assert_true(n == 0 || target[n - 1] <= target[n]);
        }
        for (int digit = 0; digit < 10; digit++)
            assert_int_equal(difference[digit], 0);
    }
    for (int digit = 0; digit < 10; digit++)
        assert_true(abs(counts[digit] - 800) < 5 * 27); /* sqrt(8000 * 0.1 * 0.9) = 26.8 */
    att_arena_free(&m.arena);
}

TEST(points_lie_in_shifted_squares)
{
    made m;
    double sum = 0, squares = 0, vertices = 0;
    make(&att_experiment_hull, 1, &m);
    assert_int_equal(m.training.count, 10000);
    assert_int_equal(m.evaluation.count, 300);
    for (int i = 0; i < m.training.count; i++) {
        const float *points = (const float *)m.training.x + i * 20;
        const int32_t *classes = (const int32_t *)m.training.target + i * 10;
        double mean = 0, low = INFINITY, high = -INFINITY;
        int own = 0;
        for (int n = 0; n < 10; n++) {
            mean += (double)points[2 * n] / 10;
            low = fmin(low, (double)points[2 * n]), high = fmax(high, (double)points[2 * n]);
            own += classes[n];
        }
        assert_true(high - low <= 10 && own >= 3);
        sum += mean, squares += mean * mean, vertices += own;
    }
    /* A mean of ten is 5 + N(0, 3.3^2), with 100 / 12 / 10 more variance: standard errors 0.034 and 0.16. Ten
     * points in a square have 5.96 vertices on average, measured with SciPy's ConvexHull for 10,000 squares. */
    assert_float_equal(sum / 10000, 5, 0.17);
    assert_float_equal(squares / 10000 - sum / 10000 * (sum / 10000), 3.3 * 3.3 + 10.0 / 12, 0.8);
    assert_float_equal(vertices / 10000, 5.96, 0.1);
    att_arena_free(&m.arena);
}

/* --- texts -------------------------------------------------------------------------------------------------------- */

static void write_file(const char *path, const char *text, size_t size)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

TEST(texts_are_words_and_single_characters)
{
    static const char text[] = "The cat, the DOG.\n\n  \t\r\nthe cat 9x\n\xc3\xa4h; too long a line";
    char path[64];
    att_arena arena = {.context = context};
    att_texts_table texts;
    snprintf(path, sizeof path, "/tmp/att_texts_%ld", (long)getpid());
    write_file(path, text, sizeof text - 1);
    must(att_texts_read(&arena, path, 500, 6, &texts));
    assert_int_equal(texts.count, 3);
    assert_int_equal(texts.lengths[0], 6);
    assert_int_equal(texts.lengths[1], 3);
    assert_int_equal(texts.lengths[2], 6);
    assert_int_equal(texts.vocabulary, 12);
    const int32_t *ids = texts.ids;
    assert_int_equal(ids[0], ids[3]); /* the */
    assert_int_equal(ids[0], ids[6]);
    assert_int_equal(ids[1], ids[7]); /* cat */
    assert_true(ids[1] != ids[4] && ids[2] != ids[5]);
    assert_int_equal(ids[9], 0);
    must(att_texts_read(&arena, path, 1, 2, &texts));
    assert_int_equal(texts.count, 1);
    assert_int_equal(texts.vocabulary, 2);
    static const char cut[] = "a\n\xc3\xa4\xc3", zero[] = "a\nb\0c";
    write_file(path, cut, sizeof cut - 1);
    assert_fails(context, att_texts_read(&arena, path, 500, 6, &texts), ATT_ERR_FORMAT,
                 "is no text in UTF-8: byte 0xc3 at offset 4; expected");
    write_file(path, zero, sizeof zero - 1);
    assert_fails(context, att_texts_read(&arena, path, 500, 6, &texts), ATT_ERR_FORMAT, "byte 0x00 at offset 3");
    write_file(path, " \n\n", 3);
    assert_int_equal(att_texts_read(&arena, path, 500, 6, &texts), ATT_ERR_FORMAT);
    remove(path);
    assert_int_equal(att_texts_read(&arena, path, 500, 6, &texts), ATT_ERR_NOT_FOUND);
    att_arena_free(&arena);
}

/* The golden tokenizer: "[CLS] n ##o ##t [SEP]" and so on. */
TEST(texts_are_divided_by_a_tokenizer)
{
    static const char text[] = "NOT a\n\n \t\r\na not\nnot not not not";
    char path[64], tokenizer[512];
    att_arena arena = {.context = context};
    att_texts_table texts;
    snprintf(path, sizeof path, "/tmp/att_texts_%ld", (long)getpid());
    snprintf(tokenizer, sizeof tokenizer, "%s/texts/uncased.json", getenv("ATT_GOLDENS"));
    write_file(path, text, sizeof text - 1);
    must(att_texts_tokenize(&arena, path, tokenizer, 500, 8, &texts));
    assert_int_equal(texts.count, 3);
    assert_int_equal(texts.vocabulary, 6);
    static const int32_t expected[3][8] = {{0, 1, 2, 3, 4, 5}, {0, 4, 1, 2, 3, 5}, {0, 1, 2, 3, 1, 2, 3, 5}};
    static const int lengths[3] = {6, 6, 8};
    assert_memory_equal(texts.ids, expected, sizeof expected);
    assert_memory_equal(texts.lengths, lengths, sizeof lengths);
    must(att_texts_tokenize(&arena, path, tokenizer, 2, 8, &texts));
    assert_int_equal(texts.count, 2);
    write_file(path, " \n\n", 3);
    assert_fails(context, att_texts_tokenize(&arena, path, tokenizer, 2, 8, &texts), ATT_ERR_FORMAT, "has no text");
    assert_fails(context, att_texts_tokenize(&arena, path, "/nowhere", 2, 8, &texts), ATT_ERR_UNSUPPORTED, "/nowhere");
    remove(path);
    att_arena_free(&arena);
}

TEST(made_texts_follow_zipfs_law)
{
    made m;
    int64_t tokens = 0, first = 0, second = 0, ones = 0;
    make(&att_experiment_memorize, 2, &m);
    assert_int_equal(m.training.count, 500);
    assert_int_equal(m.spec.vocabulary, ATT_TEXTS_WORDS);
    for (int64_t i = 0; i < 500 * 128; i++) {
        int32_t id = ((const int32_t *)m.training.x)[i], class = ((const int32_t *)m.training.target)[i];
        bool pads = m.training.keys[i] < 0;
        assert_in_range(id, 0, ATT_TEXTS_WORDS - 1);
        assert_int_equal(class == ATT_NO_CLASS, pads);
        assert_true(i % 128 >= 20 || !pads);
        assert_true(i % 128 == 0 || pads || m.training.keys[i - 1] == 0);
        tokens += !pads, first += !pads && id == 0, second += !pads && id == 1, ones += class == 1;
    }
    /* 37,000 tokens; 1 / H(5000) = 0.110 of them are word 0, half as many word 1: standard errors 0.0016 and 0.0012. */
    assert_float_equal((double)tokens / 500, 74, 8); /* standard error 1.4 */
    assert_float_equal((double)first / (double)tokens, 0.110, 0.008);
    assert_float_equal((double)second / (double)tokens, 0.055, 0.006);
    assert_float_equal((double)ones / (double)tokens, 0.5, 0.014); /* 0.0026 */
    att_arena_free(&m.arena);
}

/* --- runs --------------------------------------------------------------------------------------------------------- */

static bool stop_at_once(void *user, const att_progress *progress)
{
    (void)user, (void)progress;
    return false;
}

TEST(wrong_options_are_refused)
{
    static att_experiment_result result;
    const att_experiment_options good = att_experiment_options_defaults();
    att_experiment_options bad = good;
    assert_int_equal(att_experiment_run(context, "sorting", &good, &result), ATT_ERR_NOT_FOUND);
    bad.lr = NAN;
    assert_int_equal(att_experiment_run(context, "sort", &bad, &result), ATT_ERR_ARGUMENT);
    bad = good, bad.repeats = 0;
    assert_int_equal(att_experiment_run(context, "sort", &bad, &result), ATT_ERR_ARGUMENT);
    bad = good, bad.seeds = 0;
    assert_int_equal(att_experiment_run(context, "sort", &bad, &result), ATT_ERR_ARGUMENT);
    bad = good, bad.texts = "texts.txt";
    assert_int_equal(att_experiment_run(context, "hull", &bad, &result), ATT_ERR_ARGUMENT);
    bad = good, bad.tokenizer = "tokenizer.json";
    assert_int_equal(att_experiment_run(context, "memorize", &bad, &result), ATT_ERR_ARGUMENT);
    bad = good, bad.mlp = true;
    assert_int_equal(att_experiment_run(context, "circle", &bad, &result), ATT_ERR_ARGUMENT);
    bad = good, bad.progress = stop_at_once;
    assert_int_equal(att_experiment_run(context, "circle", &bad, &result), ATT_ERR_STOPPED);
    bad = good, bad.lr = 1e30, bad.epochs = 1;
    assert_int_equal(att_experiment_run(context, "sort", &bad, &result), ATT_ERR_NONFINITE);
}

/* The different paths of the first sum of five of each length. */
static void check_sampled_paths(const att_experiment_result *result)
{
    int of_length[ATT_EXPERIMENT_LENGTHS] = {0};
    for (int i = 0; i < result->sampled_count; i++) {
        const att_experiment_path *path = &result->sampled[i];
        int taken = 0;
        for (int layer = 0; layer < 6; layer++) {
            assert_in_range(path->heads[layer], 0, 2);
            taken += path->heads[layer] > 0;
        }
        assert_int_equal(taken, path->length);
        assert_true(path->accuracy >= 0 && path->accuracy <= 1);
        of_length[path->length]++;
    }
    assert_int_equal(of_length[0], 1);
    assert_in_range(of_length[3], 2, 5);
    /* Of length 0 there is one path, whose sums are right as often as the path itself. */
    assert_float_equal(result->sampled[0].accuracy, result->paths[0][0].mean, 1e-12);
}

/* Sums of any number of paths of length 0 are the same, since a norm follows; accuracies of single paths differ. */
static void check_lengths(const att_experiment_result *result)
{
    bool differ = false;
    assert_true(result->paths[0][0].mean == result->paths[1][0].mean);
    assert_int_equal(result->sampled[0].length, 0);
    assert_true(result->paths[0][0].mean == result->sampled[0].accuracy);
    assert_true(result->paths[0][1].mean != result->paths[1][1].mean);
    for (int i = 1; i < result->sampled_count; i++)
        differ |= result->sampled[i].accuracy != result->sampled[1].accuracy;
    assert_true(differ);
}

TEST(a_run_does_not_depend_on_threads)
{
    static att_experiment_result results[2];
    const att_experiment_options options = {.epochs = 2, .lr = 1e-3, .repeats = 2, .seeds = 1, .seed = 4};
    att_context *const two = context;
    att_settings settings = att_settings_defaults();
    settings.threads = 1;
    must(att_experiment_run(context, "sort", &options, &results[0]));
    assert_int_equal(att_context_create(&settings, &context), ATT_OK);
    must(att_experiment_run(context, "sort", &options, &results[1]));
    att_context_destroy(&context);
    context = two;
    assert_memory_equal(results[0].paths, results[1].paths, sizeof results[0].paths);
    assert_memory_equal(&results[0].whole, &results[1].whole, sizeof results[0].whole);
    assert_memory_equal(&results[0].loss, &results[1].loss, sizeof results[0].loss);
    for (int i = 0; i < results[0].sampled_count; i++)
        assert_true(results[0].sampled[i].accuracy == results[1].sampled[i].accuracy);
    assert_int_equal(results[0].lengths, 7);
    assert_int_equal(results[0].updates, 68);
    assert_int_equal(results[0].tokens, 1600);
    assert_true(results[0].loss.mean < 2.2); /* ln 10 = 2.30 at the start; measured 1.93 */
    assert_true(results[0].paths[0][0].deviation == 0);
    check_sampled_paths(&results[0]);
    check_lengths(&results[0]);
}

TEST(unknown_quirks_are_refused_with_a_suggestion)
{
    static att_experiment_result result;
    static const struct {
        const char *experiment, *quirk, *message;
    } cases[] = {
        {"sort", "paddin", "experiment sort has no quirk \"paddin\"; did you mean padding?"},
        {"hull", "padding", "experiment hull has no quirk \"padding\"; it has unshuffled, all"},
        {"circle", "al", "experiment circle has no quirk \"al\"; did you mean all?"},
        {"memorize", "all", "experiment memorize has no quirks"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        att_experiment_options options = att_experiment_options_defaults();
        options.quirks = &cases[i].quirk, options.quirk_count = 1;
        assert_int_equal(att_experiment_run(context, cases[i].experiment, &options, &result), ATT_ERR_ARGUMENT);
        assert_string_equal(att_context_message(context), cases[i].message);
    }
}

/* Trains the network of `spec` for one epoch and returns the largest change of the parameter. */
static double change_of(const att_san_spec *spec, const char *name)
{
    enum { SAMPLES = 6, TOKENS = 3, MOST = 64 };
    int32_t x[SAMPLES * TOKENS], target[SAMPLES * TOKENS];
    float before[MOST], after[MOST];
    att_graph *graph;
    att_weights *weights;
    att_learned learned;
    const att_experiment_options options = {.progress = NULL};
    const att_learning learning = {
        .optimizer = "adam", .lr = 0.1, .batch_size = SAMPLES, .epochs = 1, .mean = true, .options = &options};
    for (int i = 0; i < SAMPLES * TOKENS; i++)
        x[i] = i % spec->vocabulary, target[i] = i % (int)spec->outputs;
    const att_samples samples = {SAMPLES,        TOKENS, TOKENS * sizeof *x, TOKENS * sizeof *target, (char *)x,
                                 (char *)target, NULL};
    must(att_graph_create(context, ATT_F32, &graph));
    att_value classes = att_graph_input(graph, "expected", ATT_I32, att_shape_of(TOKENS));
    att_graph_output(graph, "loss", att_token_cross_entropy(graph, att_san_build(graph, spec), classes));
    must(att_weights_create(graph, "cpu", &weights));
    must(att_weights_initialise(weights, 1));
    int index = att_weights_find(weights, name);
    assert_true(index >= 0);
    int64_t count = att_shape_count(att_weights_at(weights, index).shape);
    must(att_weights_get(weights, -1, index, before, count));
    must(att_learn(context, graph, weights, &samples, &learning, &learned));
    must(att_weights_get(weights, -1, index, after, count));
    double most = 0;
    for (int64_t i = 0; i < count; i++)
        most = fmax(most, fabs((double)after[i] - (double)before[i]));
    att_weights_destroy(&weights);
    att_graph_destroy(&graph);
    return most;
}

TEST(padding_is_not_trained)
{
    const att_san_spec spec = {
        .tokens = 3, .depth = 1, .heads = 2, .width = 8, .outputs = 2, .vocabulary = 4, .padding = true};
    assert_true(change_of(&spec, "embed.padding") == 0);
    assert_true(change_of(&spec, "embed.token") > 0.09); /* Adam's first step is the learning rate */
}

TEST(scores_of_several_seeds_are_those_of_their_networks)
{
    static att_experiment_result one[2], both;
    att_experiment_options options = {.epochs = 2, .lr = 3e-3, .repeats = 1, .seeds = 1, .seed = 4};
    for (int i = 0; i < 2; i++, options.seed++)
        must(att_experiment_run(context, "circle", &options, &one[i]));
    options.seeds = 2, options.seed = 4;
    must(att_experiment_run(context, "circle", &options, &both));
    for (int i = 0; i < ATT_CIRCLE_VARIANTS; i++) {
        double a = one[0].circle[i].radius_error.mean, b = one[1].circle[i].radius_error.mean;
        assert_true(isnan(one[0].circle[i].radius_error.deviation));
        assert_float_equal(both.circle[i].radius_error.mean, (a + b) / 2, 1e-12);
        assert_float_equal(both.circle[i].radius_error.deviation, fabs(a - b) / sqrt(2), 1e-12);
        assert_int_equal(both.circle[i].radius_error.n, 2);
        assert_memory_equal(both.circle[i].points, one[0].circle[i].points, sizeof both.circle[i].points);
    }
}

TEST(circle_learns_its_step)
{
    static att_experiment_result result;
    const att_experiment_options options = {.epochs = 4, .lr = 3e-3, .repeats = 1, .seeds = 1};
    must(att_experiment_run(context, "circle", &options, &result));
    assert_int_equal(result.circle_count, ATT_CIRCLE_VARIANTS);
    for (int i = 0; i < result.circle_count; i++) {
        const att_circle_result *c = &result.circle[i];
        assert_float_equal(c->points[0][0][0], 0.3, 1e-7);
        assert_float_equal(c->points[0][1][0], -0.3, 1e-7);
        assert_true(isfinite(c->distance.mean) && isfinite(c->radius_error.mean));
        assert_true(c->loss.mean < 0.09); /* 0.18 for an output of 0 */
    }
}

/* The untrained networks: the loss is that of a sample, not of a token, and the last one has an MLP. */
TEST(circle_adds_the_errors_of_a_sample)
{
    static att_experiment_result result;
    const att_experiment_options options = {.epochs = 1, .lr = 1e-12, .repeats = 1, .seeds = 1};
    must(att_experiment_run(context, "circle", &options, &result));
    assert_true(result.circle[0].loss.mean > 0.18 && result.circle[0].loss.mean < 0.36); /* 0.311 */
    assert_true(result.circle[0].loss.mean != result.circle[2].loss.mean);
}

/* tests/cli/test_experiment.sh compares the figures of a record with the result. */
TEST(a_run_leaves_a_record)
{
    static att_experiment_result result;
    char folder[64], path[96];
    att_experiment_options options = {.epochs = 1, .lr = 1e-4, .repeats = 1, .seeds = 1, .folder = folder};
    snprintf(folder, sizeof folder, "/tmp/att_experiment_%ld", (long)getpid());
    snprintf(path, sizeof path, "%s/measure.jsonl", folder);
    must(att_experiment_run(context, "circle", &options, &result));
    assert_int_equal(remove(path), 0);
    assert_int_equal(remove(folder), 0);
}

/* Sample 40 begins at 40 of 1,000 points, and the one in the same place of the batch before at 10. */
TEST(samples_of_the_circle_are_pairs_of_its_points)
{
    const double at = 0.08 * M_PI, next = 0.082 * M_PI, before = 0.02 * M_PI;
    att_circle_pair x, target;
    att_circle_sample(&(att_circle_task){.pairs = 500}, 40, x, target);
    assert_float_equal(x[0][0], 0.3 * cos(at), 1e-7);
    assert_float_equal(x[1][1], -0.3 * sin(at), 1e-7);
    assert_float_equal(target[0][1], 0.3 * sin(next), 1e-7);
    att_circle_sample(&(att_circle_task){.pairs = 500, .steps = true}, 40, x, target);
    assert_float_equal(x[0][1], 0.3 * sin(at), 1e-7);
    assert_float_equal(target[0][1], 0.3 * (sin(next) - sin(at)), 1e-7);
    att_circle_sample(&(att_circle_task){.pairs = 500, .sums = true}, 40, x, target);
    assert_float_equal(x[0][0], 0.3 * (cos(at) + cos(before)), 1e-7);
    assert_float_equal(x[1][1], -0.3 * (sin(at) + sin(before)), 1e-7);
    assert_float_equal(target[0][1], 0.3 * sin(next), 1e-7);
    att_circle_sample(&(att_circle_task){.pairs = 500, .sums = true}, 29, x, target);
    assert_float_equal(x[0][1], 0.3 * sin(0.058 * M_PI), 1e-7);
}

TEST(quirks_make_the_circle_that_of_the_public_code)
{
    static att_experiment_result plain, quirky;
    static const char *const all = "all";
    att_experiment_options options = {.epochs = 1, .lr = 1e-4, .repeats = 1, .seeds = 1};
    must(att_experiment_run(context, "circle", &options, &plain));
    options.quirks = &all, options.quirk_count = 1;
    must(att_experiment_run(context, "circle", &options, &quirky));
    assert_int_equal(plain.training_samples, 500);
    assert_int_equal(quirky.training_samples, 499);
    const double *second = quirky.circle[0].points[0][1]; /* 499 of 1,000 points from (0.3, 0) */
    assert_float_equal(second[0], 0.3 * cos(0.998 * M_PI), 1e-7);
    assert_float_equal(second[1], 0.3 * sin(0.998 * M_PI), 1e-7);
    /* skip: samples have their own size at first, then about twice the size, and targets are points, not steps of
     * length 0.0019; the loss of an output of 0 is 0.18 per sample. */
    assert_true(plain.circle[1].loss.mean < quirky.circle[1].loss.mean);
    /* Its first shown output is that of the untouched start, as in base; its state then is the sum of both. */
    assert_memory_equal(quirky.circle[1].points[0], quirky.circle[0].points[0], sizeof quirky.circle[1].points[0]);
    const double *last = quirky.circle[1].points[ATT_CIRCLE_STEPS - 1][0];
    assert_true(hypot(last[0], last[1]) < 1);
}

/* --- training ----------------------------------------------------------------------------------------------------- */

/* One token with two classes; the logits are x + w. */
enum { ROWS = 5, ROWS_IN_BATCH = 2, MOST_EPOCHS = 62 };
static const float logits_of_rows[ROWS][2] = {{2, 0}, {-1, 0}, {0.5f, 0}, {0, 1}, {0, 0}};
static const int32_t classes_of_rows[ROWS] = {0, 0, ATT_NO_CLASS, 1, 0};

/* Makes gradients as small as Adam's eps, so that their scale matters. */
static const double LOSS_FACTOR = 2e-8;

/* PyTorch's Adam with L2 weight decay, or AdamW, in f64. Returns the loss of the last epoch per class, or per row. */
static double train_by_hand(const att_learning *l, double w[2])
{
    double m[2] = {0}, v[2] = {0}, loss = 0, decay = l->weight_decay;
    bool is_adamw = strcmp(l->optimizer, "adamw") == 0;
    int update = 0, updates = l->epochs * 3;
    for (int epoch = 0; epoch < l->epochs; epoch++) {
        int terms = 0;
        loss = 0;
        for (int first = 0; first < ROWS; first += ROWS_IN_BATCH) {
            double g[2] = {0};
            int classes = 0, rows = 0;
            for (int i = first; i < ROWS && i < first + ROWS_IN_BATCH; i++, rows++) {
                if (classes_of_rows[i] == ATT_NO_CLASS)
                    continue;
                int own = classes_of_rows[i], other = 1 - own;
                double apart = (double)logits_of_rows[i][other] + w[other] - (double)logits_of_rows[i][own] - w[own];
                double share = LOSS_FACTOR / (1 + exp(-apart));
                g[other] += share, g[own] -= share;
                loss += LOSS_FACTOR * log1p(exp(apart));
                classes++;
            }
            terms += l->mean ? classes : rows;
            double lr = l->lr;
            if (l->schedule == ATT_RATE_LINEAR)
                lr *= 1 - (double)update / updates;
            for (int k = 0; l->schedule == ATT_RATE_STEPS && k < 5; k++)
                lr *= epoch >= (const int[]){15, 30, 40, 50, 60}[k] ? 0.91 : 1;
            update++;
            for (int c = 0; c < 2; c++) {
                g[c] /= l->mean ? classes : 1;
                if (is_adamw)
                    w[c] -= lr * decay * w[c];
                else
                    g[c] += decay * w[c];
                m[c] = 0.9 * m[c] + 0.1 * g[c];
                v[c] = 0.999 * v[c] + 0.001 * g[c] * g[c];
                w[c] -= lr * m[c] / (1 - pow(0.9, update)) / (sqrt(v[c] / (1 - pow(0.999, update))) + 1e-8);
            }
        }
        loss /= terms;
    }
    return loss;
}

static double train_by_learning(att_learning learning, double w[2])
{
    char x[sizeof logits_of_rows], target[sizeof classes_of_rows];
    memcpy(x, logits_of_rows, sizeof x);
    memcpy(target, classes_of_rows, sizeof target);
    const att_samples samples = {.count = ROWS, .tokens = 1, .x_bytes = 8, .target_bytes = 4, .x = x, .target = target};
    const att_experiment_options options = {.progress = NULL};
    att_graph *graph;
    att_weights *weights;
    att_learned learned;
    float values[2] = {(float)w[0], (float)w[1]};
    must(att_graph_create(context, ATT_F32, &graph));
    att_value row = att_graph_input(graph, "x", ATT_F32, att_shape_of(1, 2));
    const att_init start = {.rule = ATT_INIT_CONSTANT, .value = 0};
    att_value own = att_graph_parameter(graph, "w", att_shape_of(1, 2), start, true);
    att_value classes = att_graph_input(graph, "expected", ATT_I32, att_shape_of(1));
    att_value loss = att_token_cross_entropy(graph, att_add(graph, row, own), classes);
    att_graph_output(graph, "loss", att_combine(graph, LOSS_FACTOR, loss, 0, ATT_NONE));
    must(att_weights_create(graph, "cpu", &weights));
    must(att_weights_set(weights, -1, 0, values, 2));
    learning.options = &options;
    must(att_learn(context, graph, weights, &samples, &learning, &learned));
    assert_int_equal(learned.updates, learning.epochs * 3);
    must(att_weights_get(weights, -1, 0, values, 2));
    w[0] = (double)values[0], w[1] = (double)values[1];
    att_weights_destroy(&weights);
    att_graph_destroy(&graph);
    return learned.loss;
}

TEST(a_training_is_that_of_pytorchs_optimizer)
{
    static const att_learning learnings[] = {
        {"adam", .lr = 1e-2, .schedule = ATT_RATE_CONSTANT, .epochs = 7, .mean = true},
        {"adam", .lr = 1e-2, .schedule = ATT_RATE_CONSTANT, .epochs = 7},
        {"adam", .lr = 1e-2, .weight_decay = 1e-7, .schedule = ATT_RATE_STEPS, .epochs = MOST_EPOCHS, .mean = true},
        {"adamw", .lr = 1e-2, .weight_decay = 1e-1, .schedule = ATT_RATE_LINEAR, .epochs = 9, .mean = true}};
    double worst = 0;
    for (size_t i = 0; i < sizeof learnings / sizeof *learnings; i++) {
        att_learning learning = learnings[i];
        learning.batch_size = ROWS_IN_BATCH;
        double expected[2] = {0.5, -0.25}, found[2] = {0.5, -0.25};
        double loss = train_by_hand(&learning, expected), learned = train_by_learning(learning, found);
        for (int c = 0; c < 2; c++)
            worst = fmax(worst, fabs(found[c] - expected[c]));
        worst = fmax(worst, fabs(learned / loss - 1));
        assert_true(fabs(found[0] - 0.5) > 1e-3);
    }
    printf("largest error of a training run: %.2g\n", worst); /* 1.5e-7 */
    assert_true(worst < 1e-6);
}

TEST(logits_that_are_no_numbers_are_never_right)
{
    const float logits[] = {NAN, 0, 1, 0};
    int32_t classes[] = {0, 0};
    const att_samples samples = {.count = 2, .tokens = 1, .target_bytes = 4, .target = (char *)classes};
    int64_t right = 0, all = 0;
    att_samples_score(&samples, 0, 2, logits, 2, &right, &all);
    assert_int_equal(right, 1);
    assert_int_equal(all, 2);
}
