/* rotary, cos_sin, cosine_heads, shift_scores, axis_terms, window_pad and window_crop: what attention does to its
 * operands and scores besides products. */
#include "engine/kernels/cuda/ops.cuh"
#include "engine/kernels/cuda/teams.cuh"

extern "C" {
#include "engine/ops/axis_terms.h"
#include "engine/ops/cosine_heads.h"
#include "engine/ops/rotary.h"
}

/* --- rotary ------------------------------------------------------------------------------------------------------- */

struct rotary_table {
    const float *numbers; /* [tokens - prefix, entries, width]: cosines, then sines */
    att_rotary_attrs attrs;
    att_rotary_shape shape;
    /* Columns of the two channels of pair i of a head. */
    __device__ void pair(int64_t head, int64_t i, int64_t *a, int64_t *b) const
    {
        int64_t half = shape.width / 2, begin = head * shape.width;
        *a = begin + (attrs.halves ? i : 2 * i);
        *b = begin + (attrs.halves ? i + half : 2 * i + 1);
    }
    __device__ int64_t entry(int64_t token, int64_t head) const
    {
        return ((token - attrs.prefix) * shape.entries + head % shape.entries) * shape.width;
    }
};

static rotary_table table_of(const att_call *call)
{
    return {(const float *)call->in[1], *ATT_ATTRS(call->problem, rotary),
            att_rotary_shape_of(&call->problem->in[0], &call->problem->in[1])};
}

/* Rows are tokens. sign: -1 turns back */
struct rotary_row {
    rotary_table table;
    cuda_value x, y;
    float sign;
    template <class Team> __device__ void operator()(int64_t row, Team team) const
    {
        const att_rotary_shape &s = table.shape;
        int64_t token = row % s.tokens, begin = row * s.columns, half = s.width / 2;
        int64_t turned = token < table.attrs.prefix ? 0 : table.attrs.heads;
        for (int64_t c = turned * s.width + team.first(); c < s.columns; c += team.step)
            store(y, begin + c, load(x, begin + c));
        for (int64_t e = team.first(); e < turned * half; e += team.step) {
            int64_t head = e / half, i = e % half, at = table.entry(token, head) + i, a, b;
            table.pair(head, i, &a, &b);
            float left = load(x, begin + a), right = load(x, begin + b);
            float cosine = table.numbers[at], sine = sign * table.numbers[at + half];
            store(y, begin + a, left * cosine - right * sine);
            store(y, begin + b, right * cosine + left * sine);
        }
    }
};

static att_status run_rotary(const att_call *call)
{
    rotary_table table = table_of(call);
    cuda_each_row(att_cuda_rows(call, 0), table.shape.columns,
                  rotary_row{table, cuda_in(call, 0), cuda_out(call, 0), 1});
    return att_cuda_launched(call);
}

ATT_CUDA_KERNEL(rotary, run_rotary);

/* A pair of numbers of the table, whose gradient is a sum over samples and heads. */
struct rotary_numbers {
    rotary_table table;
    cuda_value dy, x, gradient;
    int64_t samples;
    __device__ void operator()(int64_t e) const
    {
        const att_rotary_shape &s = table.shape;
        int64_t half = s.width / 2, i = e % half, entry = e / half % s.entries;
        int64_t token = e / half / s.entries + table.attrs.prefix;
        float cosine = 0, sine = 0;
        for (int64_t sample = 0; sample < samples; sample++)
            for (int64_t head = entry; head < table.attrs.heads; head += s.entries) {
                int64_t begin = (sample * s.tokens + token) * s.columns, a, b;
                table.pair(head, i, &a, &b);
                float da = load(dy, begin + a), db = load(dy, begin + b);
                float left = load(x, begin + a), right = load(x, begin + b);
                cosine += da * left + db * right;
                sine += db * left - da * right;
            }
        int64_t at = table.entry(token, entry) + i;
        add_to(gradient, at, cosine);
        add_to(gradient, at + half, sine);
    }
};

static att_status run_rotary_grad(const att_call *call)
{
    enum { DY, TABLE, X };
    rotary_table table = table_of(call);
    const att_rotary_shape &s = table.shape;
    if (call->out[0])
        cuda_each_row(att_cuda_rows(call, DY), s.columns, rotary_row{table, cuda_in(call, DY), cuda_out(call, 0), -1});
    cuda_value x = cuda_in(call, X);
    if (x.data && call->out[1])
        att_cuda_each((s.tokens - table.attrs.prefix) * s.entries * (s.width / 2),
                      rotary_numbers{table, cuda_in(call, DY), x, cuda_out(call, 1), call->problem->group});
    return att_cuda_launched(call);
}

ATT_CUDA_KERNEL(rotary_grad, run_rotary_grad);

/* --- cos_sin ------------------------------------------------------------------------------------------------------ */

struct cos_sin_element {
    cuda_value x, y;
    int64_t columns;
    __device__ void operator()(int64_t e) const
    {
        int64_t cosine = e / columns * 2 * columns + e % columns;
        float angle = load(x, e), c, s;
        sincosf(angle, &s, &c);
        store(y, cosine, c);
        store(y, cosine + columns, s);
    }
};

static att_status run_cos_sin(const att_call *call)
{
    att_cuda_each(att_cuda_in_count(call, 0),
                  cos_sin_element{cuda_in(call, 0), cuda_out(call, 0), att_cuda_dim(&call->problem->in[0], -1)});
    return att_cuda_launched(call);
}

ATT_CUDA_KERNEL(cos_sin, run_cos_sin);

struct cos_sin_grad_element {
    cuda_value dy, y, dx;
    int64_t columns;
    __device__ void operator()(int64_t e) const
    {
        int64_t cosine = e / columns * 2 * columns + e % columns, sine = cosine + columns;
        store(dx, e, load(dy, sine) * load(y, cosine) - load(dy, cosine) * load(y, sine));
    }
};

static att_status run_cos_sin_grad(const att_call *call)
{
    att_cuda_each(att_cuda_in_count(call, 0) / 2,
                  cos_sin_grad_element{cuda_in(call, 0), cuda_in(call, 1), cuda_out(call, 0),
                                       att_cuda_dim(&call->problem->in[0], -1) / 2});
    return att_cuda_launched(call);
}

ATT_CUDA_KERNEL(cos_sin_grad, run_cos_sin_grad);

/* --- cosine_heads ------------------------------------------------------------------------------------------------- */

struct cosine_shape {
    int64_t heads, width, columns;
    int64_t logits; /* number of heads with logits */
    const float *logit;
    float eps;
    __device__ float factor(int64_t head) const
    {
        const float limit = (float)ATT_COSINE_HEADS_LIMIT;
        return head < logits ? expf(logit[head] > limit ? limit : logit[head]) : 1;
    }
};

static cosine_shape cosine_shape_of(const att_call *call)
{
    enum { X, LOGITS };
    const att_cosine_heads_attrs *attrs = ATT_ATTRS(call->problem, cosine_heads);
    const float *logit = (const float *)cuda_in(call, LOGITS).data;
    return {att_cosine_heads_count(attrs),
            attrs->width,
            call->problem->in[X].shape.dims[1],
            logit ? att_cuda_in_count(call, LOGITS) : 0,
            logit,
            (float)attrs->eps};
}

/* Rows are heads of tokens. */
struct cosine_head {
    cosine_shape shape;
    cuda_value x, y;
    template <class Team> __device__ void operator()(int64_t row, Team team) const
    {
        int64_t head = row % shape.heads, begin = row / shape.heads * shape.columns + head * shape.width;
        float squares = 0;
        for (int64_t c = team.first(); c < shape.width; c += team.step)
            squares = fmaf(load(x, begin + c), load(x, begin + c), squares);
        float norm = sqrtf(team.sum(squares)), factor = shape.factor(head);
        float divisor = norm < shape.eps ? shape.eps : norm; /* NaN stays NaN */
        for (int64_t c = team.first(); c < shape.width; c += team.step)
            store(y, begin + c, load(x, begin + c) / divisor * factor);
    }
};

/* Rows are tokens: columns behind the heads are copied. */
struct cosine_rest {
    cosine_shape shape;
    cuda_value x, y;
    template <class Team> __device__ void operator()(int64_t row, Team team) const
    {
        for (int64_t c = shape.heads * shape.width + team.first(); c < shape.columns; c += team.step)
            store(y, row * shape.columns + c, load(x, row * shape.columns + c));
    }
};

static void copy_rest(const cosine_shape &shape, int64_t tokens, cuda_value x, cuda_value y)
{
    int64_t rest = shape.columns - shape.heads * shape.width;
    if (rest > 0)
        cuda_each_row(tokens, rest, cosine_rest{shape, x, y});
}

static att_status run_cosine_heads(const att_call *call)
{
    cosine_shape shape = cosine_shape_of(call);
    int64_t tokens = att_cuda_rows(call, 0);
    cuda_each_row(tokens * shape.heads, shape.width, cosine_head{shape, cuda_in(call, 0), cuda_out(call, 0)});
    copy_rest(shape, tokens, cuda_in(call, 0), cuda_out(call, 0));
    return att_cuda_launched(call);
}

ATT_CUDA_KERNEL(cosine_heads, run_cosine_heads);

/* products: [tokens, heads], gradients of the logits from each token, or NULL */
struct cosine_grad_head {
    cosine_shape shape;
    cuda_value x, dy, dx;
    float *products;
    template <class Team> __device__ void operator()(int64_t row, Team team) const
    {
        int64_t head = row % shape.heads, begin = row / shape.heads * shape.columns + head * shape.width;
        float squares = 0, product = 0;
        for (int64_t c = team.first(); c < shape.width; c += team.step) {
            squares = fmaf(load(x, begin + c), load(x, begin + c), squares);
            product = fmaf(load(x, begin + c), load(dy, begin + c), product);
        }
        float norm = sqrtf(team.sum(squares)), factor = shape.factor(head);
        bool clamped = norm <= shape.eps;
        float divisor = clamped ? shape.eps : norm;
        product = team.sum(product) / divisor;
        if (products && team.first() == 0)
            products[row] = factor * product;
        for (int64_t c = team.first(); dx.data && c < shape.width; c += team.step) {
            float across = clamped ? 0 : load(x, begin + c) / divisor * product;
            store(dx, begin + c, factor * (load(dy, begin + c) - across) / divisor);
        }
    }
};

struct cosine_product {
    const float *products;
    int64_t heads;
    __device__ void operator()(int64_t row, int64_t column, float numbers[1]) const
    {
        numbers[0] = products[row * heads + column];
    }
};

/* Logits beyond the limit have no gradient. */
struct cosine_logits {
    cosine_shape shape;
    cuda_value gradient;
    __device__ void operator()(int64_t head, const float sums[1]) const
    {
        if (head < shape.logits && shape.logit[head] <= (float)ATT_COSINE_HEADS_LIMIT)
            add_to(gradient, head, sums[0]);
    }
};

static att_status prepare_cosine(const att_problem *problem, att_prepared *prepared)
{
    const att_desc *x = &problem->in[0];
    int64_t heads = att_cosine_heads_count(ATT_ATTRS(problem, cosine_heads));
    int64_t tokens = att_problem_count(problem, x) / x->shape.dims[1];
    prepared->scratch_bytes = (size_t)(tokens * heads) * sizeof(float) + att_cuda_columns_scratch(tokens, heads, 1);
    return ATT_OK;
}

static att_status run_cosine_grad(const att_call *call)
{
    enum { X, LOGITS, DY };
    cosine_shape shape = cosine_shape_of(call);
    int64_t tokens = att_cuda_rows(call, X);
    float *scratch = (float *)call->scratch, *products = shape.logit && call->out[1] ? scratch : nullptr;
    cuda_value dx = cuda_out(call, 0);
    cuda_each_row(tokens * shape.heads, shape.width,
                  cosine_grad_head{shape, cuda_in(call, X), cuda_in(call, DY), dx, products});
    if (dx.data)
        copy_rest(shape, tokens, cuda_in(call, DY), dx);
    if (products)
        att_cuda_columns<1>(tokens, shape.heads, scratch + tokens * shape.heads, cosine_product{products, shape.heads},
                            cosine_logits{shape, cuda_out(call, 1)});
    return att_cuda_launched(call);
}

ATT_CUDA_PREPARED_KERNEL(cosine_heads_grad, prepare_cosine, run_cosine_grad, nullptr);

/* --- shift_scores ------------------------------------------------------------------------------------------------- */

struct shift_score {
    att_shift_scores_attrs attrs;
    const float *table; /* [samples, rows, heads] */
    float *y;           /* [samples, heads, T, T] */
    int64_t rows, heads;
    __device__ void operator()(int64_t e) const
    {
        int64_t tokens = att_shift_tokens(&attrs), matrix = e / tokens / tokens;
        int64_t shift = att_shift_between(&attrs, e / tokens % tokens, e % tokens);
        y[e] = shift < rows ? table[(matrix / heads * rows + shift) * heads + matrix % heads] : 0;
    }
};

static att_status run_shift_scores(const att_call *call)
{
    const int64_t *dims = call->problem->in[0].shape.dims;
    att_cuda_each(att_cuda_out_count(call, 0),
                  shift_score{*ATT_ATTRS(call->problem, shift_scores), (const float *)call->in[0],
                              (float *)call->out[0], dims[0], dims[1]});
    return att_cuda_launched(call);
}

ATT_CUDA_KERNEL(shift_scores, run_shift_scores);

/* Rows are numbers of the tables, each with the sum over all pairs of tokens whose shift it is: for each query there
 * is at most one key on the grid. */
struct shift_number {
    att_shift_scores_attrs attrs;
    const float *dy;
    float *gradient;
    int64_t rows, heads;
    template <class Team> __device__ void operator()(int64_t number, Team team) const
    {
        int64_t tokens = att_shift_tokens(&attrs), shift = number / heads % rows;
        const float *matrix = dy + (number / heads / rows * heads + number % heads) * tokens * tokens;
        float sum = 0;
        for (int64_t i = team.first(); i < tokens; i += team.step)
            sum += sum_of_query(matrix + i * tokens, shift, i, tokens);
        sum = team.sum(sum);
        if (team.first() == 0)
            gradient[number] = sum;
    }
    __device__ float sum_of_query(const float *row, int64_t shift, int64_t i, int64_t tokens) const
    {
        int64_t prefix = attrs.prefix, width = attrs.width, kind = shift - att_shift_count(&attrs);
        float sum = 0;
        if (kind >= 0) { /* of a prefix token as query, as key, as both */
            bool of_query = kind != 1, of_key = kind != 0;
            if ((i < prefix) != of_query)
                return 0;
            for (int64_t j = of_key ? 0 : prefix; j < (of_key ? prefix : tokens); j++)
                sum += row[j];
            return sum;
        }
        int64_t y = (i - prefix) / width - (shift / (2 * width - 1) - attrs.height + 1);
        int64_t x = (i - prefix) % width - (shift % (2 * width - 1) - width + 1);
        bool inside = i >= prefix && y >= 0 && y < attrs.height && x >= 0 && x < width;
        return inside ? row[prefix + y * width + x] : 0;
    }
};

static att_status run_shift_scores_grad(const att_call *call)
{
    att_shift_scores_attrs attrs = *ATT_ATTRS(call->problem, shift_scores);
    int64_t heads = call->problem->in[0].shape.dims[0];
    cuda_each_row(att_cuda_out_count(call, 0), att_shift_tokens(&attrs),
                  shift_number{attrs, (const float *)call->in[0], (float *)call->out[0], attrs.rows, heads});
    return att_cuda_launched(call);
}

ATT_CUDA_KERNEL(shift_scores_grad, run_shift_scores_grad);

/* --- axis_terms --------------------------------------------------------------------------------------------------- */

enum { ROWS, COLUMNS, AXES };

/* q [N, C], and the table of an axis [2 L - 1, numbers]; the table of columns belongs to the last numbers of a head. */
struct axis_shape {
    att_axis_terms_attrs attrs;
    int64_t tokens, columns; /* columns: of q */
    int64_t numbers[AXES];
    __device__ int64_t length(int axis) const
    {
        return axis == ROWS ? attrs.grid_h : attrs.grid_w;
    }
    /* First column of a head that the table belongs to. */
    __device__ int64_t first(int axis) const
    {
        return axis == ROWS ? 0 : attrs.width - numbers[axis];
    }
    /* Place of a token on an axis; negative for prefix tokens. */
    __device__ int64_t place(int axis, int64_t token) const
    {
        int64_t place = token - attrs.prefix;
        return place < 0 ? -1 : axis == ROWS ? place / attrs.grid_w : place % attrs.grid_w;
    }
};

/* first: the node's input q. */
static axis_shape axis_shape_of(const att_call *call, int first)
{
    const att_desc *in = call->problem->in + first;
    return {*ATT_ATTRS(call->problem, axis_terms),
            in[0].shape.dims[0],
            in[0].shape.dims[1],
            {in[1].shape.dims[1], in[2].shape.dims[1]}};
}

/* One number of the result of an axis: [samples, N, H, L]. */
struct axis_term {
    axis_shape shape;
    int axis;
    cuda_value q, table, y;
    __device__ void operator()(int64_t e) const
    {
        int64_t length = shape.length(axis), key = e % length, head = e / length % shape.attrs.heads;
        int64_t row = e / length / shape.attrs.heads, place = shape.place(axis, row % shape.tokens);
        int64_t from = row * shape.columns + head * shape.attrs.width + shape.first(axis);
        int64_t entry = (place - key + length - 1) * shape.numbers[axis];
        float sum = 0;
        for (int64_t c = 0; c < shape.numbers[axis] && place >= 0; c++)
            sum = fmaf(load(q, from + c), load(table, entry + c), sum);
        store(y, e, (float)shape.attrs.scale * sum);
    }
};

static att_status run_axis_terms(const att_call *call)
{
    axis_shape shape = axis_shape_of(call, 0);
    for (int axis = 0; axis < AXES; axis++)
        if (call->out[axis])
            att_cuda_each(att_cuda_out_count(call, axis),
                          axis_term{shape, axis, cuda_in(call, 0), cuda_in(call, 1 + axis), cuda_out(call, axis)});
    return att_cuda_launched(call);
}

ATT_CUDA_KERNEL(axis_terms, run_axis_terms);

struct axis_gradients {
    axis_shape shape;
    cuda_value dy[AXES], q, table[AXES]; /* dy: absent if nobody reads the result */
};

/* One number of the gradient of q. */
struct axis_dq {
    axis_gradients from;
    cuda_value dq;
    __device__ void operator()(int64_t e) const
    {
        const axis_shape &s = from.shape;
        int64_t column = e % s.columns, row = e / s.columns, head = column / s.attrs.width;
        float sum = 0;
        for (int axis = 0; axis < AXES && head < s.attrs.heads; axis++) {
            int64_t length = s.length(axis), place = s.place(axis, row % s.tokens);
            int64_t c = column % s.attrs.width - s.first(axis), at = (row * s.attrs.heads + head) * length;
            if (!from.dy[axis].data || place < 0 || c < 0 || c >= s.numbers[axis])
                continue;
            for (int64_t key = 0; key < length; key++)
                sum = fmaf(load(from.dy[axis], at + key),
                           load(from.table[axis], (place - key + length - 1) * s.numbers[axis] + c), sum);
        }
        store(dq, e, (float)s.attrs.scale * sum);
    }
};

/* Rows are numbers of a sample's gradient of a table: sums over tokens and heads. */
struct axis_number {
    axis_gradients from;
    int axis;
    cuda_value gradient;
    template <class Team> __device__ void operator()(int64_t number, Team team) const
    {
        const axis_shape &s = from.shape;
        int64_t length = s.length(axis), c = number % s.numbers[axis], rows = 2 * length - 1;
        int64_t shift = number / s.numbers[axis] % rows, sample = number / s.numbers[axis] / rows;
        float sum = 0;
        for (int64_t i = team.first(); from.dy[axis].data && i < s.tokens * s.attrs.heads; i += team.step) {
            int64_t token = i / s.attrs.heads, head = i % s.attrs.heads, place = s.place(axis, token);
            int64_t key = place - shift + length - 1, row = sample * s.tokens + token;
            if (place < 0 || key < 0 || key >= length)
                continue;
            sum = fmaf(load(from.dy[axis], (row * s.attrs.heads + head) * length + key),
                       load(from.q, row * s.columns + head * s.attrs.width + s.first(axis) + c), sum);
        }
        sum = team.sum(sum);
        if (team.first() == 0)
            store(gradient, number, (float)s.attrs.scale * sum);
    }
};

static att_status run_axis_terms_grad(const att_call *call)
{
    enum { Q = 2, TABLE };
    axis_gradients from = {axis_shape_of(call, Q),
                           {cuda_in(call, ROWS), cuda_in(call, COLUMNS)},
                           cuda_in(call, Q),
                           {cuda_in(call, TABLE), cuda_in(call, TABLE + 1)}};
    if (call->out[0])
        att_cuda_each(att_cuda_out_count(call, 0), axis_dq{from, cuda_out(call, 0)});
    for (int axis = 0; axis < AXES; axis++)
        if (call->out[1 + axis])
            cuda_each_row(att_cuda_out_count(call, 1 + axis), from.shape.tokens,
                          axis_number{from, axis, cuda_out(call, 1 + axis)});
    return att_cuda_launched(call);
}

ATT_CUDA_KERNEL(axis_terms_grad, run_axis_terms_grad);

/* --- window_pad --------------------------------------------------------------------------------------------------- */

/* Rows are tokens of the result. */
struct window_row {
    att_window_pad_attrs attrs;
    cuda_value x, y;
    int64_t from, to, columns; /* tokens of x and y */
    bool pads;
    template <class Team> __device__ void operator()(int64_t row, Team team) const
    {
        int64_t token = pads ? att_window_pad_source(&attrs, row % to) : att_window_pad_place(&attrs, row % to);
        int64_t begin = (row / to * from + token) * columns;
        for (int64_t c = team.first(); c < columns; c += team.step)
            store(y, row * columns + c, token < 0 ? 0 : load(x, begin + c));
    }
};

static att_status run_window(const att_call *call, bool pads)
{
    const int64_t *x = call->problem->in[0].shape.dims, *y = call->problem->out[0].shape.dims;
    cuda_each_row(
        call->problem->group * y[0], y[1],
        window_row{*ATT_ATTRS(call->problem, window_pad), cuda_in(call, 0), cuda_out(call, 0), x[0], y[0], y[1], pads});
    return att_cuda_launched(call);
}

static att_status run_window_pad(const att_call *call)
{
    return run_window(call, true);
}

static att_status run_window_crop(const att_call *call)
{
    return run_window(call, false);
}

ATT_CUDA_KERNEL(window_pad, run_window_pad);
ATT_CUDA_KERNEL(window_crop, run_window_crop);
