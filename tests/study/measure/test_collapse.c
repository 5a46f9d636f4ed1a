/* The rank residual along networks with parts switched off, against passes written out in PyTorch and f64
 * (tools/goldens/collapse.py), ranks and similarities as well, and what must hold for every network. */
#include <attscope/attscope.h>

#include "context.h"
#include "networks/models/fixture.h"
#include "sanitized.h"
#include "shared.h"

SHARED_CONTEXT(threads, 0)

enum { MOST_WORDS = 64, MOST_FIGURES = 40 };

/* --- a network with instruments ----------------------------------------------------------------------------------- */

typedef struct net {
    att_context *context;
    att_model *model;
    att_weights *weights;
    att_measure *measure; /* NULL: none */
    att_plan *plan;
    att_session *session;
    const char *backend;
} net;

/* name: a network's name with options. */
static net net_open(const char *name, att_dtype dtype, const char *with)
{
    net n = {.context = context, .backend = dtype == ATT_F64 ? "f64" : "cpu"};
    char text[512], *words[MOST_WORDS] = {NULL};
    int count = 0;
    att_option_values options = att_options_none();
    snprintf(text, sizeof text, "%s", name);
    for (char *word = strtok(text, " "); word; word = strtok(NULL, " "))
        words[count++] = word;
    for (int i = 1; i < count; i++)
        take_option(words[i], &options);
    must(att_model_create(context, words[0], &options, dtype, &n.model));
    must(att_weights_create(att_model_graph(n.model), n.backend, &n.weights));
    formula_fill(context, att_model_graph(n.model), n.weights);
    if (with)
        must(att_measure_create(att_model_graph(n.model), with, "*", &n.measure));
    return n;
}

static void net_compile(net *n)
{
    att_plan_options options = att_plan_options_defaults();
    options.backend = n->backend;
    CHECK(n->context, att_plan_compile(att_model_graph(n->model), &options, &n->plan));
    CHECK(n->context, att_session_create(n->plan, n->weights, 1, &n->session));
}

/* image: NULL for that of the goldens. */
static void net_run(net *n, const float *image)
{
    const att_preprocess look = att_model_preprocess(n->model);
    const uint32_t count = (uint32_t)(look.height * look.width * look.in_chans);
    double *wide = malloc(count * sizeof *wide);
    float *narrow = malloc(count * sizeof *narrow);
    for (uint32_t i = 0; i < count; i++)
        wide[i] = narrow[i] = image ? *image : (float)(4 * formula("image", i));
    if (!n->session)
        net_compile(n);
    bool is_wide = att_graph_dtype(att_model_graph(n->model)) == ATT_F64;
    CHECK(n->context, att_session_bind(n->session, "image", is_wide ? (const void *)wide : (const void *)narrow));
    CHECK(n->context, att_session_run(n->session, 1));
    if (n->measure)
        CHECK(n->context, att_measure_observe(n->measure, n->session, 1, NULL));
    free(wide);
    free(narrow);
}

static void net_close(net *n)
{
    att_session_destroy(&n->session);
    att_plan_destroy(&n->plan);
    att_measure_destroy(&n->measure);
    att_weights_destroy(&n->weights);
    att_model_destroy(&n->model);
}

/* Sets elements first..first + count - 1 of a parameter to zero. */
static void clear_parameter(const net *n, const char *name, int64_t first, int64_t count)
{
    for (int i = 0; i < att_weights_count(n->weights); i++) {
        att_parameter_info parameter = att_weights_at(n->weights, i);
        if (strcmp(parameter.name, name) != 0)
            continue;
        int64_t all = att_shape_count(parameter.shape);
        double *values = malloc((size_t)all * sizeof *values);
        for (int64_t e = 0; e < all; e++)
            values[e] = e >= first && e < first + count ? 0 : formula_weight(&parameter, e);
        CHECK(n->context, att_weights_set(n->weights, -1, i, values, all));
        free(values);
        return;
    }
    fail_msg("no parameter %s", name);
}

/* The means of the figures of a statistic, in the network's order. */
static int figures_of(const net *n, const char *instrument, const char *statistic, double *values)
{
    int count = 0;
    for (int i = 0; i < att_measure_count(n->measure); i++) {
        att_measurement m = att_measure_at(n->measure, i);
        if (strcmp(m.instrument, instrument) != 0 || strcmp(m.statistic, statistic) != 0)
            continue;
        assert_true(count < MOST_FIGURES);
        values[count++] = m.mean;
    }
    return count;
}

/* --- goldens ------------------------------------------------------------------------------------------------------ */

typedef struct line {
    char label[32], network[256], statistic[64];
    double values[MOST_FIGURES];
    int count;
} line;

/* Reads "LABEL NAME OPTIONS... KIND SWITCHES = VALUES..." */
static void read_line(char *text, line *l)
{
    char *words[MOST_WORDS];
    int count = 0, equals = 0;
    for (char *word = strtok(text, " \n"); word && count < MOST_WORDS; word = strtok(NULL, " \n"))
        words[count++] = word;
    while (equals < count && strcmp(words[equals], "=") != 0)
        equals++;
    assert_true(equals >= 4 && equals < count);
    *l = (line){.count = count - equals - 1};
    snprintf(l->label, sizeof l->label, "%s", count > 0 ? words[0] : "");
    for (int i = 1; i < equals - 2; i++)
        snprintf(l->network + strlen(l->network), sizeof l->network - strlen(l->network), "%s%s", i > 1 ? " " : "",
                 words[i]);
    snprintf(l->statistic, sizeof l->statistic, "%s %s", words[equals - 2], words[equals - 1]);
    for (int i = 0; i < l->count; i++)
        l->values[i] = strtod(words[equals + 1 + i], NULL);
}

/* Relative to the residual, while it exceeds FLOOR; the goldens have 0 below. Measured: 8.9e-8, the rounding of rows to
 * F32 and of the goldens. */
static const double TOLERANCE = 1e-5, FLOOR = 1e-10;

static double compare(const net *n, const line *l)
{
    double values[MOST_FIGURES], worst = 0;
    assert_int_equal(figures_of(n, "collapse", l->statistic, values), l->count);
    for (int i = 0; i < l->count; i++) {
        double error = fabs(values[i] - l->values[i]) / l->values[i];
        if (l->values[i] <= FLOOR) {
            if (!(values[i] <= 10 * FLOOR))
                fail_msg("%s: %s %d is %.9g instead of %.9g", l->label, l->statistic, i, values[i], l->values[i]);
            if (i > 0 && l->values[i - 1] <= FLOOR)
                return worst; /* what comes after rounding noise is noise */
            continue;
        }
        if (i > 0 && l->values[i - 1] <= FLOOR)
            return worst;
        if (!(error <= TOLERANCE))
            fail_msg("%s: %s %d is %.9g instead of %.9g", l->label, l->statistic, i, values[i], l->values[i]);
        worst = fmax(worst, error);
    }
    return worst;
}

/* Returns false if the network's weights are not there. */
static bool load(net *n, const char *label)
{
    char path[SHARED_PATH];
    att_tensors *file = NULL;
    if (strcmp(label, "deit_tiny") != 0)
        return true;
    if (!shared_path(SHARED_DEIT, path))
        return false;
    if (is_sanitized()) {
        print_message("skipped: deit_tiny is too slow under sanitizers\n");
        return false;
    }
    CHECK(n->context, att_tensors_open(n->context, path, &file));
    CHECK(n->context, att_model_load(n->model, file, n->weights));
    att_tensors_close(&file);
    return true;
}

/* Of the larger of 1 and the figure. Measured: 1e-7, the rounding of rows to F32. */
static double compare_ranks(const net *n, const line *l)
{
    double values[MOST_FIGURES], worst = 0;
    const char *instrument = strncmp(l->statistic, "cosine", strlen("cosine")) == 0 ? "similarity" : "rank";
    assert_int_equal(figures_of(n, instrument, l->statistic, values), l->count);
    for (int i = 0; i < l->count; i++) {
        double error = fabs(values[i] - l->values[i]) / fmax(1, fabs(l->values[i]));
        if (!(error <= TOLERANCE))
            fail_msg("%s: %s %d is %.9g instead of %.9g", l->label, l->statistic, i, values[i], l->values[i]);
        worst = fmax(worst, error);
    }
    return worst;
}

static void compare_file(const char *golden, const char *with, double (*compare_line)(const net *n, const line *l))
{
    FILE *file = golden_open(golden);
    char text[2048], label[32] = "";
    net n = {0};
    bool loaded = false;
    double worst = 0;
    int lines = 0;
    while (fgets(text, sizeof text, file)) {
        line l;
        read_line(text, &l);
        if (strcmp(l.label, label) != 0) {
            if (lines > 0)
                print_message("%s: relative errors up to %.2g\n", label, worst);
            net_close(&n);
            n = net_open(l.network, ATT_F64, with);
            loaded = load(&n, l.label);
            if (loaded)
                net_run(&n, NULL);
            memcpy(label, l.label, sizeof label);
            worst = 0;
        }
        if (loaded)
            worst = fmax(worst, compare_line(&n, &l));
        lines++;
    }
    if (loaded)
        print_message("%s: relative errors up to %.2g\n", label, worst);
    net_close(&n);
    fclose(file);
    assert_true(lines >= 6 * 16);
}

TEST(residuals_are_pytorchs)
{
    compare_file("collapse.txt", "collapse:norms=all", compare);
}

TEST(ranks_are_pytorchs)
{
    compare_file("rank.txt", "similarity:parts=all,norms=all,rank:parts=all,norms=all", compare_ranks);
}

/* --- what holds for every network --------------------------------------------------------------------------------- */

#define SIZES " img_size=32 patch_size=8 embed_dim=48 depth=3 num_heads=3 num_classes=10"
/* steps: residual additions of the stream. */
static const struct {
    const char *name;
    int steps;
} networks[] = {
    {"vit_small_patch14_reg4_dinov2" SIZES, 6},
    {"deit_tiny_distilled_patch16_224" SIZES, 6},
    {"vit_relpos_base_patch16_224" SIZES, 6},
    {"vit_tiny_patch16_224 modules=cb@after_mlp+cb_s@stream_after_mlp" SIZES, 6},
    {"vit_tiny_patch16_224 modules=uniform_head+cb:pool=max@after_mlp" SIZES, 6},
    {"vit_tiny_patch16_224 modules=cb:pool=max@mid_mlp+cb_s:pool=class@stream_after_attn" SIZES, 6},
    {"vit_tiny_patch16_224 modules=cb@attn:0" SIZES, 6},
    {"eva02_tiny_patch14_224" SIZES, 6},
    {"swinv2_cr_tiny_ns_224 img_size=64 patch_size=4 window_size=4 embed_dim=16 depths=2,2 stage_heads=2,4 "
     "num_classes=10",
     8},
    {"attention_cnn_content img_size=8 embed_dim=24 depth=2 num_heads=4", 4},
};
enum { NETWORKS = sizeof networks / sizeof *networks };

/* The instruments count the additions of blocks, none of those that modules make within branches or on the stream. */
TEST(both_is_the_instrument_residual)
{
    static const char *const kinds[] = {"composite", "frobenius"};
    for (int i = 0; i < NETWORKS; i++) {
        net n = net_open(networks[i].name, ATT_F32, "nsi,residual,collapse:norms=all");
        net_run(&n, NULL);
        double stiffness[MOST_FIGURES];
        assert_int_equal(figures_of(&n, "nsi", "unit", stiffness), networks[i].steps);
        for (int k = 0; k < 2; k++) {
            double values[MOST_FIGURES], other[MOST_FIGURES];
            char statistic[64];
            snprintf(statistic, sizeof statistic, "%s both", kinds[k]);
            int count = figures_of(&n, "residual", kinds[k], values);
            int steps = figures_of(&n, "collapse", statistic, other);
            assert_int_equal(steps, 1 + networks[i].steps);
            assert_int_equal(steps, count);
            for (int at = 0; at < steps; at++)
                if (values[at] != other[at] || !isfinite(other[at]))
                    fail_msg("%s: %s %d is %.9g, not %.9g", networks[i].name, statistic, at, other[at], values[at]);
        }
        net_close(&n);
    }
}

TEST(results_keep_their_bits)
{
    for (int i = 0; i < NETWORKS; i++) {
        float results[2][1000];
        for (int on = 0; on < 2; on++) {
            net n = net_open(networks[i].name, ATT_F32, on ? "collapse:norms=all" : NULL);
            net_run(&n, NULL);
            int64_t classes = att_model_classes(n.model);
            assert_true(classes > 0 && classes <= 1000);
            must(att_session_output(n.session, "logits", 0, 1, results[on]));
            net_close(&n);
        }
        assert_memory_equal(results[0], results[1], sizeof(float) * 10);
    }
}

/* The figures of the selected additions, and of the input, are those without a pattern. */
TEST(a_pattern_keeps_the_input)
{
    static const char *const statistics[] = {"composite both", "frobenius skip", "rate mlp"};
    static const int counts[] = {3, 2, 1};
    for (int s = 0; s < 3; s++) {
        double all[MOST_FIGURES], some[MOST_FIGURES];
        net n = net_open("vit_tiny_patch16_224" SIZES, ATT_F64, "collapse");
        net_run(&n, NULL);
        const int steps = figures_of(&n, "collapse", statistics[s], all);
        net_close(&n);
        n = net_open("vit_tiny_patch16_224" SIZES, ATT_F64, NULL);
        must(att_measure_create(att_model_graph(n.model), "collapse", "blocks.2.*", &n.measure));
        net_run(&n, NULL);
        assert_int_equal(figures_of(&n, "collapse", statistics[s], some), counts[s]);
        assert_true(some[0] == all[0]);
        for (int i = 1; i < counts[s]; i++)
            assert_true(some[i] == all[steps - counts[s] + i]);
        net_close(&n);
    }
}

TEST(without_values_the_skip_keeps_the_residual)
{
    enum { WIDTH = 48, DEPTH = 3 };
    double values[MOST_FIGURES];
    net n = net_open("vit_tiny_patch16_224" SIZES, ATT_F64, "collapse");
    for (int b = 0; b < DEPTH; b++) {
        char name[64];
        snprintf(name, sizeof name, "blocks.%d.attn.qkv.weight", b);
        clear_parameter(&n, name, 2 * WIDTH * WIDTH, WIDTH * WIDTH);
        snprintf(name, sizeof name, "blocks.%d.attn.qkv.bias", b);
        clear_parameter(&n, name, 2 * WIDTH, WIDTH);
        snprintf(name, sizeof name, "blocks.%d.attn.proj.bias", b);
        clear_parameter(&n, name, 0, WIDTH);
    }
    net_run(&n, NULL);
    assert_int_equal(figures_of(&n, "collapse", "composite skip", values), 1 + DEPTH);
    assert_true(values[0] > 0.1);
    for (int i = 1; i <= DEPTH; i++)
        assert_true(fabs(values[i] - values[0]) <= 1e-6 * values[0]); /* F32 rows; measured: 6e-8 */
    net_close(&n);
}

static void scale_parameter(net *n, const char *name, double factor, int64_t count)
{
    double values[48 * 48];
    int index = att_weights_find(n->weights, name);
    assert_true(index >= 0 && count <= 48 * 48);
    CHECK(n->context, att_weights_get(n->weights, -1, index, values, count));
    for (int64_t i = 0; i < count; i++)
        values[i] *= factor;
    CHECK(n->context, att_weights_set(n->weights, -1, index, values, count));
}

/* Without norms and skips, tokens have any scale. Figures pass through F32, whose largest number is 3e38. */
TEST(tokens_of_any_scale_have_a_residual)
{
    enum { WIDTH = 48, LAST = 3 };
    double plain[MOST_FIGURES], scaled[MOST_FIGURES];
    net n = net_open("vit_tiny_patch16_224" SIZES, ATT_F64, "collapse:norms=off");
    net_run(&n, NULL);
    assert_int_equal(figures_of(&n, "collapse", "composite attention_no_norm", plain), 1 + LAST);
    net_close(&n);
    n = net_open("vit_tiny_patch16_224" SIZES, ATT_F64, "collapse:norms=off");
    scale_parameter(&n, "blocks.2.attn.proj.weight", 1e45, WIDTH * WIDTH);
    scale_parameter(&n, "blocks.2.attn.proj.bias", 1e45, WIDTH);
    net_run(&n, NULL);
    assert_int_equal(figures_of(&n, "collapse", "composite attention_no_norm", scaled), 1 + LAST);
    net_close(&n);
    if (!(plain[LAST] > 0 && fabs(scaled[LAST] - plain[LAST]) <= 1e-6 * plain[LAST])) /* measured: 0 */
        fail_msg("%.9g with weights times 1e45, %.9g without", scaled[LAST], plain[LAST]);
}

TEST(equal_tokens_have_no_residual)
{
    static const char *const statistics[] = {"composite attention", "composite skip", "composite mlp",
                                             "composite both"};
    const float grey = 0.5F;
    net n = net_open("attention_cnn_quadratic img_size=8 embed_dim=24 depth=2 num_heads=4", ATT_F64, "collapse");
    net_run(&n, &grey);
    for (int s = 0; s < 4; s++) {
        double values[MOST_FIGURES];
        int count = figures_of(&n, "collapse", statistics[s], values);
        assert_int_equal(count, s < 2 ? 3 : 5);
        for (int i = 0; i < count; i++)
            assert_true(values[i] < 1e-14); /* measured: 3e-16 */
    }
    net_close(&n);
}

TEST(the_rate_is_a_slope)
{
    static const char *const switches[] = {"attention", "mlp"};
    for (int s = 0; s < 2; s++) {
        double values[MOST_FIGURES], rate, n_pairs = 0, x = 0, y = 0, xx = 0, xy = 0;
        char statistic[64];
        net n = net_open("vit_small_patch14_reg4_dinov2" SIZES, ATT_F64, "collapse");
        net_run(&n, NULL);
        snprintf(statistic, sizeof statistic, "composite %s", switches[s]);
        int count = figures_of(&n, "collapse", statistic, values), step = s == 0 ? 1 : 2;
        assert_int_equal(count, 1 + 3 * step);
        for (int i = 0; i + step < count; i += step) {
            double from = log(values[i]), to = log(values[i + step]);
            n_pairs++, x += from, y += to, xx += from * from, xy += from * to;
        }
        snprintf(statistic, sizeof statistic, "rate %s", switches[s]);
        assert_int_equal(figures_of(&n, "collapse", statistic, &rate), 1);
        double slope = (xy - x * y / n_pairs) / (xx - x * x / n_pairs);
        if (!(fabs(rate - slope) <= 1e-9 * fabs(slope)))
            fail_msg("%s is %.12g instead of %.12g", statistic, rate, slope);
        net_close(&n);
    }
}

TEST(rounding_noise_is_not_fitted)
{
    const float grey = 0.5F;
    double rate;
    net n = net_open("attention_cnn_quadratic img_size=8 embed_dim=24 depth=2 num_heads=4", ATT_F32, "collapse");
    net_run(&n, &grey);
    assert_int_equal(figures_of(&n, "collapse", "rate attention", &rate), 1);
    assert_true(isnan(rate));
    net_close(&n);
}

TEST(networks_without_attention_are_refused)
{
    static const char *const names[] = {"mixer_s32_224", "resnet18"};
    for (int i = 0; i < 2; i++) {
        att_model *model = NULL;
        att_measure *measure = NULL;
        must(att_model_create(context, names[i], NULL, ATT_F32, &model));
        assert_fails(context, att_measure_create(att_model_graph(model), "collapse", "*", &measure), ATT_ERR_NOT_FOUND,
                     "the network has no residual addition of attention");
        att_model_destroy(&model);
    }
}

TEST(all_leaves_it_out)
{
    double values[MOST_FIGURES];
    net n = net_open("vit_tiny_patch16_224" SIZES, ATT_F32, "all");
    assert_int_equal(figures_of(&n, "collapse", "composite both", values), 0);
    net_close(&n);
    n = net_open("vit_tiny_patch16_224" SIZES, ATT_F32, "all,collapse");
    assert_int_equal(figures_of(&n, "collapse", "composite both", values), 7);
    assert_int_equal(figures_of(&n, "residual", "composite", values), 7);
    net_close(&n);
}
