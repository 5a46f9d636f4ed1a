/* image_input.h - an explorer of a network with its maps of relevance, and images as inputs for it. */
#ifndef CLI_IMAGE_INPUT_H
#define CLI_IMAGE_INPUT_H

#include "cli.h"

typedef struct cli_image_input {
    cli_app *cli;
    att_network *network;
    att_transform_options transform;
    att_explorer *explorer;
    att_relevance *relevance; /* NULL until cli_image_input_explain() */
    float *pixels;            /* of the last image */
    att_field field;
    const void *data[1];
    att_batch batch; /* one sample: the last image */
} cli_image_input;

/* Creates the explorer. *input is zeroed before the call. The caller calls cli_image_input_close(), also after a
 * failure. Return CLI_OK or an exit code. */
int cli_image_input_open(cli_app *cli, att_network *network, cli_image_input *input);
/* Creates input->relevance, unless it exists. */
int cli_image_input_explain(cli_image_input *input);
void cli_image_input_close(cli_image_input *input);

/* Transforms the image, which becomes input->batch. Errors: those of att_transform_image(). */
att_status cli_image_input_set(cli_image_input *input, const att_image *image);

#endif
