#include "lab/papers/experiments/hull_vertices.h"

#include <math.h>
#include <stdlib.h>

enum { TERMS = 12 }; /* six products of two numbers each: the rounded product, and its rounding error */

/* A sum without rounding: its terms do not overlap and increase in magnitude (Shewchuk 1997, grow-expansion). */
typedef struct exact_sum {
    double terms[TERMS];
    int count;
} exact_sum;

static void exact_add(exact_sum *sum, double x)
{
    for (int i = 0; i < sum->count; i++) {
        double term = sum->terms[i], total = x + term, part = total - x;
        sum->terms[i] = (x - (total - part)) + (term - part);
        x = total;
    }
    sum->terms[sum->count++] = x;
}

static void exact_add_product(exact_sum *sum, double a, double b)
{
    double product = a * b;
    exact_add(sum, fma(a, b, -product));
    exact_add(sum, product);
}

static int exact_sign(const exact_sum *sum)
{
    for (int i = sum->count - 1; i >= 0; i--)
        if (sum->terms[i] != 0)
            return sum->terms[i] > 0 ? 1 : -1;
    return 0;
}

int att_hull_side(const double a[2], const double b[2], const double c[2])
{
    exact_sum sum = {.count = 0};
    exact_add_product(&sum, a[0], b[1]);
    exact_add_product(&sum, -a[1], b[0]);
    exact_add_product(&sum, b[0], c[1]);
    exact_add_product(&sum, -b[1], c[0]);
    exact_add_product(&sum, c[0], a[1]);
    exact_add_product(&sum, -c[1], a[0]);
    return exact_sign(&sum);
}

static int compare_points(const void *a, const void *b)
{
    const double *p = *(const double *const *)a, *q = *(const double *const *)b;
    for (int axis = 0; axis < 2; axis++)
        if (p[axis] != q[axis])
            return p[axis] < q[axis] ? -1 : 1;
    return 0;
}

/* One chain of Andrew's algorithm (1979): the points that turn left. chain has room for `count` points. */
static int chain_of(const double *const *sorted, int count, int first, int step, const double **chain)
{
    int length = 0;
    for (int i = 0; i < count; i++) {
        const double *point = sorted[first + i * step];
        while (length >= 2 && att_hull_side(chain[length - 2], chain[length - 1], point) <= 0)
            length--;
        chain[length++] = point;
    }
    return length;
}

void att_hull_vertices(const double (*points)[2], int count, bool *vertex)
{
    const double *sorted[ATT_HULL_MOST], *chain[2 * ATT_HULL_MOST];
    for (int i = 0; i < count; i++)
        sorted[i] = points[i];
    qsort((void *)sorted, (size_t)count, sizeof *sorted, compare_points);
    int length = chain_of(sorted, count, 0, 1, chain);
    length += chain_of(sorted, count, count - 1, -1, chain + length);
    for (int i = 0; i < count; i++) {
        vertex[i] = false;
        for (int k = 0; k < length; k++)
            vertex[i] = vertex[i] || (points[i][0] == chain[k][0] && points[i][1] == chain[k][1]);
    }
}
