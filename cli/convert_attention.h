/* convert_attention.h - attscope convert --to-attention: attention in place of convolutions. */
#ifndef CLI_CONVERT_ATTENTION_H
#define CLI_CONVERT_ATTENTION_H

#include <attscope/convert.h>

#include "cli.h"
#include "flags.h"

typedef struct cli_attention_flags {
    const char *layers; /* NULL: no conversion */
    double alpha;       /* 0: the default */
} cli_attention_flags;
extern const att_flag_group cli_attention_group;

typedef struct cli_attention_result {
    att_attention_conversion made;
    double error; /* largest difference of the outputs, relative to the largest output */
} cli_attention_result;

/* Converts the network and compares the result with it. Fails if they differ by more than is promised. The caller frees
 * result->made, also after a failure. Returns CLI_OK or an exit code. */
int cli_attention_convert(cli_app *cli, const cli_attention_flags *flags, const att_model *model, att_weights *weights,
                          cli_attention_result *result);
/* Prints the figures of the conversion; writes them as members of the current JSON object. */
void cli_attention_print(const cli_attention_result *result);
void cli_attention_write(const cli_attention_result *result, att_json_writer *writer);

#endif
