/* Nearest neighbours (attscope/embed.h) beside a direct computation in f64: sorted similarities, votes, order of
 * classes. */
#include <math.h>

#include <attscope/embed.h>

#include "context.h"
#include "formula.h"

enum { TRAIN = 90, TESTED = 600, CHANNELS = 19, CLASSES = 8, KS = 4 };

SHARED_CONTEXT(threads, 3)

static const int ks[KS] = {1, 7, 30, 2 * TRAIN};
static float train_values[TRAIN * CHANNELS], tested_values[TESTED * CHANNELS];
static int32_t train_labels[TRAIN], labels[TESTED];

/* Features around a centre of each class, which overlap. */
static void fill(const char *key, float *values, int32_t *classes, int count)
{
    for (int i = 0; i < count; i++) {
        classes[i] = i % CLASSES;
        for (int c = 0; c < CHANNELS; c++)
            values[i * CHANNELS + c] = (float)(0.4 * formula("centre", (uint32_t)(classes[i] * CHANNELS + c)) +
                                               formula(key, (uint32_t)(i * CHANNELS + c)));
    }
}

static att_embedding features(float *values, int32_t *classes, int count)
{
    return (att_embedding){
        .count = count, .shape = {.rank = 1, .dims = {CHANNELS}}, .values = values, .labels = classes};
}

static double similarity(const float *a, const float *b)
{
    double ab = 0, aa = 0, bb = 0;
    for (int c = 0; c < CHANNELS; c++) {
        ab += (double)a[c] * b[c];
        aa += (double)a[c] * a[c];
        bb += (double)b[c] * b[c];
    }
    return ab / sqrt(aa * bb);
}

/* Number of training images that are nearer than image j. */
static int nearer(const double *similarities, int j)
{
    int count = 0;
    for (int other = 0; other < TRAIN; other++)
        count += similarities[other] > similarities[j];
    return count;
}

/* Number of classes with more votes of the k nearest than the class of image i; CLASSES: it has none. */
static int rank_of(int i, int k)
{
    double similarities[TRAIN], votes[CLASSES] = {0};
    int rank = 0;
    for (int j = 0; j < TRAIN; j++)
        similarities[j] = similarity(tested_values + (ptrdiff_t)i * CHANNELS, train_values + (ptrdiff_t)j * CHANNELS);
    for (int j = 0; j < TRAIN; j++)
        if (nearer(similarities, j) < k)
            votes[train_labels[j]] += exp(similarities[j] / 0.07);
    for (int c = 0; c < CLASSES; c++)
        rank += votes[c] > votes[labels[i]];
    return votes[labels[i]] > 0 ? rank : CLASSES;
}

TEST(nearest_images_are_sorted_by_similarity)
{
    enum { K = 9 };
    fill("train", train_values, train_labels, TRAIN);
    fill("tested", tested_values, labels, TESTED);
    const att_embedding among = features(train_values, train_labels, TRAIN);
    const float zeros[CHANNELS] = {0};
    att_neighbour found[TRAIN];
    int count;
    for (int i = 0; i < TESTED; i += 37) {
        const float *one = tested_values + (ptrdiff_t)i * CHANNELS;
        double similarities[TRAIN];
        for (int j = 0; j < TRAIN; j++)
            similarities[j] = similarity(one, train_values + (ptrdiff_t)j * CHANNELS);
        must(att_embedding_nearest(context, &among, one, K, found, &count));
        assert_int_equal(count, K);
        for (int k = 0; k < K; k++) {
            assert_int_equal(nearer(similarities, (int)found[k].image), k);
            /* measured: 9.2e-8 */
            assert_true(fabs(found[k].similarity - similarities[found[k].image]) < 1e-6);
        }
    }
    must(att_embedding_nearest(context, &among, tested_values, 2 * TRAIN, found, &count));
    assert_int_equal(count, TRAIN);
    assert_fails(context, att_embedding_nearest(context, &among, zeros, K, found, &count), ATT_ERR_NONFINITE, "");
    assert_fails(context, att_embedding_nearest(context, &among, tested_values, 0, found, &count), ATT_ERR_ARGUMENT,
                 "0 nearest neighbours");
}

/* Of equal similarities the earlier images count, of equal votes the lower class comes first. */
TEST(equal_images_and_votes_have_an_order)
{
    static float same[4 * CHANNELS];
    static int32_t two[] = {1, 0, 0, 0}, asked[] = {0, 1};
    for (int i = 0; i < 4 * CHANNELS; i++)
        same[i] = 1;
    const att_embedding train = features(same, two, 4), tested = features(same, asked, 2);
    const int k[] = {1, 2};
    att_neighbour found[2];
    att_embedding_result results[2];
    int count;
    must(att_embedding_nearest(context, &train, same, 2, found, &count));
    assert_true(count == 2 && found[0].image == 0 && found[1].image == 1);
    must(att_embedding_neighbours(context, &train, &tested, k, 2, results));
    assert_true(results[0].top1 == 50 && results[0].top5 == 50); /* the first image's class, 1, for both */
    two[2] = two[3] = 1;
    must(att_embedding_neighbours(context, &train, &tested, k, 2, results));
    assert_true(results[1].top1 == 50 && results[1].top5 == 100); /* a vote each: class 0 for both */
    asked[1] = 0;
    must(att_embedding_neighbours(context, &train, &tested, k, 2, results));
    assert_true(results[1].top1 == 100);
}

TEST(votes_are_weighted_by_similarity)
{
    fill("train", train_values, train_labels, TRAIN);
    fill("tested", tested_values, labels, TESTED);
    const att_embedding train = features(train_values, train_labels, TRAIN),
                        tested = features(tested_values, labels, TESTED);
    att_embedding_result results[KS];
    must(att_embedding_neighbours(context, &train, &tested, ks, KS, results));
    for (int k = 0; k < KS; k++) {
        int first = 0, five = 0;
        for (int i = 0; i < TESTED; i++) {
            const int rank = rank_of(i, ks[k]);
            first += rank == 0;
            five += rank < 5;
        }
        assert_true(first > TESTED / 4 && first < TESTED); /* better than chance, and not all */
        assert_int_equal(results[k].count, TESTED);
        assert_true(results[k].top1 == 100.0 * first / TESTED);
        assert_true(results[k].top5 == 100.0 * five / TESTED);
    }
}

TEST(what_cannot_be_compared_is_refused)
{
    fill("train", train_values, train_labels, TRAIN);
    att_embedding train = features(train_values, train_labels, TRAIN), other = train;
    att_embedding_result result;
    const int none = 0, one = 1;
    assert_int_equal(att_embedding_neighbours(context, &train, &train, &none, 1, &result), ATT_ERR_ARGUMENT);
    other.shape.dims[0] = CHANNELS - 1;
    assert_int_equal(att_embedding_neighbours(context, &train, &other, &one, 1, &result), ATT_ERR_ARGUMENT);
    memset(train_values + 5 * CHANNELS, 0, CHANNELS * sizeof(float));
    int64_t indices[TRAIN];
    for (int i = 0; i < TRAIN; i++)
        indices[i] = 100 + i;
    train.indices = indices;
    assert_int_equal(att_embedding_neighbours(context, &train, &train, &one, 1, &result), ATT_ERR_NONFINITE);
    assert_non_null(strstr(att_context_message(context), "image 105 "));
}
