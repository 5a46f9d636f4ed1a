/* Registers a task of one's own, trains a small ViT for it, and lets the network answer.
 *
 * The task is regression. Classes are called by numbers, as in a folder "31" with the faces of people of 31 years, and
 * the network answers a number. The images are made here: the class says how bright they are.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <attscope/attscope.h>

enum { SIDE = 8, IMAGES = 64, GRADES = 4 };

/* --- the task ----------------------------------------------------------------------------------------------------- */

static const char answer_name[] = "number", target_name[] = "true_number", head_scope[] = "regressor";

/* All parameters of the head lie in its scope, by which files tell it. */
static void head(att_graph *graph, const att_backbone *backbone)
{
    att_scope root = att_scope_root(graph), scope = att_scope_in(&root, head_scope);
    att_graph_output(graph, answer_name, att_nn_linear(&scope, backbone->features.pooled, 1, true));
}

static int fields(const att_task_settings *settings, att_field out[ATT_MAX_TARGETS])
{
    (void)settings;
    out[0] = (att_field){.name = target_name, .dtype = ATT_F32, .shape = att_shape_of(1)};
    return 1;
}

static att_status fill(const void *user, att_context *context, const att_dataset *dataset, int64_t index,
                       const att_geometry *geometry, void *const *out)
{
    (void)user, (void)geometry; /* the target is no place in the image */
    const char *name = att_dataset_class_name(dataset, att_dataset_label(dataset, index));
    char *end = NULL;
    *(float *)out[0] = strtof(name, &end);
    return *name && !*end ? ATT_OK : att_fail(context, ATT_ERR_MISMATCH, "the class \"%s\" is no number", name);
}

/* (answer - target)^2 of one sample. */
static att_value loss(att_graph *graph, const att_task_settings *settings)
{
    (void)settings;
    const att_value answer = att_graph_find_output(graph, answer_name);
    if (answer == ATT_NONE)
        return att_graph_fail(
            graph, att_fail(att_graph_context(graph), ATT_ERR_NOT_FOUND, "regression needs a network with a head"));
    const att_shape shape = att_shape_of(1), matrix = att_shape_of(1, 1), scalar = {0};
    const float minus = -1;
    att_value target = att_graph_input(graph, target_name, ATT_F32, shape);
    att_value negative = att_scale(graph, target, att_graph_constant(graph, ATT_F32, shape, &minus));
    att_value difference = att_reshape(graph, att_add(graph, answer, negative), matrix);
    return att_reshape(graph, att_matmul(graph, difference, difference, true, 1), scalar);
}

/* The metric is the mean of |answer - target|. */
typedef struct errors {
    int64_t count;
    double sum;
} errors;

static att_status observe(att_context *context, void *state, const att_task_settings *settings, const att_batch *batch,
                          const att_batch *answers)
{
    (void)context, (void)settings;
    errors *e = state;
    const float *targets = att_batch_field(batch, target_name), *numbers = att_batch_field(answers, answer_name);
    for (int i = 0; i < batch->count; i++)
        e->sum += fabs((double)numbers[i] - (double)targets[i]);
    e->count += batch->count;
    return ATT_OK;
}

static att_status merge(att_context *context, void *state, const void *other)
{
    (void)context;
    errors *e = state;
    e->count += ((const errors *)other)->count;
    e->sum += ((const errors *)other)->sum;
    return ATT_OK;
}

static void report(const void *state, double *values)
{
    const errors *e = state;
    values[0] = e->count > 0 ? e->sum / (double)e->count : (double)NAN;
}

/* What an answer means, for people. */
static att_status describe(att_context *context, const att_batch *answer, const att_answer_options *options,
                           void (*line)(void *user, const char *text), void *user)
{
    (void)options;
    char text[32];
    const float *number = att_batch_field(answer, answer_name);
    if (!number)
        return att_fail(context, ATT_ERR_MISMATCH, "the network has no head and so no number to tell");
    snprintf(text, sizeof text, "%.1f", (double)*number);
    line(user, text);
    return ATT_OK;
}

static const att_metric metrics[] = {{.name = "error", .label = "mean error", .unit = ""}};

static const att_task regression = {
    .info = {.name = "regression",
             .help = "a number for each image; squared error",
             .head_scope = head_scope,
             .metrics = metrics,
             .metric_count = 1},
    .head = head,
    .fields = fields,
    .fill = fill,
    .loss = loss,
    .state_size = sizeof(errors),
    .observe = observe,
    .merge = merge,
    .report = report,
    .describe = describe,
};

/* --- using it ----------------------------------------------------------------------------------------------------- */

static void put(FILE *file, uint32_t number)
{
    for (int shift = 24; shift >= 0; shift -= 8)
        fputc((int)(number >> shift & 255), file);
}

/* Two files as MNIST has them, whose classes are called "0", "1", ... */
static bool write_images(const char *folder)
{
    char path[64];
    snprintf(path, sizeof path, "%s/train-images-idx3-ubyte", folder);
    FILE *images = fopen(path, "wb");
    snprintf(path, sizeof path, "%s/train-labels-idx1-ubyte", folder);
    FILE *labels = fopen(path, "wb");
    for (int i = 0; images && labels && i < 4; i++)
        put(images, (const uint32_t[]){0x803, IMAGES, SIDE, SIDE}[i]);
    for (int i = 0; images && labels && i < 2; i++)
        put(labels, (const uint32_t[]){0x801, IMAGES}[i]);
    for (int i = 0; images && labels && i < IMAGES; i++) {
        fputc(i % GRADES, labels);
        for (int p = 0; p < SIDE * SIDE; p++)
            fputc(60 * (i % GRADES) + (i * 31 + p * 17) % 50, images);
    }
    bool written = images && labels;
    written = (!images || fclose(images) == 0) && (!labels || fclose(labels) == 0) && written;
    return written;
}

static void print(void *user, const char *line)
{
    printf("%s: %s\n", (const char *)user, line);
}

/* A training with its evaluation, in a folder for its files. */
static att_status train(att_context *context, const char *folder)
{
    att_model *model = NULL;
    att_weights *weights = NULL;
    att_dataset *images = NULL;
    att_train_result result;
    const att_transform_options transform = att_transform_options_defaults(SIDE, SIDE, 1);
    att_train_options recipe = att_train_options_defaults();
    recipe.epochs = 30;
    recipe.batch_size = 16;
    recipe.optimizer = "adamw";
    recipe.lr = 3e-3;
    recipe.warmup_epochs = 1;
    recipe.output = folder;
    recipe.checkpoint_hist = 1;
    att_option_values options = att_options_none();
    att_options_set_text(&options, "task", "regression");
    att_options_set(&options, "img_size", SIDE);
    att_options_set(&options, "in_chans", 1);
    att_options_set(&options, "patch_size", 4);
    att_options_set(&options, "embed_dim", 32);
    att_options_set(&options, "depth", 2);
    att_options_set(&options, "num_heads", 2);
    att_status status = att_dataset_open(context, folder, NULL, &images);
    if (status == ATT_OK)
        status = att_model_create(context, "vit_tiny_patch16_224", &options, ATT_F32, &model);
    if (status == ATT_OK)
        status = att_weights_create(att_model_graph(model), "cpu", &weights);
    if (status == ATT_OK)
        status = att_weights_initialise(weights, 42);
    if (status == ATT_OK)
        status = att_train(model, weights, &(att_train_data){images, images, &transform, &transform}, &recipe, &result);
    if (status == ATT_OK)
        printf("mean error after %d epochs: %.2f\n", result.epochs, result.eval[0]);
    if (status == ATT_OK && !(result.eval[0] < 0.25))
        status = ATT_ERR_INTERNAL;
    att_weights_destroy(&weights);
    att_model_destroy(&model);
    att_dataset_close(&images);
    return status;
}

/* The checkpoint says for which task the network was made. */
static att_status answer(att_context *context, const char *folder)
{
    att_network *network = NULL;
    att_batch answers;
    float pixels[SIDE * SIDE];
    for (int i = 0; i < SIDE * SIDE; i++)
        pixels[i] = (2 * 60 + 25) / 127.5f - 1; /* (x / 255 - 0.5) / 0.5, as bright as an image of class 2 */
    att_status status = att_network_open(context, folder, NULL, &network);
    if (status == ATT_OK)
        status = att_network_run(network, pixels, 1, SIDE, SIDE, &answers);
    if (status == ATT_OK)
        status = att_network_describe(network, &answers, &(att_answer_options){.most = 1}, print,
                                      "an image like those of 2");
    att_network_close(&network);
    return status;
}

int main(void)
{
    char folder[] = "task_example_XXXXXX", command[64];
    att_context *context = NULL;
    if (!mkdtemp(folder) || !write_images(folder))
        return 1;
    att_status status = att_context_create(NULL, &context);
    if (status == ATT_OK)
        status = att_task_register(context, &regression);
    if (status == ATT_OK)
        status = train(context, folder);
    if (status == ATT_OK)
        status = answer(context, folder);
    if (status != ATT_OK)
        fprintf(stderr, "%s: %s\n", att_status_name(status), context ? att_context_message(context) : "");
    att_context_destroy(&context);
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command) != 0 || status != ATT_OK;
}
