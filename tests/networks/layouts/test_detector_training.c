/* Training of small Faster R-CNNs with the names of torchvision's files, against torchvision in f64
 * (tools/goldens/detector_training.py): losses, gradient norms and running statistics of several updates. The samples
 * are determined, so that both take the same. */
#include <attscope/plan.h>
#include <attscope/task.h>
#include <attscope/update.h>

#include "base/io/scratch.h"
#include "context.h"
#include "engine/graph/graph.h"
#include "engine/update/update.h"
#include "engine/weights/gradient.h"
#include "networks/layouts/golden_tensors.h"

SHARED_CONTEXT(threads, 2)

enum { UPDATES = 10, IMAGES = 2, BOXES = 4, ROW = 5, FACTS = 256, LINE = 256 };

typedef struct fact {
    int update; /* -1: a running statistic */
    char name[80];
    double value;
} fact;

typedef struct golden {
    int height, width, images, anchor_samples, box_samples, updates;
    double shown[2], truth[IMAGES][BOXES][ROW], losses[UPDATES];
    int truths[IMAGES];
    golden_tensors tensors;
    fact facts[FACTS];
    int fact_count;
} golden;

/* As value_of() of tools/goldens/detectors.py. */
static double scale_of(const char *name, att_shape shape)
{
    const double wide = strstr(name, "cls_score") ? 16 : strstr(name, "cls_logits") ? 4 : 1;
    const double fan_in = (double)att_shape_count(shape) / (double)shape.dims[0];
    return shape.rank == 1 ? 0.4 : ldexp(4 * wide, -(int)ceil(log2(fan_in) / 2));
}

static void read_true(golden *g, const char *text)
{
    int image;
    double row[ROW];
    assert_int_equal(sscanf(text, "%d %lf %lf %lf %lf %lf", &image, &row[0], &row[1], &row[2], &row[3], &row[4]), 6);
    assert_in_range(image, 0, IMAGES - 1);
    assert_in_range(g->truths[image], 0, BOXES - 1);
    memcpy(g->truth[image][g->truths[image]++], row, sizeof row);
}

static void read_fact(golden *g, bool of_update, const char *text)
{
    assert_in_range(g->fact_count, 0, FACTS - 1);
    fact *f = &g->facts[g->fact_count++];
    f->update = -1;
    if (of_update)
        assert_int_equal(sscanf(text, "%d %79s %lf", &f->update, f->name, &f->value), 3);
    else
        assert_int_equal(sscanf(text, "%79s %lf", f->name, &f->value), 2);
}

static void read_line(golden *g, const char *word, char *text)
{
    int update;
    if (strcmp(word, "tensor") == 0)
        golden_tensors_add(&g->tensors, text, scale_of);
    else if (strcmp(word, "true") == 0)
        read_true(g, text);
    else if (strcmp(word, "loss") == 0 && sscanf(text, "%d", &update) == 1 && update < UPDATES)
        g->losses[update] = strtod(strchr(text, ' '), NULL);
    else
        read_fact(g, strcmp(word, "norm") == 0, text);
}

static golden *golden_read(const char *name)
{
    golden *g = calloc(1, sizeof *g);
    char line[LINE], found[24];
    bool mine = false;
    FILE *file = golden_open("detector_training.txt");
    while (fgets(line, sizeof line, file)) {
        char *space = strchr(line, ' ');
        *space = 0;
        if (strcmp(line, "case") == 0) {
            sscanf(space + 1, "%23s", found);
            mine = strcmp(found, name) == 0;
            if (mine)
                assert_int_equal(sscanf(space + 1, "%*s %d %d %lf %lf %d %d %d %d", &g->height, &g->width, &g->shown[0],
                                        &g->shown[1], &g->images, &g->anchor_samples, &g->box_samples, &g->updates),
                                 8);
        } else if (mine) {
            read_line(g, line, space + 1);
        }
    }
    fclose(file);
    assert_int_equal(g->images, IMAGES);
    assert_in_range(g->updates, 2, UPDATES);
    assert_true(g->tensors.count > 0 && g->fact_count > 0);
    return g;
}

/* --- training ----------------------------------------------------------------------------------------------------- */

typedef struct numbers {
    const char *backend;
    att_dtype dtype;
    double losses, norms; /* largest allowed relative errors */
    int updates;
} numbers;

typedef struct network {
    const numbers *how;
    const golden *g;
    att_model *model;
    att_weights *weights;
    att_option_values network, task;
    bool *frozen;
    double worst[2];
} network;

enum { OF_LOSSES, OF_NORMS };

/* Written as not (error <= tolerance), so that NaN fails. */
static void check_close(network *n, int kind, const char *what, double value, double expected, double scale)
{
    const double tolerance = kind == OF_LOSSES ? n->how->losses : n->how->norms;
    const double error = fabs(value - expected) / scale;
    if (!(error <= tolerance))
        fail_msg("%s is %.15g instead of %.15g: relative error %g", what, value, expected, error);
    n->worst[kind] = fmax(n->worst[kind], error);
}

/* Binds a copy in the type of the network, which it returns. */
static void *bind(const network *n, att_session *session, const char *name, const double *values, int count)
{
    const bool is_wide = n->how->dtype == ATT_F64;
    double *doubles = calloc((size_t)count, sizeof *doubles);
    float *floats = (float *)doubles; /* fills the first half */
    for (int i = 0; i < count; i++)
        if (is_wide)
            doubles[i] = values[i];
        else
            floats[i] = (float)values[i];
    must(att_session_bind(session, name, doubles));
    return doubles;
}

static double element(const network *n, const void *values, int64_t i)
{
    return n->how->dtype == ATT_F64 ? ((const double *)values)[i] : (double)((const float *)values)[i];
}

static double norm_of(const network *n, const fact *f, const att_gradient *gradient)
{
    const int index = att_weights_find(n->weights, f->name);
    if (index < 0)
        fail_msg("there is no %s", f->name);
    const int64_t count = att_shape_count(att_weights_at(n->weights, index).shape);
    double *values = calloc((size_t)count, sizeof *values), sum = 0;
    if (gradient)
        must(att_gradient_get(gradient, index, values, count));
    else
        must(att_weights_get(n->weights, -1, index, values, count));
    for (int64_t i = 0; i < count; i++)
        sum += element(n, values, i) * element(n, values, i);
    free(values);
    return sqrt(sum);
}

/* Relative to the largest norm of the update: some gradients are 0 but for rounding. */
static void check_facts(network *n, int update, const att_gradient *gradient)
{
    double largest = 0;
    for (int i = 0; i < n->g->fact_count; i++)
        largest = n->g->facts[i].update == update ? fmax(largest, n->g->facts[i].value) : largest;
    for (int i = 0; i < n->g->fact_count; i++)
        if (n->g->facts[i].update == update)
            check_close(n, OF_NORMS, n->g->facts[i].name, norm_of(n, &n->g->facts[i], gradient), n->g->facts[i].value,
                        largest);
}

/* Batch norms of the backbone are frozen if torchvision's are FrozenBatchNorm2d. */
static void freeze(network *n, bool norms)
{
    n->frozen = calloc((size_t)att_weights_count(n->weights) + 1, 1);
    for (int i = 0; i < att_weights_count(n->weights); i++) {
        const char *name = att_weights_at(n->weights, i).name;
        n->frozen[i] = norms && (strstr(name, "bn") || strstr(name, "downsample.1"));
    }
}

static void open_network(scratch *self, network *n, bool v2)
{
    char path[512];
    att_tensors *file;
    att_identity identity;
    att_option_values *flags = &n->network;
    *flags = att_options_none();
    att_options_set_sides(flags, "img_size", n->g->height, n->g->width);
    att_options_set(flags, "anchor_size", 8);
    must(att_model_open_file(context, golden_tensors_write(self, &n->g->tensors, path), &file));
    must(att_model_identify(context, file, NULL, NULL, flags, &identity));
    must(att_model_create(context, identity.name, &identity.options, n->how->dtype, &n->model));
    n->task = att_options_none();
    att_options_set(&n->task, "most_boxes", BOXES);
    att_options_set(&n->task, "train_level_proposals", 60);
    att_options_set(&n->task, "train_proposals", 40);
    att_options_set(&n->task, "anchor_samples", n->g->anchor_samples);
    att_options_set(&n->task, "box_samples", n->g->box_samples);
    const att_task_setup setup = {
        .classes = att_model_classes(n->model), .options = &n->task, .network = att_model_options(n->model)};
    must(att_task_add_loss("detect", att_model_graph(n->model), &setup));
    must(att_weights_create(att_model_graph(n->model), "cpu", &n->weights));
    must(att_model_load(n->model, file, n->weights));
    freeze(n, !v2);
    att_tensors_close(&file);
}

enum { INPUTS = 3 };

static void bind_all(const network *n, att_session *session, void *inputs[INPUTS])
{
    const golden *g = n->g;
    const int pixels = IMAGES * g->height * g->width * 3;
    double *image = calloc((size_t)pixels, sizeof *image), sizes[IMAGES][2];
    for (int i = 0; i < pixels; i++)
        image[i] = (double)(float)(4 * formula("image", (uint32_t)i));
    for (int i = 0; i < IMAGES; i++)
        memcpy(sizes[i], g->shown, sizeof sizes[i]);
    inputs[0] = bind(n, session, "image", image, pixels);
    inputs[1] = bind(n, session, "image_size", sizes[0], 2 * IMAGES);
    inputs[2] = bind(n, session, "true_boxes", g->truth[0][0], IMAGES * BOXES * ROW);
    free(image);
}

static void train(network *n)
{
    att_plan_options options = att_plan_options_defaults();
    att_hyper hyper = {.lr = 2e-3, .weight_decay = 1e-2, .momentum = 0.9};
    att_parameter_rates rates[FACTS];
    att_update_options with = {.backend = n->how->backend, .optimizer = "sgd", .rates = rates};
    att_plan *plan;
    att_session *session;
    att_gradient *gradient;
    att_update *update;
    void *inputs[INPUTS];
    options.purpose = ATT_TRAIN, options.backend = n->how->backend, options.lanes = 2, options.frozen = n->frozen;
    for (int i = 0; i < att_weights_count(n->weights); i++) {
        const att_parameter_info parameter = att_weights_at(n->weights, i);
        rates[i] = att_parameter_rates_defaults(&parameter);
        rates[i].frozen = n->frozen[i];
    }
    must(att_plan_compile(att_model_graph(n->model), &options, &plan));
    must(att_session_create(plan, n->weights, IMAGES, &session));
    must(att_gradient_create_for(n->weights, n->frozen, &gradient));
    must(att_update_create(gradient, &with, &update));
    bind_all(n, session, inputs);
    for (int step = 0; step < n->how->updates; step++) {
        double losses[IMAGES], sum = 0;
        att_gradient_begin(gradient);
        must(att_session_accumulate(session, gradient, IMAGES, 1.0 / IMAGES, 1, step, 0));
        must(att_session_output(session, "loss", 0, IMAGES, losses));
        for (int i = 0; i < IMAGES; i++)
            sum += element(n, losses, i) / IMAGES;
        check_close(n, OF_LOSSES, "a loss", sum, n->g->losses[step], n->g->losses[step]);
        hyper.update = step + 1;
        must(att_update_reduce(update, NULL));
        if (step < 2 || step == UPDATES - 1)
            check_facts(n, step, gradient);
        must(att_update_apply(update, &hyper));
    }
    if (n->how->updates == n->g->updates)
        check_facts(n, -1, NULL);
    for (int i = 0; i < INPUTS; i++)
        free(inputs[i]);
    att_update_destroy(&update);
    att_gradient_destroy(&gradient);
    att_session_destroy(&session);
    att_plan_destroy(&plan);
}

static void check(scratch *self, const char *name, const numbers *how)
{
    golden *g = golden_read(name);
    network n = {.how = how, .g = g};
    open_network(self, &n, strcmp(name, "v2") == 0);
    train(&n);
    print_message("%s, %s %s: relative errors up to %.2g (losses), %.2g (norms)\n", name, how->backend,
                  att_dtype_name(how->dtype), n.worst[OF_LOSSES], n.worst[OF_NORMS]);
    att_weights_destroy(&n.weights);
    att_model_destroy(&n.model);
    golden_tensors_free(&g->tensors);
    free(n.frozen);
    free(g);
}

/* Measured for the first network and v2: 3.8e-15 and 9e-15 of the losses, 1e-12 and 3e-12 of the norms, the rounding of
 * the goldens' 12 digits. */
static const numbers wide = {"f64", ATT_F64, 1e-13, 1e-11, 2};

SCRATCH_TEST(fasterrcnn_trains_as_torchvision_in_f64)
{
    check(self, "first", &wide);
}

SCRATCH_TEST(fasterrcnn_v2_trains_as_torchvision_in_f64)
{
    check(self, "v2", &wide);
}

/* Measured: 2.2e-7 and 1.8e-7; of v2 8.2e-7 and 1.4e-6. */
SCRATCH_TEST(fasterrcnn_trains_as_torchvision_in_f32)
{
    static const numbers narrow = {"cpu", ATT_F32, 1e-6, 1e-5, UPDATES};
    check(self, "first", &narrow);
}

SCRATCH_TEST(fasterrcnn_v2_trains_as_torchvision_in_f32)
{
    static const numbers narrow = {"cpu", ATT_F32, 1e-5, 1e-4, 2};
    check(self, "v2", &narrow);
}
