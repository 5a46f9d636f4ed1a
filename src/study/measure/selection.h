/* measure/selection.h - which instruments a list such as "entropy,nsi:per=block" selects. */
#ifndef ATT_MEASURE_SELECTION_H
#define ATT_MEASURE_SELECTION_H

#include "study/measure/instrument.h"

typedef struct att_selection {
    bool selected;
    bool by_all; /* selected by "all" or with a '?': skipped if it finds nothing to observe */
    double options[ATT_INSTRUMENT_OPTIONS];
} att_selection;

/* Parses `with` (att_measure_create(); NULL: "all"). On success *selections has an item for each instrument, in the
 * order of the catalog, and the caller frees it. Errors: ERR_NOT_FOUND (unknown instrument), ERR_ARGUMENT (named twice,
 * option, value, nothing selected), ERR_MEMORY. */
att_status att_selections_parse(att_context *context, const char *with, att_selection **selections);

/* Returns ERR_ARGUMENT if an instrument of the measure needs labels and was named. Those that "all" or a '?' selects
 * skip samples without labels. */
att_status att_measure_check_unlabelled(const att_measure *measure);

#endif
