/* convert_convolution.h - attscope convert --to-convolution of networks whose convolutions are attention. */
#ifndef CLI_CONVERT_CONVOLUTION_H
#define CLI_CONVERT_CONVOLUTION_H

#include <attscope/convert.h>

#include "cli.h"

typedef struct cli_convolution_result {
    att_convolution_conversion made;
    double error; /* largest difference of the outputs, relative to the largest output */
} cli_convolution_result;

/* Makes layers of attention convolutions again, and compares the result with the network. The caller frees
 * result->made, also after a failure. Returns CLI_OK or an exit code. */
int cli_convolution_convert(cli_app *cli, const char *layers, const att_model *model, att_weights *weights,
                            cli_convolution_result *result);
/* Prints the figures of the conversion; writes them as members of the current JSON object. */
void cli_convolution_print(const cli_convolution_result *result);
void cli_convolution_write(const cli_convolution_result *result, att_json_writer *writer);

#endif
