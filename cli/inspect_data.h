/* inspect_data.h - shows the contents of a data set. */
#ifndef CLI_INSPECT_DATA_H
#define CLI_INSPECT_DATA_H

#include "cli.h"

/* Whether the path is a folder or archive that holds no checkpoint, so that it can be a data set. */
bool cli_is_data(const cli_app *cli, const char *path);
/* Prints, for each split, how many images, classes and boxes a data set has, the sizes of its images, and how often
 * each class occurs; or writes the same as JSON to a file (NULL: none). Returns CLI_OK or an exit code. */
int cli_inspect_data(cli_app *cli, const char *path, const char *json);

#endif
