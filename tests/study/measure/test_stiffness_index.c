/* The stiffness index against dense Jacobians in PyTorch and f64 (tools/goldens/stiffness.py), and of a linear branch
 * against the eigenvalues of its matrix. */
#include <attscope/attscope.h>

#include "base/spectrum/spectrum.h"
#include "context.h"
#include "networks/models/fixture.h"
#include "sanitized.h"
#include "shared.h"
#include "study/measure/study.h"

SHARED_CONTEXT(threads, 0)

enum { MOST_IMAGE = 224 * 224 * 3 };

/* --- a measured network ------------------------------------------------------------------------------------------- */

typedef struct net {
    att_context *context;
    att_model *model;
    att_weights *weights;
    att_measure *measure;
    att_plan *plan;
    att_session *session;
} net;

/* Gains and variances are around 1, all else around 0. */
static void fill(const net *n)
{
    for (int i = 0; i < att_weights_count(n->weights); i++) {
        att_parameter_info parameter = att_weights_at(n->weights, i);
        const char *dot = strrchr(parameter.name, '.'), *last = dot ? dot + 1 : parameter.name;
        int64_t count = att_shape_count(parameter.shape);
        bool flat = parameter.shape.rank == 1;
        double start = flat && (strcmp(last, "weight") == 0 || strcmp(last, "running_var") == 0);
        double *wide = malloc((size_t)count * sizeof *wide);
        float *narrow = malloc((size_t)count * sizeof *narrow);
        for (int64_t e = 0; e < count; e++)
            wide[e] = narrow[e] = (float)(start + (flat ? 0.2 : 0.4) * formula(parameter.name, (uint32_t)e));
        bool is_wide = att_graph_dtype(att_model_graph(n->model)) == ATT_F64;
        CHECK(n->context,
              att_weights_set(n->weights, -1, i, is_wide ? (const void *)wide : (const void *)narrow, count));
        free(wide);
        free(narrow);
    }
}

/* name: a network's name with options. */
static net net_open(const char *name, att_dtype dtype, const char *with, const char *nodes)
{
    net n = {.context = context};
    const char *backend = dtype == ATT_F64 ? "f64" : "cpu";
    char text[512];
    att_option_values options = att_options_none();
    att_plan_options plan = att_plan_options_defaults();
    snprintf(text, sizeof text, "%s", name);
    char *word = strtok(text, " "), *first = word;
    while ((word = strtok(NULL, " ")))
        take_option(word, &options);
    must(att_model_create(context, first, &options, dtype, &n.model));
    must(att_weights_create(att_model_graph(n.model), backend, &n.weights));
    must(att_measure_create(att_model_graph(n.model), with, nodes, &n.measure));
    plan.backend = backend;
    must(att_plan_compile(att_model_graph(n.model), &plan, &n.plan));
    must(att_session_create(n.plan, n.weights, 2, &n.session));
    return n;
}

/* Runs `count` copies of the goldens' image. */
static att_status net_run(const net *n, int count)
{
    static double wide[2 * MOST_IMAGE];
    static float narrow[2 * MOST_IMAGE];
    const att_preprocess look = att_model_preprocess(n->model);
    const uint32_t size = (uint32_t)(look.height * look.width * look.in_chans);
    for (uint32_t i = 0; i < 2 * size; i++)
        wide[i] = narrow[i] = (float)(4 * formula("image", i % size));
    bool is_wide = att_graph_dtype(att_model_graph(n->model)) == ATT_F64;
    CHECK(n->context, att_session_bind(n->session, "image", is_wide ? (const void *)wide : (const void *)narrow));
    CHECK(n->context, att_session_run(n->session, count));
    return att_measure_observe(n->measure, n->session, count, NULL);
}

static void net_close(net *n)
{
    att_session_destroy(&n->session);
    att_plan_destroy(&n->plan);
    att_measure_destroy(&n->measure);
    att_weights_destroy(&n->weights);
    att_model_destroy(&n->model);
}

static att_measurement figure_of(const att_measure *measure, const char *node, const char *statistic)
{
    for (int i = 0; i < att_measure_count(measure); i++) {
        att_measurement m = att_measure_at(measure, i);
        if (strcmp(m.node, node) == 0 && strcmp(m.statistic, statistic) == 0)
            return m;
    }
    fail_msg("no figure %s of %s", statistic, node);
    return (att_measurement){0};
}

/* --- goldens ------------------------------------------------------------------------------------------------------ */

typedef struct line {
    char label[32], network[256], node[64];
    double left_re, left_im, right_re, right_im, nsi;
} line;

/* Reads "LABEL NAME OPTIONS... = NODE VALUES..." */
static void read_line(const char *text, line *l)
{
    const char *equals = strstr(text, " = ");
    assert_non_null(equals);
    assert_int_equal(sscanf(text, "%31s", l->label), 1);
    const char *network = text + strlen(l->label) + 1;
    snprintf(l->network, sizeof l->network, "%.*s", (int)(equals - network), network);
    assert_int_equal(sscanf(equals + 3, "%63s %lf %lf %lf %lf %lf", l->node, &l->left_re, &l->left_im, &l->right_re,
                            &l->right_im, &l->nsi),
                     6);
}

static double worst;

/* error: largest error, as a share of the stiffness index */
static void compare(const att_measure *measure, const line *l, double error)
{
    const struct {
        const char *statistic;
        double expected;
    } all[] = {{"left", l->left_re},
               {"left_im", l->left_im},
               {"right", l->right_re},
               {"right_im", l->right_im},
               {"index", fmax(fabs(l->left_re), fabs(l->right_re))},
               {"nsi", l->nsi}};
    const double scale = all[4].expected;
    assert_true(figure_of(measure, l->node, "converged").mean == 1);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        double found = figure_of(measure, l->node, all[i].statistic).mean, off = fabs(found - all[i].expected) / scale;
        worst = fmax(worst, off);
        if (!(off <= error))
            fail_msg("%s of %s %s is %.9g, expected %.9g", all[i].statistic, l->label, l->node, found, all[i].expected);
    }
}

/* Compares the lines of a network of the goldens. node: NULL for all */
static void compare_lines(const net *n, const char *label, const char *node, double error)
{
    char text[1024];
    line l;
    int count = 0;
    FILE *file = golden_open("stiffness.txt");
    worst = 0;
    while (fgets(text, sizeof text, file)) {
        read_line(text, &l);
        if (strcmp(l.label, label) != 0 || (node && strcmp(l.node, node) != 0))
            continue;
        compare(n->measure, &l, error);
        count++;
    }
    fclose(file);
    assert_true(count > 0);
    printf("%s: %d maps, largest error %.1e of the stiffness index\n", label, count, worst);
}

static void find_network(const char *label, char network[256])
{
    char text[1024];
    line l = {0};
    FILE *file = golden_open("stiffness.txt");
    while (strcmp(l.label, label) != 0 && fgets(text, sizeof text, file))
        read_line(text, &l);
    fclose(file);
    assert_string_equal(l.label, label);
    snprintf(network, 256, "%s", l.network);
}

static void compare_small(const char *label, att_dtype dtype, const char *with, double error)
{
    char network[256];
    find_network(label, network);
    net n = net_open(network, dtype, with, "*");
    fill(&n);
    must(net_run(&n, 1));
    compare_lines(&n, label, NULL, error);
    net_close(&n);
}

TEST(branches_and_stages_have_the_eigenvalues_of_dense_jacobians)
{
    /* Measured, at most: 4e-7 in f32, and 4e-8 in f64, the rounding of a row. */
    static const char *const labels[] = {"vit", "swin", "resnet"};
    for (size_t i = 0; i < sizeof labels / sizeof *labels; i++) {
        compare_small(labels[i], ATT_F32, "stiffness_index:count=1,tolerance=1e-5", 1e-4);
        if (!is_sanitized())
            compare_small(labels[i], ATT_F64, "stiffness_index:count=1,tolerance=1e-8", 1e-6);
    }
}

static void load_published(const net *n, const char *path)
{
    att_tensors *file = NULL;
    CHECK(n->context, att_tensors_open(n->context, path, &file));
    CHECK(n->context, att_model_load(n->model, file, n->weights));
    att_tensors_close(&file);
}

TEST(deit_tiny_agrees_with_pytorch)
{
    static const char *const nodes[] = {"blocks.2.add2", "blocks.10.add1"};
    char path[SHARED_PATH];
    if (is_sanitized())
        print_message("skipped: deit_tiny is too slow under sanitizers\n");
    if (is_sanitized() || !shared_path(SHARED_DEIT, path))
        skip();
    for (int i = 0; i < 2; i++) {
        net n = net_open("deit_tiny_patch16_224", ATT_F32, "stiffness_index:count=1,tolerance=2e-5", nodes[i]);
        load_published(&n, path);
        CHECK(n.context, net_run(&n, 1));
        compare_lines(&n, "deit", nodes[i], 1e-4); /* measured: 2.3e-7 */
        net_close(&n);
    }
}

/* --- LayerScale and gates ----------------------------------------------------------------------------------------- */

static const char scaled_vit[] =
    "vit_tiny_patch16_224 img_size=32 patch_size=8 embed_dim=24 depth=2 num_heads=3 init_values=1";

static void set_layer_scale(const net *n, float value)
{
    for (int i = 0; i < att_weights_count(n->weights); i++) {
        att_parameter_info parameter = att_weights_at(n->weights, i);
        float values[24];
        if (!strstr(parameter.name, ".gamma"))
            continue;
        for (int e = 0; e < 24; e++)
            values[e] = value;
        CHECK(n->context, att_weights_set(n->weights, -1, i, values, 24));
    }
}

static void compare_scaled(const char *with, double scale)
{
    char text[1024];
    line l;
    FILE *file = golden_open("stiffness.txt");
    do {
        assert_non_null(fgets(text, sizeof text, file));
        read_line(text, &l);
    } while (strcmp(l.label, "vit") != 0 || strcmp(l.node, "blocks.0.add1") != 0);
    fclose(file);
    l.left_re *= scale, l.left_im *= scale, l.right_re *= scale, l.right_im *= scale, l.nsi *= scale;
    net n = net_open(scaled_vit, ATT_F32, with, "blocks.0.add1");
    fill(&n);
    set_layer_scale(&n, 0.25f);
    must(net_run(&n, 1));
    compare(n.measure, &l, 1e-4); /* measured: 1e-7 */
    net_close(&n);
}

/* The first branch of a ViT with LayerScale 1/4 is a quarter of that without, of which the goldens have the dense
 * Jacobian. */
TEST(layer_scale_belongs_to_the_branch_unless_dt_has_it)
{
    compare_scaled("stiffness_index:count=1,tolerance=1e-5", 0.25);
    compare_scaled("stiffness_index:count=1,tolerance=1e-5,dt=all", 1);
}

static int compare_readings(const char *network, const char *dt)
{
    char with[128];
    int compared = 0;
    snprintf(with, sizeof with, "nsi:dt=%s,stiffness_index:dt=%s,count=1,products=200,stages=no", dt, dt);
    net n = net_open(network, ATT_F32, with, "*");
    fill(&n);
    must(net_run(&n, 1));
    for (int i = 0; i < att_measure_count(n.measure); i++) {
        const att_measurement found = att_measure_at(n.measure, i);
        if (strcmp(found.statistic, "nsi") != 0)
            continue;
        const double expected = figure_of(n.measure, found.node, "attention").mean;
        if (!(fabs(found.mean - expected) <= 1e-5 * expected)) /* measured: 2e-7 */
            fail_msg("%s, dt=%s: nsi of %s is %.9g in stiffness_index, and %.9g in nsi", network, dt, found.node,
                     found.mean, expected);
        compared++;
    }
    net_close(&n);
    return compared;
}

TEST(its_nsi_is_that_of_nsi_in_every_family)
{
#define TOKENS_OF_32 " img_size=32 patch_size=8 embed_dim=24 depth=2 num_heads=3 "
    static const struct {
        const char *network;
        int branches;
    } cases[] = {
        {"vit_tiny_patch16_224" TOKENS_OF_32 "init_values=0.3 drop_path_rate=0.2", 4},
        {"vit_tiny_patch16_224" TOKENS_OF_32 "init_values=0.3 drop_path_rate=0.2 modules=se@after_attn+se@after_mlp",
         4},
        {"vit_tiny_patch16_224" TOKENS_OF_32 "init_values=0.3 modules=cb@after_mlp+cb_s@stream_after_mlp", 4},
        {"vit_tiny_patch16_224" TOKENS_OF_32 "init_values=0.3 block_fn=ResPostBlock", 4},
        {"vit_tiny_patch16_224" TOKENS_OF_32 "init_values=0.3 block_fn=BeitBlock", 4},
        {"vit_tiny_patch16_224" TOKENS_OF_32 "init_values=0.3 block_fn=ParallelScalingBlock", 2},
        {"vit_tiny_patch16_224" TOKENS_OF_32 "init_values=0.3 block_fn=ParallelThingsBlock", 4},
        {"eva02_tiny_patch14_224 img_size=32 patch_size=8 embed_dim=24 depth=2 num_heads=3 init_values=0.3", 4},
        {"swinv2_tiny_window8_256 img_size=32 window_size=4 embed_dim=12 depths=1,1 stage_heads=2,4", 4},
        {"mixer_s32_224 img_size=32 patch_size=8 embed_dim=24 depth=2 modules=se@after_mlp+se@after_mixing", 4},
        {"resnet20 img_size=12 width=4 modules=se", 7},
        {"resnet20 img_size=12 width=4 modules=cbam", 7},
        {"resnet20 img_size=12 width=4 modules=step", 7},
    };
    const size_t count = is_sanitized() ? 2 : sizeof cases / sizeof *cases;
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(compare_readings(cases[i].network, "gates"), cases[i].branches);
        assert_int_equal(compare_readings(cases[i].network, "all"), cases[i].branches);
    }
}

/* --- a linear branch ---------------------------------------------------------------------------------------------- */

enum { TOKENS = 4, WIDTH = 32 };

/* Two steps x + W x of tokens, with the matrix of second differences W. */
static att_graph *linear_network(void)
{
    att_graph *graph;
    must(att_graph_create(context, ATT_F64, &graph));
    const att_init zero = {ATT_INIT_CONSTANT, 0};
    att_value x = att_graph_input(graph, "image", ATT_F64, att_shape_of(TOKENS, WIDTH));
    att_value weight = att_graph_parameter(graph, "weight", att_shape_of(WIDTH, WIDTH), zero, true);
    x = att_combine(graph, 0.5, x, 0, ATT_NONE);
    for (int i = 0; i < 2; i++) {
        att_graph_scope(graph, i == 0 ? "blocks.0.add" : "blocks.1.add");
        x = att_add(graph, x, att_linear(graph, x, weight, ATT_NONE));
    }
    att_graph_output(graph, "y", x);
    return graph;
}

static void set_second_differences(att_weights *weights)
{
    double matrix[WIDTH * WIDTH] = {0};
    for (int i = 0; i < WIDTH; i++)
        for (int j = 0; j < WIDTH; j++)
            matrix[i * WIDTH + j] = i == j ? -2 : i == j + 1 || j == i + 1;
    must(att_weights_set(weights, -1, 0, matrix, WIDTH * WIDTH));
}

static void expect_ends(const att_measure *measure, const char *node, double left, double right)
{
    assert_true(fabs(figure_of(measure, node, "left").mean - left) < 1e-6);
    assert_true(fabs(figure_of(measure, node, "right").mean - right) < 1e-6);
    assert_true(fabs(figure_of(measure, node, "index").mean - fmax(fabs(left), fabs(right))) < 1e-6);
    assert_true(figure_of(measure, node, "left_im").mean < 1e-6 && figure_of(measure, node, "right_im").mean < 1e-6);
    assert_true(figure_of(measure, node, "residual").mean <= 1e-8);
    assert_true(figure_of(measure, node, "converged").mean == 1);
}

/* Measures one image by the formula in f64, with the second differences as weight. gate, gamma: NULL if the network has
 * none. Destroy the returned instruments. */
static att_measure *observe_linear(att_graph *graph, const char *with, const double *gate, const double *gamma)
{
    att_weights *weights;
    att_measure *measure;
    att_plan *plan;
    att_session *session;
    att_plan_options options = att_plan_options_defaults();
    double image[TOKENS * WIDTH];
    for (int i = 0; i < TOKENS * WIDTH; i++)
        image[i] = formula("image", (uint32_t)i);
    options.backend = "f64";
    must(att_weights_create(graph, "f64", &weights));
    set_second_differences(weights);
    if (gamma)
        must(att_weights_set(weights, -1, 1, gamma, WIDTH));
    must(att_measure_create(graph, with, "*", &measure));
    must(att_plan_compile(graph, &options, &plan));
    must(att_session_create(plan, weights, 1, &session));
    must(att_session_bind(session, "image", image));
    if (gate)
        must(att_session_bind(session, "gate", gate));
    must(att_session_run(session, 1));
    must(att_measure_observe(measure, session, 1, NULL));
    att_session_destroy(&session);
    att_plan_destroy(&plan);
    att_weights_destroy(&weights);
    return measure;
}

TEST(a_linear_branch_has_the_eigenvalues_of_its_matrix)
{
    att_graph *graph = linear_network();
    att_measure *measure = observe_linear(graph, "stiffness_index:tolerance=1e-8", NULL, NULL);
    const double angle = acos(-1) / 2 / (WIDTH + 1);
    const double left = -4 * pow(sin(WIDTH * angle), 2), right = -4 * pow(sin(angle), 2);
    expect_ends(measure, "blocks.0.add", left, right);
    expect_ends(measure, "blocks.1.add", left, right);
    /* (1 + W)^2 - 1 has the eigenvalues 2 l + l^2, of which -1 is the smallest that any l can give. */
    double lowest = 0, highest = 2 * left + left * left;
    for (int k = 1; k <= WIDTH; k++) {
        double l = -4 * pow(sin(k * angle), 2);
        lowest = fmin(lowest, 2 * l + l * l);
    }
    expect_ends(measure, "stage.1", lowest, highest);
    att_measure_destroy(&measure);
    att_graph_destroy(&graph);
}

/* x + gamma (.) (gate (.) W x) of tokens, with a gate that is an input. */
static att_graph *gated_network(void)
{
    att_graph *graph;
    must(att_graph_create(context, ATT_F64, &graph));
    const att_init zero = {ATT_INIT_CONSTANT, 0};
    att_value x = att_graph_input(graph, "image", ATT_F64, att_shape_of(TOKENS, WIDTH));
    att_value gate = att_graph_input(graph, "gate", ATT_F64, att_shape_of(WIDTH));
    att_value weight = att_graph_parameter(graph, "weight", att_shape_of(WIDTH, WIDTH), zero, true);
    att_value gamma = att_graph_parameter(graph, "gamma", att_shape_of(WIDTH), zero, false);
    x = att_combine(graph, 0.5, x, 0, ATT_NONE);
    att_value branch = att_gate(graph, att_linear(graph, x, weight, ATT_NONE), gate);
    att_graph_scope(graph, "blocks.0.add");
    att_graph_output(graph, "y", att_add(graph, x, att_scale(graph, branch, gamma)));
    return graph;
}

/* The smallest and the largest real part of the eigenvalues of diag(gamma) W. */
static void dense_ends(const double *gamma, double *left, double *right)
{
    double matrix[WIDTH * WIDTH] = {0};
    att_eigenvalue values[WIDTH];
    for (int i = 0; i < WIDTH; i++)
        for (int j = 0; j < WIDTH; j++)
            matrix[i * WIDTH + j] = gamma[i] * (i == j ? -2 : i == j + 1 || j == i + 1);
    must(att_spectrum_eigenvalues(context, WIDTH, matrix, values));
    *left = INFINITY, *right = -INFINITY;
    for (int i = 0; i < WIDTH; i++) {
        *left = fmin(*left, values[i].re);
        *right = fmax(*right, values[i].re);
    }
}

static void expect_gated(const char *with, bool scaled)
{
    double gate[WIDTH], gamma[WIDTH], ones[WIDTH], left, right;
    for (int i = 0; i < WIDTH; i++) {
        ones[i] = 1;
        gate[i] = 0.1 + 0.01 * i;
        gamma[i] = 0.5 + 0.05 * i;
    }
    att_graph *graph = gated_network();
    att_measure *measure = observe_linear(graph, with, gate, gamma);
    dense_ends(scaled ? gamma : ones, &left, &right);
    expect_ends(measure, "blocks.0.add", left, right);
    assert_true(
        fabs(figure_of(measure, "blocks.0.add", "nsi").mean / figure_of(measure, "blocks.0.add", "attention").mean -
             1) < 1e-6);
    att_measure_destroy(&measure);
    att_graph_destroy(&graph);
}

TEST(a_gate_inside_layer_scale_leaves_the_branch)
{
    expect_gated("nsi,stiffness_index:tolerance=1e-8", true);
    expect_gated("nsi:dt=all,stiffness_index:tolerance=1e-8,dt=all", false);
}

/* --- limits ------------------------------------------------------------------------------------------------------- */

static const char small[] = "vit_tiny_patch16_224 img_size=32 patch_size=8 embed_dim=24 depth=2 num_heads=3";

/* In f32 no residual is as small as 1e-12. */
TEST(what_does_not_converge_is_undefined)
{
    net n = net_open(small, ATT_F32, "stiffness_index:count=1,products=200,tolerance=1e-12", "blocks.1.add1");
    fill(&n);
    CHECK(n.context, net_run(&n, 1));
    const att_measurement index = figure_of(n.measure, "blocks.1.add1", "index");
    assert_true(index.count == 1 && index.undefined == 1 && isnan(index.mean));
    assert_true(figure_of(n.measure, "blocks.1.add1", "left").undefined == 1);
    assert_true(figure_of(n.measure, "blocks.1.add1", "converged").mean == 0);
    assert_true(figure_of(n.measure, "blocks.1.add1", "residual").mean > 1e-12);
    assert_true(figure_of(n.measure, "blocks.1.add1", "products").mean <= 220);
    net_close(&n);
}

TEST(only_the_first_images_are_measured)
{
    net n = net_open(small, ATT_F32, "stiffness_index:count=3,stages=no", "blocks.0.add2");
    fill(&n);
    CHECK(n.context, net_run(&n, 2));
    assert_int_equal(figure_of(n.measure, "blocks.0.add2", "index").count, 2);
    CHECK(n.context, net_run(&n, 2));
    assert_int_equal(figure_of(n.measure, "blocks.0.add2", "index").count, 3);
    /* The images are the same. */
    assert_true(figure_of(n.measure, "blocks.0.add2", "index").deviation == 0);
    CHECK(n.context, net_run(&n, 2));
    assert_int_equal(figure_of(n.measure, "blocks.0.add2", "index").count, 3);
    att_measure_clear(n.measure);
    assert_int_equal(figure_of(n.measure, "blocks.0.add2", "index").count, 0);
    net_close(&n);
}

static bool stop(void *user, const att_progress *progress)
{
    int *calls = user;
    assert_string_equal(progress->stage, "stiffness_index");
    return ++*calls < 2;
}

TEST(a_search_can_be_stopped)
{
    net n = net_open(small, ATT_F32, "stiffness_index:count=2", "*");
    int calls = 0;
    fill(&n);
    att_measure_tell(n.measure, stop, &calls);
    assert_int_equal(net_run(&n, 2), ATT_ERR_STOPPED);
    assert_int_equal(calls, 2);
    net_close(&n);
}

TEST(a_search_beyond_the_memory_limit_is_refused)
{
    att_context *unlimited = context;
    size_t before = 0, after = 0;
    for (int limited = 0; limited < 2; limited++) {
        att_settings settings = att_settings_defaults();
        settings.memory_limit = limited ? (before + after) / 2 : 0;
        assert_int_equal(att_context_create(&settings, &context), ATT_OK);
        net n = net_open(small, ATT_F32, "stiffness_index:count=1", "*");
        fill(&n);
        before = limited ? before : att_context_allocations(context).bytes_now;
        for (int again = 0; limited && again < 2; again++)
            assert_int_equal(net_run(&n, 1), ATT_ERR_MEMORY);
        if (!limited)
            must(net_run(&n, 1));
        after = att_context_allocations(context).bytes_peak;
        net_close(&n);
        att_context_destroy(&context);
    }
    context = unlimited;
}
