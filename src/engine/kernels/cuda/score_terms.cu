#include "engine/kernels/cuda/attention.cuh"
#include "engine/kernels/cuda/teams.cuh"

extern "C" {
#include "engine/ops/score_terms.h"
}

struct score_problem {
    attention_problem p;
    att_score_terms_attrs attrs;
    cuda_value part[ATT_SCORE_MOST_QUERY_PARTS + ATT_SCORE_MOST_KEY_PARTS];
    int64_t columns[ATT_SCORE_MOST_QUERY_PARTS + ATT_SCORE_MOST_KEY_PARTS]; /* of the parts */
    int terms;
};

/* Rows are queries of heads of samples. Writes the covariances over the keys of a query. */
struct score_query {
    score_problem s;
    double *covariances; /* [samples, H, N, terms, terms] */
    template <class Team> __device__ void operator()(int64_t row, Team team) const
    {
        const attention_problem &p = s.p;
        int64_t place = row % p.tokens;
        attention_head head = {(int)(row / p.tokens / p.heads), (int)(row / p.tokens % p.heads)};
        int window = (int)(place / p.queries), i = (int)(place % p.queries);
        attention_token q = attention_token_at(p, window, i);
        double mean[ATT_SCORE_MOST_TERMS] = {}, term[ATT_SCORE_MOST_TERMS], keys = 0;
        for (int j = team.first(); j < p.keys; j += team.step) {
            if (!find_terms(head, window, q, i, j, term))
                continue;
            keys++;
            for (int t = 0; t < s.terms; t++)
                mean[t] += term[t];
        }
        keys = team.sum(keys);
        for (int t = 0; t < s.terms; t++)
            mean[t] = team.sum(mean[t]) / keys;
        double sums[ATT_SCORE_MOST_TERMS * ATT_SCORE_MOST_TERMS] = {};
        for (int j = team.first(); j < p.keys; j += team.step) {
            if (!find_terms(head, window, q, i, j, term))
                continue;
            for (int e = 0; e < s.terms * s.terms; e++)
                sums[e] += (term[e / s.terms] - mean[e / s.terms]) * (term[e % s.terms] - mean[e % s.terms]);
        }
        for (int e = 0; e < s.terms * s.terms; e++) {
            double sum = team.sum(sums[e]);
            if (team.first() == 0)
                covariances[row * s.terms * s.terms + e] = sum / keys;
        }
    }
    /* The terms of a query and key j; false: the query does not attend to the key. */
    __device__ bool find_terms(attention_head head, int window, attention_token q, int i, int j, double *term) const
    {
        const attention_problem &p = s.p;
        attention_token k = attention_token_at(p, window, j);
        if (k.region != q.region || (p.causal && j > i))
            return false;
        for (int a = 0; a < s.attrs.query_parts; a++)
            for (int b = 0; b < s.attrs.key_parts; b++)
                *term++ = s.attrs.attention.scale * product(head, a, b, q.index, k.index);
        if (p.terms.relative) {
            int shift = attention_shift(p, q, k);
            *term++ = shift < 0 ? 0 : p.terms.relative[(int64_t)shift * p.heads + head.number];
        }
        if (p.terms.rows) {
            int64_t row = attention_axes_row(p, head, q.index);
            *term = k.y < 0 ? 0 : (double)p.terms.rows[row * p.height + k.y] + p.terms.columns[row * p.width + k.x];
        }
        return true;
    }
    __device__ double product(attention_head head, int a, int b, int query, int key) const
    {
        int of_keys = (int)s.attrs.query_parts + b;
        int64_t key_head = head.number / (s.p.heads / s.attrs.attention.key_heads);
        int64_t from_q =
            ((int64_t)head.sample * s.p.tokens + query) * s.columns[a] + s.attrs.q_offset + head.number * s.attrs.width;
        int64_t from_k = ((int64_t)head.sample * s.p.tokens + key) * s.columns[of_keys] + s.attrs.k_offset +
                         key_head * s.attrs.width;
        double sum = 0;
        for (int64_t c = 0; c < s.attrs.width; c++)
            sum += (double)load(s.part[a], from_q + c) * load(s.part[of_keys], from_k + c);
        return sum;
    }
};

/* Means over the queries. */
struct score_mean {
    const double *covariances;
    float *to;
    int64_t tokens, count;
    __device__ void operator()(int64_t e) const
    {
        double sum = 0;
        for (int64_t i = 0; i < tokens; i++)
            sum += covariances[(e / count * tokens + i) * count + e % count];
        to[e] = (float)(sum / tokens);
    }
};

static att_status prepare(const att_problem *problem, att_prepared *prepared)
{
    int64_t rows = problem->group * ATT_ATTRS(problem, score_terms)->attention.heads * problem->in[0].shape.dims[0];
    int64_t terms = problem->out[0].shape.dims[1];
    prepared->scratch_bytes = (size_t)(rows * terms * terms) * sizeof(double);
    return ATT_OK;
}

static att_status run(const att_call *call)
{
    const att_score_terms_attrs *attrs = ATT_ATTRS(call->problem, score_terms);
    int relative = att_score_relative(attrs), tokens = (int)call->problem->in[0].shape.dims[0];
    score_problem s = {};
    s.attrs = *attrs;
    attention_set_places(&attrs->attention, tokens, tokens, &s.p);
    for (int i = 0; i < relative; i++) {
        s.part[i] = cuda_in(call, i);
        s.columns[i] = call->problem->in[i].shape.dims[1];
    }
    s.p.terms.relative = (const float *)cuda_in(call, relative).data;
    s.p.terms.rows = (const float *)cuda_in(call, relative + 1).data;
    s.p.terms.columns = (const float *)cuda_in(call, relative + 2).data;
    s.p.terms.shifts = s.p.terms.relative ? (int)call->problem->in[relative].shape.dims[0] : 0;
    s.terms = (int)call->problem->out[0].shape.dims[1];
    double *covariances = (double *)call->scratch;
    int64_t heads = call->problem->group * s.p.heads;
    cuda_each_row(heads * tokens, s.p.keys, score_query{s, covariances});
    att_cuda_each(heads * s.terms * s.terms,
                  score_mean{covariances, (float *)call->out[0], tokens, (int64_t)s.terms * s.terms});
    return att_cuda_launched(call);
}

ATT_CUDA_PREPARED_KERNEL(score_terms, prepare, run, nullptr);
