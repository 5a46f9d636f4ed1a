#include "convert_attention.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const char formula[] = "score = -alpha |shift - center|^2, a center for each pixel of the kernel",
                  source[] = "Cordonnier et al., ICLR 2020";

/* Random images on which both networks are run. */
enum { IMAGES = 4, SEED = 1 };

static const att_flag options[] = {
    {"to-attention", .kind = ATT_FLAG_TEXT, .value = "LAYERS",
     .help = "make these convolutions attention: names, which may contain * and ?, as conv1,layer1.*.conv2, or all",
     .empty = true, ATT_FLAG_AT(cli_attention_flags, layers)},
    {"alpha", .kind = ATT_FLAG_REAL, .value = "X",
     .help = "sharpness of the heads, 13 to 1e6 (default: 20); refused "
             "if the outputs then differ by more than 1e-5",
     ATT_FLAG_AT(cli_attention_flags, alpha), .open = true},
};
const att_flag_group cli_attention_group = {"Attention in place of convolutions", .rows = options,
                                            .row_count = sizeof options / sizeof *options};

/* Refuses weights with NaN or infinite values, and names the first such tensor. */
static int check_finite(cli_app *cli, const att_weights *weights)
{
    int code = CLI_OK;
    for (int i = 0; i < att_weights_count(weights) && code == CLI_OK; i++) {
        const att_parameter_info info = att_weights_at(weights, i);
        const int64_t count = att_shape_count(info.shape);
        int64_t bad = 0;
        float *values = malloc((size_t)count * sizeof *values);
        if (!values)
            return cli_failure("no memory for the values of \"%s\"", info.name);
        code = cli_check(cli, att_weights_get(weights, -1, i, values, count));
        for (int64_t e = 0; e < count && code == CLI_OK; e++)
            bad += !isfinite(values[e]);
        free(values);
        if (bad > 0)
            code = cli_failure("\"%s\" has %lld values that are NaN or infinite, of %lld", info.name, (long long)bad,
                               (long long)count);
    }
    return code;
}

/* The error falls as exp(-alpha), down to rounding errors, which the default alpha reaches. */
static int refuse_error(const cli_attention_result *result)
{
    const double alpha = result->made.alpha, enough = ceil(alpha + log(result->error / ATT_CONVERSION_ERROR));
    char advice[64] = "";
    if (alpha < ATT_ATTENTION_ALPHA)
        snprintf(advice, sizeof advice, "; --alpha %g should suffice", fmin(enough, ATT_ATTENTION_ALPHA));
    return cli_failure(
        "the outputs of the converted network differ by %.2g of the largest output; %g is promised, so "
        "nothing was written%s",
        result->error, ATT_CONVERSION_ERROR, advice);
}

int cli_attention_convert(cli_app *cli, const cli_attention_flags *flags, const att_model *model, att_weights *weights,
                          cli_attention_result *result)
{
    int code = check_finite(cli, weights);
    if (code == CLI_OK)
        code = cli_check(cli, att_model_to_attention(model, weights, flags->layers, flags->alpha, &result->made));
    if (code == CLI_OK)
        code = cli_check(cli, att_models_compare(model, weights, result->made.model, result->made.weights, IMAGES, SEED,
                                                 &result->error));
    return code == CLI_OK && !(result->error <= ATT_CONVERSION_ERROR) ? refuse_error(result) : code;
}

void cli_attention_print(const cli_attention_result *result)
{
    cli_print("attention    %d convolution%s as %d head%s\n", result->made.layers, cli_plural(result->made.layers),
              result->made.heads, cli_plural(result->made.heads));
    cli_print("alpha        %g, a head gives less than %.2g of its weight to other pixels\n", result->made.alpha,
              result->made.leak > 0 ? result->made.leak : DBL_MIN); /* exp() underflows */
    cli_print("formula      %s (%s)\n", formula, source);
    cli_print("error        %.2g of the largest output, on %d random images\n", result->error, IMAGES);
}

void cli_attention_write(const cli_attention_result *result, att_json_writer *writer)
{
    cli_json_object(writer, "to_attention");
    cli_json_integer(writer, "layers", result->made.layers);
    cli_json_integer(writer, "heads", result->made.heads);
    cli_json_number(writer, "alpha", result->made.alpha);
    cli_json_number(writer, "leak", result->made.leak);
    cli_json_number(writer, "error", result->error);
    cli_json_integer(writer, "images", IMAGES);
    cli_json_text(writer, "formula", formula);
    cli_json_text(writer, "source", source);
    att_json_end_object(writer);
}
