/* sweep_check.h - what can be refused before a sweep's first run. */
#ifndef CLI_SWEEP_CHECK_H
#define CLI_SWEEP_CHECK_H

#include "sweep_plan.h"

/* Of every run that has records: whether the images are those it was begun with and measured on. Of every setting with
 * a run that is still to do: its options, its data sets, and whether its network can be built and measured by
 * `instruments`; those that have nothing to see in its network, but in another, are taken out of its runs' `measure`.
 * Says what cannot be, and of which setting. CLI_OK or a code. */
int sweep_check(cli_app *cli, sweep_plan *plan, const char *instruments);

/* Whether the run's records can be read; otherwise says why, and which folder to remove. CLI_OK or a code. */
int sweep_check_records(cli_app *cli, const sweep_run *run);

#endif
