/* Stiffness of residual networks: figures against the same figures computed from the network's values. */
#include <attscope/measure.h>
#include <attscope/models.h>
#include <attscope/plan.h>

#include "context.h"
#include "engine/graph/graph.h"
#include "networks/models/loss.h"
#include "sanitized.h"

enum { SIDE = 8, CLASSES = 5, BATCH = 3, STAGES = 3, BLOCKS = 2, LOGITS = BATCH * CLASSES };

static float images[BATCH * SIDE * SIDE * 3];

static int setup(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof images / sizeof *images; i++)
        images[i] = (float)sin(0.7 * (double)i);
    return att_context_create(NULL, &context) != ATT_OK;
}

TEST_GROUP(setup, close_context)

static att_model *make_with(const char *name, const char *attn, bool loss)
{
    att_option_values options = att_options_none();
    att_options_set(&options, "depth", 20), att_options_set(&options, "width", 4),
        att_options_set(&options, "img_size", SIDE), att_options_set(&options, "num_classes", CLASSES);
    att_options_set_text(&options, "modules", attn);
    att_model *model;
    must(att_model_create(context, name, &options, ATT_F32, &model));
    if (loss)
        loss_add(model, 0);
    return model;
}

static att_model *make(const char *name, const char *attn)
{
    return make_with(name, attn, false);
}

typedef struct network {
    att_model *model;
    att_measure *measure;
    att_plan *plan;
    att_weights *weights;
    att_session *session;
    float logits[LOGITS];
} network;

/* Runs all images through the model, observed by `measure` (may be NULL). The result owns the model. */
static network run(att_model *model, att_measure *measure)
{
    network n = {.model = model, .measure = measure};
    att_plan_options options = att_plan_options_defaults();
    must(att_plan_compile(att_model_graph(model), &options, &n.plan));
    must(att_weights_create(att_model_graph(model), "cpu", &n.weights));
    must(att_weights_initialise(n.weights, 11));
    must(att_session_create(n.plan, n.weights, BATCH, &n.session));
    must(att_session_bind(n.session, "image", images));
    must(att_session_run(n.session, BATCH));
    must(att_session_output(n.session, "logits", 0, BATCH, n.logits));
    if (measure)
        must(att_measure_observe(measure, n.session, BATCH, NULL));
    return n;
}

static network observe(const char *name, const char *attn)
{
    att_model *model = make(name, attn);
    att_measure *measure;
    must(att_measure_create(att_model_graph(model), "nsi,tns", "*", &measure));
    return run(model, measure);
}

static void end(network *n)
{
    att_session_destroy(&n->session);
    att_weights_destroy(&n->weights);
    att_plan_destroy(&n->plan);
    att_measure_destroy(&n->measure);
    att_model_destroy(&n->model);
}

static double figure(att_measure *measure, const char *instrument, const char *node, const char *statistic)
{
    for (int i = 0; i < att_measure_count(measure); i++) {
        att_measurement m = att_measure_at(measure, i);
        if (!strcmp(m.instrument, instrument) && !strcmp(m.node, node) && !strcmp(m.statistic, statistic))
            return m.mean;
    }
    fail_msg("no figure %s %s %s", instrument, node, statistic);
    return NAN;
}

/* --- the same figures from the network's values ------------------------------------------------------------------- */

static const att_node *node_at(const att_graph *graph, const char *op, const char *scope)
{
    for (int i = 0; i < graph->nodes.count; i++)
        if (!strcmp(graph->nodes.items[i].op->name, op) && !strcmp(graph->nodes.items[i].scope, scope))
            return &graph->nodes.items[i];
    return NULL;
}

typedef struct block {
    char name[32];
    int64_t count; /* elements of x */
} block;

/* Adds x_{t+1}, f and gate (.) f of every block as outputs, and x_t of the blocks that begin a stage; for the others,
 * x_t is the previous block's x_{t+1}. */
static void take_out(att_graph *graph, bool has_relu, block blocks[STAGES * BLOCKS])
{
    for (int b = 0; b < STAGES * BLOCKS; b++) {
        char scope[64], name[96];
        snprintf(blocks[b].name, sizeof blocks[b].name, "layer%d.%d", b / BLOCKS + 1, b % BLOCKS);
        snprintf(scope, sizeof scope, "%.31s.add", blocks[b].name);
        const att_node add = *node_at(graph, "add", scope);
        snprintf(scope, sizeof scope, "%.31s.act3", blocks[b].name);
        const att_value after = has_relu ? node_at(graph, "relu", scope)->out[0] : add.out[0];
        snprintf(scope, sizeof scope, "%.31s.se.gate", blocks[b].name);
        const att_node *gate = node_at(graph, "gate", scope);
        blocks[b].count = att_shape_count(att_value_shape(graph, add.in[0]));
        const att_value values[] = {add.in[0], after, gate ? gate->in[0] : add.in[1], add.in[1]};
        for (int i = b % BLOCKS ? 1 : 0; i < 4; i++) {
            snprintf(name, sizeof name, "%.31s %d", blocks[b].name, i);
            att_graph_output(graph, name, values[i]);
        }
    }
}

typedef struct zeta {
    double attention, gated, unit;
} zeta;

static zeta zeta_of(att_session *session, const block *blocks, int number, int image)
{
    const block *b = &blocks[number];
    bool begins = number % BLOCKS == 0;
    float *rows[4];
    char name[96];
    for (int i = 0; i < 4; i++) {
        rows[i] = malloc((size_t)b->count * sizeof(float));
        bool carried = i == 0 && !begins;
        snprintf(name, sizeof name, "%.31s %d", carried ? b[-1].name : b->name, carried ? 1 : i);
        must(att_session_output(session, name, image, 1, rows[i]));
    }
    double before = 0, step = 0, branch = 0, added = 0;
    for (int64_t e = 0; e < b->count; e++) {
        before += pow(rows[0][e], 2);
        step += pow((double)rows[1][e] - rows[0][e], 2);
        branch += pow(rows[2][e], 2);
        added += pow(rows[3][e], 2);
    }
    for (int i = 0; i < 4; i++)
        free(rows[i]);
    return (zeta){sqrt(branch / before), sqrt(added / before), sqrt(step / before)};
}

static void same(const char *what, double value, double expected)
{
    if (!(fabs(value - expected) <= 2e-6 * fabs(expected)))
        fail_msg("%s is %.9g instead of %.9g", what, value, expected);
}

/* Returns the mean over images of TNS, by its closed form over the blocks that do not begin a stage. */
static zeta tns_of(att_session *session, const block *blocks)
{
    zeta sum = {0};
    for (int i = 0; i < BATCH; i++) {
        zeta largest = {0}, mean = {0};
        for (int b = 0; b < STAGES * BLOCKS; b++) {
            if (b % BLOCKS == 0)
                continue;
            zeta z = zeta_of(session, blocks, b, i);
            largest =
                (zeta){fmax(largest.attention, z.attention), fmax(largest.gated, z.gated), fmax(largest.unit, z.unit)};
            mean.attention += z.attention / (STAGES * (BLOCKS - 1));
            mean.gated += z.gated / (STAGES * (BLOCKS - 1));
            mean.unit += z.unit / (STAGES * (BLOCKS - 1));
        }
        sum.attention += largest.attention * (largest.attention / mean.attention - 1) / BATCH;
        sum.gated += largest.gated * (largest.gated / mean.gated - 1) / BATCH;
        sum.unit += largest.unit * (largest.unit / mean.unit - 1) / BATCH;
    }
    return sum;
}

static void check_nsi(network *observed, att_session *session, const block *blocks, int b)
{
    zeta mean = {0};
    char node[64];
    snprintf(node, sizeof node, "%.31s.add", blocks[b].name);
    for (int i = 0; i < BATCH; i++) {
        zeta z = zeta_of(session, blocks, b, i);
        mean.attention += z.attention / BATCH, mean.gated += z.gated / BATCH, mean.unit += z.unit / BATCH;
    }
    same(node, figure(observed->measure, "nsi", node, "attention"), mean.attention);
    same(node, figure(observed->measure, "nsi", node, "gated"), mean.gated);
    same(node, figure(observed->measure, "nsi", node, "unit"), mean.unit);
}

static void check(const char *name, const char *attn, bool has_relu)
{
    block blocks[STAGES * BLOCKS];
    network observed = observe(name, attn);
    att_model *bare = make(name, attn);
    take_out(att_model_graph(bare), has_relu, blocks);
    network plain = run(bare, NULL);
    for (int b = 0; b < STAGES * BLOCKS; b++)
        check_nsi(&observed, plain.session, blocks, b);
    zeta tns = tns_of(plain.session, blocks);
    same("tns attention", figure(observed.measure, "tns", "", "tns attention"), tns.attention);
    same("tns gated", figure(observed.measure, "tns", "", "tns gated"), tns.gated);
    same("tns unit", figure(observed.measure, "tns", "", "tns unit"), tns.unit);
    end(&plain);
    end(&observed);
}

TEST(branches_are_read_before_gates_and_states_after_relus)
{
    check("resnet164", "none", true);
    check("resnet164", "se:ratio=4", true);
    check("preresnet164", "se:ratio=4", false);
}

/* The first step of each stage is marked, and no other, for every way to count steps and every selection of nodes. */
TEST(steps_that_tns_leaves_out_are_marked)
{
    static const char *const cases[][2] = {{"nsi,tns", "*"}, {"nsi:per=block,tns", "*"}, {"nsi", "layer3.*"}};
    for (int i = 0; i < 3; i++) {
        att_model *model = make("resnet164", "se:ratio=4");
        att_measure *measure;
        int excluded = 0;
        must(att_measure_create(att_model_graph(model), cases[i][0], cases[i][1], &measure));
        for (int f = 0; f < att_measure_count(measure); f++) {
            att_measurement m = att_measure_at(measure, f);
            bool first = strcmp(m.instrument, "nsi") == 0 && strncmp(m.node + strlen("layer0"), ".0", 2) == 0;
            if (m.excluded != first)
                fail_msg("%s %s %s is%s marked", m.instrument, m.node, m.statistic, m.excluded ? "" : " not");
            excluded += m.excluded;
        }
        assert_int_equal(excluded, i == 0 ? 3 * STAGES : i == 1 ? STAGES : 3);
        att_measure_destroy(&measure);
        att_model_destroy(&model);
    }
}

/* StepNet adds the branch once more to guess the next state; this addition is not a step. */
TEST(guesses_are_no_steps)
{
    network n = observe("resnet164", "step:adaptor=style,input=x_t1");
    int steps = 0;
    for (int i = 0; i < att_measure_count(n.measure); i++) {
        att_measurement m = att_measure_at(n.measure, i);
        if (strcmp(m.instrument, "nsi") != 0 || strcmp(m.statistic, "unit") != 0)
            continue;
        assert_non_null(strstr(m.node, ".add"));
        steps++;
    }
    assert_int_equal(steps, STAGES * BLOCKS);
    end(&n);
}

/* An observed branch is computed once more beside the convolution that absorbed the following operations. */
TEST(observing_changes_no_bit_of_the_logits)
{
    static const char *const names[] = {"resnet164", "preresnet164"};
    for (int n = 0; n < 2; n++) {
        network observed = observe(names[n], "se:ratio=4"), plain = run(make(names[n], "se:ratio=4"), NULL);
        assert_memory_equal(observed.logits, plain.logits, sizeof plain.logits);
        end(&observed);
        end(&plain);
    }
}

/* --- during training ---------------------------------------------------------------------------------------------- */

typedef struct training {
    const char *name, *attn;
    att_precision precision;
} training;

typedef struct update {
    char fingerprint[256];
    float *gradients; /* of all parameters, one after another */
    int64_t count;
} update;

static void take_gradients(const att_gradient *gradient, const att_weights *weights, update *to)
{
    for (int i = 0; i < att_weights_count(weights); i++) {
        att_parameter_info parameter = att_weights_at(weights, i);
        if (parameter.buffer)
            continue;
        int64_t count = att_shape_count(parameter.shape);
        to->gradients = realloc(to->gradients, (size_t)(to->count + count) * sizeof *to->gradients);
        assert_non_null(to->gradients);
        must(att_gradient_get(gradient, i, to->gradients + to->count, count));
        to->count += count;
    }
}

typedef enum observing { ALONE, MEASURED, PROBED } observing;

static bool can_be_probed(const att_graph *graph, att_value value)
{
    return graph->values.items[value].node >= 0 && att_value_kind(graph, value) == ATT_SAMPLE;
}

static void probe_every_value(att_graph *graph)
{
    for (att_value value = 0, count = graph->values.count; value < count; value++) {
        char name[32];
        snprintf(name, sizeof name, "probe %d", value);
        if (can_be_probed(graph, value))
            att_graph_probe(graph, name, value);
    }
    must(att_graph_status(graph));
}

static update train(const training *how, observing seen)
{
    static const int32_t targets[BATCH] = {1, 4, 2};
    update made = {.gradients = NULL};
    att_measure *measure = NULL;
    att_model *model = make_with(how->name, how->attn, true);
    if (seen == PROBED)
        probe_every_value(att_model_graph(model));
    if (seen == MEASURED)
        must(att_measure_create(att_model_graph(model), strcmp(how->attn, "none") ? "nsi,tns,gate" : "nsi,tns", "*",
                                &measure));
    att_plan_options options = att_plan_options_defaults();
    options.purpose = ATT_TRAIN, options.precision = how->precision, options.lanes = 2;
    network n = {.model = model, .measure = measure};
    must(att_plan_compile(att_model_graph(model), &options, &n.plan));
    must(att_weights_create(att_model_graph(model), "cpu", &n.weights));
    must(att_weights_initialise(n.weights, 11));
    must(att_session_create(n.plan, n.weights, BATCH, &n.session));
    must(att_session_bind(n.session, "image", images));
    must(att_session_bind(n.session, "target", targets));
    att_gradient *gradient;
    must(att_gradient_create(n.weights, &gradient));
    must(att_session_accumulate(n.session, gradient, BATCH, 1.0 / BATCH, 1, 0, 0));
    take_gradients(gradient, n.weights, &made);
    att_gradient_destroy(&gradient);
    snprintf(made.fingerprint, sizeof made.fingerprint, "%s", att_plan_fingerprint(n.plan));
    end(&n);
    return made;
}

/* Widening convolutions that absorbed gate, sum and ReLU, and others that are followed by a norm only. */
TEST(observing_changes_no_bit_of_a_training)
{
    static const training trainings[] = {{"resnet164", "none", ATT_FULL},
                                         {"resnet164", "se:ratio=4", ATT_FULL},
                                         {"resnet164", "step:adaptor=iebn,input=x_t1", ATT_MIXED},
                                         {"preresnet164", "step", ATT_MIXED},
                                         {"resnet20", "eca", ATT_FULL}};
    for (size_t i = 0; i < sizeof trainings / sizeof *trainings; i++) {
        update alone = train(&trainings[i], ALONE);
        for (observing seen = MEASURED; seen <= PROBED; seen++) {
            update observed = train(&trainings[i], seen);
            assert_string_equal(observed.fingerprint, alone.fingerprint);
            assert_int_equal(observed.count, alone.count);
            assert_memory_equal(observed.gradients, alone.gradients, (size_t)alone.count * sizeof *alone.gradients);
            free(observed.gradients);
        }
        free(alone.gradients);
    }
}

static void compile_for_training(const att_graph *graph, char *fingerprint, size_t size)
{
    att_plan_options options = att_plan_options_defaults();
    options.purpose = ATT_TRAIN, options.lanes = 2;
    att_plan *plan;
    must(att_plan_compile(graph, &options, &plan));
    snprintf(fingerprint, size, "%s", att_plan_fingerprint(plan));
    att_plan_destroy(&plan);
}

/* So a training run without probes can be resumed with any probes, and the other way round. */
TEST(no_probe_of_any_value_changes_the_fingerprint)
{
    static const char *const attns[] = {"none", "se:ratio=4", "step:adaptor=iebn"};
    for (size_t i = is_sanitized() ? 2 : 0; i < sizeof attns / sizeof *attns; i++) {
        char plain[256], observed[256];
        att_model *model = make_with("resnet164", attns[i], true);
        compile_for_training(att_model_graph(model), plain, sizeof plain);
        int count = att_model_graph(model)->values.count;
        for (att_value value = 0; value < count; value++) {
            att_graph *graph = att_graph_copy(att_model_graph(model));
            if (can_be_probed(graph, value)) {
                att_graph_probe(graph, "probe", value);
                compile_for_training(graph, observed, sizeof observed);
                if (strcmp(observed, plain) != 0)
                    fail_msg("%s: a probe of what %s in \"%s\" makes: %s instead of %s", attns[i],
                             att_graph_producer(graph, value)->op->name, att_graph_producer(graph, value)->scope,
                             observed, plain);
            }
            att_graph_destroy(&graph);
        }
        att_model_destroy(&model);
    }
}

/* For a network whose maps are large enough to be computed again instead of kept. */
TEST(no_instrument_changes_the_fingerprint)
{
    static const char *const attns[] = {"none", "se", "eca", "step"};
    for (size_t i = 0; i < sizeof attns / sizeof *attns; i++) {
        att_option_values options = att_options_none();
        att_options_set(&options, "img_size", 32);
        att_options_set_text(&options, "modules", attns[i]);
        att_model *model;
        must(att_model_create(context, "resnet29", &options, ATT_F32, &model));
        loss_add(model, 0);
        char alone[256], measured[256];
        compile_for_training(att_model_graph(model), alone, sizeof alone);
        att_measure *measure;
        must(att_measure_create(att_model_graph(model), strcmp(attns[i], "none") ? "nsi,tns,gate" : "nsi,tns", "*",
                                &measure));
        compile_for_training(att_model_graph(model), measured, sizeof measured);
        assert_string_equal(measured, alone);
        att_measure_destroy(&measure);
        att_model_destroy(&model);
    }
}

/* --- instruments of attention between tokens, in other networks --------------------------------------------------- */

static void refused_without_tokens(const char *instrument, const char *attn, const char *words)
{
    att_model *model = make("resnet164", attn);
    att_measure *measure = NULL;
    assert_int_equal(att_measure_create(att_model_graph(model), instrument, "*", &measure), ATT_ERR_NOT_FOUND);
    assert_null(measure);
    assert_message(context, words);
    att_model_destroy(&model);
}

/* The message names the attention that the network has, and the instrument that measures it. */
TEST(attention_over_channels_is_named)
{
    refused_without_tokens("entropy", "se:ratio=4",
                           "instrument \"entropy\" has nothing to observe: it needs attention between tokens, and this "
                           "network has attention over channels only (module se, first in layer1.0.se); \"gate\" "
                           "measures that; \"nsi\" and \"tns\" measure the residual steps");
    refused_without_tokens("distance", "eca", "over channels only (module eca, first in layer1.0.se)");
    refused_without_tokens("jacobian", "fca:ratio=4", "(module fca, first in layer1.0.att)");
    refused_without_tokens("entropy", "srm", "(module srm, first in layer1.0.srm)");
    refused_without_tokens("entropy", "cbam:ratio=4", "over channels and pixels only (module cbam, first in");
    refused_without_tokens("entropy", "step", "(module step, first in layer1.0.step)");
    refused_without_tokens("entropy", "none",
                           "this network has no attention; \"nsi\" and \"tns\" measure the residual steps");
}
