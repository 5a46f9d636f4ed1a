#include "lab/papers/collapse/plain.h"

#include <math.h>
#include <string.h>

#include "lab/papers/collapse/gelu.h"

static double *take(double **at, size_t count)
{
    double *part = *at;
    *at += count;
    return part;
}

bool att_plain_create(att_arena *arena, const att_stack_options *o, att_plain *plain)
{
    size_t n = (size_t)o->tokens, d = (size_t)o->width, f = o->mlp ? (size_t)o->hidden : 0, h = (size_t)o->heads;
    size_t depth = (size_t)o->depth, most = f > d ? f : d, layer = 6 * n * d + h * n * n + 2 * n * f;
    double *at = att_arena_allocate(arena, (depth * layer + 5 * n * d + n * f + n + most * d) * sizeof *at);
    *plain = (att_plain){.options = o, .layers = att_arena_allocate(arena, depth * sizeof *plain->layers)};
    if (!at || !plain->layers)
        return false;
    for (size_t l = 0; l < depth; l++) {
        att_plain_layer *to = &plain->layers[l];
        double **tokens[] = {&to->x, &to->q, &to->k, &to->v, &to->mixed, &to->middle};
        for (int i = 0; i < 6; i++)
            *tokens[i] = take(&at, n * d);
        to->maps = take(&at, h * n * n);
        to->before = take(&at, n * f);
        to->after = take(&at, n * f);
    }
    double **tokens[] = {&plain->y, &plain->d_q, &plain->d_k, &plain->d_v, &plain->d_x};
    for (int i = 0; i < 5; i++)
        *tokens[i] = take(&at, n * d);
    plain->d_hidden = take(&at, n * f);
    plain->d_map = take(&at, n);
    plain->transposed = take(&at, most * d);
    return true;
}

static double dot(const double *x, const double *y, int count)
{
    double sum = 0;
    for (int i = 0; i < count; i++)
        sum += x[i] * y[i];
    return sum;
}

static void add(const double *x, double factor, double *to, int count)
{
    for (int i = 0; i < count; i++)
        to[i] += factor * x[i];
}

static void softmax(double *x, int count)
{
    double most = -INFINITY, sum = 0;
    for (int j = 0; j < count; j++)
        most = fmax(most, x[j]);
    for (int j = 0; j < count; j++)
        sum += x[j] = exp(x[j] - most);
    for (int j = 0; j < count; j++)
        x[j] /= sum;
}

/* The attention of query i of head h. */
static double *map_of(const att_stack_options *o, const att_plain_layer *l, int h, int i)
{
    size_t n = (size_t)o->tokens;
    return l->maps + ((size_t)h * n + (size_t)i) * n;
}

/* --- forward ------------------------------------------------------------------------------------------------------ */

static void attend(const att_stack_options *o, att_plain_layer *l)
{
    int n = o->tokens, d = o->width, width = d / o->heads;
    memset(l->mixed, 0, (size_t)n * (size_t)d * sizeof *l->mixed);
    for (int h = 0; h < o->heads; h++)
        for (int i = 0; i < n; i++) {
            double *map = map_of(o, l, h, i);
            for (int j = 0; j < n; j++)
                map[j] = dot(l->q + i * d + h * width, l->k + j * d + h * width, width) / sqrt(width);
            softmax(map, n);
            for (int j = 0; j < n; j++)
                add(l->v + j * d + h * width, map[j], l->mixed + i * d + h * width, width);
        }
}

void att_plain_forward(att_plain *p, int index, const att_stack_weights *w, const double *x)
{
    const att_stack_options *o = p->options;
    att_plain_layer *l = &p->layers[index];
    int n = o->tokens, d = o->width, f = o->hidden;
    memcpy(l->x, x, (size_t)n * (size_t)d * sizeof *x);
    att_product(l->x, n, d, w->q, d, l->q);
    att_product(l->x, n, d, w->k, d, l->k);
    att_product(l->x, n, d, w->v, d, l->v);
    attend(o, l);
    att_product(l->mixed, n, d, w->o, d, p->y);
    if (o->skip)
        add(l->x, 1, p->y, n * d);
    if (!o->mlp)
        return;
    memcpy(l->middle, p->y, (size_t)n * (size_t)d * sizeof *p->y);
    att_product(l->middle, n, d, w->fc1, f, l->before);
    for (int i = 0; i < n * f; i++)
        l->after[i] = l->before[i] * att_normal_cumulative(l->before[i]);
    att_product(l->after, n, f, w->fc2, d, p->y);
    if (o->skip)
        add(l->middle, 1, p->y, n * d);
}

/* --- backward ----------------------------------------------------------------------------------------------------- */

/* dw [inner, columns] = x' dy */
static void weight_gradient(const double *x, const double *dy, int rows, int inner, int columns, double *dw)
{
    memset(dw, 0, (size_t)inner * (size_t)columns * sizeof *dw);
    for (int i = 0; i < rows; i++)
        for (int k = 0; k < inner; k++)
            add(dy + i * columns, x[i * inner + k], dw + k * columns, columns);
}

/* dx = dy w', w [inner, columns] */
static void input_gradient(att_plain *p, const double *dy, const double *w, int inner, int columns, double *dx)
{
    for (int k = 0; k < inner; k++)
        for (int c = 0; c < columns; c++)
            p->transposed[c * inner + k] = w[k * columns + c];
    att_product(dy, p->options->tokens, columns, p->transposed, inner, dx);
}

/* The gradients of q, k and v from that of `mixed`, which is d_x. */
static void attend_backward(att_plain *p, const att_plain_layer *l)
{
    const att_stack_options *o = p->options;
    int n = o->tokens, d = o->width, width = d / o->heads;
    size_t size = (size_t)n * (size_t)d * sizeof(double);
    memset(p->d_q, 0, size);
    memset(p->d_k, 0, size);
    memset(p->d_v, 0, size);
    for (int h = 0; h < o->heads; h++)
        for (int i = 0; i < n; i++) {
            const double *map = map_of(o, l, h, i), *dy = p->d_x + i * d + h * width;
            double mean = 0;
            for (int j = 0; j < n; j++) {
                p->d_map[j] = dot(dy, l->v + j * d + h * width, width);
                mean += map[j] * p->d_map[j];
                add(dy, map[j], p->d_v + j * d + h * width, width);
            }
            for (int j = 0; j < n; j++) {
                double score = map[j] * (p->d_map[j] - mean) / sqrt(width);
                add(l->k + j * d + h * width, score, p->d_q + i * d + h * width, width);
                add(l->q + i * d + h * width, score, p->d_k + j * d + h * width, width);
            }
        }
}

static void perceptron_backward(att_plain *p, const att_plain_layer *l, const att_stack_weights *w, double *gradient)
{
    const att_stack_options *o = p->options;
    int n = o->tokens, d = o->width, f = o->hidden;
    weight_gradient(l->after, p->y, n, f, d, gradient + (size_t)d * (size_t)f);
    input_gradient(p, p->y, w->fc2, f, d, p->d_hidden);
    for (int i = 0; i < n * f; i++)
        p->d_hidden[i] *= att_gelu_slope(l->before[i]);
    weight_gradient(l->middle, p->d_hidden, n, d, f, gradient);
    input_gradient(p, p->d_hidden, w->fc1, d, f, p->d_x);
    if (o->skip)
        add(p->y, 1, p->d_x, n * d);
    memcpy(p->y, p->d_x, (size_t)n * (size_t)d * sizeof *p->y);
}

void att_plain_backward(att_plain *p, int index, const att_stack_weights *w, double *gradient)
{
    const att_stack_options *o = p->options;
    const att_plain_layer *l = &p->layers[index];
    int n = o->tokens, d = o->width;
    size_t square = (size_t)d * (size_t)d;
    if (o->mlp)
        perceptron_backward(p, l, w, gradient + 4 * square);
    weight_gradient(l->mixed, p->y, n, d, d, gradient + 3 * square);
    input_gradient(p, p->y, w->o, d, d, p->d_x);
    attend_backward(p, l);
    if (!o->skip)
        memset(p->y, 0, (size_t)n * (size_t)d * sizeof *p->y);
    const double *gradients[] = {p->d_q, p->d_k, p->d_v}, *weights[] = {w->q, w->k, w->v};
    for (int i = 0; i < 3; i++) {
        weight_gradient(l->x, gradients[i], n, d, d, gradient + (size_t)i * square);
        input_gradient(p, gradients[i], weights[i], d, d, p->d_x);
        add(p->d_x, 1, p->y, n * d);
    }
}
