/* Accuracy when the blocks with the lowest score are skipped. The images of a preview rank the blocks, and accuracy is
 * measured on all images. Without a preview, the first images rank the blocks, and accuracy is that of the others. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/memory.h"
#include "core/random.h"
#include "core/spread.h"
#include "core/text.h"
#include "measure/list.h"
#include "measure/skips.h"

enum { BY, FIRST, PER, SEED }; /* options */
enum { BY_TNS, BY_ZETA, BY_CHANCE };
static const char *const by_choices[] = {"tns", "zeta", "random", NULL};
static const att_detail options[] = {
    {.name = "by", .meaning = "what ranks the blocks", .high = BY_CHANCE, .choices = by_choices},
    {.name = "first", .meaning = "how many images rank the blocks", .start = 256, .low = 1, .high = 1e6, .whole = true},
    {.name = "per",
     .meaning = "what is a block: a residual addition or a block of the network",
     .high = ATT_PER_BLOCK,
     .choices = att_per_choices},
    {.name = "seed", .meaning = "seed of by=random", .start = 1, .high = 1e9, .whole = true}};

/* --- requests ----------------------------------------------------------------------------------------------------- */

/* Rows: the norms of all steps; then one with the number of images that ranked the blocks (0: the sample is not
 * measured), the right answers with the lowest 0 to `candidates` blocks skipped, the candidates' scores, and their
 * ranks. */
enum { RANKED, HITS, PER_CANDIDATE = 3 };

static int64_t row_of(int candidates)
{
    return HITS + 1 + (int64_t)PER_CANDIDATE * candidates;
}

static int candidates_of(int64_t row)
{
    return (int)(row - HITS - 1) / PER_CANDIDATE;
}

static bool is_candidate(const att_requests *requests, const att_residual_step *step)
{
    return !step->begins && att_requests_has_step(requests, step);
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
    int candidates = 0, steps = 0;
    if (att_graph_find_output(graph, "logits") == ATT_NONE)
        return att_requests_found_nothing(requests, "output named logits");
    for (att_residual_step step = {.node = -1}; att_step_next(graph, per, &step);) {
        att_requests_step_norms(requests, &step, ATT_DT_GATES);
        candidates += is_candidate(requests, &step);
        steps++;
    }
    if (steps > ATT_SKIPS_MOST_BLOCKS)
        return att_requests_fail(requests, "the network has %d residual additions, more than %d", steps,
                                 (int)ATT_SKIPS_MOST_BLOCKS);
    att_requests_study_row(requests, row_of(candidates), 0);
    for (int k = 0; k <= candidates; k++) {
        char node[32];
        snprintf(node, sizeof node, "skipped.%d", k);
        att_requests_series(requests, node, -1, "top1");
    }
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

static void shuffle_blocks(study *s, uint64_t seed)
{
    att_random random = att_random_from(att_random_key(seed, att_random_hash("block_pruning"), 0));
    for (int i = 0; i < s->count; i++)
        s->order[i] = i;
    for (int last = s->count - 1; last > 0; last--) {
        int other = (int)att_random_below(&random, last + 1), kept = s->order[last];
        s->order[last] = s->order[other];
        s->order[other] = kept;
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

/* Ranks the blocks and compiles the network with the lowest 0, 1, 2, ... of them skipped. */
static att_status rank_blocks(const att_study_job *job, study *s)
{
    const size_t n = (size_t)s->count;
    if (job->options[BY] == BY_CHANCE)
        shuffle_blocks(s, (uint64_t)job->options[SEED]);
    else
        sort_blocks(s);
    bool *skipped = att_allocate_array(job->context, (n + 1) * n, sizeof *skipped);
    if (!skipped)
        return att_fail_memory(job->context, (n + 1) * n, "an instrument");
    for (size_t k = 1; k <= n; k++)
        for (size_t i = 0; i < k; i++)
            skipped[k * n + (size_t)s->order[i]] = true;
    log_order(job, s);
    att_status status = att_skips_open(job, s->blocks, s->count, skipped, s->count + 1, &s->skips);
    att_free(job->context, skipped);
    return status;
}

static void write_ranks(const study *s, float *row)
{
    float *scores = row + HITS + s->count + 1, *ranks = scores + s->count;
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

/* values: the number of right answers with the lowest 0, 1, ... blocks skipped, then scores and ranks */
typedef struct state {
    int64_t count, ranked;
    double values[];
} state;

static int values_of(const att_observed *shape)
{
    return (int)shape->lengths[shape->count - 1] - HITS;
}

static size_t size(const att_observed *shape)
{
    return sizeof(state) + (size_t)values_of(shape) * sizeof(double);
}

static void observe(void *own, const att_observed *observed)
{
    state *s = own;
    const float *row = observed->rows[observed->count - 1];
    const int candidates = candidates_of(observed->lengths[observed->count - 1]);
    if (row[RANKED] == 0 || isnan(row[HITS]))
        return;
    s->count++;
    s->ranked = (int64_t)row[RANKED];
    for (int i = 0; i < values_of(observed); i++)
        s->values[i] = row[HITS + i] + (i <= candidates ? s->values[i] : 0);
}

static void merge(void *own, const void *later, const att_observed *shape)
{
    state *s = own;
    const state *more = later;
    const int candidates = candidates_of(shape->lengths[shape->count - 1]);
    if (more->count == 0)
        return;
    s->count += more->count;
    s->ranked = more->ranked;
    for (int i = 0; i < values_of(shape); i++)
        s->values[i] = more->values[i] + (i <= candidates ? s->values[i] : 0);
}

static void report(const void *own, const att_observed *shape, att_figure *figures)
{
    const state *s = own;
    const int candidates = candidates_of(shape->lengths[shape->count - 1]), accuracies = candidates + 1;
    for (int i = 0; i < values_of(shape); i++) {
        double n = (double)s->count, value = s->count > 0 ? s->values[i] : NAN;
        double mean = i < accuracies ? 100 * value / n : value, p = value / n;
        bool known = !isnan(value);
        figures[i] = (att_figure){.mean = mean,
                                  .deviation = i < accuracies && n > 1 ? 100 * sqrt(p * (1 - p) * n / (n - 1)) : NAN,
                                  .count = i < accuracies ? s->count : s->ranked,
                                  .undefined = known            ? 0
                                               : i < accuracies ? s->count
                                                                : s->ranked};
        if (s->count == 0)
            figures[i] = (att_figure){.mean = NAN, .deviation = NAN};
    }
}

static const att_statistic_info statistics[] = {{"top1", "top-1", "%"},
                                                {"score", "score of the ranking", "1"},
                                                {"rank", "place in the ranking, 1: skipped first", "1"},
                                                {NULL, NULL, NULL}};

static const att_statistic_scale scales[] = {
    {NULL, "the accuracy of the full network if skipped blocks do not matter; that of guessing if they do",
     "the formula"},
    {NULL, NULL, NULL}};

const att_instrument att_instrument_block_pruning = {
    .info = {.name = "block_pruning",
             .title = "Pruned blocks",
             .summary = "accuracy when the blocks with the lowest stiffness are skipped",
             .unit = "%; score and place: 1",
             .formula =
                 "top-1 with x_{t+1} = x_t in the K blocks of the lowest score (skipped.K); score of block t: the "
                 "mean of TNS - TNS without zeta_t (tns), or of zeta_t (zeta)",
             .source = "TNS and zeta: Huang et al., ICCV 2023; their use as a score is ours",
             .scales = scales,
             .reading =
                 "without training; a ReLU after the addition stays. `first` images, evenly spread over the data set, "
                 "rank the blocks before the measurement; no class is used for it, and accuracy is that of all images. "
                 "In a training (--measure), the first `first` images rank, and accuracy is that of the others. The "
                 "first step of each stage is never skipped and has no zeta in TNS. zeta is nsi in its reading "
                 "attention, with "
                 "per=block that of nsi:per=block. Every ranking is by the full network: scores are not computed "
                 "again after a skip. Compare with by=random and several seeds",
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
