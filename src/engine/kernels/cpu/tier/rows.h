/* kernels/cpu/tier/rows.h - sums over rows, column by column. */
#ifndef ATT_KERNELS_CPU_TIER_ROWS_H
#define ATT_KERNELS_CPU_TIER_ROWS_H

#include "engine/kernels/cpu/tier/floats.h"

enum { ROWS_BLOCK = 8 }; /* vectors of columns that are summed at a time, in registers */

/* A dense matrix that begins at element `first` of x. */
typedef struct rows_of {
    const void *x;
    int64_t first;
    bool is_bf16;
} rows_of;

/* Adds the sum over rows of x[row][column] (times y[row][column] unless y.x is NULL) to sum, for the columns [column,
 * column + width). width is at most ROWS_BLOCK * VW. */
ATT_INLINE void rows_add_block(rows_of x, rows_of y, int64_t rows, int64_t columns, int64_t column, int64_t width,
                               float *sum)
{
    vf total[ROWS_BLOCK] = {{0}};
    int64_t whole = width / VW, rest = width % VW;
    for (int64_t row = 0; row < rows; row++) {
        int64_t at = row * columns + column;
        for (int64_t i = 0; i < whole; i++) {
            vf value = v_get(x.x, x.first + at + i * VW, x.is_bf16);
            total[i] = y.x ? v_fma(value, v_get(y.x, y.first + at + i * VW, y.is_bf16), total[i]) : total[i] + value;
        }
        if (rest) {
            vf value = v_get_part(x.x, x.first + at + whole * VW, rest, x.is_bf16);
            total[whole] = y.x ? v_fma(value, v_get_part(y.x, y.first + at + whole * VW, rest, y.is_bf16), total[whole])
                               : total[whole] + value;
        }
    }
    for (int64_t i = 0; i < whole; i++)
        v_store(sum + column + i * VW, v_load(sum + column + i * VW) + total[i]);
    if (rest)
        v_store_part(sum + column + whole * VW, v_load_part(sum + column + whole * VW, rest) + total[whole], rest);
}

ATT_INLINE void rows_add_as(rows_of x, rows_of y, int64_t rows, int64_t columns, int64_t begin, int64_t end, float *sum)
{
    enum { WIDTH = ROWS_BLOCK * VW };
    int64_t column = begin;
    for (; column + WIDTH <= end; column += WIDTH)
        rows_add_block(x, y, rows, columns, column, WIDTH, sum);
    if (column < end)
        rows_add_block(x, y, rows, columns, column, end - column, sum);
}

ATT_INLINE void rows_add(const float *x, const float *y, int64_t rows, int64_t columns, int64_t begin, int64_t end,
                         float *sum)
{
    rows_add_as((rows_of){x, 0, false}, (rows_of){y, 0, false}, rows, columns, begin, end, sum);
}

#endif
