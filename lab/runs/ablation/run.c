/* Runs batches with changes. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/core/clock.h"
#include "base/core/error.h"
#include "data/dataset.h"
#include "lab/runs/ablation/ablation.h"
#include "networks/tasks/answer.h"
#include "networks/tasks/score.h"
#include "study/network/network.h"

/* --- room --------------------------------------------------------------------------------------------------------- */

static att_status allocate_answers(att_ablation *a, att_ablated_answers *answers)
{
    const size_t images = (size_t)a->capacity;
    answers->loss = att_arena_allocate(&a->arena, att_size_product(images, sizeof *answers->loss));
    answers->right = att_arena_allocate(&a->arena, images * sizeof *answers->right);
    return answers->loss && answers->right ? ATT_OK
                                           : att_fail_memory(a->context, images * sizeof *answers->loss,
                                                             "the answers without a part of the network");
}

static att_status allocate_steps(att_ablation *a, size_t most)
{
    a->steps.items = att_arena_allocate(&a->arena, most * sizeof *a->steps.items);
    a->steps.answers = att_arena_allocate(&a->arena, most * sizeof *a->steps.answers);
    if (!a->steps.items || !a->steps.answers)
        return att_fail_memory(a->context, most * sizeof *a->steps.answers, "the steps of an ablation");
    a->steps.answers[0] = a->tried.answers[0];
    return ATT_OK;
}

att_status att_ablation_allocate(att_ablation *a, int64_t images)
{
    const size_t changes = 1 + (size_t)a->tried.count;
    a->capacity = images;
    a->images = att_arena_allocate(&a->arena, att_size_product((size_t)images, sizeof *a->images));
    a->tried.answers = att_arena_allocate(&a->arena, changes * sizeof *a->tried.answers);
    if (!a->images || !a->tried.answers)
        return att_fail_memory(a->context, (size_t)images * sizeof *a->images, "the images of an ablation");
    for (size_t c = 0; c < changes; c++)
        ATT_TRY(allocate_answers(a, &a->tried.answers[c]));
    return a->greedy ? allocate_steps(a, changes) : ATT_OK;
}

/* --- changes ------------------------------------------------------------------------------------------------------ */

static att_status apply(const att_ablation *a, const att_ablated_part *part)
{
    for (int i = 0; i < part->count; i++) {
        const att_cut cut = part->cuts[i];
        if (cut.kind == ATT_ABLATED_HEADS)
            ATT_TRY(att_explorer_change_head(a->explorer, cut.part, cut.head,
                                             a->uniform ? ATT_HEAD_UNIFORM : ATT_HEAD_REMOVED));
        else if (cut.kind == ATT_ABLATED_BRANCHES)
            ATT_TRY(att_explorer_remove_branch(a->explorer, cut.part, true));
        else
            ATT_TRY(att_explorer_remove_token(a->explorer, cut.part, true));
    }
    return ATT_OK;
}

/* Gives changes [first, first + count), of which 0 is none, `images` samples each. */
static att_status set_changes(const att_ablation *a, int first, int count, int images)
{
    att_explorer_select(a->explorer, 0, a->samples);
    att_explorer_reset(a->explorer);
    for (int c = first; c < first + count; c++) {
        att_explorer_select(a->explorer, (c - first) * images, images);
        ATT_TRY(c > 0 ? apply(a, &a->kept) : ATT_OK);
        ATT_TRY(c > 0 ? apply(a, &a->tried.items[c - 1]) : ATT_OK);
    }
    return ATT_OK;
}

/* --- answers ------------------------------------------------------------------------------------------------------ */

static int most_probable(const float *logits, int classes)
{
    att_ranked first;
    (void)att_rank_classes(logits, classes, &first, 1);
    return first.class_number;
}

/* The images of a run. */
typedef struct seen {
    int64_t first; /* number in the ablation */
    int count;
} seen;

static void take_answers(att_ablation *a, const float *logits, int change, seen images)
{
    for (int i = 0; i < images.count; i++) {
        const float *of = logits + (size_t)i * (size_t)a->classes;
        att_ablated_image *image = &a->images[images.first + i];
        att_scores scores = {0};
        if (change == 0 && !image->labelled)
            image->label = most_probable(of, a->classes);
        a->tried.answers[change].loss[images.first + i] = att_scores_add(&scores, of, a->classes, image->label);
        a->tried.answers[change].right[images.first + i] = scores.first > 0;
    }
}

/* Takes the vectors of one text. The first change is none. */
static att_status take_vectors(att_ablation *a, const float *vectors, int64_t width, int change, seen images)
{
    if (!a->plain)
        ATT_TRY(att_new(a->context, &a->plain, (size_t)width, "the vector of a text"));
    if (change == 0)
        memcpy(a->plain, vectors, (size_t)width * sizeof *vectors);
    a->tried.answers[change].loss[images.first] = att_ablation_distance(vectors, a->plain, width);
    a->tried.answers[change].right[images.first] = true;
    return ATT_OK;
}

static att_status report(const att_ablation *a)
{
    const double seconds = att_seconds_now() - a->started, rate = (double)a->runs / seconds;
    const att_progress progress = {.stage = "ablate",
                                   .batch = a->runs,
                                   .batches = a->pass_runs,
                                   .images_per_second = rate,
                                   .seconds_left = (double)(a->pass_runs - a->runs) / rate,
                                   .loss = NAN,
                                   .lr = NAN,
                                   .slowest_rank = -1,
                                   .done = a->runs,
                                   .total = a->pass_runs,
                                   .unit = a->reads_texts ? "texts" : NULL};
    if (!a->progress || a->progress(a->progress_user, &progress))
        return ATT_OK;
    return att_fail(a->context, ATT_ERR_STOPPED, "the ablation was stopped on request; there is no result");
}

static att_status run_changes(att_ablation *a, const att_batch *tiled, int first, int count, seen images)
{
    att_batch answers;
    ATT_TRY(set_changes(a, first, count, images.count));
    ATT_TRY(att_explorer_run_samples(a->explorer, tiled, count * images.count, &answers));
    const char *name = a->vector ? a->vector : att_network_class_output(a->network);
    const void *data;
    const int64_t width = att_shape_count(att_answer_field(&answers, name, &data)->shape);
    const float *numbers = data;
    for (int c = 0; c < count; c++, numbers += images.count * width)
        if (a->vector)
            ATT_TRY(take_vectors(a, numbers, width, first + c, images));
        else
            take_answers(a, numbers, first + c, images);
    a->runs += (int64_t)count * images.count;
    return report(a);
}

/* --- batches ------------------------------------------------------------------------------------------------------ */

static const char *name_of(const att_dataset *dataset, int64_t index, char name[static ATT_DATA_MAX_NAME])
{
    if (dataset)
        return att_dataset_short_name(dataset, index, name, ATT_DATA_MAX_NAME);
    snprintf(name, ATT_DATA_MAX_NAME, "text%lld", (long long)index + 1);
    return name;
}

/* Of a text, dataset is NULL. */
static att_status note_images(att_ablation *a, const att_batch *batch, const att_dataset *dataset)
{
    char name[ATT_DATA_MAX_NAME];
    if (a->pass_count + batch->count > a->capacity)
        return att_fail(a->context, ATT_ERR_INTERNAL, "more images than an ablation has room for");
    for (int i = 0; i < batch->count; i++) {
        att_ablated_image *image = &a->images[a->pass_count + i];
        image->index = batch->indices[i];
        image->label = dataset ? att_dataset_label(dataset, image->index) : -1;
        image->labelled = image->label >= 0;
        if (image->name)
            continue; /* an earlier pass */
        image->name = att_arena_string(&a->arena, name_of(dataset, image->index, name));
        if (!image->name)
            return att_fail_memory(a->context, sizeof name, "the name of an image");
    }
    return ATT_OK;
}

static bool is_input(const att_ablation *a, const char *name)
{
    att_field own;
    for (int i = 0; (own = att_model_input_at(a->network->model, i).field).name; i++)
        if (strcmp(own.name, name) == 0)
            return true;
    return false;
}

/* Room for the inputs of a run. */
typedef struct repeated {
    att_field fields[ATT_MAX_INPUTS];
    const void *data[ATT_MAX_INPUTS];
} repeated;

/* A run of few images has room for several changes: the network's inputs of the batch `times` times. */
static att_batch repeat(const att_ablation *a, const att_batch *batch, int times, repeated *room)
{
    att_batch tiled = {.count = batch->count * times, .fields = room->fields, .data = room->data};
    char *to = a->tile;
    for (int f = 0; f < batch->field_count && times > 1; f++) {
        const att_field *field = &batch->fields[f];
        const size_t bytes = (size_t)batch->count * att_field_bytes(field);
        if (!is_input(a, field->name))
            continue;
        room->fields[tiled.field_count] = *field;
        room->data[tiled.field_count++] = to;
        for (int t = 0; t < times; t++, to += bytes)
            memcpy(to, batch->data[f], bytes);
    }
    return times > 1 ? tiled : *batch;
}

att_status att_ablation_observe(att_ablation *a, const att_batch *batch, const att_dataset *dataset)
{
    repeated room;
    const seen images = {a->pass_count, batch->count};
    const int changes = 1 + a->tried.count, fitting = a->samples / batch->count;
    const int times = fitting < changes ? fitting : changes;
    ATT_TRY(note_images(a, batch, dataset));
    const att_batch tiled = repeat(a, batch, times, &room);
    for (int first = 0; first < changes; first += times)
        ATT_TRY(run_changes(a, &tiled, first, first + times < changes ? times : changes - first, images));
    a->pass_count += batch->count;
    if (a->pass_count > a->image_count)
        a->image_count = a->pass_count;
    return ATT_OK;
}
