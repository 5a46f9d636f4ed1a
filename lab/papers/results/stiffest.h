/* results/stiffest.h - which block of a network is the stiffest, for sweeps that put a module into one block each. */
#ifndef ATT_RESULTS_STIFFEST_H
#define ATT_RESULTS_STIFFEST_H

#include "lab/papers/results/values.h"

/* Whether a setting of the sweep is meant by the setting of a reading: the same text, or, where that ends in
 * "{stiffest}" or "{other}", a number of a block in its place: that of the stiffest block, or of another one. The
 * stiffest block has the largest zeta (nsi, reading attention), a mean over the runs of "modules=none", of the blocks
 * that have a setting. */
bool att_result_is_setting(const att_result_folder *folder, const char *wanted, const char *setting);

#endif
