/* Plans with frozen parameters: parts that run as in inference, and values that are computed once for each sample. */
#include "engine/fixture.h"
#include "engine/network.h"
#include "engine/session/session.h"

enum { SIZE = 8, BATCH = 6, ROOM = 64, MOST = 1024 };

typedef struct data {
    float images[BATCH * SIZE * SIZE];
    int32_t targets[BATCH];
} data;

static const att_plan_options training = {.purpose = ATT_TRAIN, .backend = "cpu", .lanes = 2};

/* Marks the parameters whose names begin with one of the words. */
static void mark(const att_graph *graph, const char *const *words, bool frozen[ROOM])
{
    for (int i = 0; i < att_graph_parameter_count(graph); i++) {
        frozen[i] = false;
        for (int w = 0; words[w]; w++)
            frozen[i] = frozen[i] || strncmp(att_graph_parameter_at(graph, i).name, words[w], strlen(words[w])) == 0;
    }
}

static runner make_frozen(void (*build)(att_graph *graph, int size), const char *const *words, int lanes)
{
    bool frozen[ROOM];
    att_graph *graph = make_graph();
    att_plan_options options = training;
    build(graph, SIZE);
    mark(graph, words, frozen);
    options.frozen = frozen;
    options.lanes = lanes;
    return make_runner(graph, options, BATCH);
}

/* The gradient of all parameters, one after the other, and the losses, of one batch. Returns their number. */
static int gradient_of(const runner *it, const data *d, uint64_t seed, float *out)
{
    int count = 0;
    must(att_session_bind(it->session, "image", d->images));
    must(att_session_bind(it->session, "target", d->targets));
    att_gradient_begin(it->gradient);
    must(att_session_accumulate(it->session, it->gradient, BATCH, 1.0 / BATCH, seed, 0, 0));
    for (int i = 0; i < att_weights_count(it->weights); i++) {
        const att_parameter_info parameter = att_weights_at(it->weights, i);
        const int64_t elements = att_shape_count(parameter.shape);
        if (parameter.buffer)
            continue;
        assert_true(count + elements < 8 * MOST);
        must(att_gradient_get(it->gradient, i, out + count, elements));
        count += (int)elements;
    }
    must(att_session_output(it->session, "loss", 0, BATCH, out + count));
    return count + BATCH;
}

/* Whether two seeds give the same gradient, so that nothing is drawn. */
static bool is_fixed(const char *const *words)
{
    static float a[8 * MOST], b[8 * MOST];
    data d;
    network_data(d.images, d.targets, BATCH, SIZE);
    runner it = make_frozen(network_build, words, 2);
    int count = gradient_of(&it, &d, 1, a);
    assert_int_equal(gradient_of(&it, &d, 2, b), count);
    free_runner(&it);
    return memcmp(a, b, (size_t)count * sizeof *a) == 0;
}

/* The network draws in attn (dropout of the map), attn.proj (drop path) and mlp.fc1 (dropout). The first parameters are
 * trained, so that nothing is frozen for lack of a trained parameter before it. */
TEST(frozen_scopes_draw_nothing)
{
    assert_true(is_fixed((const char *const[]){"attn", "mlp", NULL}));
    assert_false(is_fixed((const char *const[]){"attn", NULL}));
    assert_false(is_fixed((const char *const[]){"mlp", NULL}));
    assert_true(is_fixed((const char *const[]){"attn.proj", "attn.qkv", "mlp.fc1", NULL}));
    assert_false(is_fixed((const char *const[]){"attn.proj", "attn.qkv", "mlp.fc1.weight", NULL}));
    assert_false(is_fixed((const char *const[]){"attn.qkv", "mlp.fc1", NULL}));
}

/* --- batch norm --------------------------------------------------------------------------------------------------- */

static const char *join(const char *name, const char *rest)
{
    static char joined[64];
    snprintf(joined, sizeof joined, "%s.%s", name, rest);
    return joined;
}

static att_value norm(att_graph *graph, const char *name, att_value x, bool frozen)
{
    const att_shape shape = att_shape_of(NETWORK_WIDTH);
    const att_init start = {ATT_INIT_CONSTANT, 1.5};
    att_value gamma = att_graph_parameter(graph, join(name, "weight"), shape, start, false);
    att_value beta = att_graph_parameter(graph, join(name, "bias"), shape, start, false);
    att_value mean = att_graph_buffer(graph, join(name, "running_mean"), shape, 0.25);
    att_value variance = att_graph_buffer(graph, join(name, "running_var"), shape, 2);
    att_graph_scope(graph, name);
    return att_batch_norm(graph, x, gamma, beta, mean, variance, &(att_batch_norm_options){.frozen = frozen});
}

static void build_normed(att_graph *graph, bool frozen)
{
    att_value image = att_graph_input(graph, "image", ATT_F32, att_shape_of(SIZE, SIZE, 1));
    att_value target = att_graph_input(graph, "target", ATT_I32, (att_shape){0});
    att_value x = network_linear(graph, "stem", att_patchify(graph, image, 2, 2), NETWORK_WIDTH);
    x = network_linear(graph, "middle", att_relu(graph, norm(graph, "norm1", x, frozen)), NETWORK_WIDTH);
    x = norm(graph, "norm2", x, false);
    att_value logits = network_linear(graph, "head", att_token_mean(graph, x, 0), NETWORK_CLASSES);
    att_graph_output(graph, "logits", logits);
    att_graph_scope(graph, "loss");
    att_graph_output(graph, "loss", att_cross_entropy(graph, logits, target, 0.1));
}

static void build_trained_norm(att_graph *graph, int size)
{
    (void)size;
    build_normed(graph, false);
}

static void build_frozen_norm(att_graph *graph, int size)
{
    (void)size;
    build_normed(graph, true);
}

static void read_all(const runner *it, const char *name, float values[NETWORK_WIDTH])
{
    must(att_weights_get(it->weights, -1, att_weights_find(it->weights, name), values, NETWORK_WIDTH));
}

/* The gradient of the layer before a frozen norm is that of a network whose norm always uses its running statistics. */
TEST(a_frozen_batch_norm_uses_its_running_statistics)
{
    static float a[8 * MOST], b[8 * MOST];
    float mean[NETWORK_WIDTH], moved[NETWORK_WIDTH];
    data d;
    network_data(d.images, d.targets, BATCH, SIZE);
    const char *const words[] = {"norm1", NULL};
    runner it = make_frozen(build_trained_norm, words, 2), other = make_frozen(build_frozen_norm, words, 2);
    const int count = gradient_of(&it, &d, 1, a);
    assert_int_equal(gradient_of(&other, &d, 1, b), count);
    assert_memory_equal(a, b, (size_t)count * sizeof *a);
    read_all(&it, "norm1.running_mean", mean), read_all(&it, "norm2.running_mean", moved);
    for (int i = 0; i < NETWORK_WIDTH; i++)
        assert_true(mean[i] == 0.25f && moved[i] != 0.25f);
    free_runner(&it);
    free_runner(&other);
}

/* A convolution that is trained, a norm, and what keeps the norm's result for a gradient. */
static void build_convolution(att_graph *graph, int size)
{
    (void)size;
    const att_init random = {ATT_INIT_NORMAL, 0.1};
    const att_conv_options around = {.padding = 1};
    att_value image = att_graph_input(graph, "image", ATT_F32, att_shape_of(SIZE, SIZE, 1));
    att_value target = att_graph_input(graph, "target", ATT_I32, (att_shape){0}), x = image;
    for (int i = 0; i < 2; i++) {
        const char *name = i ? "conv2.weight" : "conv1.weight";
        att_value weight =
            att_graph_parameter(graph, name, att_shape_of(NETWORK_WIDTH, i ? NETWORK_WIDTH : 1, 3, 3), random, true);
        x = att_relu(graph, norm(graph, i ? "norm2" : "norm1", att_conv2d(graph, x, weight, ATT_NONE, &around), false));
    }
    x = att_token_mean(graph, att_reshape(graph, x, att_shape_of(SIZE * SIZE, NETWORK_WIDTH)), 0);
    att_graph_output(graph, "loss",
                     att_cross_entropy(graph, network_linear(graph, "head", x, NETWORK_CLASSES), target, 0));
}

static int count_steps(const runner *it, const char *op)
{
    int count = 0;
    for (int s = 0; s < it->plan->segment_count; s++)
        for (int i = 0; i < it->plan->segments[s].programs[0].step_count; i++)
            count += strcmp(it->plan->segments[s].programs[0].steps[i].unit->problem.op, op) == 0;
    return count;
}

/* The convolutions absorb such norms, so that what they normalise is not kept. A weight or bias that is trained needs
 * it. */
TEST(the_input_of_a_norm_without_trained_parameters_is_not_kept)
{
    const char *const whole[] = {"norm", NULL}, *const statistics[] = {"norm1.running", "norm2.running", NULL};
    runner it = make_frozen(build_convolution, whole, 2), trained = make_frozen(build_convolution, statistics, 2);
    assert_int_equal(count_steps(&it, "batch_norm"), 0);
    assert_int_equal(count_steps(&it, "batch_norm_grad"), 2);
    assert_true(count_steps(&trained, "batch_norm") >= 2);
    free_runner(&it);
    free_runner(&trained);
}

/* --- values that are computed once -------------------------------------------------------------------------------- */

static const char *const backbone[] = {"patch_embed", "cls_token", "pos_embed", "norm1", "attn", NULL};
static const char *const stem_and_norm[] = {"stem", "norm1", "middle", NULL}; /* norm2 is trained on frozen values */

/* The network with a probe of a frozen value. */
static void build_probed(att_graph *graph, int size)
{
    network_build(graph, size);
    for (int i = 0; i < att_graph_node_count(graph); i++)
        if (strcmp(att_graph_node_at(graph, i).op, "attention") == 0)
            att_graph_probe(graph, "seen", att_graph_node_at(graph, i).out[0]);
}

static void compare_probes(const runner *a, const runner *b)
{
    enum { VALUES = BATCH * (SIZE * SIZE / 4 + 1) * NETWORK_WIDTH };
    static float x[VALUES], y[VALUES];
    must(att_session_output(a->session, "seen", 0, BATCH, x));
    must(att_session_output(b->session, "seen", 0, BATCH, y));
    assert_memory_equal(x, y, sizeof x);
}

/* Runs batches that repeat images, in other places of the batch and within a batch, with and without remembering. */
static void compare_runs(void (*build)(att_graph *graph, int size), const char *const *words, int lanes, int samples)
{
    static float a[8 * MOST], b[8 * MOST];
    data d;
    network_data(d.images, d.targets, BATCH, SIZE);
    memcpy(d.images, d.images + SIZE * SIZE, SIZE * SIZE * sizeof(float)); /* two equal samples */
    runner plain = make_frozen(build, words, lanes), it = make_frozen(build, words, lanes);
    assert_true(it.plan->frozen_count > 0 && it.plan->frozen_bytes > 0);
    must(att_session_remember(it.session, samples));
    for (int round = 0; round < 5; round++) {
        const int count = gradient_of(&plain, &d, (uint64_t)round, a);
        att_session_observe(it.session, round == 3); /* computes all values */
        assert_int_equal(gradient_of(&it, &d, (uint64_t)round, b), count);
        assert_memory_equal(a, b, (size_t)count * sizeof *a);
        if (round == 3 && build == build_probed)
            compare_probes(&plain, &it);
        data moved = d;
        for (int i = 0; i < BATCH; i++) {
            const int from = (i + 1) % BATCH;
            memcpy(moved.images + i * SIZE * SIZE, d.images + from * SIZE * SIZE, SIZE * SIZE * sizeof(float));
            moved.targets[i] = d.targets[from];
        }
        d = moved;
        if (round == 1)
            d.images[5] += 1; /* a new sample between known ones */
    }
    free_runner(&plain);
    free_runner(&it);
}

TEST(remembered_values_change_no_bit)
{
    for (int lanes = 1; lanes <= 4; lanes *= 2)
        for (int samples = 1; samples <= 8; samples += 7) {
            compare_runs(build_probed, backbone, lanes, samples);
            compare_runs(build_trained_norm, stem_and_norm, lanes, samples);
        }
}

static void count_patchify(void *user, int part, const char *scope, const char *op, const char *kernel, double seconds)
{
    (void)scope, (void)kernel, (void)seconds;
    if (part == 0 && strcmp(op, "attention") == 0)
        __atomic_add_fetch((int *)user, 1, __ATOMIC_RELAXED);
}

TEST(known_samples_are_not_computed)
{
    static float gradient[8 * MOST];
    int calls = 0;
    data d;
    network_data(d.images, d.targets, BATCH, SIZE);
    runner it = make_frozen(network_build, backbone, 2);
    must(att_session_remember(it.session, BATCH));
    att_session_observe(it.session, false);
    att_session_trace(it.session, count_patchify, &calls);
    gradient_of(&it, &d, 0, gradient);
    assert_true(calls > 0);
    calls = 0;
    gradient_of(&it, &d, 1, gradient);
    assert_int_equal(calls, 0);
    d.images[BATCH * SIZE * SIZE - 1] += 1;
    gradient_of(&it, &d, 1, gradient);
    assert_true(calls > 0);
    free_runner(&it);
}

/* Nothing that is the same in every update reads a parameter, so there is no segment for it. */
TEST(without_a_frozen_stem_there_is_nothing_to_remember)
{
    const char *const words[] = {"attn", "mlp", "patch_embed.proj.bias", NULL};
    runner it = make_frozen(network_build, words, 2);
    assert_int_equal(it.plan->frozen_count, 0);
    assert_int_equal(it.plan->segment_count, 1);
    assert_int_equal(att_session_remembered_bytes(it.plan, 100), 0);
    must(att_session_remember(it.session, 100));
    assert_null(it.session->remembered);
    free_runner(&it);
}
