/* report/page.h - the HTML page around the data, made from web/ and D3 when the library is built (cmake/page.cmake). */
#ifndef ATT_REPORT_PAGE_H
#define ATT_REPORT_PAGE_H

#include <attscope/context.h>

/* The data are written between the two parts, as JSON without the character '<'. */
extern const unsigned char att_page_before[], att_page_after[];
extern const size_t att_page_before_size, att_page_after_size;

/* Fails with ERR_UNSUPPORTED in a library without the page. */
att_status att_page_check(att_context *context, const char *path);
/* Replaces the file at `path` by a page with the JSON text [length]. *bytes is its size; bytes may be NULL. Errors:
 * ERR_IO, ERR_MEMORY. */
att_status att_page_write(att_context *context, const char *path, const char *text, size_t length, size_t *bytes);

#endif
