/* The effects of changes over the images. */
#include <math.h>
#include <stdlib.h>

#include "base/core/error.h"
#include "base/core/spread.h"
#include "lab/report/paired.h"
#include "lab/runs/ablation/ablation.h"

/* A number of an image's answer. */
typedef double figure(const att_ablated_answers *answers, int64_t image);

static double accuracy_of(const att_ablated_answers *answers, int64_t image)
{
    return answers->right[image] ? 100 : 0;
}

static double loss_of(const att_ablated_answers *answers, int64_t image)
{
    return answers->loss[image];
}

static double probability_of(const att_ablated_answers *answers, int64_t image)
{
    return exp(-answers->loss[image]);
}

/* scratch: [2 image_count] */
static att_paired compare(const att_ablation *a, int part, figure *of, double *scratch)
{
    for (int64_t i = 0; i < a->image_count; i++) {
        scratch[i] = of(&att_ablation_shown(a)->answers[1 + part], i);
        scratch[a->image_count + i] = of(&att_ablation_shown(a)->answers[0], i);
    }
    return att_paired_difference(scratch, scratch + a->image_count, (int)a->image_count);
}

static att_ablation_change change_of(const att_ablation *a, int number, double *scratch)
{
    const att_ablated_answers *answers = att_ablation_shown(a)->answers;
    const att_ablated_part *part = &att_ablation_shown(a)->items[number];
    const att_cut *cut = part->cuts;
    att_ablation_change change = {.name = part->name,
                                  .kind = cut->kind,
                                  .part = part->count == 1 ? cut->part : -1,
                                  .head = part->count == 1 ? cut->head : -1,
                                  .rank = number,
                                  .accuracy = compare(a, number, accuracy_of, scratch),
                                  .loss = compare(a, number, loss_of, scratch),
                                  .probability = compare(a, number, probability_of, scratch)};
    if (a->vector)
        change.accuracy = change.probability = (att_paired){.mean = NAN, .low = NAN, .high = NAN};
    for (int64_t i = 0; i < a->image_count; i++) {
        const bool before = answers[0].right[i], after = answers[1 + number].right[i];
        change.lost += before && !after;
        change.gained += after && !before;
    }
    if (change.accuracy.count > 0) /* without the rounding of a running mean */
        change.accuracy.mean = 100 * (double)(change.gained - change.lost) / change.accuracy.count;
    return change;
}

/* Whether change x comes before change y: by the increase of the loss; undefined ones come last. */
static bool precedes(const att_ablation *a, int x, int y)
{
    const double of_x = a->changes[x].loss.mean, of_y = a->changes[y].loss.mean;
    if (isnan(of_x) || isnan(of_y))
        return isnan(of_x) == isnan(of_y) ? x < y : isnan(of_y);
    return of_x > of_y || (of_x == of_y && x < y);
}

/* The steps of a greedy ablation keep their order. */
static void rank(att_ablation *a)
{
    const int count = att_ablation_shown(a)->count;
    for (int x = 0; x < count; x++) {
        int before = a->greedy ? x : 0;
        for (int y = 0; !a->greedy && y < count; y++)
            before += y != x && precedes(a, y, x);
        a->changes[x].rank = before;
        a->ranked[before] = x;
    }
}

att_status att_ablation_conclude(att_ablation *a)
{
    double *scratch;
    const size_t parts = (size_t)a->steps.count + (size_t)a->tried.count; /* at most, in this and later passes */
    if (!a->changes)
        a->changes = att_arena_allocate(&a->arena, parts * sizeof *a->changes);
    if (!a->ranked)
        a->ranked = att_arena_allocate(&a->arena, parts * sizeof *a->ranked);
    if (!a->changes || !a->ranked)
        return att_fail_memory(a->context, parts * sizeof *a->changes, "the results of an ablation");
    ATT_TRY(att_new(a->context, &scratch, 2 * (size_t)a->image_count + 1, "the results of an ablation"));
    for (int p = 0; p < att_ablation_shown(a)->count; p++)
        a->changes[p] = change_of(a, p, scratch);
    att_free(a->context, scratch);
    rank(a);
    return ATT_OK;
}

/* --- reading ------------------------------------------------------------------------------------------------------ */

int att_ablation_count(const att_ablation *ablation)
{
    return att_ablation_shown(ablation)->count;
}

att_ablation_change att_ablation_at(const att_ablation *ablation, int index)
{
    return ablation->changes[index];
}

int att_ablation_ranked(const att_ablation *ablation, int rank)
{
    return ablation->ranked[rank];
}

att_ablation_facts att_ablation_describe(const att_ablation *a)
{
    att_spread loss = {0}, probability = {0};
    int64_t right = 0;
    att_ablation_facts facts = {.images = a->image_count,
                                .classes = a->classes,
                                .vector = a->vector,
                                .texts = a->reads_texts,
                                .runs = a->runs,
                                .seconds = a->seconds};
    for (int64_t i = 0; i < a->image_count; i++) {
        facts.unlabelled += !a->images[i].labelled;
        right += a->tried.answers->right[i];
        att_spread_add(&loss, loss_of(a->tried.answers, i));
        att_spread_add(&probability, probability_of(a->tried.answers, i));
    }
    facts.accuracy = a->image_count > 0 ? 100 * (double)right / (double)a->image_count : NAN;
    facts.loss = att_spread_mean(&loss);
    facts.probability = att_spread_mean(&probability);
    if (a->vector)
        facts.accuracy = facts.probability = NAN;
    return facts;
}

att_ablation_image att_ablation_image_at(const att_ablation *ablation, int64_t number)
{
    const att_ablated_image *image = &ablation->images[number];
    return (att_ablation_image){image->name, image->index, image->label, image->labelled};
}

const double *att_ablation_losses(const att_ablation *ablation, int change)
{
    return att_ablation_shown(ablation)->answers[1 + change].loss;
}

const bool *att_ablation_right(const att_ablation *ablation, int change)
{
    return att_ablation_shown(ablation)->answers[1 + change].right;
}

static double size_of_change(const att_ablation *a, int change, int64_t image)
{
    const double size = fabs(att_ablation_losses(a, change)[image] - att_ablation_losses(a, -1)[image]);
    return isnan(size) ? INFINITY : size;
}

int att_ablation_most_changed(const att_ablation *a, int change, int64_t *images, int count)
{
    int found = 0;
    for (int64_t i = 0; i < a->image_count; i++) {
        const double size = size_of_change(a, change, i);
        int at = found;
        while (at > 0 && size > size_of_change(a, change, images[at - 1]))
            at--;
        if (at == count)
            continue;
        found += found < count;
        for (int k = found - 1; k > at; k--)
            images[k] = images[k - 1];
        images[at] = i;
    }
    return found;
}
