/* Registers a task of the program, trains a small ViT for it, and runs the trained network on an image.
 *
 *   task DATA OUTPUT IMAGE
 *   task faces output/age face.jpg
 *
 * The task is regression: the network predicts a number. Class names of the data set are numbers, as in a folder
 * train/31 with faces of people who are 31 years old. DATA and OUTPUT are those of train.c; the checkpoints in OUTPUT
 * record the task. IMAGE is the image for which the trained network predicts a number.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <attscope/attscope.h>

/* --- the task ----------------------------------------------------------------------------------------------------- */

static const char answer_name[] = "number", target_name[] = "true_number", head_scope[] = "regressor";

/* All parameters of the head are in one scope, by which its tensors are recognised in files. */
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
    (void)user, (void)geometry; /* the target does not depend on crops and flips */
    const char *name = att_dataset_class_name(dataset, att_dataset_label(dataset, index));
    char *end = NULL;
    *(float *)out[0] = strtof(name, &end);
    return *name && !*end ? ATT_OK : att_fail(context, ATT_ERR_MISMATCH, "the class name \"%s\" is not a number", name);
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

static void report(const void *state, double *values)
{
    const errors *e = state;
    values[0] = e->count > 0 ? e->sum / (double)e->count : (double)NAN;
}

/* The prediction as text. */
static att_status describe(att_context *context, const att_batch *answer, const att_answer_options *options,
                           void (*line)(void *user, const char *text), void *user)
{
    (void)options;
    char text[32];
    const float *number = att_batch_field(answer, answer_name);
    if (!number)
        return att_fail(context, ATT_ERR_MISMATCH, "the network has no head, so it predicts nothing");
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
    .report = report,
    .describe = describe,
};

/* --- main program
 * ----------------------------------------------------------------------------------------------------- */

static att_status train(att_context *context, const char *data, const char *output)
{
    att_dataset *training = NULL, *validation = NULL;
    att_network *network = NULL;
    att_dataset_options validation_options = att_dataset_options_defaults();
    validation_options.split = "val";
    att_network_options options = att_network_options_defaults();
    att_option_values values = att_options_none();
    att_options_set_text(&values, "task", "regression");
    att_options_set(&values, "img_size", 32);
    att_options_set(&values, "patch_size", 8);
    att_options_set(&values, "embed_dim", 64);
    att_options_set(&values, "depth", 4);
    att_options_set(&values, "num_heads", 2);
    options.options = &values;
    att_train_options recipe = att_train_options_defaults();
    recipe.epochs = 40;
    recipe.warmup_epochs = 2;
    recipe.batch_size = 32;
    recipe.optimizer = "adamw";
    recipe.lr = 1e-3;
    recipe.output = output;

    att_status status = att_dataset_open(context, data, NULL, &training);
    if (status == ATT_OK)
        status = att_dataset_open(context, data, &validation_options, &validation);
    if (status == ATT_OK)
        status = att_network_open(context, "vit_tiny_patch16_224", &options, &network);
    if (status == ATT_OK) {
        const att_transform_options images = att_network_transform(network);
        att_train_result result;
        status = att_train(att_network_model(network), att_network_weights(network),
                           &(att_train_data){training, validation, &images, &images}, &recipe, &result);
        if (status == ATT_OK)
            printf("%.2f is the mean error after epoch %d of %d\n", result.best_metric, result.best_epoch + 1,
                   result.epochs);
    }
    att_network_close(&network);
    att_dataset_close(&validation);
    att_dataset_close(&training);
    return status;
}

static void print(void *user, const char *line)
{
    (void)user;
    printf("%s\n", line);
}

static att_status ask(att_context *context, const char *folder, const char *image)
{
    att_network *network = NULL;
    att_batch answer;
    att_status status = att_network_open(context, folder, NULL, &network);
    if (status == ATT_OK)
        status = att_network_run_file(network, image, &answer);
    if (status == ATT_OK)
        status = att_network_describe(network, &answer, &(att_answer_options){.topk = 1}, print, NULL);
    att_network_close(&network);
    return status;
}

int main(int count, char **arguments)
{
    if (count != 4) {
        fprintf(stderr, "usage: task DATA OUTPUT IMAGE\n");
        return 2;
    }
    att_context *context = NULL;
    att_status status = att_context_create(NULL, &context);
    if (status == ATT_OK)
        status = att_task_register(context, &regression);
    if (status == ATT_OK)
        status = train(context, arguments[1], arguments[2]);
    if (status == ATT_OK)
        status = ask(context, arguments[2], arguments[3]);
    if (status != ATT_OK)
        fprintf(stderr, "%s: %s\n", att_status_name(status), context ? att_context_message(context) : "");
    att_context_destroy(&context);
    return status != ATT_OK;
}
