/* Greedy ablations: the steps, of which each removes a part for good. */
#include <math.h>
#include <string.h>

#include "base/core/error.h"
#include "lab/runs/ablation/ablation.h"

static int64_t right_of(const att_ablation *a, int part)
{
    int64_t right = 0;
    for (int64_t i = 0; i < a->image_count; i++)
        right += a->tried.answers[1 + part].right[i];
    return right;
}

static double loss_of(const att_ablation *a, int part)
{
    double sum = 0;
    for (int64_t i = 0; i < a->image_count; i++)
        sum += a->tried.answers[1 + part].loss[i];
    return sum;
}

/* The candidate without which accuracy is highest, then loss lowest. */
static int best_candidate(const att_ablation *a)
{
    int best = 0;
    for (int p = 1; p < a->tried.count; p++) {
        const int64_t gain = right_of(a, p) - right_of(a, best);
        if (gain > 0 || (gain == 0 && loss_of(a, p) < loss_of(a, best)))
            best = p;
    }
    return best;
}

/* Removes the candidate for good, and makes its answers those of a step. */
static att_status keep_candidate(att_ablation *a, int best)
{
    att_ablated_parts *tried = &a->tried, *steps = &a->steps;
    att_ablated_part *part = &tried->items[best];
    for (int i = 0; i < part->count; i++) {
        if (!att_list_grow(a->context, &a->kept.cuts, a->kept.count, &a->kept.room, sizeof *a->kept.cuts))
            return att_fail_memory(a->context, sizeof *a->kept.cuts, "the parts of a network");
        a->kept.cuts[a->kept.count++] = part->cuts[i];
    }
    steps->items[steps->count++] = *part;
    steps->answers[steps->count] = tried->answers[1 + best];
    const size_t later = (size_t)(--tried->count - best);
    memmove(part, part + 1, later * sizeof *part);
    memmove(&tried->answers[1 + best], &tried->answers[2 + best], later * sizeof *tried->answers);
    return ATT_OK;
}

/* Whether the last token remains: it cannot be removed. */
static bool is_last_token(const att_ablation *a)
{
    const att_ablated_part *part = a->tried.items;
    return a->tried.count == 1 && part->cuts->kind == ATT_ABLATED_TOKENS &&
           a->kept.count + part->count == att_explorer_layer_at(a->explorer, 0).tokens;
}

att_status att_ablation_end_pass(att_ablation *a, bool *done)
{
    const int best = best_candidate(a);
    *done = 100 * (double)right_of(a, best) / (double)a->image_count < a->bound;
    a->pass_count = 0;
    if (*done)
        return att_ablation_conclude(a);
    ATT_TRY(keep_candidate(a, best));
    *done = a->tried.count == 0 || is_last_token(a);
    return att_ablation_conclude(a);
}
