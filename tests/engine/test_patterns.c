/* Algebraic rewritings: each applies where it should and nowhere else, and a training step of the rewritten plan agrees
 * with that of the plain plan. */
#include "engine/ops/batch_norm.h"
#include "engine/ops/finite_difference.h"
#include "engine/patterns/list.h"
#include "engine/plan/plan.h"

enum { HEIGHT = 2, WIDTH = 3, CHANNELS = 5, NARROW = 2, CLASSES = 4 };

/* --- networks ----------------------------------------------------------------------------------------------------- */

static att_value parameter(att_graph *graph, const char *name, const char *part, att_shape shape, att_init init)
{
    char text[64];
    snprintf(text, sizeof text, "%s.%s", name, part);
    return att_graph_parameter(graph, text, shape, init, shape.rank > 1);
}

static att_value buffer(att_graph *graph, const char *name, const char *part, int64_t channels, double start)
{
    char text[64];
    snprintf(text, sizeof text, "%s.%s", name, part);
    return att_graph_buffer(graph, text, att_shape_of(channels), start);
}

/* Batch norm with unusual parameters and statistics. */
static att_value norm(att_graph *graph, const char *name, att_value x)
{
    att_shape shape = att_value_shape(graph, x);
    int64_t channels = shape.dims[shape.rank - 1];
    const att_init drawn = {ATT_INIT_UNIFORM, 1};
    att_graph_scope(graph, name);
    att_value gamma = parameter(graph, name, "weight", att_shape_of(channels), drawn);
    att_value beta = parameter(graph, name, "bias", att_shape_of(channels), drawn);
    att_value mean = buffer(graph, name, "running_mean", channels, 0.25);
    att_value variance = buffer(graph, name, "running_var", channels, 2);
    return att_batch_norm(graph, x, gamma, beta, mean, variance,
                          &(att_batch_norm_options){.eps = 0.125, .momentum = 0.3});
}

static att_value convolution(att_graph *graph, const char *name, att_value x, int64_t outputs, int64_t kernel,
                             const att_conv_options *options)
{
    int64_t groups = options && options->groups ? options->groups : 1;
    att_shape shape = att_shape_of(outputs, att_value_shape(graph, x).dims[2] / groups, kernel, kernel);
    att_graph_scope(graph, name);
    att_value weight = parameter(graph, name, "weight", shape, (att_init){ATT_INIT_NORMAL, 0.5});
    return att_conv2d(graph, x, weight, ATT_NONE, options);
}

static att_value pointwise(att_graph *graph, const char *name, att_value x, int64_t outputs)
{
    return convolution(graph, name, x, outputs, 1, NULL);
}

static att_value linear(att_graph *graph, const char *name, att_value x, int64_t outputs)
{
    att_shape weight = att_shape_of(outputs, att_value_shape(graph, x).dims[0]);
    att_graph_scope(graph, name);
    return att_linear(graph, x, parameter(graph, name, "weight", weight, (att_init){ATT_INIT_NORMAL, 0.5}), ATT_NONE);
}

/* The block x -> relu(x + y), where y is the norm of a widening convolution. */
static att_value narrowed(att_graph *graph, att_value x)
{
    att_value y = att_relu(graph, norm(graph, "narrow.bn", pointwise(graph, "narrow", x, NARROW)));
    return norm(graph, "wide.bn", pointwise(graph, "wide", y, CHANNELS));
}

static att_value bottleneck(att_graph *graph, att_value x)
{
    return att_relu(graph, att_add(graph, x, narrowed(graph, x)));
}

/* The same with squeeze and excitation. */
static att_value squeezed(att_graph *graph, att_value x)
{
    att_value y = narrowed(graph, x);
    att_value gate = att_sigmoid(graph, linear(graph, "se", att_global_mean(graph, y), CHANNELS));
    return att_relu(graph, att_add(graph, x, att_gate(graph, y, gate)));
}

/* Two blocks, each gated by means of its branch, from row `first` on, and of the residual stream through a norm. */
static att_value gated_from(att_graph *graph, att_value x, int first, bool relu)
{
    static const char *const names[2][3] = {{"a1", "b1", "c1"}, {"a2", "b2", "c2"}};
    x = pointwise(graph, "stem", x, CHANNELS);
    for (int i = 0; i < 2; i++) {
        att_value y = norm(graph, names[i][1], pointwise(graph, names[i][0], x, CHANNELS));
        y = relu ? att_relu(graph, y) : y;
        att_value z = att_add(graph, att_global_mean(graph, x), att_token_mean(graph, y, first));
        att_value gate = att_sigmoid(graph, norm(graph, names[i][2], z));
        x = att_relu(graph, att_add(graph, x, att_gate(graph, y, gate)));
    }
    return x;
}

static att_value gated(att_graph *graph, att_value x)
{
    return gated_from(graph, x, 0, false);
}

static att_value gated_by_all_but_a_row(att_graph *graph, att_value x)
{
    return gated_from(graph, x, 1, false);
}

static att_value gated_behind_a_relu(att_graph *graph, att_value x)
{
    return gated_from(graph, x, 0, true);
}

/* Two convolutions and a mean read the output of a norm. */
static att_value gated_and_read_twice(att_graph *graph, att_value x)
{
    att_value y = norm(graph, "bn", pointwise(graph, "stem", x, CHANNELS));
    att_value gate = att_sigmoid(graph, linear(graph, "se", att_global_mean(graph, y), CHANNELS));
    y = att_add(graph, pointwise(graph, "a", y, CHANNELS), pointwise(graph, "b", y, CHANNELS));
    return att_relu(graph, att_gate(graph, y, gate));
}

/* As in StepNet: the gate depends on means of the branch and of the residual stream, which comes from a convolution. */
static att_value stepped(att_graph *graph, att_value x)
{
    x = att_relu(graph, pointwise(graph, "stem", x, CHANNELS));
    att_value y = narrowed(graph, x);
    att_value z = att_add(graph, att_global_mean(graph, x), att_global_mean(graph, y));
    y = att_gate(graph, y, att_sigmoid(graph, linear(graph, "step", z, CHANNELS)));
    return att_relu(graph, att_add(graph, x, y));
}

typedef att_value (*network)(att_graph *graph, att_value x);

static fd_model make(network build, att_dtype dtype)
{
    fd_model model = {0};
    must(att_graph_create(context, dtype, &model.graph));
    att_value target = fd_input(&model, ATT_I32, (att_shape){.rank = 0}, 0, 0, CLASSES);
    att_value y = build(model.graph, fd_input(&model, dtype, att_shape_of(HEIGHT, WIDTH, CHANNELS), 2, 1, 0));
    att_graph_output(model.graph, "map", y);
    y = linear(model.graph, "head", att_global_mean(model.graph, y), CLASSES);
    att_graph_output(model.graph, "loss", att_cross_entropy(model.graph, y, target, 0));
    must(att_graph_status(model.graph));
    return model;
}

/* --- a training step ---------------------------------------------------------------------------------------------- */

/* Where a training step runs. */
typedef struct place {
    const char *backend;
    att_dtype dtype;
} place;

/* gradients: as in att_plan_options. */
static fd_run open_run_with(const fd_model *model, place at, bool plain, const char *const *gradients)
{
    fd_run run = {0};
    att_plan_options options = att_plan_options_defaults();
    options.purpose = ATT_TRAIN, options.backend = at.backend, options.plain = plain, options.gradients = gradients;
    options.group = FD_GROUP, options.lanes = FD_LANES;
    must(att_plan_compile(model->graph, &options, &run.plan));
    must(att_weights_create(model->graph, "ref", &run.weights));
    must(att_weights_initialise(run.weights, 1));
    must(att_session_create(run.plan, run.weights, FD_BATCH, &run.session));
    must(att_gradient_create(run.weights, &run.gradient));
    for (int i = 0; i < model->input_count; i++)
        must(att_session_bind(run.session, model->input[i].name, model->input[i].rows));
    return run;
}

static fd_run open_run(const fd_model *model, place at, bool plain)
{
    return open_run_with(model, at, plain, NULL);
}

/* All results of a step, one tensor after another. */
typedef struct outcome {
    double values[1 << 14];
    int begin[64], count; /* count of tensors; begin[count] is the end of the last */
    char names[64][40];
} outcome;

/* Appends a tensor to the outcome, in its own type. */
static void append(outcome *o, att_dtype dtype, const char *name, const void *from, int64_t elements)
{
    int begin = o->begin[o->count];
    assert_true(o->count + 1 < 64 && begin + elements <= 1 << 14);
    snprintf(o->names[o->count], sizeof o->names[0], "%s", name);
    for (int64_t e = 0; e < elements; e++)
        o->values[begin + e] = att_element_load(dtype, from, e);
    o->begin[++o->count] = begin + (int)elements;
}

/* Returns outputs, gradients, and the values of buffers after the step. */
static outcome outcome_of(const fd_run *run, att_dtype dtype)
{
    static const char *const outputs[] = {"map", "loss"};
    const int elements[] = {HEIGHT * WIDTH * CHANNELS, 1};
    outcome o = {.count = 0};
    double room[FD_BATCH * HEIGHT * WIDTH * CHANNELS];
    att_gradient_begin(run->gradient);
    must(att_session_accumulate(run->session, run->gradient, FD_BATCH, fd_scale, 9, 4, 0));
    for (int i = 0; i < 2; i++) {
        must(att_session_output(run->session, outputs[i], 0, FD_BATCH, room));
        append(&o, dtype, outputs[i], room, (int64_t)FD_BATCH * elements[i]);
    }
    for (int i = 0; i < att_weights_count(run->weights); i++) {
        att_parameter_info of = att_weights_at(run->weights, i);
        int64_t count = att_shape_count(of.shape);
        if (of.buffer)
            must(att_weights_get(run->weights, -1, i, room, count));
        else
            must(att_gradient_get(run->gradient, i, room, count));
        append(&o, dtype, of.name, room, count);
    }
    return o;
}

/* Returns the largest difference of a tensor's elements, relative to its largest element. */
static double difference(const outcome *a, const outcome *b, int tensor)
{
    double largest = 0, error = 0;
    for (int e = b->begin[tensor]; e < b->begin[tensor + 1]; e++) {
        double apart = fabs(a->values[e] - b->values[e]);
        error = isnan(apart) ? INFINITY : fmax(error, apart);
        largest = fmax(largest, fabs(b->values[e]));
    }
    return error / fmax(largest, 1e-3);
}

static double compare(const char *what, const outcome *rewritten, const outcome *plain, double tolerance)
{
    double worst = 0;
    assert_int_equal(rewritten->count, plain->count);
    for (int i = 0; i < plain->count; i++) {
        double error = difference(rewritten, plain, i);
        if (!(error <= tolerance))
            fail_msg("%s: %s is off by %.2g", what, plain->names[i], error);
        worst = fmax(worst, error);
    }
    return worst;
}

/* --- where patterns apply ----------------------------------------------------------------------------------------- */

static bool of_maps(const att_problem *problem)
{
    return problem->in[0].shape.rank == 3;
}

static bool of_vectors(const att_problem *problem)
{
    return problem->in[0].shape.rank == 1;
}

/* Whether the op has the inputs that a pattern adds: normalize_grad with a factor or pooled vectors, conv2d_data_grad
 * with pooled vectors. */
static bool with_vectors(const att_problem *problem)
{
    bool found = false;
    for (int i = strcmp(problem->op, "normalize_grad") == 0 ? 7 : 4; i < problem->in_count; i++)
        found |= att_desc_present(&problem->in[i]);
    return found;
}

static int count_steps(const att_plan *plan, const char *op, bool (*counts)(const att_problem *))
{
    int count = 0;
    for (int i = 0; i < plan->segment_count; i++)
        for (int j = 0; j < plan->segments[i].programs[0].step_count; j++) {
            const att_problem *problem = &plan->segments[i].programs[0].steps[j].unit->problem;
            count += strcmp(problem->op, op) == 0 && counts(problem);
        }
    return count;
}

/* The number of steps of one kind in the plain and the rewritten plan of a network. If both are equal, the pattern must
 * not apply. */
static const struct {
    const char *pattern, *what;
    network build;
    const char *op;
    bool (*counts)(const att_problem *);
    int plain, rewritten;
} shown[] = {
    {"affine_norm", "bottleneck", bottleneck, "conv2d", of_maps, 2, 1},
    {"affine_norm", "bottleneck", bottleneck, "affine", of_maps, 0, 2}, /* one is for the gradient through the gram */
    {"affine_norm", "bottleneck", bottleneck, "add", of_maps, 1, 0},
    {"affine_norm", "squeezed", squeezed, "gate", of_maps, 2, 0},
    {"affine_norm", "squeezed", squeezed, "channel_dot", of_maps, 1, 0},
    {"mean_of_affine", "squeezed", squeezed, "affine", of_vectors, 0, 1},
    {"split_gradient", "gated", gated, "gate", of_maps, 4, 2}, /* those of the forward pass */
    {"split_gradient", "gated", gated, "normalize_grad", with_vectors, 0, 2},
    {"split_gradient", "gated", gated, "normalize_sums", of_vectors, 2, 4},
    {"split_gradient", "gated by all but a row", gated_by_all_but_a_row, "normalize_grad", with_vectors, 0, 0},
    {"split_gradient", "gated behind a ReLU", gated_behind_a_relu, "normalize_grad", with_vectors, 0, 0},
    {"split_gradient", "gated and read twice", gated_and_read_twice, "normalize_grad", with_vectors, 0, 0},
    {"pooled_gradient", "stepped", stepped, "conv2d_data_grad", with_vectors, 0, 1},
    {"pooled_gradient", "stepped", stepped, "add", of_maps, 1, 0},
};

TEST(patterns_apply_where_they_should)
{
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++)
        for (int plain = 0; plain < 2; plain++) {
            fd_model model = make(shown[i].build, ATT_F32);
            fd_run run = open_run(&model, (place){"cpu", ATT_F32}, plain);
            int count = count_steps(run.plan, shown[i].op, shown[i].counts);
            if (count != (plain ? shown[i].plain : shown[i].rewritten))
                fail_msg("%s, %s: the %s plan has %d steps of %s", shown[i].pattern, shown[i].what,
                         plain ? "plain" : "rewritten", count, shown[i].op);
            fd_close(&run);
            fd_destroy(&model);
        }
}

TEST(every_pattern_has_a_network)
{
    for (const att_pattern *const *pattern = att_patterns; *pattern; pattern++) {
        bool found = false;
        for (size_t i = 0; i < sizeof shown / sizeof *shown; i++)
            found |= strcmp(shown[i].pattern, (*pattern)->name) == 0 && shown[i].plain != shown[i].rewritten;
        if (!found)
            fail_msg("%s has no network that shows it", (*pattern)->name);
    }
}

static void assert_same_plan(network build, const char *what)
{
    fd_model model = make(build, ATT_F32);
    fd_run rewritten = open_run(&model, (place){"cpu", ATT_F32}, false);
    fd_run plain = open_run(&model, (place){"cpu", ATT_F32}, true);
    if (strcmp(att_plan_fingerprint(rewritten.plan), att_plan_fingerprint(plain.plan)) != 0)
        fail_msg("%s: a pattern applies", what);
    fd_close(&rewritten);
    fd_close(&plain);
    fd_destroy(&model);
}

/* Only affine_norm changes the plan of the bottleneck. */
TEST(one_pattern_can_be_left_out)
{
    static const char *const names[] = {"affine_norm", "split_gradient"};
    fd_model model = make(bottleneck, ATT_F32);
    att_plan_options options = att_plan_options_defaults();
    options.purpose = ATT_TRAIN, options.group = FD_GROUP, options.lanes = FD_LANES;
    for (int i = 0; i < 2; i++) {
        fd_run other = open_run(&model, (place){"cpu", ATT_F32}, i == 0);
        att_plan *without;
        must(att_plan_compile_without(model.graph, &options, names[i], &without));
        assert_string_equal(att_plan_fingerprint(without), att_plan_fingerprint(other.plan));
        att_plan_destroy(&without);
        fd_close(&other);
    }
    fd_destroy(&model);
}

/* A norm that no mean reads. */
static att_value finished(att_graph *graph, att_value x)
{
    return att_relu(graph, norm(graph, "bn", x));
}

static att_value padded(att_graph *graph, att_value x)
{
    return finished(graph, convolution(graph, "a", x, 3 * CHANNELS, 1, &(att_conv_options){.padding = 1}));
}

static att_value strided(att_graph *graph, att_value x)
{
    return finished(graph, convolution(graph, "a", x, 3 * CHANNELS, 1, &(att_conv_options){.stride = 2}));
}

static att_value grouped(att_graph *graph, att_value x)
{
    return finished(graph, convolution(graph, "a", x, 3 * CHANNELS, 1, &(att_conv_options){.groups = CHANNELS}));
}

static att_value of_neighbours(att_graph *graph, att_value x)
{
    return finished(graph, convolution(graph, "a", x, 3 * CHANNELS, 2, NULL));
}

static att_value with_a_bias(att_graph *graph, att_value x)
{
    att_shape shape = att_shape_of(3 * CHANNELS, CHANNELS, 1, 1);
    att_value weight = parameter(graph, "a", "weight", shape, (att_init){ATT_INIT_NORMAL, 0.5});
    att_value bias = parameter(graph, "a", "bias", att_shape_of(3 * CHANNELS), (att_init){0});
    return finished(graph, att_conv2d(graph, x, weight, bias, NULL));
}

static att_value not_widening(att_graph *graph, att_value x)
{
    return finished(graph, pointwise(graph, "a", x, 2 * CHANNELS - 1));
}

static att_value with_more_channels_than_pixels(att_graph *graph, att_value x)
{
    x = pointwise(graph, "stem", x, HEIGHT * WIDTH + 1);
    return finished(graph, pointwise(graph, "a", x, 3 * (HEIGHT * WIDTH + 1)));
}

static att_value frozen(att_graph *graph, att_value x)
{
    x = norm(graph, "bn", pointwise(graph, "a", x, 3 * CHANNELS));
    ((att_batch_norm_attrs *)graph->nodes.items[graph->nodes.count - 1].attrs)->frozen = true;
    return x;
}

/* Where an identity does not hold or does not pay, the rewritten plan equals the plain plan. */
TEST(patterns_apply_nowhere_else)
{
    assert_same_plan(padded, "padding");
    assert_same_plan(strided, "stride");
    assert_same_plan(grouped, "groups");
    assert_same_plan(of_neighbours, "2 x 2");
    assert_same_plan(with_a_bias, "bias");
    assert_same_plan(not_widening, "a convolution that does not widen");
    assert_same_plan(with_more_channels_than_pixels, "more channels than pixels");
    assert_same_plan(frozen, "a frozen norm");
}

/* --- results agree ------------------------------------------------------------------------------------------------ */

static const struct {
    const char *name;
    network build;
} networks[] = {{"bottleneck", bottleneck},
                {"squeezed", squeezed},
                {"gated", gated},
                {"gated by all but a row", gated_by_all_but_a_row},
                {"gated behind a ReLU", gated_behind_a_relu},
                {"stepped", stepped}};
enum { NETWORKS = sizeof networks / sizeof *networks };

/* Largest errors measured, over all processor tiers: 4.9e-15 in f64; in f32 7e-7 on ref, 1.8e-6 on cpu. */
TEST(rewritten_and_plain_plans_agree)
{
    static const struct {
        place at;
        double tolerance;
    } places[] = {{{"ref", ATT_F64}, 1e-14}, {{"ref", ATT_F32}, 3e-6}, {{"cpu", ATT_F32}, 3e-6}};
    for (int i = 0; i < NETWORKS; i++)
        for (size_t j = 0; j < sizeof places / sizeof *places; j++) {
            place at = places[j].at;
            fd_model model = make(networks[i].build, at.dtype);
            fd_run rewritten = open_run(&model, at, false), plain = open_run(&model, at, true);
            assert_string_not_equal(att_plan_fingerprint(rewritten.plan), att_plan_fingerprint(plain.plan));
            outcome a = outcome_of(&rewritten, at.dtype), b = outcome_of(&plain, at.dtype);
            printf("%s, %s, %s: off by %.2g\n", networks[i].name, at.backend, att_dtype_name(at.dtype),
                   compare(networks[i].name, &a, &b, places[j].tolerance));
            fd_close(&rewritten);
            fd_close(&plain);
            fd_destroy(&model);
        }
}

/* Largest error measured: 8.5e-9. */
TEST(gradients_of_rewritten_plans_are_right)
{
    for (int i = 0; i < NETWORKS; i++) {
        fd_model model = make(networks[i].build, ATT_F64);
        printf("%s: largest error of a gradient %.2g\n", networks[i].name, fd_check(&model, networks[i].name, 1, 1e-7));
        fd_destroy(&model);
    }
}

enum { MOST_VALUES = 32 };

/* Names the values of nodes [first, end) of a network and requests their gradients; `names` ends with NULL. */
static void name_values(att_graph *graph, int first, int end, char names[][24], const char **asked)
{
    assert_true(end - first < MOST_VALUES);
    for (int i = first; i < end; i++) {
        snprintf(names[i - first], 24, "asked%d", i);
        att_graph_output(graph, names[i - first], graph->nodes.items[i].out[0]);
        asked[i - first] = names[i - first];
    }
    asked[end - first] = NULL;
    must(att_graph_status(graph));
}

/* Returns the outcome of a step with the gradients of the named values, all in f64. */
static outcome outcome_with(const fd_model *model, bool plain, const char *const *names)
{
    fd_run run = open_run_with(model, (place){"ref", ATT_F64}, plain, names);
    outcome o = outcome_of(&run, ATT_F64);
    for (int i = 0; names[i]; i++) {
        char name[40];
        double rows[FD_BATCH * 128];
        int64_t count =
            FD_BATCH * att_shape_count(att_value_shape(model->graph, att_graph_find_output(model->graph, names[i])));
        assert_true(count <= (int64_t)(sizeof rows / sizeof *rows));
        snprintf(name, sizeof name, "%s.grad", names[i]);
        must(att_session_output(run.session, name, 0, FD_BATCH, rows));
        append(&o, ATT_F64, name, rows, count);
    }
    fd_close(&run);
    return o;
}

/* Compares the requested gradients of the values of nodes [first, end) in rewritten and plain plans; end -1: of all
 * nodes. */
static double requested_gradients_differ_by(network build, const char *network_name, int first, int end)
{
    char names[MOST_VALUES][24], what[64];
    const char *asked[MOST_VALUES];
    fd_model model = make(build, ATT_F64);
    name_values(model.graph, first, end < 0 ? model.graph->nodes.count : end, names, asked);
    outcome rewritten = outcome_with(&model, false, asked), plain = outcome_with(&model, true, asked);
    fd_destroy(&model);
    snprintf(what, sizeof what, "%s, gradients of nodes from %d on", network_name, first);
    return compare(what, &rewritten, &plain, 1e-14);
}

static int node_count(network build)
{
    fd_model model = make(build, ATT_F64);
    int count = model.graph->nodes.count;
    fd_destroy(&model);
    return count;
}

/* Each value of each network alone, so that the rest is rewritten, and all values together. Largest error measured:
 * 4.9e-15. */
TEST(requested_gradients_of_rewritten_and_plain_plans_agree)
{
    for (int i = 0; i < NETWORKS; i++) {
        double worst = requested_gradients_differ_by(networks[i].build, networks[i].name, 0, -1);
        for (int node = 0; node < node_count(networks[i].build); node++)
            worst = fmax(worst, requested_gradients_differ_by(networks[i].build, networks[i].name, node, node + 1));
        printf("%s: requested gradients are off by %.2g\n", networks[i].name, worst);
    }
}

SHARED_CONTEXT(threads, 2)
