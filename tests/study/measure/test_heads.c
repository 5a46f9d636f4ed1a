/* The instruments head_shape and score_terms: closed forms; and all instruments of heads, rows and scores on small
 * networks against PyTorch. */
#include "context.h"
#include "study/measure/run.h"

SHARED_CONTEXT(threads, 0)

/* --- closed forms: an attention of one sample whose queries and keys are inputs or absent ------------------------- */

static const double LIMIT = 5e-7; /* measured: at most 7.5e-8 */

enum { HEIGHT = 4, WIDTH = 6, GRID = HEIGHT * WIDTH, PREFIX = 2, HEADS = 2, CHANNELS = 3 };

/* From the middle of the grid, uniform attention has its centre where the queries are: on the average at no shift. The
 * mean shift of a query is that from the query to the middle, so half of the variance lies between the queries. The
 * variance of the places on an axis of n is (n^2 - 1) / 12, that of a difference of two of them twice as much. */
TEST(uniform_attention_is_as_wide_as_the_grid)
{
    static float qkv[(PREFIX + GRID) * HEADS * 3 * CHANNELS];
    run r = begin();
    att_value x = att_graph_input(r.graph, "qkv", ATT_F32, att_shape_of(PREFIX + GRID, HEADS * 3 * CHANNELS));
    const att_attention_options options = {.heads = HEADS, .prefix = PREFIX, .grid_h = HEIGHT, .grid_w = WIDTH};
    att_graph_output(r.graph, "o", att_attention(r.graph, x, ATT_NONE, ATT_NONE, &options));
    compile(&r, "head_shape");
    must(att_session_bind(r.session, "qkv", qkv));
    observe(&r);
    for (int head = -1; head < HEADS; head++) {
        expect(&r, "head_shape", "row", head, 0, LIMIT);
        expect(&r, "head_shape", "column", head, 0, LIMIT);
        expect(&r, "head_shape", "row spread", head, sqrt((HEIGHT * HEIGHT - 1) / 6.0), LIMIT);
        expect(&r, "head_shape", "column spread", head, sqrt((WIDTH * WIDTH - 1) / 6.0), LIMIT);
        expect(&r, "head_shape", "correlation", head, 0, LIMIT);
        expect(&r, "head_shape", "between queries", head, 0.5, LIMIT);
        expect(&r, "head_shape", "on grid", head, GRID / (double)(PREFIX + GRID), LIMIT);
    }
    end(&r);
}

/* The place on an axis of `length` that is nearest to `place`. */
static int clamped(int place, int length)
{
    return place < 0 ? 0 : place >= length ? length - 1 : place;
}

/* A head of a quadratic encoding with a high sharpness attends to the one token at its shift; at the border, to the
 * nearest token. Each query attends to one token, so that all of the variance lies between queries. */
TEST(a_sharp_head_attends_at_its_shift)
{
    static const float centers[HEADS][2] = {{1, -2}, {-1, 3}}, sharpness[HEADS] = {9, 9};
    static float v[GRID * CHANNELS];
    run r = begin();
    att_attention_terms terms = att_attention_no_terms();
    const att_init zero = {ATT_INIT_CONSTANT, 0};
    att_value c = att_graph_parameter(r.graph, "centers", att_shape_of(HEADS, 2), zero, false);
    att_value s = att_graph_parameter(r.graph, "sharpness", att_shape_of(HEADS), zero, false);
    att_isotropic_shifts(r.graph, HEIGHT, WIDTH, c, s, &terms);
    att_value x = att_graph_input(r.graph, "v", ATT_F32, att_shape_of(GRID, CHANNELS));
    const att_attention_options options = {
        .heads = HEADS, .value_heads = 1, .grid_h = HEIGHT, .grid_w = WIDTH, .terms = &terms};
    att_graph_output(r.graph, "o", att_attention(r.graph, ATT_NONE, ATT_NONE, x, &options));
    compile(&r, "head_shape");
    must(att_weights_set(r.weights, -1, 0, centers, HEADS * 2));
    must(att_weights_set(r.weights, -1, 1, sharpness, HEADS));
    must(att_session_bind(r.session, "v", v));
    observe(&r);
    for (int head = 0; head < HEADS; head++) {
        double y = 0, x_mean = 0, yy = 0, xx = 0, yx = 0;
        for (int q = 0; q < GRID; q++) {
            double dy = clamped(q / WIDTH + (int)centers[head][0], HEIGHT) - q / WIDTH;
            double dx = clamped(q % WIDTH + (int)centers[head][1], WIDTH) - q % WIDTH;
            y += dy / GRID, x_mean += dx / GRID, yy += dy * dy / GRID, xx += dx * dx / GRID, yx += dy * dx / GRID;
        }
        yy -= y * y, xx -= x_mean * x_mean, yx -= y * x_mean;
        expect(&r, "head_shape", "row", head, y, LIMIT);
        expect(&r, "head_shape", "column", head, x_mean, LIMIT);
        expect(&r, "head_shape", "row spread", head, sqrt(yy), LIMIT);
        expect(&r, "head_shape", "column spread", head, sqrt(xx), LIMIT);
        expect(&r, "head_shape", "correlation", head, yx / sqrt(yy * xx), LIMIT);
        expect(&r, "head_shape", "between queries", head, 1, LIMIT);
        expect(&r, "head_shape", "on grid", head, 1, 0);
    }
    end(&r);
}

/* With zero queries the content has no share, and the table has all of the variance. */
TEST(zero_queries_leave_the_variance_to_positions)
{
    enum { SHIFTS = (2 * HEIGHT - 1) * (2 * WIDTH - 1) };
    static float q[GRID * HEADS * CHANNELS], k[GRID * HEADS * CHANNELS], table[SHIFTS * HEADS];
    for (size_t i = 0; i < sizeof k / sizeof *k; i++)
        k[i] = (float)formula("k", (uint32_t)i);
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        table[i] = (float)formula("table", (uint32_t)i);
    run r = begin();
    att_attention_terms terms = att_attention_no_terms();
    terms.relative =
        att_graph_parameter(r.graph, "t", att_shape_of(SHIFTS, HEADS), (att_init){ATT_INIT_CONSTANT, 0}, false);
    att_value qx = att_graph_input(r.graph, "q", ATT_F32, att_shape_of(GRID, HEADS * CHANNELS));
    att_value kx = att_graph_input(r.graph, "k", ATT_F32, att_shape_of(GRID, HEADS * CHANNELS));
    const att_attention_options options = {.heads = HEADS, .grid_h = HEIGHT, .grid_w = WIDTH, .terms = &terms};
    att_graph_output(r.graph, "o", att_attention(r.graph, qx, kx, kx, &options));
    compile(&r, "score_terms");
    must(att_weights_set(r.weights, -1, 0, table, SHIFTS * HEADS));
    must(att_session_bind(r.session, "q", q));
    must(att_session_bind(r.session, "k", k));
    observe(&r);
    for (int head = -1; head < HEADS; head++) {
        expect(&r, "score_terms", "content-content", head, 0, 0);
        expect(&r, "score_terms", "position", head, 1, 0);
        expect(&r, "score_terms", "covariance", head, 0, 0);
    }
    end(&r);
}

/* Networks whose scores have one term only. */
TEST(scores_of_one_term_are_refused)
{
    run r = begin();
    att_value x = att_graph_input(r.graph, "qkv", ATT_F32, att_shape_of(GRID, HEADS * 3 * CHANNELS));
    const att_attention_options options = {.heads = HEADS, .grid_h = HEIGHT, .grid_w = WIDTH};
    att_graph_output(r.graph, "o", att_attention(r.graph, x, ATT_NONE, ATT_NONE, &options));
    assert_fails(context, att_measure_create(r.graph, "score_terms", "*", &r.measure), ATT_ERR_NOT_FOUND,
                 "scores with several terms");
    end(&r);
}

/* --- a convolution as attention ------------------------------------------------------------------------------------
 */

/* The kernel has 3 x 3 pixels, and a ring of one zero token is around the map. */
enum { KERNEL = 3, RING = 1 };
static const double kernel_shifts[KERNEL] = {-1, 0, 1};

/* Along one axis of `length` queries: the mean over queries of the variance of the shift, and the variance of their
 * mean shifts. The shift d has a weight proportional to exp(-alpha (d - center)^2). */
typedef struct axis_variance {
    double within, between;
} axis_variance;

/* Sums are of d - center, so that they keep their digits. */
static axis_variance variance_of(int length, double alpha, double center)
{
    axis_variance v = {0, 0};
    double sum = 0, squares = 0;
    for (int query = 0; query < length; query++) {
        double weight = 0, first = 0, second = 0;
        for (int key = -RING; key < length + RING; key++) {
            double d = key - query - center, a = exp(-alpha * d * d);
            weight += a, first += a * d, second += a * d * d;
        }
        double mean = first / weight;
        v.within += (second / weight - mean * mean) / length;
        sum += mean, squares += mean * mean;
    }
    v.between = squares / length - sum / length * sum / length;
    return v;
}

static double share_between(const axis_variance *rows, const axis_variance *columns)
{
    double between = rows->between + columns->between;
    return between / (between + rows->within + columns->within);
}

static void expect_convolution(run *r, double alpha)
{
    for (int head = 0; head < KERNEL * KERNEL; head++) {
        double row = kernel_shifts[head / KERNEL], column = kernel_shifts[head % KERNEL];
        axis_variance rows = variance_of(HEIGHT, alpha, row), columns = variance_of(WIDTH, alpha, column);
        double row_spread = sqrt(rows.within + rows.between), column_spread = sqrt(columns.within + columns.between);
        expect(r, "head_shape", "row", head, row, 1e-6);                                        /* 2.4e-7 */
        expect(r, "head_shape", "column", head, column, 1e-6);                                  /* 1.8e-7 */
        expect(r, "head_shape", "row spread", head, row_spread, 1e-5 * row_spread);             /* 3.8e-6 */
        expect(r, "head_shape", "column spread", head, column_spread, 1e-5 * column_spread);    /* 3.8e-6 */
        expect(r, "head_shape", "correlation", head, 0, 1e-12);                                 /* 2e-17 */
        expect(r, "head_shape", "between queries", head, share_between(&rows, &columns), 1e-8); /* 5.4e-10 */
    }
}

static att_value constant(const run *r, att_dtype dtype, const double numbers[KERNEL])
{
    float rounded[KERNEL];
    for (int i = 0; i < KERNEL; i++)
        rounded[i] = (float)numbers[i];
    return att_graph_constant(r->graph, dtype, att_shape_of(KERNEL),
                              dtype == ATT_F64 ? (const void *)numbers : (const void *)rounded);
}

static void measure_convolution(att_dtype dtype, double alpha)
{
    static double pixels[HEIGHT * WIDTH];
    const double sharpness[KERNEL] = {sqrt(2 * alpha), sqrt(2 * alpha), sqrt(2 * alpha)};
    run r = begin_in(dtype);
    att_value x = att_graph_input(r.graph, "x", dtype, att_shape_of(HEIGHT, WIDTH, 1));
    att_value centers = constant(&r, dtype, kernel_shifts), sharp = constant(&r, dtype, sharpness);
    att_value rows = att_axis_scores(r.graph, HEIGHT, HEIGHT, RING, 1, centers, sharp);
    att_value columns = att_axis_scores(r.graph, WIDTH, WIDTH, RING, 1, centers, sharp);
    const att_pair_attention_options options = {.ring = RING};
    att_graph_output(r.graph, "o", att_pair_attention(r.graph, x, rows, columns, &options));
    compile_for(&r, dtype == ATT_F64 ? "ref" : "cpu", "head_shape");
    must(att_session_bind(r.session, "x", pixels));
    observe(&r);
    expect_convolution(&r, alpha);
    end(&r);
}

/* Spreads are those of the formula, however small they are. */
TEST(heads_of_a_convolution_keep_their_spread)
{
    static const double alphas[] = {14, 20, 40, 70};
    for (size_t i = 0; i < sizeof alphas / sizeof *alphas; i++) {
        measure_convolution(ATT_F32, alphas[i]);
        measure_convolution(ATT_F64, alphas[i]);
    }
}

/* --- small networks against PyTorch ------------------------------------------------------------------------------- */

enum { SIDE = 28, BATCH = 2 };

typedef struct option {
    const char *name, *text;
    double number;
} option;

/* With thresholds that tell the heads of small random networks apart. */
#define ROWS                                                                                                      \
    "head_shape,density:eps=1.05,jacobian_spectral,entropy_step,head_types:uniform=0.99,previous=1.5,local=0.95," \
    "sharp=0.5"

static const struct network {
    const char *name, *model, *with;
    option options[8];
} networks[] = {
    {"vit", "vit_tiny_patch16_224", ROWS ",score_terms,score_weights,rollout,flow", {{NULL, NULL, 0}}},
    {"vit_registers",
     "vit_tiny_patch16_224",
     ROWS ",score_terms,score_weights,rollout",
     {{"class_token", NULL, 0}, {"global_pool", "avg", 0}, {"reg_tokens", NULL, 3}, {"embed_class", NULL, 0}}},
    {"vit_qk_norm", "vit_tiny_patch16_224", ROWS ",score_terms,rollout", {{"qk_norm", NULL, 1}}},
    {"vit_relpos",
     "vit_tiny_patch16_224",
     ROWS ",score_terms,score_weights",
     {{"pos_embed", "none", 0}, {"rel_pos_type", "bias", 0}, {"init_values", NULL, 0.1}}},
    {"swin",
     "swin_tiny_patch4_window7_224",
     ROWS ",score_terms,score_weights",
     {{"embed_dim", NULL, 16},
      {"mlp_ratio", NULL, 1.5},
      {"drop_path_rate", NULL, 0},
      {"depths", "2,2", 0},
      {"stage_heads", "2,4", 0}}},
    {"attention_cnn_isotropic", "attention_cnn_isotropic", ROWS, {{"num_heads", NULL, 3}}},
    {"attention_cnn_quadratic", "attention_cnn_quadratic", ROWS, {{"num_heads", NULL, 3}}},
    {"attention_cnn_learned", "attention_cnn_learned", ROWS, {{"num_heads", NULL, 3}}},
    {"attention_cnn_learned_content",
     "attention_cnn_content",
     ROWS ",score_terms,score_weights",
     {{"num_heads", NULL, 3}}},
};

static att_option_values options_of(const struct network *network)
{
    att_option_values options = att_options_none();
    bool swin = !strcmp(network->name, "swin");
    att_options_set_sides(&options, "img_size", SIDE, SIDE);
    att_options_set_sides(&options, "patch_size", swin ? 2 : 7, 4);
    att_options_set(&options, "in_chans", 1), att_options_set(&options, "num_classes", 10);
    if (!swin) {
        att_options_set(&options, "embed_dim", 32), att_options_set(&options, "depth", 2);
        att_options_set(&options, "num_heads", 2);
    }
    for (const option *o = network->options; o->name; o++)
        if (o->text)
            att_options_set_text(&options, o->name, o->text);
        else
            att_options_set(&options, o->name, o->number);
    return options;
}

static void measure_network(const struct network *network, att_model **model, run *r)
{
    static float images[BATCH * SIDE * SIDE];
    att_option_values options = options_of(network);
    for (uint32_t i = 0; i < BATCH * SIDE * SIDE; i++)
        images[i] = (float)(4 * formula("image", i));
    must(att_model_create(context, network->model, &options, ATT_F32, model));
    att_graph *graph = att_model_graph(*model);
    must(att_measure_create(graph, network->with, "*", &r->measure));
    att_plan_options plan = att_plan_options_defaults();
    must(att_plan_compile(graph, &plan, &r->plan));
    must(att_weights_create(graph, "cpu", &r->weights));
    formula_fill(context, graph, r->weights);
    must(att_session_create(r->plan, r->weights, BATCH, &r->session));
    must(att_session_bind(r->session, "image", images));
    must(att_session_run(r->session, BATCH));
    must(att_measure_observe(r->measure, r->session, BATCH, NULL));
}

static void compare(const char *line, att_measure *measure, const char *network)
{
    char instrument[32], node[64], statistic[64];
    int head;
    double expected;
    assert_int_equal(sscanf(line, "%31s %63s %d %lf %63[^\n]", instrument, node, &head, &expected, statistic), 5);
    att_measurement m = figure(measure, instrument, strcmp(node, "network") ? node : "", statistic, head);
    if (!(fabs(m.mean - expected) <= 5e-7)) /* 7.9e-8 */
        fail_msg("%s: %s %s of head %d of %s is %.9g, should be %.9g", network, instrument, statistic, head, node,
                 m.mean, expected);
    assert_int_equal(m.count, BATCH);
}

/* score_terms multiplies by a pixel gate to repeat a layer norm; that is no gate of the network. */
TEST(instruments_ignore_each_others_operations)
{
    att_option_values options = options_of(&networks[0]);
    att_model *model = NULL;
    att_measure *measure = NULL;
    must(att_model_create(context, networks[0].model, &options, ATT_F32, &model));
    assert_fails(context, att_measure_create(att_model_graph(model), "score_terms,gate", "*", &measure),
                 ATT_ERR_NOT_FOUND, "no gate");
    att_model_destroy(&model);
}

TEST(figures_are_those_of_pytorch)
{
    FILE *file = golden_open("heads.txt");
    char line[256], name[64];
    const struct network *network = NULL;
    int compared = 0, cases = 0;
    att_model *model = NULL;
    run r = {0};
    while (fgets(line, sizeof line, file)) {
        if (sscanf(line, "case %63s", name) == 1) {
            end(&r);
            att_model_destroy(&model);
            network = NULL;
            for (size_t i = 0; i < sizeof networks / sizeof *networks; i++)
                network = strcmp(networks[i].name, name) ? network : &networks[i];
            assert_non_null(network);
            measure_network(network, &model, &r);
            cases++;
        } else {
            compare(line, r.measure, name);
            compared++;
        }
    }
    end(&r);
    att_model_destroy(&model);
    fclose(file);
    assert_int_equal(cases, sizeof networks / sizeof *networks);
    assert_int_equal(compared, 1402);
}

/* The bits of a network do not depend on whether it is measured. */
TEST(measuring_changes_no_logit)
{
    float logits[2][BATCH * 10];
    for (int measured = 0; measured < 2; measured++) {
        struct network network = networks[0];
        att_model *model = NULL;
        run r = {0};
        network.with = measured ? "head_shape,score_terms" : "entropy";
        measure_network(&network, &model, &r);
        must(att_session_output(r.session, "logits", 0, BATCH, logits[measured]));
        end(&r);
        att_model_destroy(&model);
    }
    assert_memory_equal(logits[0], logits[1], sizeof logits[0]);
}
