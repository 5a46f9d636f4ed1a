#include "flags.h"

#include <string.h>

static const char bfloat16[] = "bfloat16";

int cli_engine_open(cli_app *cli, const att_recipe_engine *engine)
{
    if (engine->amp && strcmp(engine->amp_dtype, bfloat16) != 0)
        return cli_usage("--amp is done in bfloat16, not in %s; --amp-dtype bfloat16 says so", engine->amp_dtype);
    if (engine->amp_force && !engine->amp)
        return cli_usage("--amp-force says where --amp computes all the same; it goes with --amp");
    int code = cli_open(cli, engine->threads);
    if (code != CLI_OK || !engine->amp || engine->amp_force || strcmp(engine->backend, "cpu") != 0 ||
        att_context_has_bf16(cli->context))
        return code;
    return cli_failure(
        "--amp needs a processor with AVX512_BF16; this one has %s (--amp-force computes all the same, "
        "but slower than f32)",
        att_tier_name(att_context_tier(cli->context)));
}

static const att_flag output_rows[] = {
    {"json", .kind = ATT_FLAG_TEXT, .value = "FILE", .help = "write the figures as JSON; - is standard output",
     ATT_FLAG_AT(cli_output, json), .once = true},
};

const att_flag_group cli_group_output = {"Output", .rows = output_rows,
                                         .row_count = sizeof output_rows / sizeof *output_rows};
