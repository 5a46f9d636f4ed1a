/* Attention modules of feature maps against PyTorch (tools/goldens/modules.py): outputs in inference and training,
 * gradients, running statistics. */
#include <attscope/nn.h>
#include <attscope/ops.h>
#include <attscope/plan.h>

#include "context.h"
#include "networks/models/fixture.h"
#include "networks/nn/module.h"

SHARED_CONTEXT(threads, 2)

enum { BATCH = 3, MOST_LINES = 400 };

/* The golden values of one tensor. */
typedef struct line {
    char module[64], mode[8], tensor[64];
    int channels, side;
    double told[3];
} line;

typedef struct network {
    att_context *context;
    att_dtype dtype;
    att_graph *graph;
    att_weights *weights;
    att_module_choice choice;
    int64_t channels, count; /* elements of a sample's map */
} network;

typedef struct numbers {
    const char *backend;
    att_dtype dtype;
    double tolerance;
} numbers;

static int read_lines(line *lines)
{
    FILE *file = golden_open("modules.txt");
    int count = 0;
    for (line *l = lines; fscanf(file, "%63s", l->module) == 1; l++, count++) {
        assert_true(count < MOST_LINES - 1);
        assert_int_equal(fscanf(file, "%d %d %7s %63s %lf %lf %lf", &l->channels, &l->side, l->mode, l->tensor,
                                &l->told[0], &l->told[1], &l->told[2]),
                         7);
    }
    fclose(file);
    return count;
}

/* Returns f32 draws around `shift`, in the graph's type. */
static void *drawn(att_dtype dtype, const char *key, int64_t count, double wide, double shift)
{
    void *rows = calloc((size_t)count, sizeof(double));
    assert_non_null(rows);
    for (int64_t i = 0; i < count; i++) {
        float value = (float)(shift + wide * formula(key, (uint32_t)i));
        if (dtype == ATT_F64)
            ((double *)rows)[i] = value;
        else
            ((float *)rows)[i] = value;
    }
    return rows;
}

/* Returns random maps, with an offset for each sample and channel. */
static void *maps(const network *n, const char *key)
{
    char name[32];
    snprintf(name, sizeof name, "%s offset", key);
    void *rows = drawn(n->dtype, key, BATCH * n->count, 4, 0.5),
         *offsets = drawn(n->dtype, name, BATCH * n->channels, 4, 0);
    for (int64_t i = 0; i < BATCH * n->count; i++) {
        int64_t offset = i / n->count * n->channels + i % n->channels;
        if (n->dtype == ATT_F64)
            ((double *)rows)[i] += ((double *)offsets)[offset];
        else
            ((float *)rows)[i] += ((float *)offsets)[offset];
    }
    free(offsets);
    return rows;
}

static double element(att_dtype dtype, const void *values, int64_t i)
{
    return dtype == ATT_F64 ? ((const double *)values)[i] : (double)((const float *)values)[i];
}

/* Returns the name below the module's scope; NULL for tensors that the test added. */
static const char *own_name(const network *n, const char *name)
{
    size_t length = strlen(n->choice.module->scope);
    return strncmp(name, n->choice.module->scope, length) == 0 && name[length] == '.' ? name + length + 1 : NULL;
}

static void fill(const network *n)
{
    CHECK(n->context, att_weights_initialise(n->weights, 1));
    for (int i = 0; i < att_weights_count(n->weights); i++) {
        att_parameter_info info = att_weights_at(n->weights, i);
        const char *own = own_name(n, info.name), *key = own ? own : info.name;
        bool head = strcmp(key, "head") == 0, scales = ends_in(key, "running_var") || ends_in(key, "cfc") ||
                                                       (ends_in(key, "weight") && info.shape.rank == 1);
        if (!own && !head)
            continue;
        int64_t count = att_shape_count(info.shape);
        void *values = drawn(n->dtype, key, count, head ? 0.1 : 1, scales);
        CHECK(n->context, att_weights_set(n->weights, -1, i, values, count));
        free(values);
    }
}

/* Adds a parameter of zeros to the branch and multiplies the identity by one of ones: their gradients show those of the
 * inputs. */
static att_value observed_branch(const network *n, att_shape shape)
{
    att_value added = att_graph_parameter(n->graph, "watch.branch", shape, (att_init){ATT_INIT_CONSTANT, 0}, false);
    return att_add(n->graph, att_graph_input(n->graph, "branch", n->dtype, shape), added);
}

static att_value observed_identity(const network *n, att_shape shape)
{
    att_shape vector = att_shape_of(shape.dims[2]);
    att_value gain = att_graph_parameter(n->graph, "watch.identity", vector, (att_init){ATT_INIT_CONSTANT, 1}, false);
    return att_scale(n->graph, att_graph_input(n->graph, "identity", n->dtype, shape), gain);
}

static network create(const line *l, att_dtype dtype)
{
    network n = {.context = context, .dtype = dtype, .channels = l->channels};
    n.count = n.channels * l->side * l->side;
    must(att_module_parse(context, l->module, &n.choice));
    must(att_graph_create(context, dtype, &n.graph));
    att_shape shape = att_shape_of(l->side, l->side, l->channels);
    att_value branch = observed_branch(&n, shape), identity = observed_identity(&n, shape);
    att_scope root = att_scope_root(n.graph);
    att_value y = att_module_apply(&n.choice, &root, &(att_module_site){.branch = branch, .identity = identity});
    att_graph_output(n.graph, "y", y);
    att_value head = att_graph_parameter(n.graph, "head", att_shape_of(2, n.count), att_init_linear(), true);
    att_value logits = att_linear(n.graph, att_patchify(n.graph, y, l->side, l->side), head, ATT_NONE);
    att_value target = att_graph_input(n.graph, "target", ATT_I32, (att_shape){0});
    att_graph_output(n.graph, "loss", att_cross_entropy(n.graph, att_token_mean(n.graph, logits, 0), target, 0));
    must(att_graph_status(n.graph));
    must(att_weights_create(n.graph, "cpu", &n.weights));
    fill(&n);
    return n;
}

static void destroy(network *n)
{
    att_weights_destroy(&n->weights);
    att_graph_destroy(&n->graph);
}

/* Returns the difference of a tensor from its golden values, in units of `unit`. */
static double error_of(const network *n, const line *l, double unit, const void *values, int64_t count)
{
    double told[3] = {0};
    for (int64_t i = 0; i < count; i++) {
        double value = element(n->dtype, values, i);
        told[0] += value * formula("first", (uint32_t)i);
        told[1] += value * formula("second", (uint32_t)i);
        told[2] += value * value;
    }
    told[2] = sqrt(told[2]);
    double worst = 0;
    for (int i = 0; i < 3; i++) {
        double error = fabs(told[i] - l->told[i]) / unit;
        worst = !(error <= worst) ? error : worst;
    }
    return worst;
}

/* Compares the output, gradient or buffer of a line. */
static double compare(const network *n, att_session *session, const att_gradient *gradient, const line *l, double unit)
{
    char name[128];
    int64_t count = BATCH * n->count;
    double *values;
    if (strcmp(l->tensor, "y") == 0) {
        values = calloc((size_t)count, sizeof *values);
        CHECK(n->context, att_session_output(session, "y", 0, BATCH, values));
    } else {
        const char *what = strchr(l->tensor, '.') + 1;
        bool is_input = strcmp(what, "branch") == 0 || strcmp(what, "identity") == 0;
        snprintf(name, sizeof name, "%s.%s", is_input ? "watch" : n->choice.module->scope, what);
        int index = att_weights_find(n->weights, name);
        if (index < 0)
            fail_msg("%s has no %s", l->module, name);
        count = att_shape_count(att_weights_at(n->weights, index).shape);
        values = calloc((size_t)count, sizeof *values);
        if (l->tensor[0] == 'g')
            CHECK(n->context, att_gradient_get(gradient, index, values, count));
        else
            CHECK(n->context, att_weights_get(n->weights, -1, index, values, count));
    }
    double error = error_of(n, l, unit, values, count);
    free(values);
    return error;
}

static bool is_gradient(const line *l)
{
    return strncmp(l->tensor, "grad.", 5) == 0;
}

/* Returns a tensor's norm; for gradients, the largest norm of the module: the gradient of a value that batch norm
 * removes, such as a bias before it, is a difference of large numbers. */
static double unit_of(const line *l, const line *lines, int count)
{
    double unit = l->told[2];
    for (int i = 0; i < count; i++)
        if (is_gradient(l) && is_gradient(&lines[i]))
            unit = fmax(unit, lines[i].told[2]);
    return unit;
}

/* Runs a plan in the mode of the lines and compares all values. Returns the largest error. */
static double run(const network *n, const numbers *how, const line *lines, int count)
{
    bool trains = strcmp(lines[0].mode, "train") == 0;
    att_plan_options options = att_plan_options_defaults();
    options.purpose = trains ? ATT_TRAIN : ATT_INFER, options.backend = how->backend, options.lanes = 2;
    att_plan *plan;
    att_session *session;
    att_gradient *gradient;
    CHECK(n->context, att_plan_compile(n->graph, &options, &plan));
    CHECK(n->context, att_session_create(plan, n->weights, BATCH, &session));
    CHECK(n->context, att_gradient_create(n->weights, &gradient));
    void *branch = maps(n, "branch");
    void *identity = maps(n, "identity");
    static const int32_t target[BATCH] = {0, 1, 0};
    CHECK(n->context, att_session_bind(session, "branch", branch));
    CHECK(n->context, att_session_bind(session, "identity", identity));
    CHECK(n->context, att_session_bind(session, "target", target));
    if (trains) {
        CHECK(n->context, att_session_accumulate(session, gradient, BATCH, 1.0 / BATCH, 1, 0, 0));
    } else {
        CHECK(n->context, att_session_run(session, BATCH));
    }
    double worst = 0;
    for (int i = 0; i < count; i++) {
        double error = compare(n, session, gradient, &lines[i], unit_of(&lines[i], lines, count));
        if (!(error <= how->tolerance))
            fail_msg("%s, %s: %s is off by %.3g", lines[i].module, lines[i].mode, lines[i].tensor, error);
        worst = error > worst ? error : worst;
    }
    free(branch);
    free(identity);
    att_gradient_destroy(&gradient);
    att_session_destroy(&session);
    att_plan_destroy(&plan);
    return worst;
}

static bool same_case(const line *a, const line *b)
{
    return strcmp(a->module, b->module) == 0 && a->channels == b->channels;
}

static void compare_all(const numbers *how)
{
    static line lines[MOST_LINES];
    int count = read_lines(lines), modules = 0;
    double worst = 0;
    for (int first = 0, next; first < count; first = next, modules++) {
        for (next = first + 1; next < count && same_case(&lines[first], &lines[next]);)
            next++;
        network n = create(&lines[first], how->dtype);
        int trained = first;
        while (strcmp(lines[trained].mode, "infer") == 0)
            trained++;
        worst = fmax(worst, run(&n, how, lines + first, trained - first));
        worst = fmax(worst, run(&n, how, lines + trained, next - trained));
        destroy(&n);
    }
    assert_true(modules >= 20);
    print_message("%s, %s: largest error of %d modules %.2g\n", how->backend, att_dtype_name(how->dtype), modules,
                  worst);
}

/* Measured: 4.4e-12, the rounding of the goldens' 12 digits. */
TEST(modules_equal_pytorchs_in_f64)
{
    compare_all(&(numbers){"ref", ATT_F64, 1e-10});
}

/* Measured: 1.7e-6 on ref, 8.4e-7 on cpu. */
TEST(modules_equal_pytorchs_in_f32)
{
    compare_all(&(numbers){"ref", ATT_F32, 1e-5});
    compare_all(&(numbers){"cpu", ATT_F32, 1e-5});
}

/* --- properties of modules ---------------------------------------------------------------------------------------- */

static att_graph *new_graph(void)
{
    att_graph *graph;
    must(att_graph_create(context, ATT_F64, &graph));
    return graph;
}

static att_value apply(const char *text, const att_scope *scope, att_value branch, att_value identity)
{
    att_module_choice choice;
    must(att_module_parse(context, text, &choice));
    return att_module_apply(&choice, scope, &(att_module_site){.branch = branch, .identity = identity});
}

/* Counts the parameters of a module in all blocks of ResNet-164 for CIFAR: three stages of 18 blocks with 64, 128 and
 * 256 channels. */
static int64_t parameters_in_resnet164(const char *text)
{
    att_graph *graph = new_graph();
    att_scope root = att_scope_root(graph);
    for (int block = 0; block < 54; block++) {
        int stage = block / 18;
        char name[16];
        snprintf(name, sizeof name, "x%d", block);
        att_value x = att_graph_input(graph, name, ATT_F64, att_shape_of(32 >> stage, 32 >> stage, 64 << stage));
        att_scope scope = att_scope_in(&root, "block%d", block);
        apply(text, &scope, x, x);
    }
    must(att_graph_status(graph));
    int64_t count = att_graph_parameter_elements(graph);
    att_graph_destroy(&graph);
    return count;
}

TEST(parameters_are_counted)
{
    /* Hu et al.: 2 C^2 / 16, and C + C / 16 for biases: 0.202 M. */
    assert_int_equal(parameters_in_resnet164("se"), 202104);
    assert_int_equal(parameters_in_resnet164("fca"), 193536);
    assert_int_equal(parameters_in_resnet164("eca"), 18 * (3 + 5 + 5));
    assert_int_equal(parameters_in_resnet164("srm"), 18 * 4 * 448);
    assert_int_equal(parameters_in_resnet164("cbam"), 193536 + 54 * (98 + 2));
    assert_int_equal(parameters_in_resnet164("step"), 18 * 5 * 448);
    assert_int_equal(parameters_in_resnet164("step:adaptor=iebn,input=difference"), 18 * 2 * 448);
}

TEST(options_may_be_choices)
{
    att_module_choice choice;
    must(att_module_parse(context, "step:adaptor=style,input=difference,ratio=4", &choice));
    assert_string_equal(choice.module->options[0].choices[(int)choice.values[0]], "style");
    assert_string_equal(choice.module->options[1].choices[(int)choice.values[1]], "difference");
    assert_true(choice.values[2] == 4);
    must(att_module_parse(context, "step", &choice));
    assert_string_equal(choice.module->options[0].choices[(int)choice.values[0]], "affine");
    assert_string_equal(choice.module->options[1].choices[(int)choice.values[1]], "both");
    static const char *const wrong[][2] = {
        {"step:adaptor=stile", "adaptor cannot be \"stile\"; did you mean \"style\"?"},
        {"step:input=elsewhere", "only x_t, x_t1, difference, both"},
        {"step:input=", "input cannot be"},
        {"step:adapter=affine", "did you mean \"adaptor\"?"},
        {"se:bias=2", "bias cannot be \"2\""},
        {"se:ratio=0", "ratio must be in 1..1024, not 0"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_not_equal(att_module_parse(context, wrong[i][0], &choice), ATT_OK);
        assert_message(context, wrong[i][1]);
    }
}

static void has_hidden_width(const char *text, int64_t channels, int64_t wanted)
{
    att_graph *graph = new_graph();
    att_scope root = att_scope_root(graph);
    att_value map = att_graph_input(graph, "map", ATT_F64, att_shape_of(2, 2, channels));
    apply(text, &root, map, map);
    must(att_graph_status(graph));
    if (att_graph_parameter_at(graph, 0).shape.dims[0] != wanted)
        fail_msg("%s of %lld channels has a hidden width of %lld instead of %lld", text, (long long)channels,
                 (long long)att_graph_parameter_at(graph, 0).shape.dims[0], (long long)wanted);
    att_graph_destroy(&graph);
}

/* Rounded as in the programs that the modules come from: down for CIFAR's SE and FcaNet, to the nearest for timm's. */
TEST(hidden_widths_are_rounded_as_their_codes_do)
{
    has_hidden_width("se", 64, 4);
    has_hidden_width("se", 60, 3);
    has_hidden_width("se", 79, 4);
    has_hidden_width("se", 8, 1);
    has_hidden_width("se:ratio=3", 8, 2);
    has_hidden_width("se:divisor=8", 64, 8);
    has_hidden_width("se:divisor=8", 208, 16);
    has_hidden_width("se:divisor=8", 128, 8);
    has_hidden_width("fca:ratio=10", 96, 9);
    has_hidden_width("fca", 16, 1);
    has_hidden_width("cbam", 60, 4);
    has_hidden_width("step:adaptor=bottleneck", 60, 3);
    has_hidden_width("step:adaptor=dct,ratio=5", 48, 9);
    has_hidden_width("se:hidden=7", 64, 7);
    has_hidden_width("fca:ratio=2,hidden=5", 32, 5);
    has_hidden_width("cbam:hidden=90", 64, 90);
    has_hidden_width("step:adaptor=bottleneck,hidden=3", 64, 3);
    att_module_choice choice;
    assert_fails(context, att_module_parse(context, "se:hidden=2.5", &choice), ATT_ERR_ARGUMENT,
                 "hidden must be a whole number, not 2.5");
}

TEST(a_module_is_refused_where_it_does_not_fit)
{
    att_graph *graph = new_graph();
    att_scope root = att_scope_root(graph);
    att_value tokens = att_graph_input(graph, "tokens", ATT_F64, att_shape_of(4, 16));
    assert_int_equal(apply("eca", &root, tokens, tokens), ATT_NONE);
    assert_fails(context, att_graph_status(graph), ATT_ERR_UNSUPPORTED, "\"eca\" works on feature maps");
    att_graph_destroy(&graph);
    graph = new_graph();
    root = att_scope_root(graph);
    att_value map = att_graph_input(graph, "map", ATT_F64, att_shape_of(2, 2, 16));
    apply("cb", &root, map, map);
    assert_message(context, "\"cb\" works on tokens");
    att_graph_destroy(&graph);
}

/* Frequencies are assigned to 16 groups of channels. */
TEST(fca_needs_multiples_of_16_channels)
{
    att_graph *graph = new_graph();
    att_scope root = att_scope_root(graph);
    att_value map = att_graph_input(graph, "map", ATT_F64, att_shape_of(8, 8, 24));
    apply("fca", &root, map, map);
    assert_int_equal(att_graph_status(graph), ATT_ERR_ARGUMENT);
    att_graph_destroy(&graph);
}

/* With a step size of 1 the module has no effect: sigmoid(40) = 1 in floating point. */
TEST(stepnet_with_step_1_is_plain)
{
    enum { COUNT = 4 * 4 * 16 };
    static const char *const texts[] = {"none", "step", "step:adaptor=iebn", "step:adaptor=style,input=x_t1"};
    double y[4][COUNT], *branch = drawn(ATT_F64, "branch", COUNT, 1, 0), *identity = drawn(ATT_F64, "id", COUNT, 1, 0);
    for (int i = 0; i < 4; i++) {
        att_graph *graph = new_graph();
        att_scope root = att_scope_root(graph);
        att_value f = att_graph_input(graph, "f", ATT_F64, att_shape_of(4, 4, 16));
        att_value x = att_graph_input(graph, "x", ATT_F64, att_shape_of(4, 4, 16));
        att_graph_output(graph, "y", att_add(graph, x, apply(texts[i], &root, f, x)));
        att_weights *weights;
        att_plan *plan;
        att_session *session;
        must(att_weights_create(graph, "cpu", &weights));
        must(att_weights_initialise(weights, 1));
        double large[16];
        for (int c = 0; c < 16; c++)
            large[c] = 41;
        for (int p = 0; p < att_weights_count(weights); p++) {
            const char *name = att_weights_at(weights, p).name;
            if (ends_in(name, "bn.bias") || ends_in(name, "iebn.bias"))
                must(att_weights_set(weights, -1, p, large, 16));
        }
        att_plan_options options = att_plan_options_defaults();
        options.backend = "ref";
        must(att_plan_compile(graph, &options, &plan));
        must(att_session_create(plan, weights, 1, &session));
        must(att_session_bind(session, "f", branch));
        must(att_session_bind(session, "x", identity));
        must(att_session_run(session, 1));
        must(att_session_output(session, "y", 0, 1, y[i]));
        assert_memory_equal(y[i], y[0], sizeof y[0]);
        att_session_destroy(&session);
        att_plan_destroy(&plan);
        att_weights_destroy(&weights);
        att_graph_destroy(&graph);
    }
    free(branch);
    free(identity);
}
