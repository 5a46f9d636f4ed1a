/* sweep_check.h - what can be refused before a sweep's first run. */
#ifndef CLI_SWEEP_CHECK_H
#define CLI_SWEEP_CHECK_H

#include "sweep_plan.h"

/* Of every setting with a run that is still to do: its options, its data sets, and whether its network can be built and
 * measured by `instruments`; those that have nothing to see in its network, but in another, are taken out of its runs'
 * `measure`. asked: by the user; else those that have nothing to see in any network are left out, too. Says what cannot
 * be, and of which setting. CLI_OK or a code. */
int sweep_check(cli_app *cli, sweep_plan *plan, const char *instruments, bool asked);

/* Then, with what the records say of those instruments: whether the images are those that each run was begun with and
 * measured on. CLI_OK or a code. */
int sweep_check_images(cli_app *cli, sweep_plan *plan);

/* Whether the run's records can be read; otherwise says why, and which folder to remove. CLI_OK or a code. */
int sweep_check_records(cli_app *cli, const sweep_run *run);

#endif
