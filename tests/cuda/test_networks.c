/* Whole networks on the backend "cuda" against "cpu": logits, losses and gradients from the same weights; updates that
 * give the same bits when they are repeated; mixed precision; and a session that does not fit. Skipped without a
 * device. */
#include <math.h>

#include <attscope/gradient.h>
#include <attscope/plan.h>
#include <attscope/task.h>
#include <attscope/update.h>

#include "networks/models/fixture.h"

#include "cuda/device.h"
#include "engine/plan/plan.h"
#include "engine/weights/weights.h"

enum { STEPS = 3, MOST_CLASSES = 1000 };

typedef struct network {
    const char *title, *name;
    int side, classes, batch; /* classes 0: as the variant says; side 0: the same */
    int depth;                /* 0: as the variant says */
    const char *modules;
    double drop_path;
    const char *optimizer;
} network;

/* A network on one backend. */
typedef struct machine {
    const network *of;
    att_model *model;
    att_weights *weights;
    att_plan *infer, *train;
    att_session *inference, *training;
    att_gradient *gradient;
    att_update *update;
    int64_t pixels;
    int classes;
    float *images;
} machine;

/* By the formula; variances are near 1. */
static void fill(att_weights *weights, const att_graph *graph)
{
    formula_fill(context, graph, weights);
    for (int i = 0; i < att_weights_count(weights); i++) {
        att_parameter_info parameter = att_weights_at(weights, i);
        int64_t count = att_shape_count(parameter.shape);
        if (!strstr(parameter.name, "running_var"))
            continue;
        float *values = malloc((size_t)count * sizeof *values);
        for (int64_t e = 0; e < count; e++)
            values[e] = 1 + formula_weight(&parameter, e);
        CHECK(context, att_weights_set(weights, -1, i, values, count));
        free(values);
    }
}

static void machine_create(machine *m, const network *of, const char *on, att_precision precision, att_weights *like)
{
    att_option_values options = att_options_none();
    att_plan_options plan = att_plan_options_defaults();
    const att_option_values loss = att_options_none();
    *m = (machine){.of = of};
    if (of->side)
        att_options_set(&options, "img_size", of->side);
    if (of->classes)
        att_options_set(&options, "num_classes", of->classes);
    if (of->depth)
        att_options_set(&options, "depth", of->depth);
    if (of->drop_path > 0)
        att_options_set(&options, "drop_path_rate", of->drop_path);
    if (of->modules)
        att_options_set_text(&options, "modules", of->modules);
    CHECK(context, att_model_create(context, of->name, &options, ATT_F32, &m->model));
    plan.backend = on, plan.precision = precision;
    plan.outputs = (const char *const[]){"logits", NULL};
    CHECK(context, att_plan_compile(att_model_graph(m->model), &plan, &m->infer));
    m->classes = (int)att_plan_output_at(m->infer, 0).shape.dims[0];
    m->pixels = att_shape_count(att_plan_input_at(m->infer, 0).shape);
    const att_task_setup setup = {.classes = m->classes, .options = &loss};
    CHECK(context, att_task_add_loss("classification", att_model_graph(m->model), &setup));
    plan.purpose = ATT_TRAIN, plan.outputs = NULL;
    CHECK(context, att_plan_compile(att_model_graph(m->model), &plan, &m->train));
    CHECK(context, att_weights_create(att_model_graph(m->model), on, &m->weights));
    for (int i = 0; like && i < att_weights_count(m->weights); i++) {
        int64_t count = att_shape_count(att_weights_at(m->weights, i).shape);
        float *values = malloc((size_t)count * sizeof *values);
        CHECK(context, att_weights_get(like, -1, i, values, count));
        CHECK(context, att_weights_set(m->weights, -1, i, values, count));
        free(values);
    }
    if (!like)
        fill(m->weights, att_model_graph(m->model));
    CHECK(context, att_session_create(m->infer, m->weights, of->batch, &m->inference));
    CHECK(context, att_session_create(m->train, m->weights, of->batch, &m->training));
    const att_update_options update = {.backend = on, .optimizer = of->optimizer, .ema = true};
    CHECK(context, att_gradient_create(m->weights, &m->gradient));
    CHECK(context, att_update_create(m->gradient, &update, &m->update));
    m->images = malloc((size_t)(m->pixels * of->batch) * sizeof *m->images);
}

static void machine_destroy(machine *m)
{
    free(m->images);
    att_update_destroy(&m->update);
    att_gradient_destroy(&m->gradient);
    att_session_destroy(&m->training);
    att_session_destroy(&m->inference);
    att_weights_destroy(&m->weights);
    att_plan_destroy(&m->train);
    att_plan_destroy(&m->infer);
    att_model_destroy(&m->model);
}

static void draw_images(machine *m, int step)
{
    for (int64_t i = 0; i < m->pixels * m->of->batch; i++)
        m->images[i] = (float)(4 * formula("image", (uint32_t)(step * m->of->batch * m->pixels + i)));
}

static void infer(machine *m, float *logits)
{
    draw_images(m, 0);
    CHECK(context, att_session_bind(m->inference, "image", m->images));
    CHECK(context, att_session_run(m->inference, m->of->batch));
    CHECK(context, att_session_output(m->inference, "logits", 0, m->of->batch, logits));
}

/* Returns the mean loss. */
static double accumulate(machine *m, int step)
{
    enum { MOST_BATCH = 256 };
    static int32_t labels[MOST_BATCH];
    static float losses[MOST_BATCH];
    double sum = 0;
    draw_images(m, step);
    for (int i = 0; i < m->of->batch; i++)
        labels[i] = (int32_t)floor((formula("label", (uint32_t)(step * m->of->batch + i)) + 0.5) * m->classes);
    CHECK(context, att_session_bind(m->training, "image", m->images));
    CHECK(context, att_session_bind(m->training, "target", labels));
    att_gradient_begin(m->gradient);
    CHECK(context, att_session_accumulate(m->training, m->gradient, m->of->batch, 1.0 / m->of->batch, 1, step, 0));
    CHECK(context, att_session_output(m->training, "loss", 0, m->of->batch, losses));
    for (int i = 0; i < m->of->batch; i++)
        sum += losses[i];
    return sum / m->of->batch;
}

static void apply(machine *m, int step)
{
    att_hyper hyper = {.lr = 1e-3,
                       .weight_decay = 0.05,
                       .momentum = 0.9,
                       .beta1 = 0.9,
                       .beta2 = 0.999,
                       .eps = 1e-8,
                       .clip_norm = 5,
                       .ema_decay = 0.9,
                       .update = step + 1};
    CHECK(context, att_update_reduce(m->update, NULL));
    CHECK(context, att_update_apply(m->update, &hyper));
}

/* The largest difference, relative to the largest magnitude in b; infinite if a number is not finite. */
static double difference(const float *a, const float *b, int64_t count)
{
    double worst = 0, largest = 1e-30;
    for (int64_t i = 0; i < count; i++) {
        if (!isfinite(a[i]) || !isfinite(b[i]))
            return INFINITY;
        worst = fmax(worst, fabs((double)a[i] - b[i]));
        largest = fmax(largest, fabs((double)b[i]));
    }
    return worst / largest;
}

static double compare_logits(machine *a, machine *b)
{
    int64_t count = (int64_t)a->of->batch * a->classes;
    float *x = malloc((size_t)count * sizeof *x), *y = malloc((size_t)count * sizeof *y);
    infer(a, x);
    infer(b, y);
    double worst = difference(x, y, count);
    free(x);
    free(y);
    return worst;
}

/* The norm of the difference of the whole gradients, relative to the norm of the second; `which` gets the parameter
 * that contributes most. */
static double compare_gradients(machine *a, machine *b, char which[128])
{
    double differences = 0, norms = 0, most = -1;
    for (int i = 0; i < att_weights_count(a->weights); i++) {
        att_parameter_info parameter = att_weights_at(a->weights, i);
        int64_t count = att_shape_count(parameter.shape);
        if (parameter.buffer)
            continue;
        float *x = malloc((size_t)count * sizeof *x), *y = malloc((size_t)count * sizeof *y);
        CHECK(context, att_gradient_get(a->gradient, i, x, count));
        CHECK(context, att_gradient_get(b->gradient, i, y, count));
        double own = 0;
        for (int64_t e = 0; e < count; e++) {
            own += ((double)x[e] - y[e]) * ((double)x[e] - y[e]);
            norms += (double)y[e] * y[e];
        }
        differences += own;
        if (!(own <= most)) {
            most = own;
            snprintf(which, 128, "%s", parameter.name);
        }
        free(x);
        free(y);
    }
    return sqrt(differences / norms);
}

static const network networks[] = {
    {"small ViT", "vit_tiny_patch16_224", 64, 10, 6, 3, NULL, 0.2, "adamw"},
    {"deit_tiny", "deit_tiny_patch16_224", 0, 0, 4, 0, NULL, 0, "adamw"},
    {"resnet20", "resnet20", 0, 10, 12, 0, NULL, 0, "sgd"},
    {"resnet29 with SE", "resnet29", 0, 10, 12, 0, "se", 0, "sgd"},
    {"resnet50", "resnet50", 64, 10, 5, 0, NULL, 0, "sgd"},
};

static void agrees_with_the_cpu(void **state)
{
    const network *of = *state;
    machine ours, theirs;
    char which[128] = "";
    machine_create(&theirs, of, "cpu", ATT_FULL, NULL);
    machine_create(&ours, of, "cuda", ATT_FULL, theirs.weights);
    double logits = compare_logits(&ours, &theirs), worst_loss = 0;
    for (int step = 0; step < STEPS; step++) {
        double a = accumulate(&ours, step), b = accumulate(&theirs, step);
        worst_loss = fmax(worst_loss, fabs(a - b) / fabs(b));
        if (step == 0)
            print_message("%s: logits differ by %.2g", of->title, logits);
        if (step == 0)
            print_message(", gradients by %.2g, most in %s", compare_gradients(&ours, &theirs, which), which);
        apply(&ours, step);
        apply(&theirs, step);
    }
    double after = compare_logits(&ours, &theirs);
    print_message(", losses of %d updates by %.2g, logits after them by %.2g\n", STEPS, worst_loss, after);
    assert_true(logits <= 1e-4);
    assert_true(worst_loss <= 1e-3);
    machine_destroy(&ours);
    machine_destroy(&theirs);
}

/* Copies weights, buffers and the optimiser's slots through host memory, as a checkpoint does. */
static void copy_state(const machine *from, machine *to)
{
    for (int slot = -1; slot < att_weights_slot_count(from->weights); slot++)
        for (int i = 0; i < att_weights_count(from->weights); i++) {
            att_parameter_info parameter = att_weights_at(from->weights, i);
            int64_t count = att_shape_count(parameter.shape);
            if (parameter.buffer && slot >= 0 && strcmp(att_weights_slot_name(from->weights, slot), "ema") != 0)
                continue;
            float *values = malloc((size_t)count * sizeof *values);
            CHECK(context, att_weights_get(from->weights, slot, i, values, count));
            CHECK(context, att_weights_set(to->weights, slot, i, values, count));
            free(values);
        }
}

static void update(machine *m, int step)
{
    accumulate(m, step);
    apply(m, step);
}

/* A second training is interrupted before its last update. */
static void resumes_bit_for_bit(void **state)
{
    const network *of = *state;
    char whole[ATT_WEIGHTS_DIGEST], resumed[ATT_WEIGHTS_DIGEST];
    machine first, second, third;
    machine_create(&first, of, "cuda", ATT_FULL, NULL);
    machine_create(&second, of, "cuda", ATT_FULL, NULL);
    for (int step = 0; step < STEPS; step++)
        update(&first, step);
    for (int step = 0; step < STEPS - 1; step++)
        update(&second, step);
    machine_create(&third, of, "cuda", ATT_FULL, NULL);
    copy_state(&second, &third);
    update(&third, STEPS - 1);
    CHECK(context, att_weights_digest(first.weights, whole));
    CHECK(context, att_weights_digest(third.weights, resumed));
    assert_string_equal(whole, resumed);
    machine_destroy(&first);
    machine_destroy(&second);
    machine_destroy(&third);
}

static void mixed_is_near_full(void **state)
{
    const network *of = *state;
    machine ours, theirs;
    char which[128] = "";
    machine_create(&theirs, of, "cuda", ATT_FULL, NULL);
    machine_create(&ours, of, "cuda", ATT_MIXED, NULL);
    double logits = compare_logits(&ours, &theirs), a = accumulate(&ours, 0), b = accumulate(&theirs, 0);
    double gradients = compare_gradients(&ours, &theirs, which);
    print_message("%s in bf16: logits differ by %.2g, the loss by %.2g, gradients by %.2g, most in %s\n", of->title,
                  logits, fabs(a - b) / b, gradients, which);
    assert_true(logits <= 0.1);
    machine_destroy(&ours);
    machine_destroy(&theirs);
}

/* A batch that fits no device: one sentence, and nothing is left. */
static void says_that_memory_is_missing(void **state)
{
    (void)state;
    att_model *model;
    att_plan *plan;
    att_weights *weights;
    att_session *session = NULL;
    att_plan_options options = att_plan_options_defaults();
    const att_option_values none = att_options_none();
    options.backend = "cuda";
    CHECK(context, att_model_create(context, "resnet50", &none, ATT_F32, &model));
    CHECK(context, att_plan_compile(att_model_graph(model), &options, &plan));
    CHECK(context, att_weights_create(att_model_graph(model), "cuda", &weights));
    assert_int_equal(att_session_create(plan, weights, 1 << 24, &session), ATT_ERR_MEMORY);
    assert_null(session);
    print_message("%s\n", att_context_message(context));
    att_weights_destroy(&weights);
    att_plan_destroy(&plan);
    att_model_destroy(&model);
}

enum { NETWORKS = sizeof networks / sizeof *networks, KINDS = 3 };

int main(void)
{
    static struct CMUnitTest tests[NETWORKS * KINDS + 1];
    if (!device_open())
        return DEVICE_SKIPPED;
    int count = 0;
    for (int i = 0; i < NETWORKS; i++) {
        void *of = (void *)(uintptr_t)&networks[i];
        tests[count++] = (struct CMUnitTest){"agrees with the CPU", agrees_with_the_cpu, NULL, NULL, of};
        tests[count++] = (struct CMUnitTest){"resumes bit for bit", resumes_bit_for_bit, NULL, NULL, of};
        tests[count++] = (struct CMUnitTest){"mixed is near full", mixed_is_near_full, NULL, NULL, of};
    }
    tests[count++] = (struct CMUnitTest)cmocka_unit_test(says_that_memory_is_missing);
    int failed = _cmocka_run_group_tests("networks", tests, (size_t)count, NULL, NULL);
    att_context_destroy(&context);
    return failed;
}
