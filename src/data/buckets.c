#include "data/buckets.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/memory.h"
#include "data/dataset.h"
#include "data/transform.h"

static int64_t area_of(const att_sides *sides)
{
    return (int64_t)sides->width * sides->height;
}

/* The largest area first, of equal ones the highest. */
static int compare_sides(const void *a, const void *b)
{
    const att_sides *one = a, *two = b;
    int64_t first = area_of(one), second = area_of(two);
    return first != second ? (first < second) - (first > second)
                           : (one->height < two->height) - (one->height > two->height);
}

/* Sides 0 x 0: the image is corrupt. */
static att_status find_sides(const att_buckets *it, const att_dataset *dataset, const att_loader_options *options,
                             int64_t index, att_sides *sides)
{
    att_image_look look;
    att_geometry geometry;
    att_status status = att_dataset_look(dataset, it->context, index, &look);
    if (status == ATT_OK)
        status = att_transform_geometry(it->context, &options->transform, look.width, look.height, &geometry);
    if (status == ATT_OK)
        *sides = (att_sides){geometry.width, geometry.height};
    else if ((status == ATT_ERR_FORMAT || status == ATT_ERR_UNSUPPORTED) && options->corrupt != ATT_CORRUPT_FATAL)
        status = ATT_OK;
    return status;
}

static att_status find_all_sides(const att_buckets *it, const att_dataset *dataset, const att_loader_options *options,
                                 att_sides *sides)
{
    for (int64_t i = 0; i < it->images; i++) {
        ATT_TRY(att_check_stop(it->context, "the data set"));
        ATT_TRY(find_sides(it, dataset, options, i, &sides[i]));
    }
    return ATT_OK;
}

/* Moves the different shapes of the sorted sides to their beginning. Returns their number. */
static int keep_different(att_sides *sorted, int64_t count)
{
    int kept = 0;
    for (int64_t i = 0; i < count && area_of(&sorted[i]) > 0; i++)
        if (kept == 0 || compare_sides(&sorted[kept - 1], &sorted[i]) != 0)
            sorted[kept++] = sorted[i];
    return kept;
}

static att_status list_shapes(att_buckets *it, const att_sides *sides)
{
    size_t count = (size_t)it->images;
    it->shapes = att_allocate_array(it->context, count, sizeof *it->shapes);
    if (!it->shapes)
        return att_fail_memory(it->context, count * sizeof *it->shapes, "the sizes of images");
    memcpy(it->shapes, sides, count * sizeof *sides);
    qsort(it->shapes, count, sizeof *it->shapes, compare_sides);
    it->shape_count = keep_different(it->shapes, it->images);
    return it->shape_count > 0
               ? ATT_OK
               : att_fail(it->context, ATT_ERR_FORMAT, "none of the %lld images can be decoded", (long long)it->images);
}

static int commonest(const att_buckets *it)
{
    int most = 0;
    for (int s = 1; s < it->shape_count; s++)
        if (it->counts[s] > it->counts[most])
            most = s;
    return most;
}

static void assign_shapes(att_buckets *it, const att_sides *sides)
{
    int64_t corrupt = 0;
    for (int64_t i = 0; i < it->images; i++) {
        const att_sides *found =
            bsearch(&sides[i], it->shapes, (size_t)it->shape_count, sizeof *it->shapes, compare_sides);
        it->shape_of[i] = found ? (int32_t)(found - it->shapes) : -1;
        if (found)
            it->counts[it->shape_of[i]]++;
        else
            corrupt++;
    }
    int most = commonest(it);
    for (int64_t i = 0; i < it->images; i++)
        if (it->shape_of[i] < 0)
            it->shape_of[i] = (int32_t)most;
    it->counts[most] += corrupt;
}

int64_t att_buckets_batches(const att_buckets *it, int shape)
{
    return (it->counts[shape] + (it->drop_last ? 0 : it->batch_size - 1)) / it->batch_size;
}

static att_status allocate_batches(att_buckets *it)
{
    it->first = att_allocate_array(it->context, (size_t)it->shape_count, sizeof *it->first);
    for (int s = 0; it->first && s < it->shape_count; s++) {
        it->first[s] = it->batches;
        it->batches += att_buckets_batches(it, s);
    }
    size_t count = (size_t)it->batches + 1;
    it->begins = att_allocate_array(it->context, count, sizeof *it->begins);
    it->batch_shape = att_allocate_array(it->context, count, sizeof *it->batch_shape);
    it->batch_of = att_allocate_array(it->context, count, sizeof *it->batch_of);
    it->seen = att_allocate_array(it->context, (size_t)it->shape_count, sizeof *it->seen);
    return it->first && it->begins && it->batch_shape && it->batch_of && it->seen
               ? ATT_OK
               : att_fail_memory(it->context, count * sizeof *it->begins, "the batches of an epoch");
}

static att_status fill_buckets(att_buckets *it, const att_dataset *dataset, const att_loader_options *options,
                               att_sides *sides)
{
    ATT_TRY(find_all_sides(it, dataset, options, sides));
    ATT_TRY(list_shapes(it, sides));
    it->counts = att_allocate_array(it->context, (size_t)it->shape_count, sizeof *it->counts);
    it->shape_of = att_allocate_array(it->context, (size_t)it->images, sizeof *it->shape_of);
    if (!it->counts || !it->shape_of)
        return att_fail_memory(it->context, (size_t)it->images * sizeof *it->shape_of, "the sizes of images");
    assign_shapes(it, sides);
    return allocate_batches(it);
}

att_status att_buckets_create(att_context *context, const att_dataset *dataset, const att_loader_options *options,
                              att_buckets **out)
{
    att_buckets *it;
    att_sides *sides;
    ATT_TRY(att_new(context, &it, 1, "the sizes of images"));
    it->context = context;
    it->batch_size = options->batch_size;
    it->drop_last = options->drop_last;
    it->images = att_dataset_count(dataset);
    att_status status = att_new(context, &sides, (size_t)it->images, "the sizes of images");
    if (status == ATT_OK) {
        status = fill_buckets(it, dataset, options, sides);
        att_free(context, sides);
    }
    if (status == ATT_OK)
        *out = it;
    else
        att_buckets_destroy(&it);
    return status;
}

void att_buckets_destroy(att_buckets **buckets)
{
    att_buckets *it = *buckets;
    if (!it)
        return;
    att_free(it->context, it->shapes);
    att_free(it->context, it->counts);
    att_free(it->context, it->shape_of);
    att_free(it->context, it->begins);
    att_free(it->context, it->batch_shape);
    att_free(it->context, it->seen);
    att_free(it->context, it->first);
    att_free(it->context, it->batch_of);
    att_free(it->context, it);
    *buckets = NULL;
}

/* Appends batch `k` of a shape to the epoch. */
static void append_batch(att_buckets *it, int shape, int64_t k, int64_t size, int64_t *number)
{
    it->batch_of[it->first[shape] + k] = *number;
    it->batch_shape[*number] = (int32_t)shape;
    it->begins[*number + 1] = it->begins[*number] + size;
    ++*number;
}

static void order_batches(att_buckets *it, const int64_t *order)
{
    int64_t number = 0, size = it->batch_size;
    memset(it->seen, 0, (size_t)it->shape_count * sizeof *it->seen);
    for (int64_t i = 0; i < it->images; i++) {
        int shape = it->shape_of[order[i]];
        if (++it->seen[shape] % size == 0)
            append_batch(it, shape, it->seen[shape] / size - 1, size, &number);
    }
    for (int s = 0; s < it->shape_count && !it->drop_last; s++)
        if (it->seen[s] % size != 0)
            append_batch(it, s, it->seen[s] / size, it->seen[s] % size, &number);
}

/* Shape after shape. */
static void list_batches(att_buckets *it)
{
    int64_t number = 0, size = it->batch_size;
    for (int s = 0; s < it->shape_count; s++)
        for (int64_t k = 0, count = att_buckets_batches(it, s); k < count; k++) {
            int64_t left = it->counts[s] - k * size;
            append_batch(it, s, k, left < size ? left : size, &number);
        }
}

void att_buckets_fill(att_buckets *it, const int64_t *order, int64_t *filled)
{
    if (order)
        order_batches(it, order);
    else
        list_batches(it);
    memset(it->seen, 0, (size_t)it->shape_count * sizeof *it->seen);
    for (int64_t i = 0; i < it->images; i++) {
        int64_t image = order ? order[i] : i, size = it->batch_size;
        int shape = it->shape_of[image];
        int64_t rank = it->seen[shape]++, k = rank / size;
        if (k < att_buckets_batches(it, shape))
            filled[it->begins[it->batch_of[it->first[shape] + k]] + rank % size] = image;
    }
}
