/* records/instruments.h - lists of instruments in the syntax of att_measure_create(). */
#ifndef ATT_RECORDS_INSTRUMENTS_H
#define ATT_RECORDS_INSTRUMENTS_H

#include <attscope/measure.h>

#include "base/core/text.h"

/* Returns whether the list has this item, with or without options after a colon. */
bool att_instruments_name(const char *with, const char *item);
/* Returns whether the list means all instruments: it has "all", or only items to leave out ("-accuracy"). */
bool att_instruments_take_all(const char *with);
/* Returns the first instrument in the list that needs labels, or NULL. "all" does not count. */
const char *att_instruments_needing_labels(const att_context *context, const char *with);
/* Appends "-NAME" for each instrument that needs labels to a list that means all instruments. */
void att_instruments_leave_out_labels(att_text *with);

#endif
