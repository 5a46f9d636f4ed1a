/* The network of Dong et al. and paths through it: outputs and gradients against PyTorch in f64
 * (tools/goldens/experiments.py). */
#include "lab/papers/experiments/fixture.h"

#include <attscope/ops.h>

#include "golden_path.h"
#include "lab/papers/experiments/paths.h"
#include "lab/papers/experiments/san.h"

enum { SAMPLES = 3, MOST_TOKENS = 8, MOST_NUMBERS = SAMPLES * MOST_TOKENS * 12, MOST_GRADIENTS = 48, MOST_TERMS = 10 };

typedef struct test_case {
    const char *name;
    att_san_spec spec;
    int path_count;
    att_path paths[3];
} test_case;

/* As CASES and PATHS of the script. Dropout does nothing in these plans. */
static const test_case cases[] = {
    {"numbers",
     {.tokens = 5,
      .depth = 3,
      .heads = 2,
      .width = 8,
      .outputs = 4,
      .vocabulary = 7,
      .positions = true,
      .dropout = 0.1},
     3,
     {{2, {0, 2}, {1, 0}}, {1, {1}, {1}}, {0, {0}, {0}}}},
    {"padding",
     {.tokens = 5, .depth = 1, .heads = 2, .width = 8, .outputs = 4, .vocabulary = 4, .padding = true},
     1,
     {{1, {0}, {1}}}},
    {"points",
     {.tokens = 6, .depth = 2, .heads = 3, .width = 12, .outputs = 2, .deep_embedding = true, .dropout = 0.1},
     2,
     {{2, {0, 1}, {2, 0}}, {1, {1}, {1}}}},
    {"padded_mlp",
     {.tokens = 7,
      .depth = 2,
      .heads = 2,
      .width = 8,
      .outputs = 2,
      .vocabulary = 9,
      .padded = true,
      .mlp = true,
      .dropout = 0.1},
     2,
     {{2, {0, 1}, {1, 1}}, {1, {0}, {0}}}},
};
enum { CASES = sizeof cases / sizeof *cases };

typedef struct golden {
    double logits[MOST_NUMBERS], loss, paths[MOST_NUMBERS];
    char tensors[MOST_GRADIENTS][64];
    double norms[MOST_GRADIENTS];
    int gradients;
} golden;

static void read_numbers(FILE *file, int count, double *numbers)
{
    for (int i = 0; i < count; i++)
        assert_int_equal(fscanf(file, "%lf", &numbers[i]), 1);
}

static int logit_count(const test_case *c)
{
    return SAMPLES * c->spec.tokens * (int)c->spec.outputs;
}

static void read_golden(FILE *file, const test_case *c, golden *g)
{
    char name[64], word[16];
    assert_int_equal(fscanf(file, " case %63s logits", name), 1);
    assert_string_equal(name, c->name);
    read_numbers(file, logit_count(c), g->logits);
    assert_int_equal(fscanf(file, " loss %lf", &g->loss), 1);
    g->gradients = 0;
    while (fscanf(file, "%15s", word) == 1 && strcmp(word, "gradient") == 0) {
        assert_int_equal(fscanf(file, "%63s %lf", g->tensors[g->gradients], &g->norms[g->gradients]), 2);
        assert_true(++g->gradients < MOST_GRADIENTS);
    }
    assert_string_equal(word, "paths");
    read_numbers(file, logit_count(c), g->paths);
}

/* How the numbers are computed, and the largest relative error that is allowed. */
typedef struct numbers {
    const char *backend;
    att_dtype dtype;
    double limit;
} numbers;

static void store(att_dtype dtype, void *values, int64_t i, double value)
{
    if (dtype == ATT_F64)
        ((double *)values)[i] = value;
    else
        ((float *)values)[i] = (float)value;
}

static double load(att_dtype dtype, const void *values, int64_t i)
{
    return dtype == ATT_F64 ? ((const double *)values)[i] : (double)((const float *)values)[i];
}

/* The inputs of all samples. */
typedef struct inputs {
    int32_t ids[SAMPLES * MOST_TOKENS], classes[SAMPLES * MOST_TOKENS];
    double points[SAMPLES * MOST_TOKENS * 2], keys[SAMPLES * MOST_TOKENS]; /* of the graph's type */
} inputs;

static void make_inputs(const test_case *c, att_dtype dtype, inputs *in)
{
    const att_san_spec *spec = &c->spec;
    for (int i = 0; i < SAMPLES * spec->tokens; i++) {
        bool pads = spec->padded && i % spec->tokens >= spec->tokens - i / spec->tokens;
        in->ids[i] = (int32_t)floor((formula("x", (uint32_t)i) + 0.5) * spec->vocabulary);
        in->classes[i] =
            pads ? ATT_NO_CLASS : (int32_t)floor((formula("target", (uint32_t)i) + 0.5) * (double)spec->outputs);
        store(dtype, in->keys, i, pads ? -INFINITY : 0);
        for (int axis = 0; axis < 2; axis++)
            store(dtype, in->points, 2 * i + axis, 4 * formula("x", (uint32_t)(2 * i + axis)));
    }
}

static const void *x_of(const test_case *c, const inputs *in)
{
    return c->spec.vocabulary ? (const void *)in->ids : (const void *)in->points;
}

static bool is_norm(const char *name)
{
    size_t length = strlen(name);
    return length > 11 && strcmp(name + length - 11, "norm.weight") == 0;
}

static void fill(att_weights *weights, att_dtype dtype)
{
    for (int i = 0; i < att_weights_count(weights); i++) {
        att_parameter_info parameter = att_weights_at(weights, i);
        int64_t count = att_shape_count(parameter.shape);
        void *values = malloc((size_t)count * sizeof(double));
        for (int64_t e = 0; e < count; e++) {
            double drawn = formula(parameter.name, (uint32_t)e);
            store(dtype, values, e, is_norm(parameter.name) ? 1 + drawn / 2 : drawn);
        }
        must(att_weights_set(weights, -1, i, values, count));
        free(values);
    }
}

static double worst;

static void check_close(const char *name, const char *what, double value, double expected, double limit)
{
    double error = fabs(value - expected) / fmax(1, fabs(expected));
    if (!(error <= limit))
        fail_msg("%s: %s is %.15g instead of %.15g: error %g", name, what, value, expected, error);
    worst = fmax(worst, error);
}

/* A session of an inference plan of one output; both live until the end of the test. */
typedef struct run_of {
    att_plan *plan;
    att_session *session;
} run_of;

static run_of open_run(const att_graph *graph, att_weights *weights, const char *backend, att_purpose purpose,
                       const char *output)
{
    run_of run;
    const char *const outputs[] = {output, NULL};
    att_plan_options options = att_plan_options_defaults();
    options.backend = backend, options.purpose = purpose, options.outputs = outputs;
    must(att_plan_compile(graph, &options, &run.plan));
    must(att_session_create(run.plan, weights, SAMPLES, &run.session));
    return run;
}

static void close_run(run_of *run)
{
    att_session_destroy(&run->session);
    att_plan_destroy(&run->plan);
}

static void bind(run_of *run, const test_case *c, const inputs *in)
{
    must(att_session_bind(run->session, "x", x_of(c, in)));
    if (c->spec.padded)
        must(att_session_bind(run->session, "keys", in->keys));
}

static void check_gradients(const test_case *c, const golden *g, const numbers *how, const att_graph *graph,
                            att_weights *weights, const inputs *in)
{
    run_of run = open_run(graph, weights, how->backend, ATT_GRADIENT, "loss");
    att_gradient *gradient;
    double losses[SAMPLES], loss = 0;
    must(att_gradient_create(weights, &gradient));
    bind(&run, c, in);
    must(att_session_bind(run.session, "expected", in->classes));
    must(att_session_accumulate(run.session, gradient, SAMPLES, 1, 0, 0, 0));
    must(att_session_output(run.session, "loss", 0, SAMPLES, losses));
    for (int i = 0; i < SAMPLES; i++)
        loss += load(how->dtype, losses, i);
    check_close(c->name, "the loss", loss, g->loss, how->limit);
    for (int i = 0; i < g->gradients; i++) {
        int index = att_weights_find(weights, g->tensors[i]);
        assert_true(index >= 0);
        int64_t count = att_shape_count(att_weights_at(weights, index).shape);
        void *values = malloc((size_t)count * sizeof(double));
        double squares = 0;
        must(att_gradient_get(gradient, index, values, count));
        for (int64_t e = 0; e < count; e++)
            squares += load(how->dtype, values, e) * load(how->dtype, values, e);
        check_close(c->name, g->tensors[i], sqrt(squares), g->norms[i], how->limit);
        free(values);
    }
    att_gradient_destroy(&gradient);
    close_run(&run);
}

static void check_logits(const test_case *c, const golden *g, const numbers *how, const att_graph *graph,
                         att_weights *weights, const inputs *in)
{
    run_of run = open_run(graph, weights, how->backend, ATT_INFER, "result");
    double logits[MOST_NUMBERS];
    bind(&run, c, in);
    must(att_session_run(run.session, SAMPLES));
    must(att_session_output(run.session, "result", 0, SAMPLES, logits));
    for (int i = 0; i < logit_count(c); i++)
        check_close(c->name, "a logit", load(how->dtype, logits, i), g->logits[i], how->limit);
    close_run(&run);
}

static run_of open_part(void (*build)(att_graph *, const att_san_spec *), const test_case *c, const numbers *how,
                        att_weights *weights, const char *output)
{
    att_graph *graph;
    must(att_graph_create(context, how->dtype, &graph));
    build(graph, &c->spec);
    run_of run = open_run(graph, weights, how->backend, ATT_INFER, output);
    att_graph_destroy(&graph);
    return run;
}

static void check_paths(const test_case *c, const golden *g, const numbers *how, const att_graph *graph,
                        att_weights *weights, const inputs *in)
{
    run_of embedding = open_run(graph, weights, how->backend, ATT_INFER, "embedded");
    run_of step = open_part(att_san_build_step, c, how, weights, "next");
    run_of end = open_part(att_san_build_end, c, how, weights, "result");
    double state[MOST_NUMBERS], sum[MOST_NUMBERS] = {0}, logits[MOST_NUMBERS];
    int32_t layers[SAMPLES], heads[SAMPLES];
    must(att_session_bind(embedding.session, "x", x_of(c, in)));
    must(att_session_bind(step.session, "state", state));
    must(att_session_bind(step.session, "layer", layers));
    must(att_session_bind(step.session, "head", heads));
    if (c->spec.padded)
        must(att_session_bind(step.session, "keys", in->keys));
    must(att_session_bind(end.session, "state", sum));
    must(att_session_run(embedding.session, SAMPLES));
    for (int p = 0; p < c->path_count; p++) {
        must(att_session_output(embedding.session, "embedded", 0, SAMPLES, state));
        for (int i = 0; i < c->paths[p].length; i++) {
            for (int sample = 0; sample < SAMPLES; sample++) {
                layers[sample] = c->paths[p].layers[i];
                heads[sample] = c->paths[p].layers[i] * c->spec.heads + c->paths[p].heads[i];
            }
            must(att_session_run(step.session, SAMPLES));
            must(att_session_output(step.session, "next", 0, SAMPLES, state));
        }
        for (int64_t e = 0; e < SAMPLES * c->spec.tokens * c->spec.width; e++)
            store(how->dtype, sum, e, load(how->dtype, sum, e) + load(how->dtype, state, e));
    }
    must(att_session_run(end.session, SAMPLES));
    must(att_session_output(end.session, "result", 0, SAMPLES, logits));
    for (int i = 0; i < logit_count(c); i++)
        check_close(c->name, "a logit of paths", load(how->dtype, logits, i), g->paths[i], how->limit);
    close_run(&embedding);
    close_run(&step);
    close_run(&end);
}

/* Sum 0 has the paths, sum 1 each of them twice, which the norm behind the sum hides, sum 2 the last one alone. */
static att_path_sums sums_of(const test_case *c, att_path_term terms[MOST_TERMS])
{
    att_path_sums sums = {.terms = terms, .count = 3};
    for (int p = 0; p < c->path_count; p++)
        for (int i = 0; i < 3; i++)
            terms[sums.term_count++] = (att_path_term){c->paths[p], i > 0};
    terms[sums.term_count++] = (att_path_term){c->paths[c->path_count - 1], 2};
    return sums;
}

/* The same by the walker, which works in f32. */
static void check_walker(const test_case *c, const golden *g, const att_graph *graph, att_weights *weights,
                         const inputs *in)
{
    float logits[MOST_NUMBERS], keys[SAMPLES * MOST_TOKENS];
    memcpy(keys, in->keys, sizeof keys);
    const att_samples samples = {.count = SAMPLES,
                                 .tokens = c->spec.tokens,
                                 .x_bytes = (size_t)c->spec.tokens * (c->spec.vocabulary ? 4 : 8),
                                 .target_bytes = (size_t)c->spec.tokens * 4,
                                 .x = (char *)(uintptr_t)x_of(c, in),
                                 .target = (char *)(uintptr_t)in->classes,
                                 .keys = c->spec.padded ? keys : NULL};
    att_walker walker = {.context = NULL};
    att_path_term terms[MOST_TERMS];
    att_path_sums sums = sums_of(c, terms);
    must(att_walker_open(context, graph, &c->spec, weights, &sums, &walker));
    must(att_walker_walk(&walker, &samples, 0, SAMPLES));
    for (int sum = 0; sum < 2; sum++) {
        must(att_walker_ask(&walker, sum, SAMPLES, logits));
        for (int i = 0; i < logit_count(c); i++)
            check_close(c->name, "a logit of the walker", (double)logits[i], g->paths[i], 1e-5);
    }
    must(att_walker_ask_whole(&walker, &samples, 0, SAMPLES, logits));
    for (int i = 0; i < logit_count(c); i++)
        check_close(c->name, "a logit of the whole network", (double)logits[i], g->logits[i], 1e-5);
    int64_t right = 0, all = 0, expected = 0;
    att_samples_score(&samples, 0, SAMPLES, logits, c->spec.outputs, &right, &all);
    for (int i = 0; i < SAMPLES * c->spec.tokens; i++)
        expected += in->classes[i] != ATT_NO_CLASS;
    assert_int_equal(all, expected);
    att_walker_close(&walker);
}

static void compare(const numbers *how)
{
    char path[4096];
    static golden g;
    static inputs in;
    golden_path("experiments.txt", path, sizeof path);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    worst = 0;
    for (int i = 0; i < CASES; i++) {
        const test_case *c = &cases[i];
        att_graph *graph;
        att_weights *weights;
        read_golden(file, c, &g);
        make_inputs(c, how->dtype, &in);
        must(att_graph_create(context, how->dtype, &graph));
        att_value logits = att_san_build(graph, &c->spec);
        att_value target = att_graph_input(graph, "expected", ATT_I32, att_shape_of(c->spec.tokens));
        att_graph_output(graph, "loss", att_token_cross_entropy(graph, logits, target));
        must(att_weights_create(graph, "cpu", &weights));
        fill(weights, how->dtype);
        check_logits(c, &g, how, graph, weights, &in);
        check_gradients(c, &g, how, graph, weights, &in);
        check_paths(c, &g, how, graph, weights, &in);
        if (how->dtype == ATT_F32)
            check_walker(c, &g, graph, weights, &in);
        att_weights_destroy(&weights);
        att_graph_destroy(&graph);
    }
    fclose(file);
    printf("%s: largest error %.2g\n", how->backend, worst);
}

TEST(the_network_is_pytorchs_in_f64)
{
    compare(&(numbers){"ref", ATT_F64, 1e-12});
}

TEST(the_network_is_pytorchs_in_f32)
{
    compare(&(numbers){"cpu", ATT_F32, 1e-5});
}

TEST(initial_values_are_those_of_the_paper)
{
    const att_san_spec spec = {.tokens = 4, .depth = 1, .heads = 2, .width = 64, .outputs = 3, .vocabulary = 50};
    static const struct {
        const char *name;
        double deviation, most;
    } expected[] = {{"embed.token", 0.02, 0.12},
                    {"layers.0.query.weight", 0.02, 0.12},
                    {"layers.0.key.weight", 0.02, 0.12},
                    {"layers.0.value.weight", 0.0721688, 0.125}, /* U(-1/8, 1/8): 1 / (8 sqrt 3) */
                    {"layers.0.output.weight", 0.0721688, 0.125}};
    att_graph *graph;
    att_weights *weights;
    must(att_graph_create(context, ATT_F32, &graph));
    att_san_build(graph, &spec);
    must(att_weights_create(graph, "cpu", &weights));
    must(att_weights_initialise(weights, 3));
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        int index = att_weights_find(weights, expected[i].name);
        assert_true(index >= 0);
        int64_t count = att_shape_count(att_weights_at(weights, index).shape);
        float *values = malloc((size_t)count * sizeof *values);
        double squares = 0;
        must(att_weights_get(weights, -1, index, values, count));
        for (int64_t e = 0; e < count; e++) {
            squares += (double)values[e] * (double)values[e];
            assert_true(fabs((double)values[e]) <= expected[i].most);
        }
        /* 3,200 or more draws: the standard error of the deviation is at most 1.3 % */
        assert_float_equal(sqrt(squares / (double)count), expected[i].deviation, 0.05 * expected[i].deviation);
        free(values);
    }
    att_weights_destroy(&weights);
    att_graph_destroy(&graph);
}

TEST(paths_are_drawn_uniformly)
{
    enum { DRAWS = 20000, DEPTH = 6, HEADS = 3, LENGTH = 2 };
    int layers[DEPTH] = {0}, heads[HEADS] = {0};
    att_random random = att_random_from(7);
    for (int i = 0; i < DRAWS; i++) {
        att_path path = att_path_draw(&random, DEPTH, HEADS, LENGTH);
        assert_int_equal(path.length, LENGTH);
        assert_true(path.layers[0] < path.layers[1] && path.layers[1] < DEPTH);
        for (int k = 0; k < LENGTH; k++) {
            layers[path.layers[k]]++;
            heads[path.heads[k]]++;
        }
    }
    /* Five standard deviations: sqrt(20000 / 3 * 2 / 3) = 67 and sqrt(40000 / 3 * 2 / 3) = 94. */
    for (int l = 0; l < DEPTH; l++)
        assert_true(abs(layers[l] - DRAWS / 3) < 5 * 67);
    for (int h = 0; h < HEADS; h++)
        assert_true(abs(heads[h] - LENGTH * DRAWS / 3) < 5 * 94);
    assert_int_equal(att_path_draw(&random, DEPTH, HEADS, 0).length, 0);
    att_path all = att_path_draw(&random, DEPTH, HEADS, DEPTH);
    for (int l = 0; l < DEPTH; l++)
        assert_int_equal(all.layers[l], l);
}
