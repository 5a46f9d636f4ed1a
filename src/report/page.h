/* report/page.h - the HTML page around the data, made from web/ and D3 when the library is built (cmake/page.cmake). */
#ifndef ATT_REPORT_PAGE_H
#define ATT_REPORT_PAGE_H

#include <stddef.h>

/* The data are written between the two parts, as JSON without the character '<'. */
extern const unsigned char att_page_before[], att_page_after[];
extern const size_t att_page_before_size, att_page_after_size;

#endif
