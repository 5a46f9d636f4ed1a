/* results/list.h - the tables of results, one for each paper, in the order in which they are shown. */
#ifndef ATT_RESULTS_LIST_H
#define ATT_RESULTS_LIST_H

#include "lab/papers/results/result.h"

#define ATT_RESULTS_LIST(X) \
    X(huang)                \
    X(cordonnier)           \
    X(dong)                 \
    X(hyeon_woo)

#define ATT_RESULTS_DECLARE(name) extern const att_results_table att_results_##name;
ATT_RESULTS_LIST(ATT_RESULTS_DECLARE)
#undef ATT_RESULTS_DECLARE

/* Returns result `index` over all tables; NULL for other numbers. */
const att_result *att_result_find(int index);

/* Returns the run with this name; NULL if there is none. */
const att_result_run *att_result_run_find(const char *name);

#endif
