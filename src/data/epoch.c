#include "data/epoch.h"

#include "base/core/error.h"
#include "base/core/memory.h"
#include "base/core/random.h"
#include "data/transform.h"

enum { REPEATS_ROUND = 256 };

/* --- creation and destruction ------------------------------------------------------------------------------------- */

/* Images of the data set in an epoch. */
static int64_t images_of(const att_epoch *epoch)
{
    const int64_t count = att_dataset_count(epoch->dataset), limit = epoch->options->limit;
    return limit > 0 && limit < count ? limit : count;
}

static int64_t whole_batches(const att_loader_options *options, int64_t count)
{
    return options->drop_last ? count - count % options->batch_size : count;
}

static att_status count_places(att_context *context, att_epoch *epoch)
{
    const att_loader_options *options = epoch->options;
    int64_t count = images_of(epoch);
    if (options->repeats > 1 && count >= REPEATS_ROUND)
        count -= count % REPEATS_ROUND;
    epoch->places = whole_batches(options, count);
    if (!att_transform_varies(&options->transform))
        return ATT_OK;
    ATT_TRY(att_buckets_create(context, epoch->dataset, options, &epoch->buckets));
    epoch->places = 0;
    for (int s = 0; s < epoch->buckets->shape_count; s++)
        epoch->places += whole_batches(options, epoch->buckets->counts[s]);
    return ATT_OK;
}

/* The order of the data set needs no memory, unless buckets change it. */
static att_status allocate_order(att_context *context, att_epoch *epoch)
{
    const size_t count = (size_t)att_dataset_count(epoch->dataset);
    const bool shuffle = epoch->options->shuffle;
    if (shuffle || epoch->buckets)
        ATT_TRY(att_new(context, &epoch->order, count, "the order of an epoch"));
    return shuffle && epoch->buckets ? att_new(context, &epoch->shuffled, count, "the order of an epoch") : ATT_OK;
}

att_status att_epoch_create(att_context *context, const att_dataset *dataset, const att_loader_options *options,
                            att_epoch *epoch)
{
    epoch->dataset = dataset;
    epoch->options = options;
    ATT_TRY(count_places(context, epoch));
    return allocate_order(context, epoch);
}

void att_epoch_free(att_context *context, att_epoch *epoch)
{
    att_free(context, epoch->order);
    att_free(context, epoch->shuffled);
    att_buckets_destroy(&epoch->buckets);
}

void att_epoch_begin(att_epoch *epoch, int64_t number)
{
    int64_t *drawn = epoch->buckets ? epoch->shuffled : epoch->order;
    if (epoch->options->shuffle) {
        att_random random =
            att_random_from(att_random_key(epoch->options->seed, (uint64_t)number, att_random_hash("order")));
        att_random_permutation(&random, drawn, att_dataset_count(epoch->dataset));
    }
    if (epoch->buckets)
        att_buckets_fill(epoch->buckets, drawn, epoch->order);
}

/* --- batches ------------------------------------------------------------------------------------------------------ */

int64_t att_epoch_batches(const att_epoch *epoch)
{
    const int size = epoch->options->batch_size;
    return epoch->buckets ? epoch->buckets->batches : (epoch->places + size - 1) / size;
}

int64_t att_epoch_batch_begin(const att_epoch *epoch, int64_t batch)
{
    return epoch->buckets ? epoch->buckets->begins[batch] : batch * epoch->options->batch_size;
}

int att_epoch_batch_size(const att_epoch *epoch, int64_t batch)
{
    const int64_t end = att_epoch_batch_begin(epoch, batch + 1);
    return (int)((end < epoch->places ? end : epoch->places) - att_epoch_batch_begin(epoch, batch));
}

int att_epoch_batch_shape(const att_epoch *epoch, int64_t batch)
{
    return epoch->buckets ? epoch->buckets->batch_shape[batch] : 0;
}

/* --- images ------------------------------------------------------------------------------------------------------- */

int att_epoch_shapes(const att_epoch *epoch)
{
    return epoch->buckets ? epoch->buckets->shape_count : 1;
}

att_loader_shape att_epoch_shape_at(const att_epoch *epoch, int shape)
{
    const att_transform_options *transform = &epoch->options->transform;
    const att_buckets *buckets = epoch->buckets;
    return buckets ? (att_loader_shape){.height = buckets->shapes[shape].height,
                                        .width = buckets->shapes[shape].width,
                                        .images = buckets->counts[shape],
                                        .batches = att_buckets_batches(buckets, shape)}
                   : (att_loader_shape){.height = transform->height,
                                        .width = transform->width,
                                        .images = images_of(epoch),
                                        .batches = att_epoch_batches(epoch)};
}

int64_t att_epoch_index_at(const att_epoch *epoch, int64_t place)
{
    const int64_t images = epoch->buckets ? epoch->places : images_of(epoch);
    const int64_t wrapped = place / epoch->options->repeats % images;
    return epoch->order ? epoch->order[wrapped] : wrapped * att_dataset_count(epoch->dataset) / images;
}

bool att_epoch_has_shape(const att_epoch *epoch, int64_t index, int shape)
{
    return !epoch->buckets || epoch->buckets->shape_of[index] == shape;
}
