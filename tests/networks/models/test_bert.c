/* Encoders of texts: shapes, shared weights, options that do not fit, and gradients against finite differences. */
#include <attscope/gradient.h>
#include <attscope/plan.h>

#include "context.h"
#include "networks/models/fixture.h"
#include "networks/models/loss.h"

SHARED_CONTEXT(threads, 1)

enum { LENGTH = 6, BATCH = 3, CLASSES = 3, WORDS = 11 };

/* --- options ------------------------------------------------------------------------------------------------------ */

static att_option_values options_of(const char *text)
{
    att_option_values options = att_options_none();
    char copy[512];
    snprintf(copy, sizeof copy, "%s", text);
    for (char *word = strtok(copy, " "); word; word = strtok(NULL, " "))
        take_option(word, &options);
    return options;
}

#define SMALL                                                                                     \
    "vocab_size=11 max_positions=6 context_length=6 embed_dim=8 depth=2 num_heads=2 mlp_ratio=2 " \
    "num_classes=3 "

static att_status create(const char *name, const char *text, att_model **model)
{
    const att_option_values options = options_of(text);
    return att_model_create(context, name, &options, ATT_F64, model);
}

static int64_t elements(const char *name, const char *text)
{
    const att_option_values options = options_of(text);
    att_model *model;
    must(att_model_create(context, name, &options, ATT_F32, &model));
    const int64_t count = att_graph_parameter_elements(att_model_graph(model));
    att_model_destroy(&model);
    return count;
}

/* Counts of the transformers library: sum(p.numel() for p in AutoModel.from_config(config).parameters()). */
TEST(named_networks_have_the_parameters_of_transformers)
{
    assert_int_equal(elements("bert_base_uncased", ""), 109482240);
    assert_int_equal(elements("bert_tiny", ""), 4385920);
    assert_int_equal(elements("distilbert_base_uncased", ""), 66362880);
    assert_int_equal(elements("minilm_l6_h384", ""), 22713216);
    assert_int_equal(elements("albert_base_v2", ""), 11683584);
    assert_int_equal(elements("mpnet_base", ""), 109486464 - 2 * 768); /* without two rows that no text reads */
}

TEST(groups_of_blocks_share_their_weights)
{
    const int64_t apart = elements("albert_base_v2", SMALL "depth=4 embed_rank=4 groups=4"),
                  two = elements("albert_base_v2", SMALL "depth=4 embed_rank=4 groups=2"),
                  one = elements("albert_base_v2", SMALL "depth=4 embed_rank=4 groups=1");
    const int64_t block = 4 * (8 * 8 + 8) + 2 * 8 * 16 + 16 + 8 + 4 * 8;
    assert_int_equal(apart - two, 2 * block);
    assert_int_equal(two - one, block);
}

TEST(options_that_do_not_fit_are_refused)
{
    static const struct {
        const char *name, *options, *message;
    } cases[] = {
        {"bert_tiny", "context_length=513",
         "a text of 513 tokens is longer than the network's table of positions, which has 512 rows; shorten the text"},
        {"bert_tiny", "num_heads=3", "embed_dim 128 is not a multiple of num_heads 3"},
        {"bert_tiny", "groups=1", "groups 1 needs an embed_rank above 0, as in ALBERT"},
        {"albert_base_v2", "groups=5", "groups 5 does not divide depth 12"},
        {"bert_tiny", "vocab_size=0", "vocab_size"},
        {"bert_tiny", "img_size=32", "img_size"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        att_model *model;
        assert_fails(context, create(cases[i].name, cases[i].options, &model), ATT_ERR_ARGUMENT, cases[i].message);
    }
    att_option_values options = att_options_none();
    att_model *model;
    att_options_set_text(&options, "global_pool", "map");
    assert_fails(context, att_model_create(context, "bert_tiny", &options, ATT_F32, &model), ATT_ERR_ARGUMENT,
                 "networks for texts have token and avg only");
    options = att_options_none();
    att_options_set_text(&options, "modules", "cb_s");
    assert_int_not_equal(att_model_create(context, "bert_tiny", &options, ATT_F32, &model), ATT_OK);
}

TEST(a_network_declares_the_inputs_that_it_has)
{
    att_model *model;
    must(create("bert_tiny", "context_length=7", &model));
    assert_string_equal(att_model_input_at(model, 1).field.name, "types");
    assert_string_equal(att_model_input_at(model, 2).field.name, "count");
    assert_int_equal(att_model_input_at(model, 0).most, 30521);
    assert_int_equal(att_model_input_at(model, 1).most, 1);
    assert_int_equal(att_model_input_at(model, 2).least, 1);
    assert_int_equal(att_model_input_at(model, 2).most, 7);
    att_model_destroy(&model);
    must(create("distilbert_base_uncased", "depth=1", &model));
    assert_string_equal(att_model_input_at(model, 1).field.name, "count");
    assert_null(att_model_input_at(model, 2).field.name);
    att_model_destroy(&model);
}

/* --- gradients ---------------------------------------------------------------------------------------------------- */

typedef struct network {
    att_model *model;
    att_weights *weights;
    att_plan *plan;
    att_session *session;
    att_gradient *gradient;
} network;

static void network_create(network *n, const char *name, const char *options)
{
    att_plan_options plan = att_plan_options_defaults();
    plan.purpose = ATT_TRAIN, plan.backend = "ref";
    must(create(name, options, &n->model));
    loss_add(n->model, 0);
    must(att_weights_create(att_model_graph(n->model), "cpu", &n->weights));
    formula_fill(context, att_model_graph(n->model), n->weights);
    must(att_plan_compile(att_model_graph(n->model), &plan, &n->plan));
    must(att_session_create(n->plan, n->weights, BATCH, &n->session));
    must(att_gradient_create(n->weights, &n->gradient));
}

static void network_destroy(network *n)
{
    att_gradient_destroy(&n->gradient);
    att_session_destroy(&n->session);
    att_plan_destroy(&n->plan);
    att_weights_destroy(&n->weights);
    att_model_destroy(&n->model);
}

/* The mean loss of three texts of 6, 3 and 1 tokens. */
static double loss_of(const network *n)
{
    static const int32_t counts[BATCH] = {6, 3, 1}, targets[BATCH] = {2, 0, 1};
    static int32_t tokens[BATCH * LENGTH], types[BATCH * LENGTH];
    double loss[BATCH];
    for (int i = 0; i < BATCH * LENGTH; i++) {
        tokens[i] = i * 7 % WORDS;
        types[i] = i % 2;
    }
    must(att_session_bind(n->session, "tokens", tokens));
    if (strcmp(att_model_input_at(n->model, 1).field.name, "types") == 0)
        must(att_session_bind(n->session, "types", types));
    must(att_session_bind(n->session, "count", counts));
    must(att_session_bind(n->session, "target", targets));
    att_gradient_begin(n->gradient);
    must(att_session_accumulate(n->session, n->gradient, BATCH, 1.0 / BATCH, 0, 0, 0));
    must(att_session_output(n->session, "loss", 0, BATCH, loss));
    return (loss[0] + loss[1] + loss[2]) / BATCH;
}

/* Central difference of one element. */
static double slope(const network *n, int parameter, int64_t element, double *values, int64_t count)
{
    static const double step = 1e-5;
    const double own = values[element];
    double loss[2];
    for (int side = 0; side < 2; side++) {
        values[element] = own + (side ? step : -step);
        must(att_weights_set(n->weights, -1, parameter, values, count));
        loss[side] = loss_of(n);
    }
    values[element] = own;
    must(att_weights_set(n->weights, -1, parameter, values, count));
    return (loss[1] - loss[0]) / (2 * step);
}

/* Compares at most five elements of each parameter. Returns the largest error. */
static double compare_gradients(const char *name, const char *options)
{
    network n;
    double worst = 0;
    network_create(&n, name, options);
    for (int p = 0; p < att_weights_count(n.weights); p++) {
        const att_parameter_info info = att_weights_at(n.weights, p);
        const int64_t count = att_shape_count(info.shape);
        double *values = malloc((size_t)count * sizeof *values), *gradient = malloc((size_t)count * sizeof *gradient);
        must(att_weights_get(n.weights, -1, p, values, count));
        loss_of(&n);
        must(att_gradient_get(n.gradient, p, gradient, count));
        for (int64_t e = 0; e < count; e += count / 5 + 1) {
            const double error = fabs(slope(&n, p, e, values, count) - gradient[e]);
            if (!(error < 1e-8)) /* measured: 1.3e-10 */
                fail_msg("%s: gradient %lld of %s is %.9g, %.2g off", name, (long long)e, info.name, gradient[e],
                         error);
            worst = fmax(worst, error);
        }
        free(values);
        free(gradient);
    }
    network_destroy(&n);
    return worst;
}

TEST(gradients_are_finite_differences)
{
    double worst = compare_gradients("bert_tiny", SMALL);
    worst = fmax(worst, compare_gradients("albert_base_v2", SMALL "depth=4 embed_rank=4 groups=2"));
    worst = fmax(worst, compare_gradients("mpnet_base", SMALL));
    print_message("gradients differ from finite differences by up to %.2g\n", worst);
}
