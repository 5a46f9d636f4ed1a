/* A small network of convolutions and pools: gradients and logits of the CPU backend against the reference, in f32 and
 * in mixed precision. */
#include "engine/fixture.h"

enum { SIDE = 13, CHANNELS = 3, SAMPLES = 7 };

static att_value conv(att_graph *graph, const char *name, att_value x, int64_t outputs, int64_t kernel,
                      const att_conv_options *options)
{
    char weight[64], bias[64];
    snprintf(weight, sizeof weight, "%s.weight", name);
    snprintf(bias, sizeof bias, "%s.bias", name);
    int64_t seen = att_value_shape(graph, x).dims[2] / (options->groups ? options->groups : 1);
    return att_conv2d(graph, x, network_parameter(graph, weight, att_shape_of(outputs, seen, kernel, kernel), 0.3),
                      network_parameter(graph, bias, att_shape_of(outputs), 0.1), options);
}

/* One of each kind of convolution, pool and shortcut. The last map, 2 x 2, goes to a linear layer as one row. */
static att_graph *build(void)
{
    att_graph *graph = make_graph();
    att_value image = att_graph_input(graph, "image", ATT_F32, att_shape_of(SIDE, SIDE, CHANNELS));
    att_value target = att_graph_input(graph, "target", ATT_I32, (att_shape){0});
    att_value x = conv(graph, "stem", image, 16, 7, &(att_conv_options){.stride = 1, .padding = 3});
    x = att_max_pool(graph, att_gelu(graph, x), &(att_pool_options){.kernel = 3, .stride = 2, .padding = 1});
    att_value y = conv(graph, "in", x, 20, 1, &(att_conv_options){0});
    y = conv(graph, "middle", y, 20, 3, &(att_conv_options){.stride = 2, .padding = 1, .groups = 4});
    y = conv(graph, "out", att_gelu(graph, y), 200, 3, &(att_conv_options){.padding = 2, .dilation = 2});
    y = att_add(graph, y, att_shortcut_pad(graph, x, 2, 200));
    y = att_concat(graph, att_adaptive_avg_pool(graph, y, 2, 2),
                   att_avg_pool(graph, y, &(att_pool_options){.kernel = 2, .ceil = true}));
    y = att_token_mean(graph, att_patchify(graph, y, 2, 2), 0);
    att_value logits = network_linear(graph, "head", y, NETWORK_CLASSES);
    att_graph_output(graph, "logits", logits);
    att_graph_output(graph, "loss", att_cross_entropy(graph, logits, target, 0));
    assert_int_equal(att_graph_status(graph), ATT_OK);
    return graph;
}

static void bind(const runner *it, float *images, int32_t *targets)
{
    for (int i = 0; i < SAMPLES * SIDE * SIDE * CHANNELS; i++)
        images[i] = (float)((i * 7919 + 13) % 1009) / 504.5f - 1;
    for (int i = 0; i < SAMPLES; i++)
        targets[i] = (i * 3) % NETWORK_CLASSES;
    assert_int_equal(att_session_bind(it->session, "image", images), ATT_OK);
    assert_int_equal(att_session_bind(it->session, "target", targets), ATT_OK);
}

static runner start(att_plan_options options)
{
    static float images[SAMPLES * SIDE * SIDE * CHANNELS];
    static int32_t targets[SAMPLES];
    runner it = make_runner(build(), options, SAMPLES);
    bind(&it, images, targets);
    return it;
}

/* Returns the gradients of all parameters, one after another; the caller frees them. */
static float *gradients_of(att_plan_options options, int64_t *total)
{
    options.purpose = ATT_TRAIN;
    runner it = start(options);
    assert_int_equal(att_session_accumulate(it.session, it.gradient, SAMPLES, 1.0 / SAMPLES, 1, 0, 0), ATT_OK);
    *total = 0;
    for (int i = 0; i < att_weights_count(it.weights); i++)
        *total += att_shape_count(att_weights_at(it.weights, i).shape);
    float *all = calloc((size_t)*total, sizeof *all), *to = all;
    assert_non_null(all);
    for (int i = 0; i < att_weights_count(it.weights); i++) {
        int64_t count = att_shape_count(att_weights_at(it.weights, i).shape);
        assert_int_equal(att_gradient_get(it.gradient, i, to, count), ATT_OK);
        to += count;
    }
    free_runner(&it);
    return all;
}

/* Returns |a - b| / |b| with Euclidean norms. */
static double distance(const float *a, const float *b, int64_t count)
{
    double difference = 0, size = 0;
    for (int64_t i = 0; i < count; i++) {
        difference += pow((double)a[i] - b[i], 2);
        size += pow(b[i], 2);
    }
    return sqrt(difference / size);
}

/* Compares with the reference in the same precision. */
static void compare_gradients(att_plan_options options, double limit)
{
    att_plan_options plain = options;
    int64_t count, reference_count;
    plain.backend = "ref";
    float *ours = gradients_of(options, &count), *truth = gradients_of(plain, &reference_count);
    assert_int_equal(count, reference_count);
    double error = distance(ours, truth, count);
    print_message("group %d, parts %d, precision %d: gradients differ by %.2g\n", options.group, options.parts,
                  (int)options.precision, error);
    assert_true(error <= limit);
    free(ours);
    free(truth);
}

TEST(gradients_agree_with_the_reference)
{
    for (int group = 1; group <= 4; group += 3)
        for (int parts = 1; parts <= 2; parts++) {
            att_plan_options options = att_plan_options_defaults();
            options.group = group;
            options.parts = parts;
            compare_gradients(options, 2e-6); /* 3.7e-7 */
        }
}

TEST(mixed_gradients_are_near)
{
    att_plan_options options = att_plan_options_defaults();
    options.precision = ATT_MIXED;
    compare_gradients(options, 3e-2); /* 8.2e-3: the reference does not round weights */
}

TEST(logits_agree_with_the_reference)
{
    float logits[2][SAMPLES * NETWORK_CLASSES];
    for (int parts = 1; parts <= 2; parts++)
        for (int batch = 1; batch <= SAMPLES; batch += SAMPLES - 1) {
            for (int reference = 0; reference < 2; reference++) {
                att_plan_options options = att_plan_options_defaults();
                options.backend = reference ? "ref" : "cpu";
                options.parts = parts;
                runner it = start(options);
                assert_int_equal(att_session_run(it.session, batch), ATT_OK);
                assert_int_equal(att_session_output(it.session, "logits", 0, batch, logits[reference]), ATT_OK);
                free_runner(&it);
            }
            assert_true(distance(logits[0], logits[1], (int64_t)batch * NETWORK_CLASSES) <= 2e-6); /* 3.0e-7 */
        }
}
