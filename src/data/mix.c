#include "data/mix.h"

#include <math.h>
#include <string.h>

#include "base/core/error.h"

#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#endif

/* --- options ----------------------------------------------------------------------------------------------------- */

static bool has_minmax(const att_mix_options *options)
{
    return options->cutmix_minmax[1] > 0;
}

static bool uses_cutmix(const att_mix_options *options)
{
    return options->cutmix > 0 || has_minmax(options);
}

bool att_mix_is_on(const att_mix_options *options)
{
    return options->mixup > 0 || uses_cutmix(options);
}

static bool is_probability(double value)
{
    return value >= 0 && value <= 1;
}

att_status att_mix_check(att_context *context, const att_mix_options *options)
{
    const double *minmax = options->cutmix_minmax;
    const char *wrong = NULL;
    if (!(options->mixup >= 0 && options->mixup <= 1e6) || !(options->cutmix >= 0 && options->cutmix <= 1e6))
        wrong = "mixup and cutmix must lie in 0..1e6";
    else if (!(minmax[0] == 0 && minmax[1] == 0) && !(minmax[0] >= 0 && minmax[0] < minmax[1] && minmax[1] <= 1))
        wrong = "cutmix_minmax must be a range in 0..1";
    else if (!is_probability(options->prob) || !is_probability(options->switch_prob))
        wrong = "prob and switch_prob must be probabilities";
    else if (options->mode < ATT_MIX_BATCH || options->mode > ATT_MIX_ELEM)
        wrong = "unknown mode";
    else if (options->off_epoch < 0)
        wrong = "off_epoch must not be negative";
    return wrong ? att_fail(context, ATT_ERR_ARGUMENT, "mixing: %s", wrong) : ATT_OK;
}

/* --- draws ------------------------------------------------------------------------------------------------------- */

/* Logarithm of a Gamma(shape, 1) draw: Marsaglia and Tsang, ACM TOMS 26 (2000). For shape < 1: Gamma(shape) =
 * Gamma(shape + 1) U^(1/shape). */
static double draw_log_gamma(att_random *random, double shape)
{
    if (shape < 1) {
        double more = draw_log_gamma(random, shape + 1);
        return more + log(1 - att_random_uniform(random)) / shape;
    }
    double d = shape - 1.0 / 3, c = 1 / sqrt(9 * d);
    for (;;) {
        double x = att_random_normal(random), v = 1 + c * x;
        if (v <= 0)
            continue;
        double log_cube = 3 * log(v), log_uniform = log(1 - att_random_uniform(random));
        if (log_uniform < 0.5 * x * x + d - d * exp(log_cube) + d * log_cube)
            return log(d) + log_cube;
    }
}

double att_mix_draw_beta(att_random *random, double alpha)
{
    double one = draw_log_gamma(random, alpha), other = draw_log_gamma(random, alpha);
    if (isinf(one) && isinf(other)) /* alpha is so small that both draws are 0; Beta is then 0 or 1 */
        return att_random_uniform(random) < 0.5 ? 0 : 1;
    return 1 / (1 + exp(other - one));
}

static int clamp(int value, int high)
{
    return value < 0 ? 0 : value > high ? high : value;
}

/* CutMix with this box. lambda: the fraction of the image outside of the box. */
static att_mixing box_mixing(int height, int width, int top, int bottom, int left, int right)
{
    double area = (double)(bottom - top) * (right - left);
    return (att_mixing){.lambda = 1 - area / ((double)height * width),
                        .cuts = true,
                        .top = top,
                        .bottom = bottom,
                        .left = left,
                        .right = right,
                        .width = width};
}

att_mixing att_mix_box(int height, int width, double lambda, int center_y, int center_x)
{
    double ratio = sqrt(1 - lambda);
    int box_height = (int)(height * ratio), box_width = (int)(width * ratio);
    return box_mixing(height, width, clamp(center_y - box_height / 2, height),
                      clamp(center_y + (box_height + 1) / 2, height), clamp(center_x - box_width / 2, width),
                      clamp(center_x + (box_width + 1) / 2, width));
}

/* Draws an integer from int(size low) inclusive to int(size high) exclusive. */
static int draw_side(att_random *random, const double minmax[2], int size)
{
    int low = (int)(size * minmax[0]), high = (int)(size * minmax[1]);
    return low + (int)att_random_below(random, high > low ? high - low : 1);
}

static att_mixing draw_minmax(const double minmax[2], int height, int width, att_random *random)
{
    int box_height = draw_side(random, minmax, height), box_width = draw_side(random, minmax, width);
    int top = (int)att_random_below(random, height - box_height + 1),
        left = (int)att_random_below(random, width - box_width + 1);
    return box_mixing(height, width, top, top + box_height, left, left + box_width);
}

static att_mixing draw_cutmix(const att_mix_options *options, int height, int width, att_random *random)
{
    if (has_minmax(options))
        return draw_minmax(options->cutmix_minmax, height, width, random);
    double lambda = att_mix_draw_beta(random, options->cutmix);
    int center_y = (int)att_random_below(random, height), center_x = (int)att_random_below(random, width);
    return att_mix_box(height, width, lambda, center_y, center_x);
}

att_mixing att_mix_draw(const att_mix_options *options, int height, int width, att_random *random)
{
    const att_mixing unmixed = {.lambda = 1};
    bool may_cutmix = uses_cutmix(options), may_mixup = options->mixup > 0;
    if ((!may_cutmix && !may_mixup) || !(att_random_uniform(random) < options->prob))
        return unmixed;
    if (may_cutmix && (!may_mixup || att_random_uniform(random) < options->switch_prob))
        return draw_cutmix(options, height, width, random);
    return (att_mixing){.lambda = att_mix_draw_beta(random, options->mixup)};
}

/* --- mixing ------------------------------------------------------------------------------------------------------ */

/* Weight of the image's own pixel; the weight of the other image's pixel is 1 minus this weight. */
static float weight_at(const att_mixing *mixing, int y, int x)
{
    if (!mixing->cuts)
        return (float)mixing->lambda;
    return y >= mixing->top && y < mixing->bottom && x >= mixing->left && x < mixing->right ? 0.0f : 1.0f;
}

/* Returns own * weight + other * (1 - weight). With CutMix the weight is 0 or 1, and the result is exactly one of the
 * two values. */
static float blend(const att_mixing *mixing, float weight, float own, float other)
{
    if (mixing->cuts)
        return weight > 0 ? own : other;
    return own * weight + other * (float)(1 - mixing->lambda);
}

void att_mix_images(const att_mixing *of_a, const att_mixing *of_b, int height, int width, int channels, float *a,
                    float *b)
{
    if (of_a->lambda == 1 && of_b->lambda == 1)
        return;
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++) {
            float weight_a = weight_at(of_a, y, x), weight_b = weight_at(of_b, y, x);
            for (int c = 0; c < channels; c++, a++, b++) {
                float old = *a;
                *a = blend(of_a, weight_a, old, *b);
                *b = blend(of_b, weight_b, *b, old);
            }
        }
}

/* A batch that is being mixed. */
typedef struct mixed_batch {
    const att_loader_options *options;
    void *const *data;
    const size_t *row_bytes;
    void *const *scratch;
    const att_share *share;
} mixed_batch;

/* sample: a row of the batch that this process makes. */
static void *row_of(const mixed_batch *it, int field, int sample)
{
    return (char *)it->data[field] + (size_t)att_share_find(it->share, sample) * it->row_bytes[field];
}

static void mix_targets(const mixed_batch *it, int sample, const void *const *other, const att_mixing *mixing)
{
    const att_target_rules *rules = &it->options->targets;
    void *own[ATT_MAX_TARGETS];
    if (mixing->lambda == 1 || rules->count == 0)
        return;
    for (int f = 0; f < rules->count; f++)
        own[f] = row_of(it, 1 + f, sample);
    rules->mix(rules->user, own, other, mixing);
}

/* Mixes the targets of samples i and j, each with the original targets of the other. */
static void mix_pair(const mixed_batch *it, int i, int j, const att_mixing *of_i, const att_mixing *of_j)
{
    const att_target_rules *rules = &it->options->targets;
    const void *old_i[ATT_MAX_TARGETS], *other[ATT_MAX_TARGETS];
    for (int f = 0; f < rules->count; f++) {
        old_i[f] = memcpy(it->scratch[f], row_of(it, 1 + f, i), it->row_bytes[1 + f]);
        other[f] = row_of(it, 1 + f, j);
    }
    if (i != j)
        mix_targets(it, i, other, of_i);
    mix_targets(it, j, old_i, of_j);
}

/* In a batch of odd size, the middle sample is its own partner. */
void att_mix_batch(const att_loader_options *options, const att_batch *batch, const att_share *share, void *const *data,
                   const size_t *row_bytes, void *const *scratch)
{
    const att_mix_options *mix = &options->mix;
    const int64_t *sides = batch->fields[0].shape.dims;
    const int height = (int)sides[0], width = (int)sides[1], channels = (int)sides[2];
    const mixed_batch it = {options, data, row_bytes, scratch, share};
    uint64_t key = att_random_key(options->seed, (uint64_t)batch->epoch, (uint64_t)batch->number);
    att_random random = att_random_from(att_random_key(key, 0, att_random_hash("mix")));
    bool off = mix->off_epoch > 0 && batch->epoch >= mix->off_epoch;
    att_mixing of_i = {.lambda = 1}, of_j = {.lambda = 1};
    for (int i = 0; i < (share->size + 1) / 2; i++) {
        int j = share->size - 1 - i;
        if (!off && (i == 0 || mix->mode != ATT_MIX_BATCH)) {
            of_i = att_mix_draw(mix, height, width, &random);
            of_j = mix->mode == ATT_MIX_ELEM ? att_mix_draw(mix, height, width, &random) : of_i;
        }
        of_j.with_itself = i == j;
        if (att_share_find(share, i) < 0 || att_share_find(share, j) < 0)
            continue;
        if (i < j)
            att_mix_images(&of_i, &of_j, height, width, channels, row_of(&it, 0, i), row_of(&it, 0, j));
        mix_pair(&it, i, j, &of_i, &of_j);
    }
}
