/* Modules that start as the identity: before the first update the network answers as without the module, in inference
 * and in training, and the module has a gradient. */
#include <attscope/update.h>

#include "context.h"
#include "networks/models/loss.h"
#include "networks/models/net.h"

SHARED_CONTEXT(threads, 1)

enum { SIDE = 32, PIXELS = SIDE * SIDE * 3, CLASSES = 10, BATCH = 4 };

/* A network with the module; "none": without. Parameters of the network itself have the formula's values, those of the
 * module their initial ones. */
typedef struct started {
    att_model *model;
    att_weights *weights;
} started;

static att_option_values options_of(const char *name, const char *modules)
{
    att_option_values options = att_options_none();
    if (strncmp(name, "vit", 3) == 0) {
        att_options_set(&options, "img_size", SIDE), att_options_set(&options, "patch_size", 8);
        att_options_set(&options, "embed_dim", 32), att_options_set(&options, "depth", 2);
        att_options_set(&options, "num_heads", 4), att_options_set(&options, "num_classes", CLASSES);
    }
    att_options_set_text(&options, "modules", modules);
    return options;
}

static bool has_parameter(const att_graph *graph, const char *name)
{
    for (int i = 0; i < att_graph_parameter_count(graph); i++)
        if (strcmp(att_graph_parameter_at(graph, i).name, name) == 0)
            return true;
    return false;
}

static bool is_scale(const att_parameter_info *parameter)
{
    return strstr(parameter->name, "running_var") || (parameter->shape.rank == 1 && strstr(parameter->name, "weight"));
}

/* Weights and running variances of norms are around 1, all others around 0. */
static void fill_shared(const att_model *plain, att_weights *weights)
{
    for (int i = 0; i < att_weights_count(weights); i++) {
        att_parameter_info parameter = att_weights_at(weights, i);
        int64_t count = att_shape_count(parameter.shape);
        if (!has_parameter(att_model_graph(plain), parameter.name))
            continue;
        float *values = malloc((size_t)count * sizeof *values);
        for (int64_t e = 0; e < count; e++)
            values[e] = is_scale(&parameter) + (float)(0.3 * formula(parameter.name, (uint32_t)e));
        CHECK(context, att_weights_set(weights, -1, i, values, count));
        free(values);
    }
}

static started start(const char *name, const char *modules, const att_model *plain)
{
    started s;
    att_option_values options = options_of(name, modules);
    CHECK(context, att_model_create(context, name, &options, ATT_F32, &s.model));
    loss_add(s.model, 0);
    CHECK(context, att_weights_create(att_model_graph(s.model), "cpu", &s.weights));
    CHECK(context, att_weights_initialise(s.weights, 1));
    fill_shared(plain ? plain : s.model, s.weights);
    return s;
}

static void finish(started *s)
{
    att_weights_destroy(&s->weights);
    att_model_destroy(&s->model);
}

static void bind(att_session *session)
{
    static float images[BATCH * PIXELS];
    static const int32_t labels[BATCH] = {3, 1, 4, 1};
    for (uint32_t i = 0; i < BATCH * PIXELS; i++)
        images[i] = (float)(4 * formula("image", i));
    CHECK(context, att_session_bind(session, "image", images));
    CHECK(context, att_session_bind(session, "target", labels));
}

/* The losses of a batch. gradient: of a training step; NULL: inference. */
static void run(const started *s, att_gradient *gradient, float losses[BATCH])
{
    att_plan_options options = att_plan_options_defaults();
    att_plan *plan;
    att_session *session;
    options.purpose = gradient ? ATT_TRAIN : options.purpose;
    CHECK(context, att_plan_compile(att_model_graph(s->model), &options, &plan));
    CHECK(context, att_session_create(plan, s->weights, BATCH, &session));
    bind(session);
    if (gradient)
        CHECK(context, att_session_accumulate(session, gradient, BATCH, 1.0 / BATCH, 1, 0, 0));
    else
        CHECK(context, att_session_run(session, BATCH));
    CHECK(context, att_session_output(session, "loss", 0, BATCH, losses));
    att_session_destroy(&session);
    att_plan_destroy(&plan);
}

static double distance(const float a[BATCH], const float b[BATCH])
{
    double worst = 0;
    for (int i = 0; i < BATCH; i++)
        worst = fmax(worst, fabs((double)a[i] - b[i]) / fabs((double)b[i]));
    for (int i = 0; i < BATCH; i++)
        if (!isfinite(a[i]))
            return INFINITY;
    return worst;
}

/* Whether some element of the gradient of the module's parameters is not 0, and all are finite. */
static bool can_learn(const started *s, const att_model *plain, const att_gradient *gradient)
{
    bool moves = false;
    for (int i = 0; i < att_weights_count(s->weights); i++) {
        att_parameter_info parameter = att_weights_at(s->weights, i);
        int64_t count = att_shape_count(parameter.shape);
        if (parameter.buffer || has_parameter(att_model_graph(plain), parameter.name))
            continue;
        float *values = malloc((size_t)count * sizeof *values);
        CHECK(context, att_gradient_get(gradient, i, values, count));
        for (int64_t e = 0; e < count; e++) {
            assert_true(isfinite(values[e]));
            moves = moves || values[e] != 0;
        }
        free(values);
    }
    return moves;
}

typedef struct errors {
    double inference, training; /* largest relative differences of the losses */
} errors;

static void compare(const char *name, const char *modules, errors *worst)
{
    float plain[2][BATCH], with[2][BATCH];
    started without = start(name, "none", NULL), own = start(name, modules, without.model);
    att_gradient *gradients[2];
    CHECK(context, att_gradient_create(without.weights, &gradients[0]));
    CHECK(context, att_gradient_create(own.weights, &gradients[1]));
    run(&without, NULL, plain[0]);
    run(&own, NULL, with[0]);
    run(&without, gradients[0], plain[1]);
    run(&own, gradients[1], with[1]);
    if (!can_learn(&own, without.model, gradients[1]))
        fail_msg("%s: the module has no gradient", modules);
    worst->inference = fmax(worst->inference, distance(with[0], plain[0]));
    worst->training = fmax(worst->training, distance(with[1], plain[1]));
    att_gradient_destroy(&gradients[0]);
    att_gradient_destroy(&gradients[1]);
    finish(&own);
    finish(&without);
}

static errors compare_all(const char *name, const char *const *modules)
{
    errors worst = {0};
    for (; *modules; modules++)
        compare(name, *modules, &worst);
    print_message("%s: relative differences of the losses: inference %.2g, training %.2g\n", name, worst.inference,
                  worst.training);
    return worst;
}

TEST(gates_on_maps_start_as_the_identity)
{
    static const char *const modules[] = {"se:start=identity",
                                          "se:start=identity,bias=0@after_branch:3",
                                          "step:start=identity",
                                          "step:start=identity,adaptor=iebn",
                                          "step:start=identity,adaptor=bottleneck",
                                          "step:start=identity,adaptor=conv1d",
                                          "step:start=identity,adaptor=style",
                                          "step:start=identity,adaptor=dct",
                                          "step:start=identity,adaptor=linear,input=difference",
                                          NULL};
    errors worst = compare_all("resnet20", modules);
    assert_true(worst.inference == 0);
    assert_true(worst.training == 0);
}

TEST(modules_on_tokens_start_as_the_identity)
{
    static const char *const modules[] = {"cb:start=identity",
                                          "cb:start=identity,pool=max",
                                          "cb:start=identity,pool=class@after_attn",
                                          "cb_s",
                                          "se:start=identity@mid_mlp",
                                          "se:start=identity@after_mlp:1",
                                          NULL};
    errors worst = compare_all("vit_tiny_patch16_224", modules);
    assert_true(worst.inference == 0);
    assert_true(worst.training == 0);
}

TEST(modules_that_start_otherwise_are_noticed)
{
    static const char *const gates[] = {"se", NULL}, *const broadcasts[] = {"cb", NULL};
    errors worst = compare_all("resnet20", gates);
    assert_true(worst.inference > 0.01 && isfinite(worst.inference));
    float plain[BATCH], with[BATCH];
    started without = start("vit_tiny_patch16_224", "none", NULL),
            own = start("vit_tiny_patch16_224", broadcasts[0], without.model);
    run(&without, NULL, plain);
    run(&own, NULL, with);
    worst.inference = distance(with, plain);
    assert_true(worst.inference > 0.001);
    finish(&own);
    finish(&without);
}
