/* Reads a square matrix from a text file. */
#include <string.h>

#include "base/core/error.h"
#include "base/core/text.h"
#include "lab/papers/ode/lines.h"

enum { MOST_BYTES = 4 << 20, MOST_NUMBER = 63 };
static const char separators[] = " \t,";

/* Reads the numbers of a line into row[0..ATT_ODE_MOST_MATRIX-1]. */
static att_status read_row(att_ode *ode, const att_ode_lines *lines, double *row, int *count)
{
    const char *at = lines->line;
    *count = 0;
    for (at += strspn(at, separators); *at; at += strspn(at, separators)) {
        size_t length = strcspn(at, separators);
        char number[MOST_NUMBER + 1] = "";
        if (*count == ATT_ODE_MOST_MATRIX)
            return att_fail(ode->context, ATT_ERR_FORMAT, "%s: line %d has more than %d numbers", lines->path,
                            lines->number, (int)ATT_ODE_MOST_MATRIX);
        memcpy(number, at, length < MOST_NUMBER ? length : MOST_NUMBER);
        if (length > MOST_NUMBER || !att_text_to_f64(number, &row[*count]))
            return att_fail(ode->context, ATT_ERR_FORMAT, "%s: line %d, column %d: \"%s\" is not a finite number",
                            lines->path, lines->number, (int)(at - lines->line) + 1, number);
        ++*count;
        at += length;
    }
    return ATT_OK;
}

att_status att_ode_read_matrix(att_ode *ode, const char *path, int *size, double **matrix)
{
    att_ode_lines lines;
    double first[ATT_ODE_MOST_MATRIX], row[ATT_ODE_MOST_MATRIX];
    int width = 0, rows = 0, count = 0;
    ATT_TRY(att_ode_lines_open(ode, path, MOST_BYTES, &lines));
    if (!att_ode_lines_next(&lines))
        return att_fail(ode->context, ATT_ERR_FORMAT, "%s has no numbers, expected a square matrix", path);
    ATT_TRY(read_row(ode, &lines, first, &width));
    size_t n = (size_t)width;
    ATT_TRY(att_ode_allocate_array(ode, n * n + 1, sizeof **matrix, matrix));
    memcpy(*matrix, first, n * sizeof *first);
    for (rows = 1; att_ode_lines_next(&lines); rows++) {
        ATT_TRY(read_row(ode, &lines, row, &count));
        if (rows == width || count != width)
            return att_fail(
                ode->context, ATT_ERR_FORMAT,
                "%s: line %d is row %d with %d numbers, expected %d rows of %d numbers, as in the first row", path,
                lines.number, rows + 1, count, width, width);
        memcpy(*matrix + (size_t)rows * n, row, n * sizeof *row);
    }
    if (rows != width || width == 0)
        return att_fail(ode->context, ATT_ERR_FORMAT, "%s has %d rows of %d numbers, expected a square matrix", path,
                        rows, width);
    *size = width;
    return ATT_OK;
}
