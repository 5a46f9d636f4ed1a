#include "flags.h"

int cli_engine_open(cli_app *cli, const att_recipe_engine *engine)
{
    int code = cli_open(cli, engine->threads);
    return code == CLI_OK ? cli_check(cli, att_recipe_engine_check(cli->context, engine)) : code;
}

static const att_flag output_rows[] = {
    {"json", .kind = ATT_FLAG_TEXT, .value = "FILE", .help = "write the results as JSON; - is standard output",
     ATT_FLAG_AT(cli_output, json), .once = true},
};

const att_flag_group cli_group_output = {"Output", .rows = output_rows,
                                         .row_count = sizeof output_rows / sizeof *output_rows};
