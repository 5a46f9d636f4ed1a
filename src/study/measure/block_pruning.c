/* Accuracy when the blocks with the lowest score are skipped. The images of a preview rank the blocks, and accuracy is
 * measured on all images. Without a preview, the first images rank the blocks, and accuracy is that of the others. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/core/memory.h"
#include "base/core/random.h"
#include "base/core/spread.h"
#include "base/core/text.h"
#include "networks/tasks/score.h"
#include "study/measure/list.h"
#include "study/measure/skips.h"

enum { BY, FIRST, ORDERS, PER, SEED }; /* options */
enum { BY_TNS, BY_ZETA };
static const char *const by_choices[] = {"tns", "zeta", NULL};
static const att_detail options[] = {
    {.name = "by", .meaning = "what ranks the blocks", .high = BY_ZETA, .choices = by_choices},
    {.name = "first", .meaning = "how many images rank the blocks", .start = 256, .low = 1, .high = 1e6, .whole = true},
    {.name = "orders", .meaning = "how many random orders to compare with", .high = 99, .whole = true},
    {.name = "per",
     .meaning = "what is a block: a residual addition or a block of the network",
     .high = ATT_PER_BLOCK,
     .choices = att_per_choices},
    {.name = "seed", .meaning = "seed of the random orders", .start = 1, .high = 1e9, .whole = true}};

/* --- requests ----------------------------------------------------------------------------------------------------- */

/* Rows: the norms of all steps; then one with the number of images that ranked the blocks (0: the sample is not
 * measured), the right answers of each variant, the candidates' scores, and their ranks. Variant 0 skips no block; the
 * variants 1 + n order, ..., n + n order skip the first 1, ..., n candidates of an order. Order 0 is the ranking, the
 * others are random. */
enum { RANKED, HITS };

static int orders_of(double random_orders)
{
    return 1 + (int)random_orders;
}

static int variants_of(int candidates, int orders)
{
    return 1 + candidates * orders;
}

static int64_t row_of(int candidates, int orders)
{
    return HITS + variants_of(candidates, orders) + 2 * (int64_t)candidates;
}

static int candidates_of(int64_t row, int orders)
{
    return (int)(row - HITS - 1) / (orders + 2);
}

static bool is_candidate(const att_requests *requests, const att_residual_step *step)
{
    return !step->begins && att_requests_has_step(requests, step);
}

static const char *const random_statistics[] = {"random", "random low", "random high"};

static void add_accuracies(att_requests *requests, int first, int last, const char *statistic)
{
    for (int k = first; k <= last; k++) {
        char node[32];
        snprintf(node, sizeof node, "skipped.%d", k);
        att_requests_series(requests, node, -1, statistic);
    }
}

static void add_scores(att_requests *requests, const char *statistic)
{
    const bool per = att_requests_option(requests, PER) == ATT_PER_BLOCK;
    for (att_residual_step step = {.node = -1}; att_step_next(att_requests_graph(requests), per, &step);)
        if (is_candidate(requests, &step))
            att_requests_series(requests, step.scope, -1, statistic);
}

static att_status request(att_requests *requests)
{
    att_graph *graph = att_requests_graph(requests);
    const bool per = att_requests_option(requests, PER) == ATT_PER_BLOCK;
    const int orders = orders_of(att_requests_option(requests, ORDERS));
    int candidates = 0, steps = 0;
    ATT_TRY(att_requests_need_classes(requests));
    for (att_residual_step step = {.node = -1}; att_step_next(graph, per, &step);) {
        att_requests_step_norms(requests, &step, ATT_DT_GATES);
        candidates += is_candidate(requests, &step);
        steps++;
    }
    if (steps > ATT_SKIPS_MOST_BLOCKS)
        return att_requests_fail(requests, "the network has %d residual additions, more than %d", steps,
                                 (int)ATT_SKIPS_MOST_BLOCKS);
    att_requests_study_row(requests, row_of(candidates, orders), 0);
    add_accuracies(requests, 0, candidates, ATT_SCORE_TOP1);
    for (size_t i = 0; orders > 1 && i < sizeof random_statistics / sizeof *random_statistics; i++)
        add_accuracies(requests, 1, candidates, random_statistics[i]);
    add_scores(requests, "score");
    add_scores(requests, "rank");
    return candidates > 0 ? ATT_OK : att_requests_found_nothing(requests, "second residual addition");
}

/* --- ranking ------------------------------------------------------------------------------------------------------ */

/* Kept between runs. */
typedef struct study {
    att_residual_step *blocks; /* the candidates */
    int *rows;                 /* by candidate: its row of norms */
    int count;
    int64_t ranked;     /* images that have ranked the blocks */
    att_spread *scores; /* over these images */
    int *order;         /* candidates, lowest score first; set when `skips` is open */
    att_skips skips;
} study;

static void close_study(att_context *context, void *own)
{
    study *s = own;
    att_skips_close(&s->skips);
    att_free(context, s->blocks);
    att_free(context, s->rows);
    att_free(context, s->scores);
    att_free(context, s->order);
    att_free(context, s);
}

static att_status open_study(const att_study_job *job)
{
    const bool per = job->options[PER] == ATT_PER_BLOCK;
    const size_t most = (size_t)job->row_count;
    study *s = *job->own = att_allocate(job->context, sizeof *s);
    if (!s)
        return att_fail_memory(job->context, sizeof *s, "an instrument");
    s->blocks = att_allocate_array(job->context, most, sizeof *s->blocks);
    s->rows = att_allocate_array(job->context, most, sizeof *s->rows);
    s->scores = att_allocate_array(job->context, most, sizeof *s->scores);
    s->order = att_allocate_array(job->context, most, sizeof *s->order);
    if (!s->blocks || !s->rows || !s->scores || !s->order)
        return att_fail_memory(job->context, most * sizeof *s->blocks, "an instrument");
    int row = 0;
    for (att_residual_step step = {.node = -1}; att_step_next(job->graph, per, &step); row++)
        if (!step.begins && att_study_selects(job, &step)) {
            s->rows[s->count] = row;
            s->blocks[s->count++] = step;
        }
    return ATT_OK;
}

static const float *norms_of(const att_study_job *job, int row, int sample)
{
    return job->rows[row] + (int64_t)sample * job->lengths[row];
}

/* TNS of a sample over all steps that do not begin a stage, except the step of row `without`; -1: except none. */
static double tns_of(const att_study_job *job, const bool *begins, int sample, int without)
{
    const bool per = job->options[PER] == ATT_PER_BLOCK;
    double largest = 0, sum = 0;
    int count = 0;
    for (int row = 0; row < job->row_count - 1; row++) {
        if (begins[row] || row == without)
            continue;
        double zeta = att_skips_zeta(per, norms_of(job, row, sample));
        if (!isfinite(zeta))
            return NAN;
        largest = fmax(largest, zeta);
        sum += zeta;
        count++;
    }
    return count > 0 && sum > 0 ? largest * (largest * count / sum - 1) : NAN;
}

static double score_of(const att_study_job *job, const study *s, const bool *begins, int sample, int block)
{
    if (job->options[BY] == BY_TNS)
        return tns_of(job, begins, sample, -1) - tns_of(job, begins, sample, s->rows[block]);
    return att_skips_zeta(job->options[PER] == ATT_PER_BLOCK, norms_of(job, s->rows[block], sample));
}

static void add_sample(const att_study_job *job, study *s, int sample)
{
    bool begins[ATT_SKIPS_MOST_BLOCKS] = {false};
    const bool per = job->options[PER] == ATT_PER_BLOCK;
    int row = 0;
    for (att_residual_step step = {.node = -1}; att_step_next(job->graph, per, &step); row++)
        begins[row] = step.begins;
    for (int b = 0; b < s->count; b++) {
        double score = score_of(job, s, begins, sample, b);
        if (isfinite(score))
            att_spread_add(&s->scores[b], score);
    }
}

/* A block without a score counts as the highest. */
static double mean_score(const study *s, int block)
{
    double mean = att_spread_mean(&s->scores[block]);
    return isnan(mean) ? INFINITY : mean;
}

/* Orders the candidates by score; equal ones stay in the network's order. */
static void sort_blocks(study *s)
{
    for (int i = 0; i < s->count; i++) {
        int at = i;
        for (; at > 0 && mean_score(s, s->order[at - 1]) > mean_score(s, i); at--)
            s->order[at] = s->order[at - 1];
        s->order[at] = i;
    }
}

/* Shuffles an order of the candidates. */
static void shuffle(att_random *random, int *order, int count)
{
    for (int last = count - 1; last > 0; last--) {
        int other = (int)att_random_below(random, last + 1), kept = order[last];
        order[last] = order[other];
        order[other] = kept;
    }
}

static void log_order(const att_study_job *job, const study *s)
{
    att_text text = {.context = job->context};
    for (int i = 0; i < s->count; i++)
        att_text_append(&text, "%s%s", i > 0 ? ", " : "", s->blocks[s->order[i]].scope);
    if (!text.failed)
        att_log(job->context, ATT_LOG_INFO, "block_pruning: lowest score first: %s", text.data);
    att_text_free(&text);
}

/* Writes the sets of the variants: [variants][count]. order: the ranking, which is shuffled again and again */
static void choose_sets(uint64_t seed, int *order, int count, int orders, bool *skipped)
{
    att_random random = att_random_from(att_random_key(seed, att_random_hash("block_pruning"), 0));
    bool *set = skipped + count;
    for (int o = 0; o < orders; o++) {
        if (o > 0)
            shuffle(&random, order, count);
        for (int k = 1; k <= count; k++, set += count)
            for (int i = 0; i < k; i++)
                set[order[i]] = true;
    }
}

/* Ranks the blocks and compiles the network with the first 0, 1, 2, ... of them skipped, in every order. */
static att_status rank_blocks(const att_study_job *job, study *s)
{
    const int orders = orders_of(job->options[ORDERS]), variants = variants_of(s->count, orders);
    const size_t n = (size_t)s->count, cells = (size_t)variants * n;
    sort_blocks(s);
    log_order(job, s);
    bool *skipped = att_allocate_array(job->context, cells, sizeof *skipped);
    int *order = att_allocate_array(job->context, n, sizeof *order);
    att_status status = skipped && order ? ATT_OK : att_fail_memory(job->context, cells, "an instrument");
    if (status == ATT_OK) {
        memcpy(order, s->order, n * sizeof *order);
        choose_sets((uint64_t)job->options[SEED], order, s->count, orders, skipped);
        status = att_skips_open(job, s->blocks, s->count, skipped, variants, &s->skips);
    }
    att_free(job->context, skipped);
    att_free(job->context, order);
    return status;
}

static void write_ranks(const study *s, float *row)
{
    float *scores = row + HITS + s->skips.sets, *ranks = scores + s->count;
    row[RANKED] = (float)s->ranked;
    for (int i = 0; i < s->count; i++) {
        scores[i] = (float)att_spread_mean(&s->scores[i]);
        ranks[s->order[i]] = (float)(i + 1);
    }
}

/* Begins a new ranking when the figures were cleared. */
static void forget(study *s)
{
    att_skips_close(&s->skips);
    memset(s->scores, 0, (size_t)s->count * sizeof *s->scores);
    s->ranked = 0;
}

static int64_t previews(const double *values)
{
    return (int64_t)values[FIRST];
}

/* How many samples of this run rank the blocks. */
static int ranking_of(const att_study_job *job)
{
    const int64_t left = (int64_t)job->options[FIRST] - job->seen;
    if (job->preview)
        return job->count;
    return left < 0 || job->previewed > 0 ? 0 : left < job->count ? (int)left : job->count;
}

static att_status run(att_study_job *job)
{
    const int64_t stride = job->lengths[job->row_count - 1];
    const int ranking = ranking_of(job);
    float *rows = job->rows[job->row_count - 1];
    if (!*job->own)
        ATT_TRY(open_study(job));
    study *s = *job->own;
    if (job->seen == 0 && job->previewed == 0)
        forget(s);
    for (int i = 0; i < ranking; i++)
        add_sample(job, s, i);
    s->ranked += ranking;
    if (ranking == job->count)
        return ATT_OK;
    if (!s->skips.session)
        ATT_TRY(rank_blocks(job, s));
    for (int i = ranking; i < job->count; i++)
        write_ranks(s, rows + i * stride);
    return att_skips_run(&s->skips, job, ranking, job->count - ranking, rows + ranking * stride + HITS, stride);
}

static const att_study pruning_study = {.run = run, .previews = previews, .close = close_study};

/* --- figures ------------------------------------------------------------------------------------------------------ */

/* values: the number of right answers of each variant, then scores and ranks */
typedef struct state {
    int64_t count, ranked;
    double values[];
} state;

typedef struct layout {
    int candidates, orders, variants, values;
} layout;

static layout layout_of(const att_observed *shape)
{
    const int64_t row = shape->lengths[shape->count - 1];
    layout l = {.orders = orders_of(shape->options[ORDERS]), .values = (int)row - HITS};
    l.candidates = candidates_of(row, l.orders);
    l.variants = variants_of(l.candidates, l.orders);
    return l;
}

static size_t size(const att_observed *shape)
{
    return sizeof(state) + (size_t)layout_of(shape).values * sizeof(double);
}

static void observe(void *own, const att_observed *observed)
{
    state *s = own;
    const float *row = observed->rows[observed->count - 1];
    const layout l = layout_of(observed);
    if (row[RANKED] == 0 || isnan(row[HITS]))
        return;
    s->count++;
    s->ranked = (int64_t)row[RANKED];
    for (int i = 0; i < l.values; i++)
        s->values[i] = row[HITS + i] + (i < l.variants ? s->values[i] : 0);
}

static void merge(void *own, const void *later, const att_observed *shape)
{
    state *s = own;
    const state *more = later;
    const layout l = layout_of(shape);
    if (more->count == 0)
        return;
    s->count += more->count;
    s->ranked = more->ranked;
    for (int i = 0; i < l.values; i++)
        s->values[i] = more->values[i] + (i < l.variants ? s->values[i] : 0);
}

/* A figure over `count` images. */
static att_figure figure(double value, double deviation, int64_t count)
{
    if (count == 0)
        return (att_figure){.mean = NAN, .deviation = NAN};
    return (att_figure){.mean = value, .deviation = deviation, .count = count, .undefined = isnan(value) ? count : 0};
}

static double accuracy(const state *s, int variant)
{
    return 100 * s->values[variant] / (double)s->count;
}

/* Writes mean, lowest and highest accuracy with k blocks skipped, over the random orders. */
static void compare(const state *s, layout l, int k, att_figure *mean, att_figure *low, att_figure *high)
{
    double sum = 0, least = INFINITY, most = -INFINITY;
    for (int o = 1; o < l.orders; o++) {
        const double value = accuracy(s, o * l.candidates + k);
        sum += value;
        least = fmin(least, value);
        most = fmax(most, value);
    }
    *mean = figure(sum / (l.orders - 1), NAN, s->count);
    *low = figure(least, NAN, s->count);
    *high = figure(most, NAN, s->count);
}

static void report(const void *own, const att_observed *shape, att_figure *figures)
{
    const state *s = own;
    const layout l = layout_of(shape);
    const double n = (double)s->count;
    for (int k = 0; k <= l.candidates; k++) {
        const double p = s->values[k] / n;
        *figures++ = figure(100 * p, n > 1 ? 100 * sqrt(p * (1 - p) * n / (n - 1)) : NAN, s->count);
    }
    for (int k = 1; l.orders > 1 && k <= l.candidates; k++, figures++)
        compare(s, l, k, figures, figures + l.candidates, figures + 2 * l.candidates);
    if (l.orders > 1)
        figures += 2 * l.candidates;
    for (int i = l.variants; i < l.values; i++)
        *figures++ = figure(s->values[i], NAN, s->count > 0 ? s->ranked : 0);
}

static const att_statistic_info statistics[] = {{ATT_SCORE_TOP1, "top-1", "%"},
                                                {"random", "top-1, mean over random orders", "%"},
                                                {"random low", "top-1, lowest of the random orders", "%"},
                                                {"random high", "top-1, highest of the random orders", "%"},
                                                {"score", "score of the ranking", "1"},
                                                {"rank", "place in the ranking, 1: skipped first", "1"},
                                                {NULL, NULL, NULL}};

static const att_statistic_scale scales[] = {
    {NULL, "the accuracy of the full network if skipped blocks do not matter; that of guessing if they do",
     "the formula"},
    {NULL, NULL, NULL}};

const att_instrument att_instrument_block_pruning = {
    .info = {.name = "block_pruning",
             .view = "step size",
             .title = "Pruned blocks",
             .summary = "accuracy when the blocks with the lowest stiffness are skipped",
             .unit = "%; score and rank: 1",
             .formula = "top-1 with x_{t+1} = x_t in the K blocks of the lowest score (skipped.K); score of block t: "
                        "the mean of TNS - TNS without zeta_t (tns), or of zeta_t (zeta)",
             .source = "TNS and zeta: Huang et al., ICCV 2023; their use as a score is ours",
             .scales = scales,
             .reading =
                 "without training; a ReLU after the addition stays. `first` images, evenly spread over the "
                 "data set, rank the blocks before the measurement; no class is used for it, and accuracy is "
                 "that of all images. In a training run (--measure), the first `first` images rank, and accuracy is "
                 "that of the others. The first step of each stage is never skipped and has no zeta in TNS. "
                 "zeta is nsi in its reading attention, with per=block that of nsi:per=block. Every ranking is "
                 "by the full network: scores are not computed again after a skip. `orders` random orders are "
                 "skipped on the same images, for comparison: a ranking that is no better than chance is above "
                 "the highest of R orders with probability 1/(R + 1) at most, for each K alone",
             .options = options,
             .option_count = sizeof options / sizeof *options,
             .needs_labels = true,
             .costly = true,
             .scores = true,
             .statistics = statistics},
    .request = request,
    .state = {size, observe, merge, report},
    .study = &pruning_study,
};
