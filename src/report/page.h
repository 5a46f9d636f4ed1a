/* report/page.h - the page around the data, made of web/ and D3 when the library is built (cmake/page.cmake). */
#ifndef ATT_REPORT_PAGE_H
#define ATT_REPORT_PAGE_H

#include <stddef.h>

/* The data, JSON without the character '<', stand between the two. */
extern const unsigned char att_page_before[], att_page_after[];
extern const size_t att_page_before_size, att_page_after_size;

#endif
