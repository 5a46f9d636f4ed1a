/* cells.h - cells of printed tables, and lines that explain a table. */
#ifndef CLI_CELLS_H
#define CLI_CELLS_H

#include "cli.h"

/* Width in characters: printf counts bytes, and "±" has two. */
int cli_width_of(const char *text);
/* The larger of `width` and the text's width. */
int cli_wider(int width, const char *text);
/* Print a cell of that width after two spaces. */
void cli_left(const char *text, int width);
void cli_right(const char *text, int width);

/* Formats "mean ± deviation": the deviation with two significant digits, and the mean to the same precision. The page
 * of a report does the same. NaN: "-". */
void cli_format_spread(double mean, double deviation, char *text, size_t size);

/* Formats "+mean [low, high]" with three significant digits of half the interval, ties rounded away from zero, as the
 * page of a report does; only the mean if there is no interval. */
void cli_format_interval(double mean, double low, double high, char *text, size_t size);

/* Prints a line such as "formula    ..." above a table, wrapped. */
void cli_explain(const char *what, const char *text);

#endif
