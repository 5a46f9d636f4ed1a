/* Features of the images of a data set, and their files. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <attscope/embed.h>
#include <attscope/safetensors.h>

#include "base/core/error.h"
#include "base/core/text.h"
#include "base/io/file.h"
#include "base/io/json.h"
#include "base/io/npz.h"
#include "data/dataset.h"
#include "data/transform.h"
#include "networks/models/family.h"
#include "study/network/network.h"
#include "study/train/clock.h"

att_embed_options att_embed_options_defaults(void)
{
    return (att_embed_options){.output = "features", .batch_size = 256, .workers = 4};
}

/* --- running ------------------------------------------------------------------------------------------------------ */

typedef struct embedder {
    att_network *network;
    const att_embed_options *options;
    int64_t images; /* of the data set */
    att_loader *loader;
    double started;
    att_embedding found;
} embedder;

static att_status open_loader(embedder *e, const att_dataset *dataset)
{
    att_context *context = e->network->context;
    const att_transform_options transform = att_network_photograph_transform(e->network);
    if (att_transform_varies(&transform))
        return att_fail(context, ATT_ERR_UNSUPPORTED,
                        "features of images of several sizes (crop mode \"keep\") are not supported: use another crop "
                        "mode");
    att_loader_options loader = att_loader_options_defaults(transform.height, transform.width, transform.channels);
    loader.transform = transform;
    loader.image = att_model_image(e->network->model).field.name;
    loader.batch_size = att_evaluate_batch(&transform, e->options->batch_size, NULL);
    loader.workers = e->options->workers;
    loader.corrupt = e->options->skip_corrupt ? ATT_CORRUPT_LEFT_OUT : ATT_CORRUPT_FATAL;
    return att_loader_create(context, dataset, &loader, &e->loader);
}

/* Allocates the features after the first batch, which shows their shape. */
static att_status make_room(embedder *e, const att_batch *answers)
{
    att_context *context = e->network->context;
    if (answers->field_count != 1 || answers->fields[0].dtype != ATT_F32)
        return att_fail(context, ATT_ERR_ARGUMENT, "the features \"%s\" %s, expected the name of one output of reals",
                        e->options->output,
                        answers->field_count != 1 ? "are several outputs" : "are an output of whole numbers");
    e->found.shape = answers->fields[0].shape;
    const size_t each = (size_t)att_shape_count(e->found.shape);
    ATT_TRY(att_new(context, &e->found.values, (size_t)e->images * each, "the features of images"));
    ATT_TRY(att_new(context, &e->found.indices, (size_t)e->images, "the features of images"));
    return att_new(context, &e->found.labels, (size_t)e->images, "the classes of images");
}

static att_status keep(embedder *e, const att_dataset *dataset, const att_batch *batch, const att_batch *answers)
{
    if (!e->found.values)
        ATT_TRY(make_room(e, answers));
    const size_t each = (size_t)att_shape_count(e->found.shape), count = (size_t)batch->count;
    memcpy(e->found.values + (size_t)e->found.count * each, answers->data[0], count * each * sizeof(float));
    memcpy(e->found.indices + e->found.count, batch->indices, count * sizeof *batch->indices);
    for (size_t i = 0; i < count; i++)
        e->found.labels[(size_t)e->found.count + i] = att_dataset_label(dataset, batch->indices[i]);
    e->found.count += batch->count;
    return ATT_OK;
}

static att_status report(const embedder *e, int64_t batches_done)
{
    const int64_t done = e->found.count + att_loader_describe(e->loader).corrupt;
    const double seconds = att_seconds_now() - e->started;
    const att_progress progress = {.stage = "embed",
                                   .batch = batches_done,
                                   .batches = att_loader_batches(e->loader),
                                   .images_per_second = att_ratio((double)done, seconds),
                                   .seconds_left = seconds * att_ratio((double)(e->images - done), (double)done),
                                   .loss = NAN,
                                   .lr = NAN,
                                   .slowest_rank = -1,
                                   .others_share = NAN,
                                   .done = done,
                                   .total = e->images};
    if (!e->options->progress || e->options->progress(e->options->progress_user, &progress))
        return ATT_OK;
    return att_fail(e->network->context, ATT_ERR_STOPPED, "the features of %lld of %lld images were computed",
                    (long long)done, (long long)e->images);
}

static att_status embed(embedder *e, const att_dataset *dataset)
{
    att_batch batch, answers;
    ATT_TRY(att_model_need_image(e->network->model));
    ATT_TRY(att_network_select_outputs(e->network, e->options->output));
    ATT_TRY(open_loader(e, dataset));
    e->started = att_seconds_now();
    ATT_TRY(att_loader_start(e->loader, 0, 0));
    for (;;) {
        ATT_TRY(att_loader_next(e->loader, &batch));
        if (batch.count == 0)
            break;
        ATT_TRY(att_network_run(e->network, &batch, &answers));
        ATT_TRY(keep(e, dataset, &batch, &answers));
        ATT_TRY(report(e, batch.number + 1));
    }
    const double seconds = att_seconds_now() - e->started;
    e->found.images_per_second = att_ratio((double)e->found.count, seconds);
    e->found.wait_share = att_ratio(att_loader_describe(e->loader).wait_seconds, seconds);
    if (e->found.count == 0)
        return att_fail(e->network->context, ATT_ERR_NOT_FOUND, "the data set has no image that can be decoded");
    return ATT_OK;
}

att_status att_network_embed(att_network *network, const att_dataset *dataset, const att_embed_options *options,
                             att_embedding *embedding)
{
    const att_embed_options defaults = att_embed_options_defaults();
    embedder e = {.network = network, .options = options ? options : &defaults, .images = att_dataset_count(dataset)};
    ATT_TRY(att_require(network->context, e.options->output, "the name of the features"));
    const att_status status = embed(&e, dataset);
    att_loader_destroy(&e.loader);
    if (status == ATT_OK)
        *embedding = e.found;
    else
        att_embedding_free(network->context, &e.found);
    return status;
}

void att_embedding_free(att_context *context, att_embedding *embedding)
{
    att_free(context, embedding->values);
    att_free(context, embedding->indices);
    att_free(context, embedding->labels);
    *embedding = (att_embedding){0};
}

/* --- training and tested images ----------------------------------------------------------------------------------- */

att_status att_embedding_check_sets(att_context *context, const att_dataset *train, const att_dataset *tested)
{
    const int classes = att_dataset_class_count(tested);
    bool same = classes == att_dataset_class_count(train);
    if (att_file_is_same(train->path, tested->path) && strcmp(att_dataset_split(train), att_dataset_split(tested)) == 0)
        return att_fail(context, ATT_ERR_ARGUMENT,
                        "the training images and the images to classify are the same images of %s: give other training "
                        "images, or another split",
                        tested->path);
    for (int c = 0; c < classes && same; c++)
        same = strcmp(att_dataset_class_name(tested, c), att_dataset_class_name(train, c)) == 0;
    return same ? ATT_OK
                : att_fail(context, ATT_ERR_MISMATCH,
                           "the training images and the images to classify have different classes (%d and %d): give "
                           "both the same class folders, or a class map",
                           att_dataset_class_count(train), classes);
}

/* --- files -------------------------------------------------------------------------------------------------------- */

typedef struct described {
    const att_embedding *embedding;
    const att_dataset *dataset;
    char name[ATT_NETWORK_PATH]; /* of the last image */
} described;

static const char *image_name(const void *user, int64_t index)
{
    described *d = (described *)(uintptr_t)user;
    return att_dataset_short_name(d->dataset, d->embedding->indices[index], d->name, sizeof d->name);
}

static const char *class_name(const void *user, int64_t index)
{
    const described *d = user;
    return att_dataset_class_name(d->dataset, (int)index);
}

static att_shape shape_of_all(const att_embedding *embedding)
{
    att_shape all = {.rank = embedding->shape.rank + 1, .dims = {embedding->count}};
    for (int i = 0; i < embedding->shape.rank; i++)
        all.dims[i + 1] = embedding->shape.dims[i];
    return all;
}

static size_t bytes_of(const att_embedding *embedding)
{
    return (size_t)att_shape_count(shape_of_all(embedding)) * sizeof(float);
}

/* The labels as files hold them; zeros for texts. On success the caller frees *labels. */
static att_status widen_labels(att_context *context, const att_embedding *e, int64_t **labels)
{
    ATT_TRY(att_new(context, labels, (size_t)e->count, "the labels of images"));
    for (int64_t i = 0; e->labels && i < e->count; i++)
        (*labels)[i] = e->labels[i];
    return ATT_OK;
}

static att_status fill_npz(att_npz *npz, const described *d, const int64_t *labels)
{
    const att_embedding *e = d->embedding;
    ATT_TRY(att_npz_add(npz, "features", "<f4", shape_of_all(e), e->values, bytes_of(e)));
    if (!d->dataset)
        return ATT_OK;
    ATT_TRY(att_npz_add(npz, "labels", "<i8", att_shape_of(e->count), labels, (size_t)e->count * sizeof *labels));
    ATT_TRY(att_npz_add_texts(npz, "names", e->count, image_name, d));
    return att_npz_add_texts(npz, "classes", att_dataset_class_count(d->dataset), class_name, d);
}

static att_status write_npz(att_context *context, const described *d, const char *path)
{
    att_npz *npz;
    int64_t *labels;
    ATT_TRY(att_npz_open(context, path, &npz));
    att_status status = widen_labels(context, d->embedding, &labels);
    if (status == ATT_OK) {
        status = fill_npz(npz, d, labels);
        att_free(context, labels);
    }
    if (status == ATT_OK)
        return att_npz_commit(&npz);
    att_npz_abort(&npz);
    return status;
}

static att_status fill_npy(const described *d, att_file_writer *features, att_file_writer *names)
{
    const att_embedding *e = d->embedding;
    char header[ATT_NPY_HEADER];
    ATT_TRY(att_file_writer_write(features, header, att_npy_header("<f4", shape_of_all(e), header)));
    ATT_TRY(att_file_writer_write(features, e->values, bytes_of(e)));
    for (int64_t i = 0; names && i < e->count; i++) {
        const char *name = image_name(d, i);
        ATT_TRY(att_file_writer_write(names, name, strcspn(name, "\n"))); /* a name is one line */
        ATT_TRY(att_file_writer_write(names, "\n", 1));
    }
    return ATT_OK;
}

static att_status write_npy(att_context *context, const described *d, const char *path)
{
    char beside[ATT_NETWORK_PATH];
    att_file_writer *features = NULL, *names = NULL;
    const int length = snprintf(beside, sizeof beside, "%.*s.names.txt", (int)(strlen(path) - strlen(".npy")), path);
    if (length < 0 || (size_t)length >= sizeof beside)
        return att_fail(context, ATT_ERR_ARGUMENT, "%.64s...: the path is too long", path);
    att_status status = att_file_writer_open(context, path, &features);
    if (status == ATT_OK && d->dataset)
        status = att_file_writer_open(context, beside, &names);
    if (status == ATT_OK)
        status = fill_npy(d, features, names);
    if (status == ATT_OK)
        return names ? att_file_writer_commit_with(&features, beside, &names) : att_file_writer_commit(&features);
    att_file_writer_abort(&features);
    att_file_writer_abort(&names);
    return status;
}

/* A JSON array of texts. On success the caller destroys the writer, to which *text belongs. */
static att_status list_texts(att_context *context, int64_t count, const char *(*text_of)(const void *, int64_t),
                             const void *user, att_json_writer **writer, const char **text)
{
    size_t length;
    ATT_TRY(att_json_writer_create(context, false, writer));
    att_json_begin_array(*writer);
    for (int64_t i = 0; i < count; i++)
        att_json_string(*writer, text_of(user, i));
    att_json_end_array(*writer);
    return att_json_writer_finish(*writer, text, &length);
}

static att_status write_safetensors(att_context *context, const described *d, const char *path)
{
    const att_embedding *e = d->embedding;
    int64_t *labels;
    att_json_writer *names = NULL, *classes = NULL;
    ATT_TRY(widen_labels(context, e, &labels));
    att_safetensors_pair pairs[] = {{"names", NULL}, {"classes", NULL}};
    const att_safetensors_tensor tensors[] = {
        {"features", ATT_SAFETENSORS_F32, shape_of_all(e), e->values},
        {"labels", ATT_SAFETENSORS_I64, att_shape_of(e->count), labels},
    };
    const int more = d->dataset != NULL;
    const att_safetensors_content content = {
        .tensors = tensors, .tensor_count = 1 + more, .metadata = pairs, .metadata_count = 2 * more};
    att_status status = more ? list_texts(context, e->count, image_name, d, &names, &pairs[0].value) : ATT_OK;
    if (status == ATT_OK && more)
        status = list_texts(context, att_dataset_class_count(d->dataset), class_name, d, &classes, &pairs[1].value);
    if (status == ATT_OK)
        status = att_safetensors_write(context, path, &content);
    att_json_writer_destroy(&names);
    att_json_writer_destroy(&classes);
    att_free(context, labels);
    return status;
}

static const struct {
    const char *ending;
    att_status (*write)(att_context *context, const described *d, const char *path);
} formats[] = {{".npz", write_npz}, {".npy", write_npy}, {".safetensors", write_safetensors}};

att_status att_embedding_write(att_context *context, const att_embedding *embedding, const att_dataset *dataset,
                               const char *path)
{
    const described d = {.embedding = embedding, .dataset = dataset};
    const char *ending = strrchr(path, '.');
    for (size_t f = 0; ending && f < sizeof formats / sizeof *formats; f++)
        if (strcmp(ending, formats[f].ending) == 0)
            return formats[f].write(context, &d, path);
    return att_fail(context, ATT_ERR_ARGUMENT, "%s: features are written as .npz, .npy or .safetensors", path);
}
