/* report/page.h - HTML pages around data, made from web/ and D3 when the library is built (cmake/page.cmake).
 *
 * A page with data consists of: page.before, the data as JSON without the character '<', att_page_middle, page.after.
 * No other text of a page depends on what is shown. */
#ifndef ATT_REPORT_PAGE_H
#define ATT_REPORT_PAGE_H

#include <attscope/context.h>

#include "base/core/text.h"

typedef struct att_page {
    const unsigned char *before, *after;
    size_t before_size, after_size;
} att_page;

/* The report, and the pages of `attscope serve`: the list of runs, the charts of a running training, the attention of a
 * checkpoint on images, the effect of its parts, the operations of a network, and lessons on papers. */
extern const att_page att_page_report, att_page_start, att_page_live, att_page_explore, att_page_network,
    att_page_lessons, att_page_ablate, att_page_means;
/* D3, which all pages contain. */
extern const unsigned char att_page_middle[];
extern const size_t att_page_middle_size;

/* Whether this library has pages (-DATT_REPORT=ON). */
bool att_page_exists(void);
/* Fails with ERR_UNSUPPORTED if it has none. path: the file that is therefore not written. */
att_status att_page_check(att_context *context, const char *path);
/* Replaces the file at `path` by the report's page with the JSON text [length]. *bytes is its size; bytes may be NULL.
 * Errors: ERR_IO, ERR_MEMORY. */
att_status att_page_write(att_context *context, const char *path, const char *text, size_t length, size_t *bytes);
/* Appends the page with the JSON text [length] to `out`. Error: ERR_MEMORY. */
att_status att_page_append(const att_page *page, const char *text, size_t length, att_text *out);

#endif
