/* records/given.h - texts that are not given. */
#ifndef ATT_RECORDS_GIVEN_H
#define ATT_RECORDS_GIVEN_H

#include <stddef.h>

/* Returns the text, or NULL for "", which means "not given" too. */
static inline const char *att_given(const char *text)
{
    return text && *text ? text : NULL;
}

#endif
