/* Gradients as objects, parameter groups, and overlaid weights. */
#include "engine/fixture.h"
#include "engine/network.h"
#include "engine/update/update.h"
#include "engine/weights/weights.h"

enum { SIZE = 8, BATCH = 6, MOST = 4096 };

typedef struct data {
    float images[BATCH * SIZE * SIZE];
    int32_t targets[BATCH];
} data;

static data draw(void)
{
    data d;
    network_data(d.images, d.targets, BATCH, SIZE);
    return d;
}

static att_graph *network_graph(int size)
{
    att_graph *graph = make_graph();
    network_build(graph, size);
    return graph;
}

static void accumulate(const runner *it, att_gradient *gradient, const data *d, int first, int count)
{
    must(att_session_bind(it->session, "image", d->images + first * SIZE * SIZE));
    must(att_session_bind(it->session, "target", d->targets + first));
    must(att_session_accumulate(it->session, gradient, count, 1.0 / BATCH, 3, 0, first));
}

/* Adds to the gradient of a parameter, as a session does. */
static void add_to_gradient(att_gradient *gradient, int index, const float *given, int64_t count)
{
    float *sum = (float *)att_gradient_at(gradient, index);
    for (int64_t i = 0; i < count; i++)
        sum[i] += given[i];
    att_gradient_changed(gradient);
}

/* Returns the largest difference of two gradients of the same weights. */
static double difference(const att_weights *weights, const att_gradient *a, const att_gradient *b)
{
    float x[MOST], y[MOST];
    double most = 0;
    for (int i = 0; i < att_weights_count(weights); i++) {
        int64_t count = att_shape_count(att_weights_at(weights, i).shape);
        assert_true(count <= MOST);
        if (att_weights_at(weights, i).buffer)
            continue;
        must(att_gradient_get(a, i, x, count));
        must(att_gradient_get(b, i, y, count));
        for (int64_t e = 0; e < count; e++)
            most = isfinite(x[e] - y[e]) ? fmax(most, fabs((double)x[e] - y[e])) : INFINITY;
    }
    return most;
}

static const att_plan_options training = {.purpose = ATT_TRAIN, .backend = "cpu", .lanes = 1, .group = 1};

/* Two sessions with plans of different group sizes, each with half of the batch, give the gradient of one session. */
TEST(sessions_add_to_one_gradient)
{
    data d = draw();
    att_graph *graph = network_graph(SIZE);
    att_plan_options other = training;
    other.group = 2;
    att_plan *plan;
    must(att_plan_compile(graph, &other, &plan));
    runner it = make_runner(graph, training, BATCH);
    att_session *second;
    att_gradient *whole;
    must(att_session_create(plan, it.weights, BATCH, &second));
    must(att_gradient_create(it.weights, &whole));
    accumulate(&it, whole, &d, 0, BATCH);
    accumulate(&it, it.gradient, &d, 0, BATCH); /* an old gradient, which must be cleared */
    att_gradient_begin(it.gradient);
    accumulate(&it, it.gradient, &d, 0, BATCH / 2);
    runner half = it;
    half.session = second;
    accumulate(&half, it.gradient, &d, BATCH / 2, BATCH / 2);
    double off = difference(it.weights, whole, it.gradient);
    printf("two sessions beside one: %.2g\n", off);
    assert_true(off < 1e-6); /* measured: 1.2e-7; the order of the sums differs */
    att_gradient_destroy(&whole);
    att_session_destroy(&second);
    att_plan_destroy(&plan);
    free_runner(&it);
}

TEST(a_gradient_is_reduced_before_it_is_applied)
{
    runner it = make_trainer(network_graph(SIZE), training, "sgd", BATCH);
    int index = att_weights_find(it.weights, "head.bias");
    float given[NETWORK_CLASSES] = {1, -2, 3, 0.5f, 4}, before[NETWORK_CLASSES], after[NETWORK_CLASSES];
    double norm;
    assert_fails(context, att_update_reduce(it.update, NULL), ATT_ERR_ARGUMENT,
                 "the gradient is empty; call att_session_accumulate() first");
    add_to_gradient(it.gradient, index, given, NETWORK_CLASSES);
    add_to_gradient(it.gradient, index, given, NETWORK_CLASSES);
    must(att_update_reduce(it.update, &norm));
    assert_true(fabs(norm - 2 * sqrt(1 + 4 + 9 + 0.25 + 16)) < 1e-12);
    must(att_weights_get(it.weights, -1, index, before, NETWORK_CLASSES));
    must(att_update_apply(it.update, &(att_hyper){.lr = 0.5, .update = 1}));
    must(att_weights_get(it.weights, -1, index, after, NETWORK_CLASSES));
    for (int i = 0; i < NETWORK_CLASSES; i++)
        assert_true(after[i] == before[i] - 0.5f * (2 * given[i]));
    assert_int_equal(att_update_apply(it.update, &(att_hyper){.lr = 0.5, .update = 2}), ATT_ERR_ARGUMENT);
    assert_fails(context, att_gradient_get(it.gradient, index, after, 3), ATT_ERR_ARGUMENT,
                 "there is no trained parameter");
    att_gradient_begin(it.gradient);
    assert_int_equal(att_update_reduce(it.update, NULL), ATT_ERR_ARGUMENT);
    add_to_gradient(it.gradient, index, given, NETWORK_CLASSES);
    must(att_update_reduce(it.update, NULL));
    add_to_gradient(it.gradient, index, given, NETWORK_CLASSES);
    assert_fails(context, att_update_apply(it.update, &(att_hyper){.lr = 0.5, .update = 2}), ATT_ERR_ARGUMENT,
                 "call att_update_reduce() for this gradient");
    free_runner(&it);
}

/* A derived weight and a derived bias; with batch norm, whose statistics change in a run. */
static att_graph *derived_graph(bool norm)
{
    att_graph *graph = make_graph();
    att_value x = att_graph_input(graph, "image", ATT_F32, att_shape_of(SIZE, SIZE));
    att_value target = att_graph_input(graph, "target", ATT_I32, (att_shape){0});
    att_value weight = att_tanh(graph, network_parameter(graph, "weight", att_shape_of(SIZE, SIZE), 0.5));
    att_value bias = att_silu(graph, network_parameter(graph, "bias", att_shape_of(SIZE, SIZE), 0.5));
    x = att_gelu(graph,
                 att_add(graph, att_linear(graph, x, weight, ATT_NONE), att_linear(graph, bias, weight, ATT_NONE)));
    if (norm)
        x = att_batch_norm(graph, x, network_parameter(graph, "gamma", att_shape_of(SIZE), 1),
                           network_parameter(graph, "beta", att_shape_of(SIZE), 1),
                           att_graph_buffer(graph, "mean", att_shape_of(SIZE), 0),
                           att_graph_buffer(graph, "variance", att_shape_of(SIZE), 1), NULL);
    x = network_linear(graph, "head", att_token_mean(graph, x, 0), NETWORK_CLASSES);
    att_graph_output(graph, "logits", x);
    att_graph_output(graph, "loss", att_cross_entropy(graph, x, target, 0));
    return graph;
}

/* CPU kernels agree with the reference in prologue and epilogue, with several lanes. */
TEST(derived_values_run_on_the_processor)
{
    data d = draw();
    att_graph *graph = derived_graph(true);
    att_plan_options options = {.purpose = ATT_TRAIN, .backend = "ref", .lanes = 2};
    runner it = make_runner(derived_graph(true), options, BATCH);
    accumulate(&it, it.gradient, &d, 0, BATCH);
    for (int lanes = 1; lanes <= 2 * BATCH; lanes += BATCH) {
        att_plan *plan;
        runner other = it;
        options.backend = "cpu", options.lanes = lanes;
        must(att_plan_compile(graph, &options, &plan));
        must(att_session_create(plan, it.weights, BATCH, &other.session));
        must(att_gradient_create(it.weights, &other.gradient));
        accumulate(&other, other.gradient, &d, 0, BATCH);
        double off = difference(it.weights, it.gradient, other.gradient);
        printf("%d lanes: off by %.2g\n", lanes, off);
        assert_true(off > 0 && off < 3e-6); /* measured: 4.8e-7 */
        att_gradient_destroy(&other.gradient);
        att_session_destroy(&other.session);
        att_plan_destroy(&plan);
    }
    att_graph_destroy(&graph);
    free_runner(&it);
}

/* A session that has packed running statistics packs them again after a training run has changed them. */
TEST(changed_statistics_are_seen)
{
    enum { CLASSES = NETWORK_CLASSES };
    data d = draw();
    att_graph *graph = derived_graph(true);
    runner it = make_runner(derived_graph(true), training, BATCH);
    att_plan_options infer = att_plan_options_defaults();
    att_plan *plan;
    att_session *session;
    float before[CLASSES], after[CLASSES];
    uint64_t version = att_weights_version(it.weights);
    must(att_plan_compile(graph, &infer, &plan));
    must(att_session_create(plan, it.weights, 1, &session));
    must(att_session_bind(session, "image", d.images));
    must(att_session_bind(session, "target", d.targets));
    must(att_session_run(session, 1));
    must(att_session_output(session, "logits", 0, 1, before));
    accumulate(&it, it.gradient, &d, 0, BATCH);
    assert_true(att_weights_version(it.weights) > version);
    must(att_session_run(session, 1));
    must(att_session_output(session, "logits", 0, 1, after));
    assert_memory_not_equal(before, after, sizeof before);
    att_session_destroy(&session);
    att_plan_destroy(&plan);
    att_graph_destroy(&graph);
    free_runner(&it);
}

/* One step of plain gradient descent on a gradient of ones with these rates. Returns by how much the first element of
 * each parameter, which is 2 before, changes. */
static void step_with(const att_parameter_rates *rates, att_weights *weights, double *changes)
{
    att_gradient *gradient;
    att_update *update;
    att_update_options options = {.backend = "cpu", .optimizer = "sgd", .rates = rates};
    float ones[MOST], twos[MOST];
    for (int i = 0; i < MOST; i++)
        ones[i] = 1, twos[i] = 2;
    must(att_gradient_create(weights, &gradient));
    must(att_update_create(gradient, &options, &update));
    for (int i = 0; i < att_weights_count(weights); i++) {
        int64_t count = att_shape_count(att_weights_at(weights, i).shape);
        must(att_weights_set(weights, -1, i, twos, count));
        add_to_gradient(gradient, i, ones, count);
    }
    double norm, expected = 0;
    for (int i = 0; i < att_weights_count(weights); i++)
        if (!rates || !rates[i].frozen)
            expected += (double)att_shape_count(att_weights_at(weights, i).shape);
    must(att_update_reduce(update, &norm));
    assert_true(fabs(norm - sqrt(expected)) < 1e-12); /* without frozen parameters */
    assert_fails(context, att_update_apply(update, &(att_hyper){.lr = 0.5}), ATT_ERR_ARGUMENT,
                 "updates are counted from 1, not 0");
    must(att_update_apply(update, &(att_hyper){.lr = 0.5, .weight_decay = 0.25, .update = 1}));
    for (int i = 0; i < att_weights_count(weights); i++) {
        float now[MOST];
        int64_t count = att_shape_count(att_weights_at(weights, i).shape);
        must(att_weights_get(weights, -1, i, now, count));
        for (int64_t e = 1; e < count; e++)
            assert_true(now[e] == now[0]);
        changes[i] = 2 - (double)now[0];
    }
    att_update_destroy(&update);
    att_gradient_destroy(&gradient);
}

TEST(every_parameter_can_have_rates_of_its_own)
{
    enum { ROOM = 64 };
    att_parameter_rates rates[ROOM];
    double changes[ROOM];
    runner it = make_runner(network_graph(SIZE), training, 1);
    int count = att_weights_count(it.weights);
    assert_true(count <= ROOM);
    step_with(NULL, it.weights, changes);
    for (int i = 0; i < count; i++)
        assert_true(changes[i] == (att_weights_at(it.weights, i).decay ? 0.5 * (1 + 0.25 * 2) : 0.5));
    for (int i = 0; i < count; i++) /* rates that all differ; every fifth parameter is frozen */
        rates[i] = (att_parameter_rates){.lr = 1 + 0.25 * i, .weight_decay = i % 4, .frozen = i % 5 == 0};
    step_with(rates, it.weights, changes);
    for (int i = 0; i < count; i++)
        assert_true(changes[i] == (i % 5 == 0 ? 0 : 0.5 * rates[i].lr * (1 + 0.25 * rates[i].weight_decay * 2)));
    assert_true(rates[3].lr != 0 && !att_weights_at(it.weights, 3).buffer);
    rates[3].lr = NAN;
    att_gradient *gradient;
    att_update *update = NULL;
    att_update_options options = {.backend = "cpu", .optimizer = "sgd", .rates = rates};
    must(att_gradient_create(it.weights, &gradient));
    assert_fails(context, att_update_create(gradient, &options, &update), ATT_ERR_ARGUMENT,
                 "must be finite and not negative");
    options.rates = NULL, options.optimizer = "adamv";
    assert_fails(context, att_update_create(gradient, &options, &update), ATT_ERR_NOT_FOUND, "did you mean \"adamw\"");
    assert_null(update);
    att_gradient_destroy(&gradient);
    free_runner(&it);
}

/* Frozen parameters get no gradient, the others the same bits as in a network of which nothing is frozen and that draws
 * nothing, because what is drawn here lies in frozen parts; nothing before the first trained parameter is computed in
 * the backward pass. */
TEST(frozen_parameters_get_no_gradient)
{
    enum { ROOM = 64 };
    bool frozen[ROOM] = {false};
    data d = draw();
    att_graph *graph = network_graph(SIZE);
    for (int i = 0; i < att_graph_parameter_count(graph); i++)
        frozen[i] = strncmp(att_graph_parameter_at(graph, i).name, "head", 4) != 0;
    att_plan_options options = training;
    options.frozen = frozen;
    att_plan *plan;
    must(att_plan_compile(graph, &options, &plan));
    options.frozen = NULL;
    options.purpose = ATT_GRADIENT;
    runner it = make_runner(graph, options, BATCH), probe = it;
    att_gradient *gradient;
    must(att_gradient_create(it.weights, &it.gradient));
    must(att_gradient_create(it.weights, &gradient));
    must(att_session_create(plan, it.weights, BATCH, &probe.session));
    accumulate(&it, it.gradient, &d, 0, BATCH);
    accumulate(&probe, gradient, &d, 0, BATCH);
    for (int i = 0; i < att_weights_count(it.weights); i++) {
        float with[MOST], without[MOST];
        int64_t count = att_shape_count(att_weights_at(it.weights, i).shape);
        must(att_gradient_get(it.gradient, i, with, count));
        must(att_gradient_get(gradient, i, without, count));
        for (int64_t e = 0; e < count; e++)
            assert_true(without[e] == (frozen[i] ? 0 : with[e]));
    }
    assert_true(att_plan_describe(plan).steps < att_plan_describe(it.plan).steps * 2 / 3);
    assert_fails(context, att_session_accumulate(probe.session, NULL, BATCH, 1, 1, 0, 0), ATT_ERR_ARGUMENT,
                 "every parameter must be frozen; \"head."); /* the compiler decides whether weight or bias */
    att_session_destroy(&probe.session);
    att_gradient_destroy(&gradient);
    att_plan_destroy(&plan);
    free_runner(&it);
}

/* Wrong numbers are refused before anything changes, so that the last, correct call works. */
TEST(numbers_of_an_update_are_checked)
{
    data d = draw();
    runner it = make_runner(derived_graph(true), training, BATCH);
    att_parameter_rates rates[16];
    att_update_options options = {.backend = "cpu", .optimizer = "sgd", .rates = rates, .ema = true};
    for (int i = 0; i < att_weights_count(it.weights); i++) {
        att_parameter_info parameter = att_weights_at(it.weights, i);
        rates[i] = att_parameter_rates_defaults(&parameter);
        if (parameter.buffer)
            rates[i].lr = rates[i].weight_decay = NAN; /* ignored */
    }
    must(att_update_create(it.gradient, &options, &it.update));
    accumulate(&it, it.gradient, &d, 0, BATCH);
    must(att_update_reduce(it.update, NULL));
    const att_hyper right = {.lr = 0.1, .update = 1};
    for (int i = 0; i < 6; i++) {
        att_hyper hyper = right;
        *(i < 1   ? &hyper.lr
          : i < 2 ? &hyper.weight_decay
          : i < 4 ? &hyper.clip_norm
                  : &hyper.ema_decay) = i == 3   ? -1
                                        : i == 5 ? 1.5
                                                 : NAN;
        assert_fails(context, att_update_apply(it.update, &hyper), ATT_ERR_ARGUMENT,
                     i < 2   ? "must be finite"
                     : i < 4 ? "clip_norm is"
                             : "ema_decay is");
    }
    must(att_update_apply(it.update, &right));
    float mean[SIZE], average[SIZE];
    int slot = 0, index = att_weights_find(it.weights, "mean");
    while (strcmp(att_weights_slot_name(it.weights, slot), "ema") != 0)
        slot++;
    must(att_weights_get(it.weights, -1, index, mean, SIZE));
    must(att_weights_get(it.weights, slot, index, average, SIZE));
    assert_true(mean[0] != 0);
    assert_memory_equal(average, mean, sizeof mean); /* buffers are averaged too */
    free_runner(&it);
}

/* A value derived from a running mean uses the mean that the last run assigned. */
TEST(derived_values_follow_assigned_buffers)
{
    data d = draw();
    att_graph *graph = make_graph();
    att_value x = att_graph_input(graph, "image", ATT_F32, att_shape_of(SIZE, SIZE));
    att_value target = att_graph_input(graph, "target", ATT_I32, (att_shape){0});
    att_value mean = att_graph_buffer(graph, "mean", att_shape_of(SIZE), 0);
    x = att_batch_norm(graph, x, network_parameter(graph, "gamma", att_shape_of(SIZE), 1),
                       network_parameter(graph, "beta", att_shape_of(SIZE), 1), mean,
                       att_graph_buffer(graph, "variance", att_shape_of(SIZE), 1), NULL);
    x = network_linear(graph, "head", att_add(graph, att_token_mean(graph, x, 0), att_tanh(graph, mean)),
                       NETWORK_CLASSES);
    att_graph_output(graph, "logits", x);
    att_graph_output(graph, "loss", att_cross_entropy(graph, x, target, 0));
    runner it = make_runner(graph, training, BATCH), fresh = it;
    float kept[SIZE], second[BATCH * NETWORK_CLASSES], expected[BATCH * NETWORK_CLASSES];
    int index = att_weights_find(it.weights, "mean");
    accumulate(&it, it.gradient, &d, 0, BATCH);
    must(att_weights_get(it.weights, -1, index, kept, SIZE));
    assert_true(kept[0] != 0);
    accumulate(&it, it.gradient, &d, 0, BATCH);
    must(att_session_output(it.session, "logits", 0, BATCH, second));
    must(att_weights_set(it.weights, -1, index, kept, SIZE));
    must(att_session_create(it.plan, it.weights, BATCH, &fresh.session));
    accumulate(&fresh, it.gradient, &d, 0, BATCH);
    must(att_session_output(fresh.session, "logits", 0, BATCH, expected));
    assert_memory_equal(second, expected, sizeof second);
    att_session_destroy(&fresh.session);
    free_runner(&it);
}

TEST(a_buffer_is_no_parameter)
{
    att_graph *graphs[2] = {make_graph(), make_graph()};
    att_plan_options infer = att_plan_options_defaults();
    for (int i = 0; i < 2; i++) {
        att_value gain = i ? network_parameter(graphs[i], "gain", att_shape_of(SIZE), 1)
                           : att_graph_buffer(graphs[i], "gain", att_shape_of(SIZE), 1);
        att_value x = att_graph_input(graphs[i], "x", ATT_F32, att_shape_of(SIZE));
        att_graph_output(graphs[i], "y", att_scale(graphs[i], x, gain));
    }
    for (int i = 0; i < 2; i++) {
        att_plan *plan;
        att_weights *weights;
        att_session *session = NULL;
        must(att_plan_compile(graphs[i], &infer, &plan));
        must(att_weights_create(graphs[1 - i], "cpu", &weights));
        assert_fails(context, att_session_create(plan, weights, 1, &session), ATT_ERR_MISMATCH,
                     "buffer in one of them only");
        assert_null(session);
        att_weights_destroy(&weights);
        att_plan_destroy(&plan);
    }
    for (int i = 0; i < 2; i++)
        att_graph_destroy(&graphs[i]);
}

static att_value two_layers(att_graph *graph, bool backbone, bool head)
{
    att_value x = att_graph_input(graph, backbone ? "image" : "features", ATT_F32, att_shape_of(SIZE));
    att_value target = head ? att_graph_input(graph, "target", ATT_I32, (att_shape){0}) : ATT_NONE;
    if (backbone)
        x = att_gelu(graph, network_linear(graph, "backbone", x, SIZE));
    if (!head) {
        att_graph_output(graph, "features", x);
        return x;
    }
    x = network_linear(graph, "head", x, NETWORK_CLASSES);
    att_graph_output(graph, "loss", att_cross_entropy(graph, x, target, 0));
    return x;
}

/* The backbone of one weights object and the head of another, as one network. */
TEST(overlaid_weights_are_for_inference_only)
{
    att_graph *graphs[2] = {make_graph(), make_graph()}, *wide;
    att_weights *backbone, *whole, *other, *covered = NULL;
    two_layers(graphs[0], true, false);
    two_layers(graphs[1], true, true);
    must(att_weights_create(graphs[0], "cpu", &backbone));
    must(att_weights_create(graphs[1], "cpu", &whole));
    must(att_graph_create(context, ATT_F64, &wide));
    network_parameter(wide, "wide", att_shape_of(SIZE), 1);
    must(att_weights_create(wide, "ref", &other));
    assert_int_equal(att_weights_overlay(backbone, other, &covered), ATT_ERR_MISMATCH);
    assert_null(covered);
    must(att_weights_overlay(whole, backbone, &covered));
    assert_int_equal(att_weights_count(covered), att_weights_count(whole));
    att_gradient *none = NULL;
    assert_fails(context, att_gradient_create(covered, &none), ATT_ERR_ARGUMENT,
                 "overlaid weights cannot have a gradient");
    uint64_t version = att_weights_version(covered);
    must(att_weights_initialise(covered, 5)); /* both parts */
    assert_true(att_weights_version(covered) > version);
    att_plan *head;
    att_session *session = NULL;
    att_plan_options infer = att_plan_options_defaults();
    att_graph *last = make_graph();
    two_layers(last, false, true);
    must(att_plan_compile(last, &infer, &head));
    must(att_session_create(head, covered, 1, &session)); /* weights may hold more than a plan needs, but not less */
    att_session_destroy(&session);
    assert_fails(context, att_session_create(head, backbone, 1, &session), ATT_ERR_MISMATCH,
                 "the weights lack \"head.");
    att_plan_destroy(&head);
    att_weights_destroy(&covered);
    att_weights_destroy(&other);
    att_weights_destroy(&whole);
    att_weights_destroy(&backbone);
    att_graph_destroy(&last);
    att_graph_destroy(&wide);
    for (int i = 0; i < 2; i++)
        att_graph_destroy(&graphs[i]);
}
