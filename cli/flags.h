/* flags.h - flags that several commands share. */
#ifndef CLI_FLAGS_H
#define CLI_FLAGS_H

#include <attscope/lab/recipe.h>

#include "cli.h"

/* Creates the context. Refuses settings of --amp as att_recipe_engine_check() does. Returns CLI_OK or an exit code. */
int cli_engine_open(cli_app *cli, const att_recipe_engine *engine);

typedef struct cli_output {
    const char *json; /* "-": stdout; NULL: no JSON */
} cli_output;
extern const att_flag_group cli_group_output;

#endif
