/* results_page.h - all published results as a page of Markdown. */
#ifndef CLI_RESULTS_PAGE_H
#define CLI_RESULTS_PAGE_H

#include "cli.h"

/* Writes the page, with disagreements first, then agreements, then results that cannot be told, then those without a
 * verdict or not run, and the runs. judgements: of all results. records: the folder of records. path: "-" is stdout.
 * Returns CLI_OK or an exit code. */
int results_page_write(cli_app *cli, const char *path, const char *records, const att_judgement *judgements);

#endif
