#include "convert_layers.h"

#include <float.h>
#include <math.h>
#include <stdio.h>

static const char formula[] = "score = -alpha |shift - center|^2, a center for each pixel of the kernel",
                  source[] = "Cordonnier et al., ICLR 2020";
static const char back_formula[] =
    "T(q, k) = sum_h a_h(q, k) W_h for the keys k that the kernel reaches, else 0; q: the query in the middle",
                  back_reading[] =
                      "error of a layer = |M(q, .) - T(q, .)| / |M(q, .)| with M(q, k) = sum_h a_h(q, k) W_h";

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

/* The error falls as exp(-alpha), down to rounding errors, which the default alpha reaches. */
static int refuse_error(const cli_conversion *result)
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

/* Runs both networks on random images. */
static int compare(cli_app *cli, const att_model *model, att_weights *weights, cli_conversion *result)
{
    return cli_check(cli, att_models_compare(model, weights, result->made.model, result->made.weights, IMAGES, SEED,
                                             &result->error));
}

int cli_to_attention(cli_app *cli, const cli_attention_flags *flags, const att_model *model, att_weights *weights,
                     cli_conversion *result)
{
    result->to_attention = true;
    int code = cli_check(cli, att_model_to_attention(model, weights, flags->layers, flags->alpha, &result->made));
    if (code == CLI_OK)
        code = compare(cli, model, weights, result);
    return code == CLI_OK && !(result->error <= ATT_CONVERSION_ERROR) ? refuse_error(result) : code;
}

int cli_to_convolution(cli_app *cli, const char *layers, const att_model *model, att_weights *weights,
                       cli_conversion *result)
{
    int code = cli_check(cli, att_model_to_convolution(model, weights, layers, &result->made));
    return code == CLI_OK ? compare(cli, model, weights, result) : code;
}

void cli_conversion_print(const cli_conversion *conversion)
{
    const att_conversion *made = &conversion->made;
    cli_print(conversion->to_attention ? "attention    %d convolution%s as %d head%s\n"
                                       : "convolution  %d layer%s of %d head%s\n",
              made->layers, cli_plural(made->layers), made->heads, cli_plural(made->heads));
    if (conversion->to_attention)
        cli_print(
            "alpha        %g, a head gives less than %.2g of its weight to other pixels\n"
            "formula      %s (%s)\n",
            made->alpha, made->leak > 0 ? made->leak : DBL_MIN, /* exp() underflows */ formula, source);
    else
        cli_print("formula      %s\n             %s\nlayers       error at most %.2g, in %s\n", back_formula,
                  back_reading, made->error, made->worst);
    cli_print("error        %.2g of the largest output, on %d random images\n", conversion->error, IMAGES);
}

void cli_conversion_write(const cli_conversion *conversion, att_json_writer *writer)
{
    const att_conversion *made = &conversion->made;
    const bool to_attention = conversion->to_attention;
    att_json_put_object(writer, to_attention ? "to_attention" : "to_convolution");
    att_json_put_integer(writer, "layers", made->layers);
    att_json_put_integer(writer, "heads", made->heads);
    if (to_attention) {
        att_json_put_number(writer, "alpha", made->alpha);
        att_json_put_number(writer, "leak", made->leak);
    } else {
        att_json_put_number(writer, "layer_error", made->error);
        att_json_put_string(writer, "worst_layer", made->worst);
    }
    att_json_put_number(writer, "error", conversion->error);
    att_json_put_integer(writer, "images", IMAGES);
    att_json_put_string(writer, "formula", to_attention ? formula : back_formula);
    att_json_put_string(writer, to_attention ? "source" : "reading", to_attention ? source : back_reading);
    att_json_end_object(writer);
}
