/* UPerNet with its auxiliary head, over small backbones, against PyTorch in f64 (tools/goldens/segmenters.py): logits
 * with running statistics, losses of ten updates, gradient norms of the first and the last of them, and buffers. Also
 * the logits of the transformers library's UPerNet over Swin. */
#include <attscope/task.h>
#include <attscope/update.h>

#include "base/core/options.h"
#include "context.h"
#include "engine/graph/graph.h"
#include "networks/models/family.h"
#include "networks/models/fixture.h"

SHARED_CONTEXT(threads, 0)

enum { STEPS = 10, BATCH = 4, CLASSES = 5, HEIGHT = 32, WIDTH = 40, PIXELS = HEIGHT * WIDTH, FACTS = 224 };
enum { LOGITS = PIXELS / 4 * CLASSES, KEPT = 11, NAME = 64 };

typedef struct fact {
    char name[NAME];
    double value;
} fact;

typedef struct facts {
    fact items[FACTS];
    int count;
} facts;

typedef struct golden {
    double logits[LOGITS / KEPT + 1], losses[STEPS];
    int logit_count, loss_count;
    facts first, last, buffers;
} golden;

static void read_value(FILE *file, double *values, int *count, int most)
{
    assert_in_range(*count, 0, most - 1);
    assert_int_equal(fscanf(file, "%lf", &values[(*count)++]), 1);
}

static void read_fact(FILE *file, facts *list)
{
    assert_in_range(list->count, 0, FACTS - 1);
    fact *read = &list->items[list->count++];
    assert_int_equal(fscanf(file, "%63s %lf", read->name, &read->value), 2);
}

static void golden_read(const char *name, golden *g)
{
    FILE *file = golden_open("segmenters.txt");
    char word[NAME];
    bool mine = false;
    memset(g, 0, sizeof *g);
    while (fscanf(file, "%63s", word) == 1)
        if (strcmp(word, "case") == 0)
            mine = fscanf(file, "%63s", word) == 1 && strcmp(word, name) == 0;
        else if (mine && strcmp(word, "logit") == 0)
            read_value(file, g->logits, &g->logit_count, LOGITS / KEPT + 1);
        else if (mine && strcmp(word, "loss") == 0)
            read_value(file, g->losses, &g->loss_count, STEPS);
        else if (mine && strcmp(word, "norm") == 0)
            read_fact(file, &g->first);
        else if (mine && strcmp(word, "last") == 0)
            read_fact(file, &g->last);
        else if (mine && strcmp(word, "buffer") == 0)
            read_fact(file, &g->buffers);
    fclose(file);
    assert_true(g->logit_count > 0);
}

typedef struct numbers {
    const char *backend;
    att_dtype dtype;
    double logits, losses, norms; /* largest allowed relative errors */
    bool whole;                   /* errors of gradients are relative to the norm of the whole gradient */
} numbers;

typedef struct network {
    const numbers *how;
    att_model *model;
    att_weights *weights;
    double worst[3];
} network;

static double element(const network *n, const void *values, int64_t i)
{
    return n->how->dtype == ATT_F64 ? ((const double *)values)[i] : (double)((const float *)values)[i];
}

static void fill(const network *n)
{
    for (int i = 0; i < att_weights_count(n->weights); i++) {
        const att_parameter_info parameter = att_weights_at(n->weights, i);
        const int64_t count = att_shape_count(parameter.shape);
        const bool flat = parameter.shape.rank == 1;
        const bool gain = flat && (ends_in(parameter.name, "weight") || ends_in(parameter.name, "running_var"));
        double *wide = malloc((size_t)count * sizeof *wide);
        float *narrow = malloc((size_t)count * sizeof *narrow);
        for (int64_t e = 0; e < count; e++)
            wide[e] = narrow[e] = (float)(gain + (flat ? 0.2 : 0.4) * formula(parameter.name, (uint32_t)e));
        const void *host = n->how->dtype == ATT_F64 ? (const void *)wide : (const void *)narrow;
        must(att_weights_set(n->weights, -1, i, host, count));
        free(wide);
        free(narrow);
    }
}

static void bind_images(const network *n, att_session *session, int step)
{
    static double wide[BATCH * PIXELS * 3];
    static float narrow[BATCH * PIXELS * 3];
    const uint32_t count = BATCH * PIXELS * 3, first = (uint32_t)step * count;
    for (uint32_t i = 0; i < count; i++)
        wide[i] = narrow[i] = (float)(4 * formula("image", first + i));
    must(att_session_bind(session, "image", n->how->dtype == ATT_F64 ? (const void *)wide : (const void *)narrow));
}

/* Class -1 is none. */
static void bind_masks(att_session *session, int step)
{
    static int32_t masks[BATCH * PIXELS];
    const uint32_t count = BATCH * PIXELS, first = (uint32_t)step * count;
    for (uint32_t i = 0; i < count; i++)
        masks[i] = (int32_t)floor((formula("mask", first + i) + 0.5) * (CLASSES + 1)) - 1;
    must(att_session_bind(session, "mask", masks));
}

enum { OF_LOGITS, OF_LOSSES, OF_NORMS };

/* Written as not (error <= tolerance), so that NaN fails. */
static void check_close(network *n, int kind, const char *what, double value, double expected, double scale)
{
    const double tolerances[] = {n->how->logits, n->how->losses, n->how->norms};
    const double error = fabs(value - expected) / scale;
    if (!(error <= tolerances[kind]))
        fail_msg("%s is %.12g instead of %.12g: relative error %g", what, value, expected, error);
    n->worst[kind] = error > n->worst[kind] ? error : n->worst[kind];
}

static void check_logits(network *n, const golden *g)
{
    static double logits[LOGITS];
    att_plan_options options = att_plan_options_defaults();
    att_plan *plan;
    att_session *session;
    double largest = 0;
    const att_graph *graph = att_model_graph(n->model);
    const int64_t count = att_shape_count(att_value_shape(graph, att_graph_find_output(graph, "pixel_logits")));
    assert_in_range(count, 1, LOGITS);
    assert_int_equal((count + KEPT - 1) / KEPT, g->logit_count);
    options.backend = n->how->backend, options.outputs = (const char *const[]){"pixel_logits", NULL};
    must(att_plan_compile(graph, &options, &plan));
    must(att_session_create(plan, n->weights, 1, &session));
    bind_images(n, session, 0);
    must(att_session_run(session, 1));
    must(att_session_output(session, "pixel_logits", 0, 1, logits));
    for (int i = 0; i < g->logit_count; i++)
        largest = fmax(largest, fabs(g->logits[i]));
    for (int i = 0; i < g->logit_count; i++)
        check_close(n, OF_LOGITS, "a logit", element(n, logits, KEPT * i), g->logits[i], largest);
    att_session_destroy(&session);
    att_plan_destroy(&plan);
}

static double norm_of(const network *n, const void *values, int64_t count)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += element(n, values, i) * element(n, values, i);
    return sqrt(sum);
}

static double norm_of_all(const facts *list)
{
    double sum = 0;
    for (int i = 0; i < list->count; i++)
        sum += list->items[i].value * list->items[i].value;
    return sqrt(sum);
}

/* gradient: NULL for buffers. Some gradients are 0 but for rounding: of biases before a batch norm. */
static void check_facts(network *n, const att_gradient *gradient, const facts *list)
{
    const double least = gradient && n->how->whole ? norm_of_all(list) : 1e-3;
    assert_true(list->count > 0);
    for (int i = 0; i < list->count; i++) {
        const fact *expected = &list->items[i];
        const int index = att_weights_find(n->weights, expected->name);
        if (index < 0)
            fail_msg("there is no %s", expected->name);
        const int64_t count = att_shape_count(att_weights_at(n->weights, index).shape);
        double *values = malloc((size_t)count * sizeof *values);
        if (gradient)
            must(att_gradient_get(gradient, index, values, count));
        else
            must(att_weights_get(n->weights, -1, index, values, count));
        check_close(n, OF_NORMS, expected->name, norm_of(n, values, count), expected->value,
                    fmax(fabs(expected->value), least));
        free(values);
    }
}

static double train_step(const network *n, att_session *session, att_gradient *gradient, int step)
{
    double losses[BATCH], sum = 0;
    bind_images(n, session, step);
    bind_masks(session, step);
    att_gradient_begin(gradient);
    must(att_session_accumulate(session, gradient, BATCH, 1.0 / BATCH, 1, step, 0));
    must(att_session_output(session, "loss", 0, BATCH, losses));
    for (int i = 0; i < BATCH; i++)
        sum += element(n, losses, i) / BATCH;
    return sum;
}

static void check_training(network *n, const golden *g)
{
    att_plan_options options = att_plan_options_defaults();
    options.purpose = ATT_TRAIN, options.backend = n->how->backend, options.lanes = 2;
    const att_update_options with = {.backend = n->how->backend, .optimizer = "sgd"};
    att_hyper hyper = {.lr = 0.03, .weight_decay = 1e-2, .momentum = 0.9};
    att_plan *plan;
    att_session *session;
    att_gradient *gradient;
    att_update *update;
    assert_int_equal(g->loss_count, STEPS);
    must(att_plan_compile(att_model_graph(n->model), &options, &plan));
    must(att_session_create(plan, n->weights, BATCH, &session));
    must(att_gradient_create(n->weights, &gradient));
    must(att_update_create(gradient, &with, &update));
    for (int step = 0; step < STEPS; step++) {
        char what[32];
        snprintf(what, sizeof what, "loss %d", step);
        check_close(n, OF_LOSSES, what, train_step(n, session, gradient, step), g->losses[step], fabs(g->losses[step]));
        hyper.update = step + 1;
        must(att_update_reduce(update, NULL));
        if (step == 0 || step == STEPS - 1)
            check_facts(n, gradient, step ? &g->last : &g->first);
        must(att_update_apply(update, &hyper));
    }
    check_facts(n, NULL, &g->buffers);
    att_update_destroy(&update);
    att_gradient_destroy(&gradient);
    att_session_destroy(&session);
    att_plan_destroy(&plan);
}

static void check(const char *name, const char *variant, const att_option_values *options, const numbers *how)
{
    static golden g;
    network n = {.how = how};
    const att_task_setup setup = {.classes = CLASSES};
    golden_read(name, &g);
    must(att_model_create(context, variant, options, how->dtype, &n.model));
    must(att_task_add_loss("segment", att_model_graph(n.model), &setup));
    must(att_weights_create(att_model_graph(n.model), "cpu", &n.weights));
    fill(&n);
    check_logits(&n, &g);
    if (g.loss_count > 0)
        check_training(&n, &g);
    print_message("%s, %s %s: relative errors up to %.2g (logits), %.2g (losses), %.2g (norms)\n", name, how->backend,
                  att_dtype_name(how->dtype), n.worst[OF_LOGITS], n.worst[OF_LOSSES], n.worst[OF_NORMS]);
    att_weights_destroy(&n.weights);
    att_model_destroy(&n.model);
}

static att_option_values uper(int width)
{
    att_option_values options = att_options_none();
    att_options_set_sides(&options, "img_size", HEIGHT, width);
    att_options_set(&options, "num_classes", CLASSES), att_options_set(&options, "drop_path_rate", 0);
    att_options_set_text(&options, "task", "segment"), att_options_set_text(&options, "head", "uper");
    att_options_set(&options, "head_channels", 12), att_options_set(&options, "aux_channels", 6);
    return options;
}

static void check_resnet(const numbers *how)
{
    att_option_values options = uper(WIDTH);
    att_options_set_text(&options, "layers", "1,1,2,1");
    att_options_set(&options, "width", 8);
    check("resnet", "resnet18", &options, how);
    att_options_set(&options, "output_stride", 8);
    check("resnet_dilated", "resnet18", &options, how);
}

static void check_swin(const char *name, int width, const char *window, const numbers *how)
{
    att_option_values options = uper(width);
    att_options_set(&options, "patch_size", 2), att_options_set(&options, "embed_dim", 8);
    att_options_set_text(&options, "depths", "2,1,2,1"), att_options_set_text(&options, "stage_heads", "1,2,2,2");
    att_options_set_text(&options, "window_size", window);
    check(name, "swin_tiny_patch4_window7_224", &options, how);
}

static void check_vit(const char *name, const char *neck, const numbers *how)
{
    att_option_values options = uper(WIDTH);
    att_options_set(&options, "patch_size", 8), att_options_set(&options, "embed_dim", 16);
    att_options_set(&options, "depth", 6), att_options_set(&options, "num_heads", 2);
    if (neck)
        att_options_set_text(&options, "neck", neck);
    check(name, "vit_tiny_patch16_224", &options, how);
}

static void check_all(const numbers *how)
{
    check_resnet(how);
    check_swin("swin", WIDTH, "4", how);
    check_swin("transformers", HEIGHT, "2", how);
    check_vit("vit", NULL, how);
    check_vit("vit_pyramid", "feature2pyramid", how);
    check_vit("vit_multi_level", "multi_level", how);
}

TEST(the_reference_trains_as_pytorch_in_f64)
{
    /* Measured: 2.6e-9, 2.2e-12 and 4.9e-9, the rounding of the goldens' 9, 12 and 9 digits. */
    static const numbers how = {"ref", ATT_F64, 1e-8, 1e-11, 1e-8, false};
    check_all(&how);
}

TEST(the_cpu_trains_as_pytorch_in_f32)
{
    /* Measured: 8.3e-7, 6.5e-8 and 1.3e-6. Gradients jump by 1e-3 if rounding moves the argument of a ReLU past 0; the
     * learning rate is chosen so that no argument is that close to 0. */
    static const numbers how = {"cpu", ATT_F32, 5e-6, 1e-6, 2e-5, true};
    check_all(&how);
}

/* --- options ------------------------------------------------------------------------------------------------------ */

static att_model *make(const char *variant, const att_option_values *options)
{
    att_model *model = NULL;
    must(att_model_create(context, variant, options, ATT_F32, &model));
    return model;
}

static att_option_values small_vit(void)
{
    att_option_values options = uper(WIDTH);
    att_options_set(&options, "patch_size", 8), att_options_set(&options, "embed_dim", 16);
    att_options_set(&options, "num_heads", 2);
    return options;
}

/* The number of the block whose result stage `index` of the model is. */
static int tap_of(const att_model *model, int index)
{
    const att_features *features = att_model_features(model);
    const att_graph *graph = att_model_graph(model);
    const att_node *map = att_graph_producer(graph, features->stages[index]), *tokens;
    tokens = att_graph_producer(graph, map->in[0]);
    for (int i = 0; i < features->block_count; i++)
        if (features->blocks[i] == tokens->in[0])
            return i;
    return -1;
}

static void expect_taps(const char *taps, int depth, const char *head, const int expected[ATT_FEATURE_STAGES])
{
    att_option_values options = att_options_none(), small = small_vit();
    for (int i = 0; i < small.count; i++)
        if (strcmp(head, "uper") == 0 || !strstr("head_channels aux_channels head", small.items[i].key))
            att_option_copy(small.items[i].key, &small, &options);
    att_options_set(&options, "depth", depth);
    if (taps)
        att_options_set_text(&options, "taps", taps);
    att_model *model = make("vit_tiny_patch16_224", &options);
    for (int i = 0; i < att_model_features(model)->stage_count; i++)
        assert_int_equal(tap_of(model, i), expected[i]);
    att_model_destroy(&model);
}

TEST(blocks_are_tapped_as_by_xcit_or_as_asked)
{
    expect_taps(NULL, 12, "uper", (const int[]){3, 5, 7, 11});
    expect_taps(NULL, 24, "uper", (const int[]){7, 11, 15, 23});
    expect_taps(NULL, 1, "uper", (const int[]){0, 0, 0, 0});
    expect_taps("2,5,8,11", 12, "uper", (const int[]){2, 5, 8, 11});
    expect_taps(NULL, 12, "linear", (const int[]){8, 9, 10, 11});
    expect_taps("11", 12, "linear", (const int[]){11, 0, 0, 0});
}

static void expect_refusal(const char *variant, const att_option_values *options, att_status status, const char *part)
{
    att_model *model = NULL;
    assert_fails(context, att_model_create(context, variant, options, ATT_F32, &model), status, part);
    assert_null(model);
}

/* A ViT with the linear head. */
static att_option_values linear(void)
{
    att_option_values options = att_options_none();
    att_options_set_sides(&options, "img_size", HEIGHT, WIDTH);
    att_options_set(&options, "num_classes", CLASSES), att_options_set_text(&options, "task", "segment");
    att_options_set(&options, "patch_size", 8), att_options_set(&options, "embed_dim", 16);
    att_options_set(&options, "num_heads", 2), att_options_set(&options, "depth", 2);
    return options;
}

TEST(the_linear_head_refuses_options_of_upernet)
{
    static const char *const keys[] = {"head_channels", "aux_channels", "neck"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        char part[128];
        att_option_values options = linear();
        if (strcmp(keys[i], "neck") == 0)
            att_options_set_text(&options, keys[i], "multi_level");
        else
            att_options_set(&options, keys[i], 4);
        snprintf(part, sizeof part, "%s is an option of the head \"uper\" (--head uper)", keys[i]);
        expect_refusal("vit_tiny_patch16_224", &options, ATT_ERR_ARGUMENT, part);
    }
}

TEST(classes_are_as_many_as_a_mask_can_hold)
{
    att_option_values options = linear();
    att_options_set(&options, "num_classes", ATT_MASK_NONE + 1);
    expect_refusal("vit_tiny_patch16_224", &options, ATT_ERR_ARGUMENT,
                   "65536 classes are more than a mask can hold (65535)");
}

TEST(options_that_do_not_fit_are_refused)
{
    static const char vit[] = "vit_tiny_patch16_224";
    att_option_values options = small_vit();
    att_options_set_text(&options, "taps", "3,12");
    expect_refusal(vit, &options, ATT_ERR_ARGUMENT, "taps (--taps) is \"3,12\", expected one to 4 numbers of blocks");
    att_options_set_text(&options, "taps", "0,1,2,3,4");
    expect_refusal(vit, &options, ATT_ERR_ARGUMENT, "of blocks from 0 to 11");
    options = uper(WIDTH);
    att_options_set_text(&options, "taps", "1");
    expect_refusal("resnet18", &options, ATT_ERR_ARGUMENT, "the head of this network reads the results of its stages");
    options = uper(WIDTH);
    att_options_set(&options, "tap_norm", 1);
    expect_refusal("resnet18", &options, ATT_ERR_ARGUMENT, "tap_norm (--tap-norm) needs a norm between the last block");
    options = small_vit(); /* its last norm is of the class token alone */
    att_options_set(&options, "tap_norm", 1);
    expect_refusal(vit, &options, ATT_ERR_ARGUMENT, "tap_norm (--tap-norm) needs a norm between the last block");
    options = uper(WIDTH);
    att_options_set_text(&options, "neck", "multi_level");
    expect_refusal("resnet18", &options, ATT_ERR_UNSUPPORTED, "four maps of one size");
    options = uper(WIDTH);
    att_options_set(&options, "output_stride", 12);
    expect_refusal("resnet18", &options, ATT_ERR_ARGUMENT, "output_stride must be 8, 16 or 32, not 12");
    att_options_set(&options, "output_stride", 16);
    expect_refusal("resnet50d", &options, ATT_ERR_ARGUMENT, "output_stride 16 needs shortcuts without pooling");
    options = small_vit();
    att_options_set_text(&options, "head", "linear");
    expect_refusal(vit, &options, ATT_ERR_ARGUMENT, "is an option of the head \"uper\" (--head uper)");
    options = small_vit();
    att_options_set_text(&options, "task", "classification");
    expect_refusal(vit, &options, ATT_ERR_ARGUMENT, "head is an option of heads that read maps of features");
    options = small_vit();
    att_options_set_text(&options, "head", "fcn");
    expect_refusal(vit, &options, ATT_ERR_ARGUMENT, "head must be one of \"linear\", \"uper\"");
}

static att_model *with_auxiliary(int channels)
{
    att_option_values options = small_vit();
    att_options_set(&options, "aux_channels", channels);
    return make("vit_tiny_patch16_224", &options);
}

static double inference_macs(const att_model *model)
{
    att_cost cost;
    must(att_graph_inference_cost(att_model_graph(model), &cost));
    return cost.macs;
}

TEST(only_a_training_computes_the_auxiliary_head)
{
    att_model *with = with_auxiliary(6), *without = with_auxiliary(0);
    assert_true(att_graph_parameter_elements(att_model_graph(with)) >
                att_graph_parameter_elements(att_model_graph(without)));
    assert_float_equal(inference_macs(with), inference_macs(without), 0);
    assert_int_equal(att_graph_find_output(att_model_graph(with), "auxiliary_logits"), ATT_NONE);
    att_model_destroy(&with);
    att_model_destroy(&without);
}

/* The loss of one image with these options of the loss. */
static double loss_with(int channels, double weight)
{
    const numbers how = {.backend = "cpu", .dtype = ATT_F32};
    att_option_values loss = att_options_none();
    att_options_set(&loss, "aux_weight", weight);
    const att_task_setup setup = {.classes = CLASSES, .options = &loss};
    network n = {.how = &how, .model = with_auxiliary(channels)};
    att_plan_options options = att_plan_options_defaults();
    att_plan *plan;
    att_session *session;
    float found;
    must(att_task_add_loss("segment", att_model_graph(n.model), &setup));
    must(att_weights_create(att_model_graph(n.model), "cpu", &n.weights));
    fill(&n);
    must(att_plan_compile(att_model_graph(n.model), &options, &plan));
    must(att_session_create(plan, n.weights, 1, &session));
    bind_images(&n, session, 0);
    bind_masks(session, 0);
    must(att_session_run(session, 1));
    must(att_session_output(session, "loss", 0, 1, &found));
    att_session_destroy(&session);
    att_plan_destroy(&plan);
    att_weights_destroy(&n.weights);
    att_model_destroy(&n.model);
    return (double)found;
}

TEST(the_auxiliary_loss_counts_with_its_weight)
{
    const double alone = loss_with(0, 0.4), once = loss_with(6, 1);
    assert_float_equal(loss_with(6, 0), alone, 0);
    assert_float_equal(loss_with(6, 0.4), alone + 0.4 * (once - alone), 1e-6); /* measured: 1e-7 */
}
