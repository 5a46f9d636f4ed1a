/* Batches are prepared in a ring of slots: batch n of the epoch in slot n mod ring. Workers claim single images, in the
 * epoch's order, of the batches released .. released + ring - 1, where `released` counts the batches that the caller
 * has finished with. The caller waits until batch `released` is complete. */
#include <pthread.h>
#include <string.h>

#include "base/core/clock.h"
#include "base/core/context.h"
#include "base/core/error.h"
#include "base/core/memory.h"
#include "base/core/random.h"
#include "base/core/threads.h"
#include "data/agreement.h"
#include "data/dataset.h"
#include "data/epoch.h"
#include "data/make.h"
#include "data/mix.h"
#include "data/share.h"
#include "data/slot.h"

enum { MAX_BATCH = 1 << 20, MAX_WORKERS = 1024, MAX_PREFETCH = 1024, MAX_REPLACED = 100, MAX_REPEATS = 100 };

/* A context belongs to one thread, so each worker has a context of its own, which uses the allocator of the loader's
 * context. */
typedef struct worker {
    att_loader *loader;
    att_context *context;
    pthread_t thread;
    bool started;
} worker;

struct att_loader {
    att_context *context;
    const att_dataset *dataset;
    att_loader_options options;
    att_epoch order;       /* of the samples */
    att_field *declared;   /* the image field, then the target fields, with ATT_IMAGE_HEIGHT and ATT_IMAGE_WIDTH */
    att_field *fields;     /* the same for the images of the batch that the caller has */
    size_t *row_bytes;     /* [shapes + 1][fields], bytes of a sample; the last row: the most */
    void **target_scratch; /* [targets], scratch for one sample's targets; NULL if mixing is off */
    int field_count;
    att_slot *slots;
    int ring;
    worker *workers; /* if options.workers is 0: a single worker without a thread */
    int worker_count;
    att_loader_stats stats;
    att_agreement *agreement; /* with other processes; NULL: there are none */
    uint8_t *reported;        /* [images of the data set], 1: reported as corrupt; NULL: none is */
    bool handed_out;          /* the caller still uses the batch `released` */

    pthread_mutex_t lock; /* protects the members below, and att_slot.missing */
    pthread_cond_t work, done;
    int64_t epoch, released;
    int64_t claimed_batch; /* the next image to prepare: */
    int claimed;           /* number within this process's share of that batch */
    int in_progress;       /* images that workers are preparing */
    bool stopping;
};

att_loader_options att_loader_options_defaults(int height, int width, int channels)
{
    return (att_loader_options){.transform = att_transform_options_defaults(height, width, channels),
                                .mix = {.prob = 1, .switch_prob = 0.5},
                                .image = "",
                                .repeats = 1,
                                .batch_size = 32,
                                .workers = 2,
                                .prefetch = 4};
}

/* --- preparing images -------------------------------------------------------------------------------------------- */

static const size_t *row_bytes_of(const att_loader *loader, int shape)
{
    return loader->row_bytes + (size_t)shape * (size_t)loader->field_count;
}

static att_slot *slot_of(const att_loader *loader, int64_t batch)
{
    return &loader->slots[batch % loader->ring];
}

/* The samples of the batch that this process prepares. */
static att_share share_of(const att_loader *loader, int64_t batch)
{
    return att_share_of(loader->options.comm, att_epoch_batch_size(&loader->order, batch),
                        att_mix_is_on(&loader->options.mix));
}

/* Most samples in a share. */
static int share_capacity(const att_loader_options *options)
{
    int processes = att_comm_size(options->comm), own = (options->batch_size + processes - 1) / processes;
    int most = att_mix_is_on(&options->mix) ? 2 * own : own;
    return most < options->batch_size ? most : options->batch_size;
}

/* Whether the image itself is bad, so that another attempt would fail as well. */
static bool is_corrupt(att_status status)
{
    return status == ATT_ERR_FORMAT || status == ATT_ERR_UNSUPPORTED;
}

/* A sample that is being prepared. `fields`: its rows in the batch. */
typedef struct sample {
    const att_loader *loader;
    att_context *context;
    const att_transform_key *key;
    int shape; /* of the result */
    void *fields[1 + ATT_MAX_TARGETS];
} sample;

static att_status make_sample(const sample *it, int64_t index)
{
    const att_loader_options *options = &it->loader->options;
    const att_dataset *dataset = it->loader->dataset;
    att_geometry geometry;
    att_transform_options transform = options->transform;
    const att_loader_shape shape = att_epoch_shape_at(&it->loader->order, it->shape);
    transform.width = shape.width;
    transform.height = shape.height;
    ATT_TRY(
        att_make_image(dataset, &transform, &options->targets, it->context, index, it->key, it->fields[0], &geometry));
    if (options->targets.count == 0)
        return ATT_OK;
    return options->targets.fill(options->targets.user, it->context, dataset, index, &geometry, it->fields + 1);
}

/* Prepares the first sample of the same shape from position `place` on that is not corrupt. */
static att_status find_replacement(const sample *it, int64_t place, int64_t *index)
{
    const att_epoch *order = &it->loader->order;
    att_status status = ATT_ERR_FORMAT;
    int tries = 0;
    for (int64_t i = 0; i < order->places + MAX_REPLACED && tries < MAX_REPLACED && is_corrupt(status); i++) {
        int64_t next = att_epoch_index_at(order, place + i);
        if (!att_epoch_has_shape(order, next, it->shape))
            continue;
        *index = next;
        status = make_sample(it, next);
        tries++;
    }
    return status;
}

static char *copy_message(const att_loader *loader, const att_context *context)
{
    return att_copy_string(loader->context, att_context_message(context));
}

/* Announces the image of sample number `at` of the next batch, so that the system reads ahead by one batch. */
static void expect_next(const att_loader *loader, int64_t batch, int at)
{
    if (batch + 1 >= att_loader_batches(loader))
        return;
    att_share share = share_of(loader, batch + 1);
    if (at < att_share_count(&share))
        att_dataset_expect(loader->dataset,
                           att_epoch_index_at(&loader->order, att_epoch_batch_begin(&loader->order, batch + 1) +
                                                                  att_share_row(&share, at)));
}

/* Prepares sample number `at` of this process's share of the batch, in the slot of the batch. */
static void prepare_sample(const att_loader *loader, att_context *context, int64_t batch, int at)
{
    att_share share = share_of(loader, batch);
    int64_t place = att_epoch_batch_begin(&loader->order, batch) + att_share_row(&share, at);
    att_slot *slot = slot_of(loader, batch);
    int64_t index = att_epoch_index_at(&loader->order, place);
    att_transform_key key = {.seed = loader->options.seed,
                             .epoch = loader->epoch,
                             .index = index,
                             .repeat = (int)(place % loader->options.repeats)};
    sample it = {
        .loader = loader, .context = context, .key = &key, .shape = att_epoch_batch_shape(&loader->order, batch)};
    for (int f = 0; f < loader->field_count; f++)
        it.fields[f] = att_slot_row(slot, f, at);
    expect_next(loader, batch, at);
    att_status status = make_sample(&it, index);
    if (status != ATT_OK) {
        att_slot_failure failed = {.status = status, .reason = copy_message(loader, context), .index = index};
        if (is_corrupt(status) && loader->options.corrupt == ATT_CORRUPT_REPLACED) {
            status = find_replacement(&it, place + 1, &index);
            failed.replaced = status == ATT_OK;
        }
        if (!failed.replaced && !is_corrupt(status)) {
            att_free(loader->context, failed.reason);
            failed = (att_slot_failure){.status = status, .reason = copy_message(loader, context), .index = index};
        }
        slot->failures[at] = failed;
    }
    slot->indices[at] = index;
}

/* Whether an image can be claimed; moves on to the batch that has it. */
static bool has_work(att_loader *loader)
{
    for (; loader->claimed_batch < att_loader_batches(loader); loader->claimed_batch++, loader->claimed = 0) {
        att_share share = share_of(loader, loader->claimed_batch);
        if (loader->claimed_batch >= loader->released + loader->ring)
            return false;
        if (loader->claimed < att_share_count(&share))
            return true;
    }
    return false;
}

static void *work(void *user)
{
    worker *self = user;
    att_loader *loader = self->loader;
    pthread_mutex_lock(&loader->lock);
    for (;;) {
        while (!loader->stopping && !has_work(loader))
            pthread_cond_wait(&loader->work, &loader->lock);
        if (loader->stopping)
            break;
        int64_t batch = loader->claimed_batch;
        int at = loader->claimed++;
        loader->in_progress++;
        pthread_mutex_unlock(&loader->lock);
        prepare_sample(loader, self->context, batch, at);
        pthread_mutex_lock(&loader->lock);
        loader->in_progress--;
        if (--slot_of(loader, batch)->missing == 0 || loader->in_progress == 0)
            pthread_cond_signal(&loader->done);
    }
    pthread_mutex_unlock(&loader->lock);
    return NULL;
}

/* --- slots ------------------------------------------------------------------------------------------------------- */

/* Resets the slot of a batch whose images are to be prepared. A batch past the end of the epoch has no images. */
static void prepare_slot(att_loader *loader, int64_t batch)
{
    att_share share = {0};
    att_slot *slot = slot_of(loader, batch);
    if (batch < att_loader_batches(loader)) {
        share = share_of(loader, batch);
        slot->row_bytes = row_bytes_of(loader, att_epoch_batch_shape(&loader->order, batch));
    }
    att_slot_reset(slot, att_share_count(&share));
}

/* --- creation and destruction ------------------------------------------------------------------------------------ */

static void *forward_allocation(void *user, void *old, size_t old_size, size_t size)
{
    (void)old_size;
    if (size > 0)
        return att_reallocate(user, old, size);
    att_free(user, old);
    return NULL;
}

static att_status make_worker(att_loader *loader, worker *out)
{
    att_settings settings = att_settings_defaults();
    settings.threads = 1;
    settings.features = att_context_features(loader->context);
    settings.allocate = forward_allocation;
    settings.allocate_user = loader->context;
    out->loader = loader;
    att_status status = att_context_create_with(&settings, NULL, &out->context);
    if (status != ATT_OK)
        return att_fail(loader->context, status, "a loader's worker could not be made: %s", att_status_meaning(status));
    return ATT_OK;
}

/* Prepares images on fewer threads than asked for if the system provides no more: images do not depend on their number.
 */
static att_status start_threads(att_loader *loader)
{
    att_context *context = loader->context;
    att_status status = ATT_OK;
    for (int i = 0; i < loader->options.workers && status == ATT_OK; i++) {
        worker *next = &loader->workers[i];
        status = att_thread_start(context, &next->thread, work, next, "a loader thread");
        next->started = status == ATT_OK;
        if (i > 0 && status != ATT_OK) {
            att_log(context, ATT_LOG_WARNING, "images are loaded by %d of %d threads: %s", i, loader->options.workers,
                    att_context_message(context));
            return ATT_OK;
        }
    }
    return status;
}

static att_status check_targets(att_context *context, const att_loader_options *options)
{
    const att_target_rules *targets = &options->targets;
    if (targets->count < 0 || targets->count > ATT_MAX_TARGETS)
        return att_fail(context, ATT_ERR_ARGUMENT, "loader: a sample has %d targets, expected 0 to %d", targets->count,
                        ATT_MAX_TARGETS);
    for (int i = 0; i < targets->count; i++) {
        const att_field *field = &targets->fields[i];
        bool duplicate = strcmp(field->name, options->image) == 0;
        for (int j = 0; j < i; j++)
            duplicate = duplicate || strcmp(field->name, targets->fields[j].name) == 0;
        if (duplicate)
            return att_fail(context, ATT_ERR_ARGUMENT, "loader: two fields are called \"%s\"", field->name);
        const att_field resolved = att_field_of_sides(field, 1, 1);
        if (att_field_bytes(&resolved) == 0)
            return att_fail(context, ATT_ERR_ARGUMENT, "loader: the field \"%s\" has no element, or too many",
                            field->name);
    }
    if (att_mix_is_on(&options->mix) && targets->count > 0 && !targets->mix)
        return att_fail(context, ATT_ERR_UNSUPPORTED,
                        "Mixup and CutMix would mix images, but their targets (\"%s\") cannot be mixed",
                        targets->fields[0].name);
    if (options->mix.mixup > 0 && targets->count > 0 && targets->cuts_only)
        return att_fail(context, ATT_ERR_UNSUPPORTED,
                        "Mixup (--mixup, mix.mixup) blends two images, but a pixel of the target \"%s\" has one class; "
                        "leave Mixup out, or use CutMix (--cutmix, mix.cutmix), which moves a box with its classes",
                        targets->fields[0].name);
    return ATT_OK;
}

static att_status check_options(att_context *context, const att_loader_options *options)
{
    const char *wrong = NULL;
    if (options->batch_size < 1 || options->batch_size > MAX_BATCH)
        wrong = "batch_size must lie in 1..1048576";
    else if (options->workers < 0 || options->workers > MAX_WORKERS)
        wrong = "workers must lie in 0..1024";
    else if (options->prefetch < 2 || options->prefetch > MAX_PREFETCH)
        wrong = "prefetch must lie in 2..1024";
    else if (options->corrupt < ATT_CORRUPT_FATAL || options->corrupt > ATT_CORRUPT_REPLACED)
        wrong = "unknown treatment of corrupt images";
    else if (options->corrupt == ATT_CORRUPT_LEFT_OUT && att_mix_is_on(&options->mix) &&
             att_comm_size(options->comm) > 1)
        wrong = "several processes cannot mix batches that corrupt images are left out of";
    else if (options->repeats < 1 || options->repeats > MAX_REPEATS)
        wrong = "repeats must lie in 1..100";
    else if (options->repeats > 1 && att_transform_varies(&options->transform))
        wrong = "repeated augmentation needs images of one size";
    else if (options->limit < 0)
        wrong = "limit must be at least 0";
    else if (options->limit > 0 &&
             (options->repeats > 1 || options->shuffle || att_transform_varies(&options->transform)))
        wrong = "a limit needs images of one size, in their order, without repeats";
    if (wrong)
        return att_fail(context, ATT_ERR_ARGUMENT, "loader: %s", wrong);
    ATT_TRY(att_mix_check(context, &options->mix));
    ATT_TRY(check_targets(context, options));
    if (att_transform_chooses(&options->transform) && !options->targets.choose_crop)
        return att_fail(context, ATT_ERR_UNSUPPORTED,
                        "--cat-max-ratio (cat_max_ratio) %g limits the share of a class in the mask of a crop, but the "
                        "targets of this task are no masks; leave it out",
                        options->transform.cat_max_ratio);
    return att_transform_check(context, &options->transform);
}

static void resolve_fields(att_loader *loader, int shape)
{
    const att_loader_shape sides = att_epoch_shape_at(&loader->order, shape);
    for (int f = 0; f < loader->field_count; f++)
        loader->fields[f] = att_field_of_sides(&loader->declared[f], sides.height, sides.width);
}

/* Fills row_bytes. */
static void size_rows(att_loader *loader)
{
    size_t *most = loader->row_bytes + (size_t)att_epoch_shapes(&loader->order) * (size_t)loader->field_count;
    for (int s = 0; s < att_epoch_shapes(&loader->order); s++) {
        size_t *bytes = loader->row_bytes + (size_t)s * (size_t)loader->field_count;
        resolve_fields(loader, s);
        for (int f = 0; f < loader->field_count; f++) {
            bytes[f] = att_field_bytes(&loader->fields[f]);
            most[f] = bytes[f] > most[f] ? bytes[f] : most[f];
        }
    }
}

static att_status describe_fields(att_loader *loader)
{
    att_context *context = loader->context;
    att_target_rules *targets = &loader->options.targets;
    size_t count = (size_t)targets->count + 1, rows = (size_t)att_epoch_shapes(&loader->order) + 1;
    loader->field_count = targets->count + 1;
    loader->declared = att_allocate_array(context, count, sizeof *loader->declared);
    loader->fields = att_allocate_array(context, count, sizeof *loader->fields);
    loader->row_bytes = att_allocate_array(context, att_size_product(count, rows), sizeof *loader->row_bytes);
    if (!loader->declared || !loader->fields || !loader->row_bytes)
        return att_fail_memory(context, count * rows * sizeof *loader->fields, "a loader");
    loader->declared[0] =
        (att_field){.name = loader->options.image,
                    .dtype = ATT_F32,
                    .shape = att_shape_of(ATT_IMAGE_HEIGHT, ATT_IMAGE_WIDTH, loader->options.transform.channels)};
    for (int i = 0; i < targets->count; i++)
        loader->declared[1 + i] = targets->fields[i];
    size_rows(loader);
    targets->fields = loader->fields + 1;
    return ATT_OK;
}

static const size_t *most_bytes(const att_loader *loader)
{
    return row_bytes_of(loader, att_epoch_shapes(&loader->order));
}

/* Allocates the scratch for one sample's targets, if targets are mixed. */
static att_status make_target_scratch(att_loader *loader)
{
    int count = loader->options.targets.count;
    if (!att_mix_is_on(&loader->options.mix) || count == 0)
        return ATT_OK;
    ATT_TRY(att_new(loader->context, &loader->target_scratch, (size_t)count, "a loader"));
    for (int i = 0; i < count; i++) {
        loader->target_scratch[i] = att_allocate(loader->context, most_bytes(loader)[1 + i]);
        if (!loader->target_scratch[i])
            return att_fail_memory(loader->context, most_bytes(loader)[1 + i], "a loader");
    }
    return ATT_OK;
}

static void free_target_scratch(att_loader *loader)
{
    for (int i = 0; loader->target_scratch && i < loader->options.targets.count; i++)
        att_free(loader->context, loader->target_scratch[i]);
    att_free(loader->context, loader->target_scratch);
    loader->target_scratch = NULL;
}

static att_status fill_loader(att_loader *loader)
{
    att_context *context = loader->context;
    const att_loader_options *options = &loader->options;
    ATT_TRY(att_epoch_create(context, loader->dataset, options, &loader->order));
    ATT_TRY(describe_fields(loader));
    loader->ring = options->workers > 0 ? options->prefetch : 1;
    loader->worker_count = options->workers > 0 ? options->workers : 1;
    return att_comm_size(options->comm) > 1
               ? att_agreement_create(context, options, most_bytes(loader) + 1, &loader->agreement)
               : ATT_OK;
}

/* Allocates what large images fill, and starts the threads, which wait for att_loader_start(). After a failure,
 * end_work() frees what was made. */
static att_status begin_work(att_loader *loader)
{
    att_context *context = loader->context;
    loader->slots = att_allocate_array(context, (size_t)loader->ring, sizeof *loader->slots);
    loader->workers = att_allocate_array(context, (size_t)loader->worker_count, sizeof *loader->workers);
    if (!loader->slots || !loader->workers)
        return att_fail_memory(context, (size_t)loader->ring * sizeof *loader->slots, "a loader");
    ATT_TRY(make_target_scratch(loader));
    for (int i = 0; i < loader->ring; i++)
        ATT_TRY(att_slot_make(context, share_capacity(&loader->options), most_bytes(loader), loader->field_count,
                              &loader->slots[i]));
    for (int i = 0; i < loader->worker_count; i++)
        ATT_TRY(make_worker(loader, &loader->workers[i]));
    loader->stopping = false;
    loader->claimed_batch = att_loader_batches(loader);
    return start_threads(loader);
}

att_status att_loader_create(att_context *context, const att_dataset *dataset, const att_loader_options *options,
                             att_loader **out)
{
    ATT_TRY(check_options(context, options));
    att_loader *loader;
    ATT_TRY(att_new(context, &loader, 1, "a loader"));
    loader->context = context;
    loader->dataset = dataset;
    loader->options = *options;
    pthread_mutex_init(&loader->lock, NULL);
    pthread_cond_init(&loader->work, NULL);
    pthread_cond_init(&loader->done, NULL);
    att_status status = fill_loader(loader);
    if (status == ATT_OK)
        *out = loader;
    else
        att_loader_destroy(&loader);
    return status;
}

static void stop_threads(att_loader *loader)
{
    pthread_mutex_lock(&loader->lock);
    loader->stopping = true;
    pthread_cond_broadcast(&loader->work);
    pthread_mutex_unlock(&loader->lock);
    for (int i = 0; loader->workers && i < loader->worker_count; i++) {
        if (loader->workers[i].started)
            pthread_join(loader->workers[i].thread, NULL);
        att_context_destroy(&loader->workers[i].context);
    }
}

static void end_work(att_loader *loader)
{
    stop_threads(loader);
    for (int i = 0; loader->slots && i < loader->ring; i++)
        att_slot_free(&loader->slots[i]);
    free_target_scratch(loader);
    att_free(loader->context, loader->slots);
    att_free(loader->context, loader->workers);
    loader->slots = NULL;
    loader->workers = NULL;
}

void att_loader_destroy(att_loader **loader)
{
    if (!loader || !*loader)
        return;
    att_loader *it = *loader;
    end_work(it);
    pthread_cond_destroy(&it->done);
    pthread_cond_destroy(&it->work);
    pthread_mutex_destroy(&it->lock);
    att_epoch_free(it->context, &it->order);
    att_agreement_destroy(&it->agreement);
    att_free(it->context, it->reported);
    att_free(it->context, it->declared);
    att_free(it->context, it->fields);
    att_free(it->context, it->row_bytes);
    att_free(it->context, it);
    *loader = NULL;
}

/* --- the caller's side ------------------------------------------------------------------------------------------- */

int64_t att_loader_batches(const att_loader *loader)
{
    return att_epoch_batches(&loader->order);
}

int att_loader_shape_count(const att_loader *loader)
{
    return att_epoch_shapes(&loader->order);
}

att_loader_shape att_loader_shape_at(const att_loader *loader, int index)
{
    return index >= 0 && index < att_epoch_shapes(&loader->order) ? att_epoch_shape_at(&loader->order, index)
                                                                  : (att_loader_shape){0};
}

att_loader_stats att_loader_describe(const att_loader *loader)
{
    return loader->stats;
}

/* Stops workers from claiming images and waits until they have finished the current ones. The lock is held. */
static void quiesce(att_loader *loader)
{
    loader->claimed_batch = att_loader_batches(loader);
    while (loader->in_progress > 0)
        pthread_cond_wait(&loader->done, &loader->lock);
}

att_status att_loader_start(att_loader *loader, int64_t epoch, int64_t batch)
{
    int64_t batches = att_loader_batches(loader);
    if (epoch < 0 || batch < 0 || batch > batches)
        return att_fail(loader->context, ATT_ERR_ARGUMENT, "loader: batch %lld of epoch %lld, which has %lld",
                        (long long)batch, (long long)epoch, (long long)batches);
    att_status status = loader->slots ? ATT_OK : begin_work(loader);
    if (status != ATT_OK)
        end_work(loader);
    ATT_TRY(status);
    pthread_mutex_lock(&loader->lock);
    quiesce(loader);
    att_epoch_begin(&loader->order, epoch);
    loader->epoch = epoch;
    loader->released = batch;
    loader->claimed_batch = batch;
    loader->claimed = 0;
    loader->handed_out = false;
    for (int i = 0; i < loader->ring; i++)
        prepare_slot(loader, batch + i);
    pthread_cond_broadcast(&loader->work);
    pthread_mutex_unlock(&loader->lock);
    return ATT_OK;
}

/* Takes back the batch that the caller has, if any, so that its slot can be used again. */
static void release(att_loader *loader)
{
    if (!loader->handed_out)
        return;
    loader->handed_out = false;
    pthread_mutex_lock(&loader->lock);
    prepare_slot(loader, loader->released + loader->ring);
    loader->released++;
    pthread_cond_broadcast(&loader->work);
    pthread_mutex_unlock(&loader->lock);
}

/* Waits until the batch `released` is complete. Without worker threads, prepares the batch itself. */
static void await_batch(att_loader *loader)
{
    att_slot *slot = slot_of(loader, loader->released);
    if (loader->options.workers == 0) {
        int count = slot->missing;
        for (; slot->missing > 0; slot->missing--)
            prepare_sample(loader, loader->workers[0].context, loader->released, count - slot->missing);
        return;
    }
    pthread_mutex_lock(&loader->lock);
    while (slot->missing > 0)
        pthread_cond_wait(&loader->done, &loader->lock);
    pthread_mutex_unlock(&loader->lock);
}

/* Returns the first failure that the policy for corrupt images does not allow. */
static att_status check_failures(const att_loader *loader, const att_slot *slot, int size)
{
    att_corrupt policy = loader->options.corrupt;
    for (int i = 0; i < size; i++) {
        const att_slot_failure *failed = &slot->failures[i];
        if (failed->status == ATT_OK || failed->replaced)
            continue;
        if (!is_corrupt(failed->status) || policy == ATT_CORRUPT_FATAL)
            return att_fail(loader->context, failed->status, "%s", att_slot_reason(failed));
        if (policy == ATT_CORRUPT_REPLACED)
            return att_fail(loader->context, failed->status, "%s; none of the next %d images can replace it",
                            att_slot_reason(failed), MAX_REPLACED);
    }
    return ATT_OK;
}

static att_status report_corrupt(att_loader *loader, const att_slot_failure *failed)
{
    size_t images = (size_t)att_dataset_count(loader->dataset);
    if (!loader->reported)
        loader->reported = att_allocate(loader->context, images);
    if (!loader->reported)
        return att_fail_memory(loader->context, images, "the list of corrupt images");
    if (loader->reported[failed->index])
        return ATT_OK;
    loader->reported[failed->index] = 1;
    if (loader->options.corrupt_found)
        return loader->options.corrupt_found(loader->options.corrupt_user, failed->index, att_slot_reason(failed));
    att_log(loader->context, ATT_LOG_WARNING, "image %s: %s", failed->replaced ? "replaced" : "left out",
            att_slot_reason(failed));
    return ATT_OK;
}

static att_status report_all_corrupt(att_loader *loader, const att_slot_failure *failures, int size)
{
    for (int i = 0; i < size; i++)
        if (failures[i].status != ATT_OK)
            ATT_TRY(report_corrupt(loader, &failures[i]));
    return ATT_OK;
}

/* Images of this process alone. */
static att_status report_own(att_loader *loader, att_slot *slot, int size)
{
    ATT_TRY(check_failures(loader, slot, size));
    ATT_TRY(report_all_corrupt(loader, slot->failures, size));
    loader->stats.corrupt += att_slot_failed(slot, size);
    return ATT_OK;
}

/* The same of all processes. Fails in all of them if it fails in one. */
static att_status report_agreed(att_loader *loader, const att_slot *slot, const att_share *share)
{
    const att_slot_failure *failures;
    int count, own = share->end - share->first;
    att_status status = check_failures(loader, slot, att_share_count(share));
    ATT_TRY(att_agreement_reach(loader->agreement, status, slot, own, &failures, &count));
    ATT_TRY(report_all_corrupt(loader, failures, count));
    loader->stats.corrupt += count;
    return ATT_OK;
}

/* Completes a batch with what other processes have. */
static att_status complete_batch(att_loader *loader, att_slot *slot, att_batch *batch)
{
    return loader->agreement ? att_agreement_gather(loader->agreement, slot, batch) : ATT_OK;
}

static att_status hand_out(att_loader *loader, att_batch *batch)
{
    att_slot *slot = slot_of(loader, loader->released);
    att_share share = share_of(loader, loader->released);
    int rows = share.end - share.first;
    ATT_TRY(loader->agreement ? report_agreed(loader, slot, &share) : report_own(loader, slot, rows));
    rows = att_slot_compact(slot, rows);
    if (!loader->agreement)
        share = (att_share){.size = rows, .end = rows};
    resolve_fields(loader, att_epoch_batch_shape(&loader->order, loader->released));
    *batch = (att_batch){.epoch = loader->epoch,
                         .number = loader->released,
                         .count = rows,
                         .rows = rows,
                         .indices = slot->indices,
                         .field_count = loader->field_count,
                         .fields = loader->fields,
                         .data = (const void *const *)slot->fields,
                         .local = loader->options.targets.local};
    if (att_mix_is_on(&loader->options.mix))
        att_mix_batch(&loader->options, batch, &share, slot->fields, slot->row_bytes, loader->target_scratch);
    ATT_TRY(complete_batch(loader, slot, batch));
    loader->handed_out = true;
    loader->stats.images += batch->count;
    return ATT_OK;
}

const void *att_batch_field(const att_batch *batch, const char *name)
{
    for (int f = 0; f < batch->field_count; f++)
        if (strcmp(batch->fields[f].name, name) == 0)
            return batch->data[f];
    return NULL;
}

const void *att_batch_rows(const att_batch *batch, const char *name)
{
    for (int f = 0; f < batch->field_count; f++)
        if (strcmp(batch->fields[f].name, name) == 0)
            return f == 0 || batch->local
                       ? batch->data[f]
                       : (const char *)batch->data[f] + (size_t)batch->first_row * att_field_bytes(&batch->fields[f]);
    return NULL;
}

static att_status next_batch(att_loader *loader, att_batch *batch)
{
    att_batch next = {0};
    while (next.count == 0) {
        release(loader);
        if (loader->released >= att_loader_batches(loader))
            break;
        await_batch(loader);
        ATT_TRY(hand_out(loader, &next));
    }
    *batch = next;
    return ATT_OK;
}

att_status att_loader_next(att_loader *loader, att_batch *batch)
{
    double begin = att_seconds_now();
    att_status status = loader->slots ? ATT_OK : att_loader_start(loader, 0, 0);
    if (status == ATT_OK)
        status = next_batch(loader, batch);
    att_dataset_note_turned(loader->dataset);
    loader->stats.wait_seconds += att_seconds_now() - begin;
    return status;
}
