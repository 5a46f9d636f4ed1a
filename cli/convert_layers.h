/* convert_layers.h - attscope convert --to-attention: attention in place of convolutions; --to-convolution: the way
 * back. */
#ifndef CLI_CONVERT_LAYERS_H
#define CLI_CONVERT_LAYERS_H

#include <attscope/convert.h>

#include "cli.h"
#include "flags.h"

typedef struct cli_attention_flags {
    const char *layers; /* NULL: no conversion */
    double alpha;       /* 0: the default */
} cli_attention_flags;
extern const att_flag_group cli_attention_group;

typedef struct cli_conversion {
    bool to_attention;
    att_conversion made;
    double error; /* largest difference of the outputs, relative to the largest output */
} cli_conversion;

/* Makes convolutions attention, and compares the result with the network. Fails if they differ by more than is
 * promised. The caller frees result->made, also after a failure. Returns CLI_OK or an exit code. */
int cli_to_attention(cli_app *cli, const cli_attention_flags *flags, const att_model *model, att_weights *weights,
                     cli_conversion *result);
/* Makes layers of attention convolutions again. They may differ, if heads were trained and moved. */
int cli_to_convolution(cli_app *cli, const char *layers, const att_model *model, att_weights *weights,
                       cli_conversion *result);
/* Prints the figures of the conversion; writes them as a member of the current JSON object. */
void cli_conversion_print(const cli_conversion *conversion);
void cli_conversion_write(const cli_conversion *conversion, att_json_writer *writer);

#endif
