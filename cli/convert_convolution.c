#include "convert_convolution.h"

static const char formula[] =
    "T(q, k) = sum_h a_h(q, k) W_h for the keys k that the kernel reaches, else 0; q: the "
    "query in the middle",
                  reading[] = "error of a layer = |M(q, .) - T(q, .)| / |M(q, .)| with M(q, k) = sum_h a_h(q, k) W_h";

/* Random images on which both networks are run. */
enum { IMAGES = 4, SEED = 1 };

int cli_convolution_convert(cli_app *cli, const char *layers, const att_model *model, att_weights *weights,
                            cli_convolution_result *result)
{
    int code = cli_check(cli, att_model_to_convolution(model, weights, layers, &result->made));
    return code == CLI_OK ? cli_check(cli, att_models_compare(model, weights, result->made.model, result->made.weights,
                                                              IMAGES, SEED, &result->error))
                          : code;
}

void cli_convolution_print(const cli_convolution_result *result)
{
    const att_convolution_conversion *made = &result->made;
    cli_print("convolution  %d layer%s of %d head%s\n", made->layers, cli_plural(made->layers), made->heads,
              cli_plural(made->heads));
    cli_print("formula      %s\n             %s\n", formula, reading);
    cli_print("layers       error at most %.2g, in %s\n", made->error, made->worst);
    cli_print("error        %.2g of the largest output, on %d random images\n", result->error, IMAGES);
}

void cli_convolution_write(const cli_convolution_result *result, att_json_writer *writer)
{
    cli_json_object(writer, "to_convolution");
    cli_json_integer(writer, "layers", result->made.layers);
    cli_json_integer(writer, "heads", result->made.heads);
    cli_json_number(writer, "layer_error", result->made.error);
    cli_json_text(writer, "worst_layer", result->made.worst);
    cli_json_number(writer, "error", result->error);
    cli_json_integer(writer, "images", IMAGES);
    cli_json_text(writer, "formula", formula);
    cli_json_text(writer, "reading", reading);
    att_json_end_object(writer);
}
