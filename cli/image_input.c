#include "image_input.h"

#include <stdlib.h>

int cli_image_input_open(cli_app *cli, att_network *network, cli_image_input *input)
{
    *input = (cli_image_input){.cli = cli, .network = network, .transform = att_network_transform(network)};
    const att_transform_options *t = &input->transform;
    const att_model_input taken = att_model_input_at(att_network_model(network), 0);
    if (!taken.image || att_model_input_at(att_network_model(network), 1).field.name)
        return cli_failure("the command takes only networks whose single input is an image");
    if (att_network_varies(network))
        return cli_failure(
            "the command takes only networks for images of one size; this one takes photographs of any size");
    input->pixels = calloc((size_t)t->height * (size_t)t->width * (size_t)t->channels, sizeof *input->pixels);
    if (!input->pixels)
        return cli_failure("out of memory for an image");
    input->field = (att_field){taken.field.name, ATT_F32, att_shape_of(t->height, t->width, t->channels)};
    input->data[0] = input->pixels;
    input->batch = (att_batch){.count = 1, .field_count = 1, .fields = &input->field, .data = input->data};
    return cli_check(cli, att_explorer_create(network, &input->explorer));
}

int cli_image_input_explain(cli_image_input *input)
{
    return input->relevance ? CLI_OK : cli_check(input->cli, att_relevance_create(input->explorer, &input->relevance));
}

void cli_image_input_close(cli_image_input *input)
{
    att_relevance_destroy(&input->relevance);
    att_explorer_destroy(&input->explorer);
    free(input->pixels);
}

att_status cli_image_input_set(cli_image_input *input, const att_image *image)
{
    return att_transform_image(input->cli->context, &input->transform, image, 0, 0, 0, input->pixels);
}
