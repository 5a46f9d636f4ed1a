#include <math.h>
#include <string.h>

#include "lab/papers/collapse/layer.h"

/* The paper's proof assumes that scores of one row differ by at most this. */
static const double MILD = 1.256;
/* exp() of more overflows, or nearly. */
static const double MOST_EXPONENT = 600;
/* expm1(f y) / f = y to all digits for smaller f. */
static const double LEAST_FACTOR = 1e-20;
/* ln of the ratio of the shared scores to a query's own beyond which both are not added. */
static const double SHARP = 20;

bool att_attend_create(att_arena *arena, int count, int width, int heads, att_attend *work)
{
    size_t n = (size_t)count, d = (size_t)width, h = (size_t)heads, all = 5 * n * d + (6 + h) * n + 3 * d;
    double *at = att_arena_allocate(arena, all * sizeof *at);
    work->heads = heads;
    work->facts = att_arena_allocate(arena, (size_t)heads * sizeof *work->facts);
    if (!at || !work->facts)
        return false;
    double **matrices[] = {&work->queries, &work->keys, &work->values, &work->mixed, &work->part};
    double **columns[] = {&work->base, &work->shared, &work->others, &work->scores, &work->row, &work->spare};
    double **rows[] = {&work->query, &work->common, &work->step};
    for (int i = 0; i < 5; i++, at += n * d)
        *matrices[i] = at;
    for (int i = 0; i < 6; i++, at += n)
        *columns[i] = at;
    for (int i = 0; i < 3; i++, at += d)
        *rows[i] = at;
    work->row_logs = at;
    return true;
}

/* Writes ln softmax(x) to x. */
static void log_softmax(double *x, int count)
{
    double most = -INFINITY, sum = 0;
    for (int j = 0; j < count; j++)
        most = fmax(most, x[j]);
    for (int j = 0; j < count; j++)
        sum += exp(x[j] - most);
    const double log_sum = log(sum);
    for (int j = 0; j < count; j++)
        x[j] = x[j] - most - log_sum; /* the largest score may be too large to add log_sum to it */
}

/* The row q that all queries share: q = softmax(e^b c). The other keys may have weights below a double's range. */
typedef struct shared_row {
    int count, first; /* first: the key with the largest weight */
    const double *c;  /* NULL: q is uniform */
    double b;
    double *q, *others; /* q_j; for keys other than the first, q_j / e^others_log, at most 1 */
    double others_log;
} shared_row;

static void fill_shared(shared_row *row)
{
    double factor = exp(fmin(row->b, MOST_EXPONENT));
    for (int j = 0; j < row->count; j++)
        row->others[j] = row->c ? factor * row->c[j] : 0;
    log_softmax(row->others, row->count);
    row->first = 0;
    for (int j = 1; j < row->count; j++)
        row->first = row->others[j] > row->others[row->first] ? j : row->first;
    row->others_log = -INFINITY;
    for (int j = 0; j < row->count; j++)
        if (j != row->first)
            row->others_log = fmax(row->others_log, row->others[j]);
    for (int j = 0; j < row->count; j++) {
        row->q[j] = exp(row->others[j]);
        row->others[j] = exp(row->others[j] - row->others_log);
    }
}

static double largest(const double *x, int count)
{
    double most = 0;
    for (int j = 0; j < count; j++)
        most = fmax(most, fabs(x[j]));
    return most;
}

/* As depart_far(), for scores whose part e^b c is so much larger than e^a x that their sum would lose x. step: the
 * factor of x. ln p_j = ln q_j + step (x_j - x_first) - l is carried relative to others_log. */
static double depart_from_sharp(const shared_row *q, const double *x, double step, double *out, double *scratch)
{
    double most = 0, sum = 0, top = 0;
    for (int j = 0; j < q->count; j++) {
        scratch[j] = j == q->first ? -INFINITY : log(q->others[j]) + step * (x[j] - x[q->first]);
        most = fmax(most, q->others_log + scratch[j]);
    }
    for (int j = 0; j < q->count; j++)
        sum += j == q->first ? q->q[j] * exp(-most) : exp(q->others_log + scratch[j] - most);
    double l = most + log(sum);
    for (int j = 0; j < q->count; j++)
        top = fmax(top, scratch[j] - l);
    for (int j = 0; j < q->count; j++)
        out[j] = exp(scratch[j] - l - top) - q->others[j] * exp(-top);
    return q->others_log + top;
}

/* As departure(), for scores so far apart that p - q has no cancellation. Scores beyond a double's range are all
 * multiplied by one factor: one key has all the weight then. scratch: [count] */
static double depart_far(const shared_row *q, const double *x, double a, double *out, double *scratch)
{
    double b = q->c ? q->b : -INFINITY, scale = fmax(a, b), factor = exp(fmin(scale, MOST_EXPONENT));
    double base = exp(b - scale), step = exp(a - scale), top = q->others_log;
    if (q->c && b + log(largest(q->c, q->count)) - a - log(largest(x, q->count)) > SHARP)
        return depart_from_sharp(q, x, factor * step, out, scratch) - fmin(a, 0);
    for (int j = 0; j < q->count; j++)
        scratch[j] = factor * ((q->c ? base * q->c[j] : 0) + step * x[j]);
    log_softmax(scratch, q->count);
    for (int j = 0; j < q->count; j++)
        if (j != q->first)
            top = fmax(top, scratch[j]);
    for (int j = 0; j < q->count; j++)
        out[j] = exp(scratch[j] - top) - q->others[j] * exp(q->others_log - top);
    return top - fmin(a, 0);
}

/* Writes (p_j - q_j) / (e^min(a, 0) e^l), where p is softmax(e^b c + e^a x), and returns l. See
 * attscope/lab/collapse.h. p_j - q_j of the first key follows from the others: its own weight would cancel. */
static double departure(const shared_row *q, const double *x, double a, double *out, double *scratch)
{
    double factor = exp(fmin(a, MOST_EXPONENT)), unit = fmin(factor, 1), most = 0, z = 0, sum = 0,
           log_scale = q->others_log;
    for (int j = 0; j < q->count; j++)
        most = fmax(most, x[j] - x[q->first]);
    if (factor * most > MOST_EXPONENT) {
        log_scale = depart_far(q, x, a, out, scratch);
    } else {
        for (int j = 0; j < q->count; j++) {
            double y = x[j] - x[q->first];
            out[j] = factor > LEAST_FACTOR ? expm1(factor * y) / unit : y;
            z += q->q[j] * out[j];
        }
        for (int j = 0; j < q->count; j++)
            out[j] = q->others[j] * (out[j] - z) / (1 + unit * z);
    }
    for (int j = 0; j < q->count; j++)
        sum += j == q->first ? 0 : out[j];
    out[q->first] = -sum;
    return log_scale;
}

/* to[0..width-1] += sum_j weights_j rows[j, 0..width-1] */
static void add_rows(const double *weights, int count, const double *rows, int stride, int width, double *restrict to)
{
    for (int j = 0; j < count; j++)
        for (int c = 0; c < width; c++)
            to[c] += weights[j] * rows[(size_t)j * (size_t)stride + (size_t)c];
}

static double dot(const double *x, const double *y, int count)
{
    double sum = 0;
    for (int i = 0; i < count; i++)
        sum += x[i] * y[i];
    return sum;
}

/* Scales of the scores. */
typedef struct scales {
    double base, score; /* ln of the factors of c and of E */
} scales;

/* The shared row of a head, and sum_j (q_j - 1/n) R_j W_V in `step`, without the factor e^min(base, 0). */
static shared_row share(att_attend *work, int from, int width, const att_tokens *u, const scales *by)
{
    int n = u->count, d = u->width;
    for (int j = 0; j < n; j++)
        work->base[j] = dot(work->query + from, work->keys + j * d + from, width) / sqrt(width);
    shared_row row = {.count = n, .q = work->shared, .others = work->others};
    fill_shared(&row);
    double log_scale = departure(&row, work->base, by->base, work->row, work->spare);
    for (int j = 0; n > 1 && j < n; j++)
        work->row[j] *= exp(log_scale);
    add_rows(work->row, n, work->values + from, d, width, work->step + from);
    row.c = work->base;
    row.b = by->base;
    fill_shared(&row);
    return row;
}

/* Departures of the rows from q, applied to the values; work->row_logs receives their scales. */
static void depart(att_attend *work, int head, int width, const att_tokens *u, const scales *by)
{
    int n = u->count, d = u->width, from = head * width;
    att_head_facts *facts = &work->facts[head];
    const shared_row shared = share(work, from, width, u, by);
    for (int i = 0; i < n; i++) {
        double least = INFINITY, most = -INFINITY;
        for (int j = 0; j < n; j++) {
            work->scores[j] = dot(work->queries + i * d + from, work->keys + j * d + from, width) / sqrt(width);
            least = fmin(least, work->scores[j]);
            most = fmax(most, work->scores[j]);
        }
        facts->spread_sum += most - least;
        facts->spread_max = fmax(facts->spread_max, most - least);
        facts->mild_rows += exp(by->score) * (most - least) <= MILD || most == least;
        work->row_logs[head * n + i] = departure(&shared, work->scores, by->score, work->row, work->spare);
        add_rows(work->row, n, work->values + from, d, width, work->mixed + i * d + from);
    }
}

/* Gives all rows of all heads the largest of their scales, and returns that. */
static double align(att_attend *work, int n, int d)
{
    double top = -INFINITY;
    for (int i = 0; i < work->heads * n; i++)
        top = fmax(top, work->row_logs[i]);
    int width = d / work->heads;
    for (int i = 0; top > -INFINITY && i < work->heads * n; i++) {
        double factor = exp(work->row_logs[i] - top), *row = work->mixed + i % n * d + i / n * width;
        for (int c = 0; c < width; c++)
            row[c] *= factor;
    }
    return top;
}

/* The head's own output, whose norms its bound is about, added to y. */
static void project(att_attend *work, int from, int width, const double *o, att_tokens *y, att_head_facts *facts)
{
    int n = y->count, d = y->width;
    for (int i = 0; i < n; i++) {
        double *to = work->part + i * d;
        memset(to, 0, (size_t)d * sizeof *to);
        add_rows(work->mixed + i * d + from, width, o + from * d, d, d, to);
    }
    for (int i = 0; i < n * d; i++)
        y->rest[i] += work->part[i];
    for (int c = 0; c < d; c++) {
        double mean = 0;
        for (int i = 0; i < n; i++)
            mean += work->part[i * d + c] / n;
        for (int i = 0; i < n; i++)
            work->part[i * d + c] -= mean;
    }
    facts->output = att_norms_of(work->part, n, d);
}

/* The query of the mean: m W_Q + b_Q, up to the factor that is returned as a logarithm. */
static double query_of_mean(att_attend *work, const att_stack_weights *w, const att_tokens *u)
{
    double scale = u->mean_log;
    att_product(u->mean, 1, u->width, w->q, u->width, work->query);
    if (w->q_bias)
        att_scaled_add(work->query, &scale, w->q_bias, 0, u->width);
    return scale + att_scaled_normalise(work->query, u->width);
}

/* y's mean: (m W_V + b_V + the change by attention that is not uniform) W_O + b_O */
static void join_means(att_attend *work, const att_stack_weights *w, const att_tokens *u, double change, att_tokens *y)
{
    double scale = u->mean_log;
    att_product(u->mean, 1, u->width, w->v, u->width, work->common);
    if (w->v_bias)
        att_scaled_add(work->common, &scale, w->v_bias, 0, u->width);
    att_scaled_add(work->common, &scale, work->step, change, u->width);
    att_product(work->common, 1, u->width, w->o, u->width, y->mean);
    y->mean_log = scale;
    if (w->o_bias)
        att_scaled_add(y->mean, &y->mean_log, w->o_bias, 0, u->width);
}

void att_attend_run(att_attend *work, const att_stack_weights *w, const att_tokens *u, att_tokens *y)
{
    int n = u->count, d = u->width, width = d / work->heads;
    double rest = u->rest_log.log;
    const scales by = {query_of_mean(work, w, u) + rest, 2 * rest};
    att_product(u->rest, n, d, w->q, d, work->queries);
    att_product(u->rest, n, d, w->k, d, work->keys);
    att_product(u->rest, n, d, w->v, d, work->values);
    memset(work->mixed, 0, (size_t)n * (size_t)d * sizeof *work->mixed);
    memset(work->step, 0, (size_t)d * sizeof *work->step);
    memset(y->rest, 0, (size_t)n * (size_t)d * sizeof *y->rest);
    for (int h = 0; h < work->heads; h++) {
        work->facts[h] = (att_head_facts){.mild_rows = 0};
        depart(work, h, width, u, &by);
    }
    work->output_scale = align(work, n, d);
    for (int h = 0; h < work->heads; h++)
        project(work, h * width, width, w->o, y, &work->facts[h]);
    y->rest_log = att_log_product(rest < 0 ? 3 : 1, u->rest_log, 0, att_log_of(0), work->output_scale);
    join_means(work, w, u, rest + fmin(by.base, 0), y);
    att_tokens_settle(y);
}
