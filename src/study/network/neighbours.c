/* Classification by weighted nearest neighbours. */
#include <math.h>
#include <string.h>

#include <attscope/embed.h>

#include "base/core/error.h"
#include "base/core/memory.h"
#include "base/core/threads.h"

static const double temperature = 0.07;

/* Images that are compared with each image of the training set while it is in the cache; partial sums of a dot
 * product, which the compiler puts into vectors. */
enum { TILE = 8, LANES = 16 };

typedef struct search {
    const float *train, *tested; /* rows of length 1 */
    const int32_t *train_labels, *labels;
    int64_t train_count, tested_count;
    size_t channels;
    int most, classes, threads; /* most: neighbours to find */
    const int *ks;
    int k_count;
    att_neighbour *found; /* [threads][TILE][most] */
    double *votes;        /* [threads][classes] */
    int64_t *right;       /* [threads][k_count][2]: answers that are right, first and among the first five */
} search;

static float dot(const float *a, const float *b, size_t count)
{
    float sums[LANES] = {0}, sum = 0;
    size_t i = 0;
    for (; i + LANES <= count; i += LANES)
        for (size_t lane = 0; lane < LANES; lane++)
            sums[lane] += a[i + lane] * b[i + lane];
    for (; i < count; i++)
        sum += a[i] * b[i];
    for (size_t lane = 0; lane < LANES; lane++)
        sum += sums[lane];
    return sum;
}

/* Inserts into a list that is sorted from the largest similarity; an equal one stays behind earlier images. */
static void insert(att_neighbour *list, int *count, int most, att_neighbour candidate)
{
    if (*count == most && candidate.similarity <= list[most - 1].similarity)
        return;
    int at = *count < most ? (*count)++ : most - 1;
    for (; at > 0 && list[at - 1].similarity < candidate.similarity; at--)
        list[at] = list[at - 1];
    list[at] = candidate;
}

/* Number of classes that come before `label`; `classes` if it has no vote. */
static int rank_of(const double *votes, int classes, int32_t label)
{
    int rank = 0;
    if (label >= classes || votes[label] <= 0)
        return classes;
    for (int c = 0; c < classes; c++)
        rank += votes[c] > votes[label] || (votes[c] == votes[label] && c < label);
    return rank;
}

/* Lets the neighbours of one image vote, for each k. */
static void judge(const search *s, const att_neighbour *list, int32_t label, double *votes, int64_t *right)
{
    for (int k = 0; k < s->k_count; k++) {
        memset(votes, 0, (size_t)s->classes * sizeof *votes);
        for (int n = 0; n < s->most && n < s->ks[k]; n++)
            votes[s->train_labels[list[n].image]] += exp(list[n].similarity / temperature);
        const int rank = rank_of(votes, s->classes, label);
        right[2 * k] += rank < 1;
        right[2 * k + 1] += rank < 5 && rank < s->classes;
    }
}

static void search_tiles(void *user, int thread)
{
    const search *s = user;
    att_neighbour *found = s->found + (ptrdiff_t)thread * TILE * s->most;
    double *votes = s->votes + (ptrdiff_t)thread * s->classes;
    int64_t *right = s->right + (ptrdiff_t)thread * s->k_count * 2;
    for (int64_t first = (int64_t)thread * TILE; first < s->tested_count; first += (int64_t)s->threads * TILE) {
        const int tile = s->tested_count - first < TILE ? (int)(s->tested_count - first) : TILE;
        int counts[TILE] = {0};
        for (int64_t j = 0; j < s->train_count; j++)
            for (int t = 0; t < tile; t++)
                insert(found + (ptrdiff_t)t * s->most, &counts[t], s->most,
                       (att_neighbour){j, dot(s->tested + (size_t)(first + t) * s->channels,
                                              s->train + (size_t)j * s->channels, s->channels)});
        for (int t = 0; t < tile; t++)
            judge(s, found + (ptrdiff_t)t * s->most, s->labels[first + t], votes, right);
    }
}

/* Copies the features, each divided by its length. */
static att_status normalise(att_context *context, const att_embedding *from, float **rows)
{
    const size_t channels = (size_t)att_shape_count(from->shape);
    ATT_TRY(att_new(context, rows, (size_t)from->count * channels, "features of length 1"));
    for (int64_t i = 0; i < from->count; i++) {
        const float *values = from->values + (size_t)i * channels;
        double square = 0;
        for (size_t c = 0; c < channels; c++)
            square += (double)values[c] * values[c];
        if (!(square > 0) || !isfinite(square))
            return att_fail(context, ATT_ERR_NONFINITE,
                            "the features of image %lld are zero or not finite: they have no nearest neighbours",
                            (long long)from->indices[i]);
        for (size_t c = 0; c < channels; c++)
            (*rows)[(size_t)i * channels + c] = (float)(values[c] / sqrt(square));
    }
    return ATT_OK;
}

static att_status check_labels(att_context *context, const char *which, const int32_t *labels, int64_t count,
                               int *classes)
{
    if (count < 1)
        return att_fail(context, ATT_ERR_ARGUMENT, "there are no %s images", which);
    for (int64_t i = 0; i < count; i++) {
        if (labels[i] < 0)
            return att_fail(context, ATT_ERR_ARGUMENT, "image %lld of the %s images has no class", (long long)i, which);
        *classes = labels[i] >= *classes ? labels[i] + 1 : *classes;
    }
    return ATT_OK;
}

static att_status check(att_context *context, const att_embedding *train, const att_embedding *tested, search *s)
{
    int ignored = 0;
    ATT_TRY(check_labels(context, "training", s->train_labels, s->train_count, &s->classes));
    ATT_TRY(check_labels(context, "tested", s->labels, s->tested_count, &ignored));
    if (!att_shape_equal(train->shape, tested->shape))
        return att_fail(context, ATT_ERR_ARGUMENT,
                        "the features of the training and of the tested images differ in "
                        "shape");
    for (int k = 0; k < s->k_count; k++) {
        if (s->ks[k] < 1)
            return att_fail(context, ATT_ERR_ARGUMENT, "%d nearest neighbours, expected at least 1", s->ks[k]);
        s->most = s->ks[k] > s->most ? s->ks[k] : s->most;
    }
    s->most = s->most < s->train_count ? s->most : (int)s->train_count;
    return ATT_OK;
}

static att_status find(att_context *context, const att_embedding *train, const att_embedding *tested, search *s,
                       float **rows)
{
    const size_t threads = (size_t)s->threads;
    ATT_TRY(normalise(context, train, &rows[0]));
    ATT_TRY(normalise(context, tested, &rows[1]));
    ATT_TRY(att_new(context, &s->found, threads * TILE * (size_t)s->most, "nearest neighbours"));
    ATT_TRY(att_new(context, &s->votes, threads * (size_t)s->classes, "votes of nearest neighbours"));
    ATT_TRY(att_new(context, &s->right, threads * (size_t)s->k_count * 2, "votes of nearest neighbours"));
    s->train = rows[0];
    s->tested = rows[1];
    att_threads_run(context, s->threads, search_tiles, s);
    return ATT_OK;
}

static double percent(const search *s, int k, int which)
{
    int64_t right = 0;
    for (int thread = 0; thread < s->threads; thread++)
        right += s->right[((ptrdiff_t)thread * s->k_count + k) * 2 + which];
    return 100.0 * (double)right / (double)s->tested_count;
}

att_status att_embedding_neighbours(att_context *context, const att_embedding *train, const att_embedding *tested,
                                    const int *ks, int k_count, att_embedding_result *results)
{
    float *rows[2] = {NULL, NULL};
    search s = {.train_labels = train->labels,
                .labels = tested->labels,
                .train_count = train->count,
                .tested_count = tested->count,
                .channels = (size_t)att_shape_count(train->shape),
                .threads = att_context_threads(context),
                .ks = ks,
                .k_count = k_count};
    ATT_TRY(check(context, train, tested, &s));
    const att_status status = find(context, train, tested, &s, rows);
    for (int k = 0; k < k_count && status == ATT_OK; k++)
        results[k] = (att_embedding_result){s.tested_count, percent(&s, k, 0), percent(&s, k, 1)};
    att_free(context, rows[0]);
    att_free(context, rows[1]);
    att_free(context, s.found);
    att_free(context, s.votes);
    att_free(context, s.right);
    return status;
}

static att_status nearest(att_context *context, const att_embedding *among, const float *features, int k,
                          att_neighbour *neighbours, int *found, float **rows)
{
    int64_t number = 0;
    float *values = (float *)(uintptr_t)features; /* only read */
    const att_embedding one = {.count = 1, .shape = among->shape, .values = values, .indices = &number};
    const size_t channels = (size_t)att_shape_count(among->shape);
    ATT_TRY(normalise(context, among, &rows[0]));
    ATT_TRY(normalise(context, &one, &rows[1]));
    *found = 0;
    for (int64_t i = 0; i < among->count; i++)
        insert(neighbours, found, k, (att_neighbour){i, dot(rows[1], rows[0] + (size_t)i * channels, channels)});
    return ATT_OK;
}

att_status att_embedding_nearest(att_context *context, const att_embedding *among, const float *features, int k,
                                 att_neighbour *neighbours, int *found)
{
    float *rows[2] = {NULL, NULL};
    if (among->count < 1)
        return att_fail(context, ATT_ERR_ARGUMENT, "there are no images among which to search");
    if (k < 1)
        return att_fail(context, ATT_ERR_ARGUMENT, "%d nearest neighbours, expected at least 1", k);
    const att_status status = nearest(context, among, features, k, neighbours, found, rows);
    att_free(context, rows[0]);
    att_free(context, rows[1]);
    return status;
}
