/* runs/instruments.h - lists of instruments, as att_measure_create() takes them. */
#ifndef ATT_RUNS_INSTRUMENTS_H
#define ATT_RUNS_INSTRUMENTS_H

#include <attscope/measure.h>

#include "core/text.h"

/* Whether the list has this item, with or without options behind a colon. */
bool att_instruments_name(const char *with, const char *item);
/* Whether the list takes every instrument: "all", or nothing but what is left out of it. */
bool att_instruments_take_all(const char *with);
/* The first instrument of the list that needs labels; NULL: none. "all" names none. */
const char *att_instruments_needing_labels(const att_context *context, const char *with);
/* Leaves those that need labels out of a list that takes every instrument. */
void att_instruments_leave_out_labels(att_text *with);

#endif
