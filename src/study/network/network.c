#include "study/network/network.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/memory.h"
#include "base/io/tensors.h"
#include "data/geometry.h"
#include "data/transform.h"
#include "engine/weights/weights.h"
#include "networks/models/family.h"
#include "networks/tasks/draw.h"
#include "networks/tasks/task.h"
#include "study/train/checkpoint.h"

att_network_options att_network_options_defaults(void)
{
    return (att_network_options){.seed = 42, .backend = "cpu"};
}

/* --- opening ----------------------------------------------------------------------------------------------------- */

/* Builds the network that the identity describes. */
static att_status build(att_network *network)
{
    const att_identity *identity = &network->identity;
    ATT_TRY(
        att_model_create(network->context, identity->name, &identity->options, network->dtype, &network->own_model));
    att_model_set_preprocess(network->own_model, &identity->preprocess);
    network->model = network->own_model;
    ATT_TRY(att_weights_create(att_model_graph(network->model), network->backend, &network->own_weights));
    network->weights = network->own_weights;
    return ATT_OK;
}

static att_status open_name(att_network *network, const char *name, const att_network_options *options)
{
    att_model *model;
    if (options->averaged)
        return att_fail(network->context, ATT_ERR_NOT_FOUND,
                        "%s is the name of a network, whose random weights have no moving average; name a file of a "
                        "training, or open the network without `averaged`",
                        name);
    ATT_TRY(att_model_create(network->context, name, options->options, ATT_F32, &model));
    network->identity = att_model_identity(model);
    network->trained = network->identity.preprocess;
    att_model_destroy(&model);
    ATT_TRY(build(network));
    att_log(network->context, ATT_LOG_INFO,
            "random weights: %s is the name of a network, not a file; seed %" PRIu64 " initialises them",
            network->identity.name, options->seed);
    return att_weights_initialise(network->weights, options->seed);
}

/* Whether attscope trained the network. Such a network is evaluated at its training size, whatever the image size of
 * its initial weights. */
static bool is_trained_here(const att_network *network)
{
    att_checkpoint_info info;
    return att_checkpoint_describe(network->context, network->file, &info) == ATT_OK && info.training;
}

static att_status fail_test_images(const att_network *network, att_status status)
{
    const att_identity *identity = &network->identity;
    char why[512];
    snprintf(why, sizeof why, "%s", att_context_message(network->context));
    return att_fail(
        network->context, status == ATT_ERR_MEMORY ? status : ATT_ERR_UNSUPPORTED,
        "%s: timm's validate.py takes images of %d x %d pixels with these weights, which this network cannot take: %s",
        att_tensors_path(network->file), identity->test_height, identity->test_width, why);
}

/* Uses the image size and crop that timm's validate.py uses without --use-train-size. */
static att_status take_test_images(att_network *network, const att_network_options *options)
{
    att_identity *identity = &network->identity;
    att_option_values asked = options->options ? *options->options : att_options_none();
    int height = identity->test_height, width = identity->test_width;
    double crop = identity->test_crop_pct > 0 ? identity->test_crop_pct : identity->preprocess.crop_pct;
    if (height > 0 && !att_options_find(&asked, "img_size") &&
        (height != network->trained.height || width != network->trained.width)) {
        att_options_set_sides(&asked, "img_size", height, width);
        att_status status = att_model_identify(network->context, network->file, NULL, options->model, &asked, identity);
        if (status != ATT_OK)
            return fail_test_images(network, status);
    }
    identity->preprocess.crop_pct = crop;
    return ATT_OK;
}

/* As att_weights_make_fn. */
static att_status load_weights(void *user, att_weights *weights)
{
    const att_network *network = user;
    return network->averaged ? att_checkpoint_load_ema(network->model, network->file, weights)
                             : att_model_load(network->model, network->file, weights);
}

/* timm's files of CLIP have the projection as classifier, with a bias of zeros, which no training run leaves. Widths of
 * projections are multiples of 128: 512, 640, 768, 1024, 1152, ... */
static att_status find_projection(att_network *network)
{
    enum { STEP = 128 };
    att_tensors *file = network->file;
    const int index = strstr(network->identity.name, "_clip_") && !att_tensors_metadata(file, ATT_IDENTITY_KEY)
                          ? att_tensors_find(file, "head.bias")
                          : -1;
    const int64_t count = index >= 0 ? att_tensors_at(file, index).count : 0;
    if (count == 0 || count % STEP != 0)
        return ATT_OK;
    float *bias = att_allocate_array(network->context, (size_t)count, sizeof *bias);
    if (!bias)
        return att_fail_memory(network->context, (size_t)count * sizeof *bias, network->path);
    const att_status status = att_tensors_read_f32(file, index, bias, count);
    file->projects = status == ATT_OK;
    for (int64_t i = 0; i < count && file->projects; i++)
        file->projects = bias[i] == 0;
    att_free(network->context, bias);
    return status;
}

/* Builds the network of network->file and loads its weights. */
static att_status load(att_network *network, const att_network_options *options)
{
    att_context *context = network->context;
    ATT_TRY(att_model_identify(context, network->file, NULL, options->model, options->options, &network->identity));
    network->trained = network->identity.preprocess;
    if (options->test_images && !is_trained_here(network))
        ATT_TRY(take_test_images(network, options));
    ATT_TRY(build(network));
    network->averaged = options->averaged;
    ATT_TRY(load_weights(network, network->weights));
    ATT_TRY(find_projection(network));
    att_weights_set_source(network->weights, load_weights, network);
    return ATT_OK;
}

static att_status open_file(att_network *network, const att_network_options *options)
{
    ATT_TRY(att_model_open_file_as(network->context, network->path, options->model, &network->file));
    return load(network, options);
}

static att_status open_network(att_network *network, const char *what, const att_network_options *options)
{
    ATT_TRY(att_network_find_file(network->context, what, network->path, sizeof network->path));
    ATT_TRY(*network->path ? open_file(network, options) : open_name(network, what, options));
    return att_network_take_class_names(network);
}

static att_status create(att_context *context, const att_network_options *options, att_network **out)
{
    att_network *network;
    ATT_TRY(att_new(context, &network, 1, "a network"));
    network->context = context;
    network->class_arena.context = context;
    att_network_begin_views(network);
    network->precision = options->precision;
    network->dtype = options->dtype;
    const char *backend = options->backend ? options->backend : att_network_options_defaults().backend;
    if (options->dtype == ATT_F64 && strcmp(backend, "cpu") == 0)
        backend = "f64";
    network->backend = att_copy_string(context, backend);
    *out = network;
    return network->backend ? ATT_OK : att_fail_memory(context, strlen(backend), "the name of a backend");
}

att_status att_network_open(att_context *context, const char *what, const att_network_options *options,
                            att_network **out)
{
    const att_network_options defaults = att_network_options_defaults();
    const att_network_options *how = options ? options : &defaults;
    att_network *network = NULL;
    att_status status = create(context, how, &network);
    if (status == ATT_OK)
        status = open_network(network, what, how);
    if (status == ATT_OK)
        *out = network;
    else
        att_network_close(&network);
    return status;
}

static att_status open_tensors(att_network *network, const att_safetensors_tensor *tensors, int count,
                               const att_network_options *options)
{
    ATT_TRY(att_require(network->context, tensors, "the tensors of a network"));
    if (count < 1)
        return att_fail(network->context, ATT_ERR_ARGUMENT, "a network of %d tensors, expected at least 1", count);
    ATT_TRY(att_tensors_borrow(network->context, tensors, count, &network->file));
    att_status status = load(network, options);
    if (status == ATT_OK)
        att_weights_keep(network->own_weights); /* they cannot be read again */
    att_tensors_forget(network->file);
    return status == ATT_OK ? att_network_take_class_names(network) : status;
}

att_status att_network_open_tensors(att_context *context, const att_safetensors_tensor *tensors, int count,
                                    const att_network_options *options, att_network **out)
{
    const att_network_options defaults = att_network_options_defaults();
    const att_network_options *how = options ? options : &defaults;
    att_network *network = NULL;
    att_status status = create(context, how, &network);
    if (status == ATT_OK)
        status = open_tensors(network, tensors, count, how);
    if (status == ATT_OK)
        *out = network;
    else
        att_network_close(&network);
    return status;
}

att_status att_network_wrap(const att_model *model, att_weights *weights, const att_network_options *options,
                            att_network **out)
{
    const att_network_options defaults = att_network_options_defaults();
    att_network *network = NULL;
    att_status status = create(att_graph_context(att_model_graph(model)), options ? options : &defaults, &network);
    if (status != ATT_OK) {
        att_network_close(&network);
        return status;
    }
    network->model = model;
    network->weights = weights;
    network->dtype = att_graph_dtype(att_model_graph(model));
    network->identity = att_model_identity(model);
    network->trained = network->identity.preprocess;
    status = att_network_take_class_names(network);
    if (status == ATT_OK)
        *out = network;
    else
        att_network_close(&network);
    return status;
}

void att_network_close(att_network **out)
{
    if (!out || !*out)
        return;
    att_network *network = *out;
    att_context *context = network->context;
    att_shape_cache_clear(&network->views);
    att_shape_cache_clear(&network->windows);
    att_model_destroy(&network->observed);
    att_weights_destroy(&network->own_weights);
    att_model_destroy(&network->own_model);
    att_tensors_close(&network->file);
    att_arena_free(&network->class_arena);
    att_free(context, network->pixels);
    att_free(context, network->places);
    att_free(context, network->image_sizes);
    att_free(context, network->map);
    att_free(context, network->outputs);
    att_free(context, network->backend);
    att_free(context, network->config_names);
    att_free(context, network);
    *out = NULL;
}

/* --- properties --------------------------------------------------------------------------------------------------- */

const char *att_network_path(const att_network *network)
{
    return *network->path ? network->path : NULL;
}

const att_tensors *att_network_file(const att_network *network)
{
    return network->file;
}

const att_identity *att_network_identity(const att_network *network)
{
    return &network->identity;
}

const att_model *att_network_model(const att_network *network)
{
    return network->model;
}

att_weights *att_network_weights(const att_network *network)
{
    return network->weights;
}

const char *att_network_backend(const att_network *network)
{
    return network->backend;
}

att_precision att_network_precision(const att_network *network)
{
    return network->precision;
}

bool att_network_is_averaged(const att_network *network)
{
    return network->averaged;
}

att_preprocess att_network_trained_preprocess(const att_network *network)
{
    return network->trained;
}

att_transform_options att_network_transform(const att_network *network)
{
    return att_evaluate_transform(&network->identity.preprocess);
}

/* Checks a text, which att_evaluate_transform() takes for the default if it does not know it. known: names separated by
 * ", ". */
static att_status check_word(att_context *context, const char *member, const char *text, size_t size, const char *known)
{
    const size_t length = strnlen(text, size);
    for (const char *at = known; length < size && at; at = strstr(at, ", ") ? strstr(at, ", ") + 2 : NULL)
        if (strcspn(at, ",") == length && strncmp(at, text, length) == 0)
            return ATT_OK;
    return att_fail(context, ATT_ERR_ARGUMENT, "the preprocessing's %s is \"%.*s\", expected %s", member, (int)length,
                    text, known);
}

att_status att_network_set_preprocess(att_network *network, const att_preprocess *preprocess)
{
    const att_preprocess *own = &network->identity.preprocess;
    ATT_TRY(att_require(network->context, preprocess, "the preprocessing of a network"));
    ATT_TRY(att_model_need_image(network->model));
    if (preprocess->height != own->height || preprocess->width != own->width || preprocess->in_chans != own->in_chans)
        return att_fail(network->context, ATT_ERR_MISMATCH,
                        "the network takes images of %d x %d pixels with %d channels, not %d x %d with %d", own->height,
                        own->width, own->in_chans, preprocess->height, preprocess->width, preprocess->in_chans);
    ATT_TRY(check_word(network->context, "crop_mode", preprocess->crop_mode, sizeof preprocess->crop_mode,
                       "center, floor, squash, border, keep, within"));
    ATT_TRY(check_word(network->context, "interpolation", preprocess->interpolation, sizeof preprocess->interpolation,
                       "bicubic, bilinear, nearest, bicubic_float, bilinear_float, bilinear_plain"));
    const att_transform_options transform = att_evaluate_transform(preprocess);
    ATT_TRY(att_transform_check(network->context, &transform));
    if (preprocess->crop_pct != own->crop_pct)
        network->identity.test_crop_pct = 0;
    network->identity.preprocess = *preprocess;
    return ATT_OK;
}

/* --- running ------------------------------------------------------------------------------------------------------ */

att_status att_network_select_outputs(att_network *network, const char *outputs)
{
    att_graph *graph;
    const char **names;
    ATT_TRY(att_network_build_outputs(network->model, outputs, &graph, &names));
    att_graph_destroy(&graph);
    att_free(network->context, names);
    char *copy = outputs ? att_copy_string(network->context, outputs) : NULL;
    if (outputs && !copy)
        return att_fail_memory(network->context, strlen(outputs), "the names of a network's outputs");
    att_shape_cache_clear(&network->views);
    att_free(network->context, network->outputs);
    network->outputs = copy;
    return ATT_OK;
}

/* --- describing answers ------------------------------------------------------------------------------------------- */

/* Returns where the last run put the photograph of the first answer; NULL if it had none or the answers are others. */
static const att_geometry *place_of(const att_network *network, const att_batch *answers)
{
    if (network->place_count == 0 || !answers || answers->field_count == 0)
        return NULL;
    const size_t each = (size_t)att_shape_count(answers->fields[0].shape) * att_dtype_size(answers->fields[0].dtype);
    const size_t row = ((uintptr_t)answers->data[0] - (uintptr_t)network->placed) / (each > 0 ? each : 1);
    return row < (size_t)network->place_count ? &network->places[row] : NULL;
}

static att_answer_options complete(const att_network *network, const att_batch *answers,
                                   const att_answer_options *options)
{
    att_answer_options named = options ? *options : att_answer_options_defaults();
    if (!named.labels)
        named.labels = att_network_class_names(network, &named.label_count);
    if (!named.colours)
        named.colours = network->class_colours;
    if (!named.class_ids)
        named.class_ids = network->class_ids;
    if (!named.geometry)
        named.geometry = place_of(network, answers);
    return named;
}

/* Replaces the message of a task that found no output to show, if the network has a head. */
static att_status explain_missing(const att_network *network, att_status status)
{
    if (status != ATT_ERR_MISMATCH || !network->outputs || att_model_classes(network->model) == 0)
        return status;
    return att_fail(network->context, status,
                    "the selected outputs (%s) do not include those that the task \"%s\" needs to show a prediction; "
                    "att_network_select_outputs() with NULL selects them",
                    network->outputs, att_model_task(network->model).name);
}

att_status att_network_write(const att_network *network, const att_batch *answers, const att_answer_options *options,
                             att_json_writer *writer)
{
    const att_answer_options named = complete(network, answers, options);
    ATT_TRY(att_network_check_scores(network, NULL));
    return explain_missing(
        network, att_task_write(network->context, att_model_task(network->model).name, answers, &named, writer));
}

att_status att_network_describe(const att_network *network, const att_batch *answers, const att_answer_options *options,
                                void (*line)(void *user, const char *text), void *user)
{
    const att_answer_options named = complete(network, answers, options);
    ATT_TRY(att_network_check_scores(network, NULL));
    return explain_missing(
        network, att_task_describe(network->context, att_model_task(network->model).name, answers, &named, line, user));
}

att_status att_network_draw(const att_network *network, const att_batch *answers, const att_answer_options *options,
                            const att_image *photograph, att_drawing *drawing)
{
    const att_answer_options named = complete(network, answers, options);
    const att_transform_options transform = att_network_photograph_transform(network);
    att_geometry geometry;
    ATT_TRY(att_require(network->context, photograph, "the photograph of a drawing"));
    if (att_passes_are_on(&network->passes))
        geometry = att_geometry_of(photograph->width, photograph->height);
    else
        ATT_TRY(att_transform_geometry(network->context, &transform, photograph->width, photograph->height, &geometry));
    return explain_missing(network, att_task_draw(network->context, att_model_task(network->model).name,
                                                  att_model_classes(network->model), answers, &named, photograph,
                                                  &geometry, drawing));
}

bool att_network_draws(const att_network *network)
{
    return att_task_draws(network->context, att_model_task(network->model).name);
}

/* --- data sets --------------------------------------------------------------------------------------------------- */

/* The instruments get a model of their own, so that ordinary runs do not compute the instruments' probes. */
att_status att_network_observe(att_network *network, const char *with, const char *nodes, att_measure **measure)
{
    att_model *observed = NULL;
    att_status status = att_model_rebuild(network->model, NULL, &observed);
    if (status == ATT_OK)
        status = att_measure_create(att_model_graph(observed), with, nodes, measure);
    if (status != ATT_OK) {
        att_model_destroy(&observed);
        return status;
    }
    att_model_destroy(&network->observed);
    network->observed = observed;
    network->measure = *measure;
    return ATT_OK;
}

const att_model *att_network_observed(const att_network *network)
{
    return network->observed;
}

/* The network's file or name stands first, because programs evaluate several networks. */
static att_status fail_nonfinite(const att_network *network)
{
    char what[ATT_NETWORK_PATH + sizeof ATT_NONFINITE_OUTPUTS + 2];
    snprintf(what, sizeof what, "%s: %s", *network->path ? network->path : network->identity.name,
             ATT_NONFINITE_OUTPUTS);
    return att_weights_fail_nonfinite(network->weights, what);
}

att_status att_network_evaluate(att_network *network, const att_dataset *dataset, const att_evaluate_options *options,
                                att_evaluation *result)
{
    att_evaluate_options own = options ? *options : att_evaluate_options_defaults();
    const bool one_size = own.measure || own.observed || own.fgsm > 0 || own.occlude > 0;
    const att_transform_options transform =
        one_size ? att_network_transform(network) : att_evaluate_loading(&network->identity.preprocess);
    att_passes passes;
    ATT_TRY(att_require(network->context, dataset, "the data set of an evaluation"));
    if (own.measure && own.measure != network->measure)
        return att_fail(network->context, ATT_ERR_ARGUMENT,
                        "the instruments are not those that the last call of att_network_observe() made for this "
                        "network");
    att_option_values trained_with = att_options_none();
    const att_task_info task = att_model_task(network->model);
    if (network->file && !own.task_options)
        ATT_TRY(att_checkpoint_task_options(network->context, network->file, &task, &trained_with));
    if (!own.task_options)
        own.task_options = &trained_with;
    own.backend = network->backend;
    own.precision = network->precision;
    att_evaluation found = {0};
    att_status status = att_network_passes(network, own.batch_size, &passes)
                            ? att_evaluate_in_passes(network->model, dataset, &passes, &own, &found)
                            : att_evaluate(own.measure ? network->observed : network->model, network->weights, dataset,
                                           &transform, &own, &found);
    if (status == ATT_OK && result)
        *result = found;
    if (status == ATT_OK && !own.unlabelled && (!own.comm || att_comm_rank(own.comm) == 0))
        (void)att_evaluation_warn(network->model, &found);
    if (status == ATT_ERR_FORMAT && !own.skip_corrupt && !own.real_labels && att_dataset_count(dataset) > 1)
        att_log(network->context, ATT_LOG_INFO, "--skip-corrupt leaves such images out");
    if (status == ATT_OK && found.not_finite > 0)
        return fail_nonfinite(network);
    return status;
}
