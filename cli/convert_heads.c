#include "convert_heads.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include <attscope/convert.h>

static const char rule[] =
    "largest eigenvalue of P below 1e-05, or condition number of P above 1000; "
    "score = -1/2 (d - Delta)' P (d - Delta); isotropic: P = s^2",
                  rule_source[] = "the published program of Cordonnier et al., ICLR 2020";
static const char formula[] = "Y = sum_h A_h X W_h with W_h = W_V,h W_O; M(q, k) = sum_h A_h(q, k) W_h",
                  formula_source[] = "Cordonnier et al., ICLR 2020",
                  reading[] =
                      "q is the query in the middle of the grid; shift: mean of k - q under A_h(q, .), in tokens, rows "
                      "first; spread: square root of the sum of the variances of its rows and columns; eigenvalues: "
                      "of P in the score -1/2 (d - center)' P (d - center) of a quadratic head";
static const char error_reading[] =
    "error = |M(q, .) - T(q, .)| / |M(q, .)| of the K x K convolution T that makes it "
    "smallest; all queries: with those at the border, where T reads zeros";

enum { DEFAULT_KERNEL = 3, SIZES = 5 };

static const att_flag options[] = {
    {"prune-heads", .kind = ATT_FLAG_SWITCH, .help = "leave out degenerate heads, which attscope inspect lists",
     ATT_FLAG_AT(cli_heads_flags, prune)},
    {"to-convolution", .kind = ATT_FLAG_TEXT, .value = "LAYERS",
     .help = "make these layers of attention convolutions again; of attention_cnn_*, show what they are as "
             "convolutions: names, which may contain * and ?, or all",
     .empty = true, ATT_FLAG_AT(cli_heads_flags, to_convolution)},
    {"kernel-size", .kind = ATT_FLAG_INT, .value = "K",
     .help = "side of the convolutions in OUT, odd, below twice the side of the grid (default: 3); of "
             "attention_cnn_* only",
     ATT_FLAG_AT(cli_heads_flags, kernel), .low = 1, .high = 255, .open = true},
};
const att_flag_group cli_heads_group = {"Heads that attend by position", .rows = options,
                                        .row_count = sizeof options / sizeof *options};

/* --- degenerate heads --------------------------------------------------------------------------------------------- */

int cli_degenerate_find(cli_app *cli, const att_model *model, const att_weights *weights, cli_degenerate *found)
{
    int code = cli_check(cli, att_model_degenerate_heads(model, weights, NULL, 0, &found->count));
    if (code != CLI_OK || found->count == 0)
        return code;
    found->heads = calloc((size_t)found->count, sizeof *found->heads);
    if (!found->heads)
        return cli_failure("no memory for a list of heads");
    return cli_check(cli, att_model_degenerate_heads(model, weights, found->heads, found->count, &found->count));
}

void cli_degenerate_print(const char *title, const cli_degenerate *found)
{
    const att_head_place *heads = found->heads;
    int layer = -1;
    cli_print("%-12s %d head%s\n             rule: %s\n             (%s)", title, found->count,
              cli_plural(found->count), rule, rule_source);
    for (int i = 0; i < found->count; i++) {
        const bool more = i + 1 < found->count && heads[i + 1].layer == heads[i].layer;
        if (heads[i].layer != layer)
            cli_print("\n             layer %d, head%s %d", heads[i].layer, more ? "s" : "", heads[i].head);
        else
            cli_print(", %d", heads[i].head);
        layer = heads[i].layer;
    }
    cli_print("\n");
}

static void write_heads(const char *key, const cli_degenerate *found, att_json_writer *writer)
{
    att_json_put_array(writer, key);
    for (int i = 0; i < found->count; i++) {
        att_json_begin_object(writer);
        att_json_put_integer(writer, "layer", found->heads[i].layer);
        att_json_put_integer(writer, "head", found->heads[i].head);
        att_json_end_object(writer);
    }
    att_json_end_array(writer);
}

void cli_degenerate_write(const cli_degenerate *found, att_json_writer *writer)
{
    write_heads("degenerate_heads", found, writer);
    att_json_put_string(writer, "degenerate_rule", rule);
}

void cli_pruned_write(const cli_pruned *pruned, att_json_writer *writer)
{
    write_heads("removed_heads", &pruned->removed, writer);
    write_heads("kept_degenerate_heads", &pruned->kept, writer);
    att_json_put_string(writer, "degenerate_rule", rule);
}

/* In a layer whose heads are all degenerate, head 0 stays (att_model_prune_heads()), so that the pruned network has a
 * degenerate head there. */
static int find_kept(cli_app *cli, cli_pruned *result)
{
    cli_degenerate *removed = &result->removed, *kept = &result->kept;
    int code = cli_degenerate_find(cli, result->model, result->weights, kept), count = 0;
    for (int i = 0, k = 0; code == CLI_OK && i < removed->count; i++) {
        const bool stays = k < kept->count && kept->heads[k].layer == removed->heads[i].layer;
        k += stays;
        if (!stays)
            removed->heads[count++] = removed->heads[i];
    }
    removed->count = count;
    return code;
}

void cli_pruned_print(const cli_pruned *pruned)
{
    cli_degenerate_print("removed", &pruned->removed);
    for (int i = 0; i < pruned->kept.count; i++)
        cli_print("kept         layer %d, head %d: all heads of this layer are degenerate, and a layer needs one\n",
                  pruned->kept.heads[i].layer, pruned->kept.heads[i].head);
}

int cli_heads_have_forms(cli_app *cli, const att_model *model, const att_weights *weights, bool *have)
{
    att_position_heads *heads = NULL;
    att_position_head first = {0};
    int code = cli_check(cli, att_position_heads_read(model, weights, 0, &heads));
    if (code == CLI_OK)
        code = cli_check(cli, att_position_heads_at(heads, 0, &first));
    att_position_heads_destroy(&heads);
    *have = first.quadratic;
    return code;
}

static int check_forms(cli_app *cli, const att_model *model, const att_weights *weights)
{
    static const char refusal[] =
        "%s: --prune-heads leaves out degenerate heads of attention_cnn_isotropic and attention_cnn_quadratic; %s";
    bool have;
    if (att_model_attention_convolutions(model, weights) > 0)
        return cli_failure(
            refusal, att_model_name(model),
            "the heads of this network are in the place of convolutions, one for each pixel of a kernel");
    if (att_position_layers(model) == 0)
        return cli_failure(refusal, att_model_name(model), "this network has no heads that attend by position only");
    int code = cli_heads_have_forms(cli, model, weights, &have);
    return code == CLI_OK && !have
               ? cli_failure(refusal, att_model_name(model),
                             "the scores of this network are learned vectors, for which no head counts as degenerate")
               : code;
}

int cli_heads_prune(cli_app *cli, const att_model *model, const att_weights *weights, cli_pruned *result)
{
    int code = check_forms(cli, model, weights);
    if (code == CLI_OK)
        code = cli_degenerate_find(cli, model, weights, &result->removed);
    if (code == CLI_OK)
        code = cli_check(cli, att_model_prune_heads(model, weights, result->removed.heads, result->removed.count,
                                                    &result->model, &result->weights));
    return code == CLI_OK ? find_kept(cli, result) : code;
}

void cli_pruned_free(cli_pruned *pruned)
{
    att_weights_destroy(&pruned->weights);
    att_model_destroy(&pruned->model);
    free(pruned->removed.heads);
    free(pruned->kept.heads);
}

/* --- to convolutions ---------------------------------------------------------------------------------------------- */

/* One conversion. The tensors are the convolutions of the chosen layers: weight, bias. */
typedef struct job {
    cli_app *cli;
    const cli_heads_flags *flags;
    int kernel; /* of the convolutions that are written */
    bool prints;
    att_json_writer *writer; /* NULL: no JSON */
    att_safetensors_tensor *tensors;
    char (*names)[96];
    float **data;
    int count;
} job;

/* Whether the name is in the list, whose items may be patterns. */
static bool is_chosen(const char *list, const char *name)
{
    char item[128];
    if (strcmp(list, "all") == 0)
        return true;
    for (const char *at = list; *at; at += strcspn(at, ","), at += *at == ',') {
        snprintf(item, sizeof item, "%.*s", (int)strcspn(at, ","), at);
        if (fnmatch(item, name, 0) == 0)
            return true;
    }
    return false;
}

static void show_head(const job *j, int index, const att_position_head *head)
{
    if (j->prints) {
        cli_print("  %4d  %+7.3f %+7.3f  %6.3f  %6.4f at %+d %+d", index, head->shift[0], head->shift[1], head->spread,
                  head->most, head->most_at[0], head->most_at[1]);
        if (head->quadratic)
            cli_print("  center %+.3f %+.3f, eigenvalues %.4g %.4g%s", head->center[0], head->center[1],
                      head->precision[0], head->precision[1], head->degenerate ? ", degenerate" : "");
        cli_print("\n");
    }
    if (!j->writer)
        return;
    att_json_begin_object(j->writer);
    att_json_put_number(j->writer, "shift_y", head->shift[0]);
    att_json_put_number(j->writer, "shift_x", head->shift[1]);
    att_json_put_number(j->writer, "spread", head->spread);
    att_json_put_number(j->writer, "most", head->most);
    if (head->quadratic) {
        att_json_put_number(j->writer, "center_y", head->center[0]);
        att_json_put_number(j->writer, "center_x", head->center[1]);
        att_json_put_number(j->writer, "precision_least", head->precision[0]);
        att_json_put_number(j->writer, "precision_most", head->precision[1]);
        att_json_put_bool(j->writer, "degenerate", head->degenerate);
    }
    att_json_end_object(j->writer);
}

static int show_heads(const job *j, const att_position_heads *heads)
{
    const att_position_heads_info info = att_position_heads_describe(heads);
    int code = CLI_OK;
    if (j->prints) {
        cli_print("\n%s, %d head%s on a grid of %d x %d\n", info.scope, info.count, cli_plural(info.count), info.grid_h,
                  info.grid_w);
        cli_print("  head  shift            spread  largest weight\n");
    }
    if (j->writer) {
        att_json_put_string(j->writer, "layer", info.scope);
        att_json_put_array(j->writer, "heads");
    }
    for (int h = 0; h < info.count && code == CLI_OK; h++) {
        att_position_head head;
        code = cli_check(j->cli, att_position_heads_at(heads, h, &head));
        if (code == CLI_OK)
            show_head(j, h, &head);
    }
    if (j->writer)
        att_json_end_array(j->writer);
    return code;
}

/* The sizes that are shown: 1, 3, 5, 7, and that of the written convolutions. */
static int list_sizes(const job *j, int sizes[SIZES])
{
    int count = 0;
    for (int kernel = 1; kernel <= 7; kernel += 2)
        sizes[count++] = kernel;
    if (j->kernel > 7)
        sizes[count++] = j->kernel;
    return count;
}

/* Whether the kernel, centred on the middle of the grid, reaches every key: it then copies all that this query
 * receives. */
static bool covers(int kernel, const att_position_heads_info *info)
{
    return kernel / 2 >= info->grid_h / 2 && kernel / 2 >= info->grid_w / 2;
}

static void show_error(const job *j, const att_position_heads_info *info, int kernel,
                       const att_nearest_convolution *found)
{
    if (j->prints && covers(kernel, info))
        cli_print("  %d x %d: no error for any weights, since the kernel reaches all keys; all queries %.4g\n", kernel,
                  kernel, found->grid_error);
    else if (j->prints)
        cli_print("  %d x %d: error %.4g; all queries %.4g\n", kernel, kernel, found->error, found->grid_error);
    if (!j->writer)
        return;
    att_json_begin_object(j->writer);
    att_json_put_integer(j->writer, "kernel", kernel);
    att_json_put_number(j->writer, "error", found->error);
    att_json_put_number(j->writer, "grid_error", found->grid_error);
    att_json_end_object(j->writer);
}

/* Adds the two tensors of a layer's convolution; their data is NULL if there is no memory. */
static void add_tensors(job *j, const att_position_heads_info *info)
{
    const int64_t kernel = j->kernel;
    const att_shape shapes[] = {att_shape_of(info->outputs, info->inputs, kernel, kernel), att_shape_of(info->outputs)};
    for (int i = 0; i < 2; i++) {
        snprintf(j->names[j->count], sizeof *j->names, "%s.conv.%s", info->scope, i ? "bias" : "weight");
        j->data[j->count] = malloc((size_t)att_shape_count(shapes[i]) * sizeof(float));
        j->tensors[j->count] = (att_safetensors_tensor){
            .name = j->names[j->count], .dtype = ATT_SAFETENSORS_F32, .shape = shapes[i], .data = j->data[j->count]};
        j->count++;
    }
}

static int show_errors(job *j, att_position_heads *heads)
{
    const att_position_heads_info info = att_position_heads_describe(heads);
    int sizes[SIZES], count = list_sizes(j, sizes), code = CLI_OK;
    add_tensors(j, &info);
    float *weight = j->data[j->count - 2], *bias = j->data[j->count - 1];
    if (!weight || !bias)
        return cli_failure("no memory for a convolution");
    if (j->writer) {
        att_json_put_array(j->writer, "convolutions");
    }
    for (int i = 0; i < count && code == CLI_OK; i++) {
        const bool written = sizes[i] == j->kernel;
        att_nearest_convolution found;
        code = cli_check(j->cli, att_position_heads_convolution(heads, sizes[i], written ? weight : NULL,
                                                                written ? bias : NULL, &found));
        if (code == CLI_OK)
            show_error(j, &info, sizes[i], &found);
    }
    if (j->writer)
        att_json_end_array(j->writer);
    return code;
}

static int show_layer(job *j, att_position_heads *heads)
{
    if (j->writer)
        att_json_begin_object(j->writer);
    int code = show_heads(j, heads);
    if (code == CLI_OK)
        code = show_errors(j, heads);
    if (j->writer)
        att_json_end_object(j->writer);
    return code;
}

static int show_layers(job *j, const att_model *model, const att_weights *weights)
{
    const int layers = att_position_layers(model);
    int code = CLI_OK;
    for (int layer = 0; layer < layers && code == CLI_OK; layer++) {
        att_position_heads *heads = NULL;
        code = cli_check(j->cli, att_position_heads_read(model, weights, layer, &heads));
        if (code == CLI_OK && is_chosen(j->flags->to_convolution, att_position_heads_describe(heads).scope))
            code = show_layer(j, heads);
        att_position_heads_destroy(&heads);
    }
    return code;
}

static int check_layers(const job *j, const att_model *model, const att_weights *weights)
{
    const int layers = att_position_layers(model);
    for (int layer = 0; layer < layers; layer++) {
        att_position_heads *heads = NULL;
        const int code = cli_check(j->cli, att_position_heads_read(model, weights, layer, &heads));
        if (code != CLI_OK)
            return code;
        const bool chosen = is_chosen(j->flags->to_convolution, att_position_heads_describe(heads).scope);
        att_position_heads_destroy(&heads);
        if (chosen)
            return CLI_OK;
    }
    return cli_usage("--to-convolution: no layer is called \"%s\"; the %d layers of %s are blocks.0.attn and so on",
                     j->flags->to_convolution, layers, att_model_name(model));
}

static int write_convolutions(const job *j, const char *out)
{
    char target[CLI_PATH];
    const att_safetensors_pair metadata[] = {{"format", "pt"}, {"attscope.formula", formula}};
    const att_safetensors_content content = {
        .tensors = j->tensors, .tensor_count = j->count, .metadata = metadata, .metadata_count = 2};
    int code = cli_check(j->cli, att_safetensors_write(j->cli->context, cli_file_target(out, target), &content));
    if (code == CLI_OK && j->prints)
        cli_print("\nwritten      %s: convolutions of %d x %d, stride 1, padding %d\n", out, j->kernel, j->kernel,
                  j->kernel / 2);
    return code;
}

static int start(job *j, const att_model *model, const char *json)
{
    const size_t count = 2 * (size_t)att_position_layers(model);
    j->tensors = calloc(count, sizeof *j->tensors);
    j->names = calloc(count, sizeof *j->names);
    j->data = calloc(count, sizeof *j->data);
    if (!j->tensors || !j->names || !j->data)
        return cli_failure("no memory for the list of layers");
    int code = json ? cli_check(j->cli, att_json_writer_create(j->cli->context, true, &j->writer)) : CLI_OK;
    if (j->prints)
        cli_print(
            "formula      %s (%s); the residual branch is not included\n"
            "reading      %s\n             %s\n",
            formula, formula_source, reading, error_reading);
    return code;
}

static int show_all(job *j, const att_model *model, const att_weights *weights, const char *json)
{
    if (j->writer) {
        att_json_begin_object(j->writer);
        att_json_put_string(j->writer, "formula", formula);
        att_json_put_string(j->writer, "source", formula_source);
        att_json_put_string(j->writer, "reading", reading);
        att_json_put_string(j->writer, "error_reading", error_reading);
        att_json_put_array(j->writer, "layers");
    }
    int code = show_layers(j, model, weights);
    if (!j->writer)
        return code;
    if (code != CLI_OK) {
        att_json_writer_destroy(&j->writer);
        return code;
    }
    att_json_end_array(j->writer);
    att_json_end_object(j->writer);
    return cli_json_write(j->cli, j->writer, json);
}

/* The shifts on an axis of n tokens are 1 - n .. n - 1. All layers have the same grid. */
static int check_kernel(cli_app *cli, int kernel, const att_model *model, const att_weights *weights)
{
    att_position_heads *heads = NULL;
    int code = cli_check(cli, att_position_heads_read(model, weights, 0, &heads));
    if (code != CLI_OK)
        return code;
    const att_position_heads_info info = att_position_heads_describe(heads);
    const int most = 2 * (info.grid_h > info.grid_w ? info.grid_h : info.grid_w) - 1;
    att_position_heads_destroy(&heads);
    return kernel > most ? cli_usage(
                               "--kernel-size: a grid of %d x %d has no shifts for a kernel of %d x %d; expected "
                               "at most %d",
                               info.grid_h, info.grid_w, kernel, kernel, most)
                         : CLI_OK;
}

int cli_heads_to_convolution(cli_app *cli, const cli_heads_flags *flags, const att_model *model,
                             const att_weights *weights, const char *out, const char *json)
{
    job j = {.cli = cli,
             .flags = flags,
             .kernel = flags->kernel ? flags->kernel : DEFAULT_KERNEL,
             .prints = cli_prints(json)};
    if (att_position_layers(model) == 0)
        return cli_failure(
            "%s: --to-convolution needs attention in the place of convolutions (--to-attention), or heads that attend "
            "by position only (attention_cnn_isotropic, _quadratic and _learned); this network has neither",
            att_model_name(model));
    int code = check_kernel(cli, flags->kernel, model, weights);
    if (code == CLI_OK)
        code = check_layers(&j, model, weights);
    if (code == CLI_OK)
        code = start(&j, model, json);
    if (code == CLI_OK)
        code = show_all(&j, model, weights, json);
    if (code == CLI_OK && out)
        code = write_convolutions(&j, out);
    for (int i = 0; i < j.count; i++)
        free(j.data[i]);
    free(j.data);
    free(j.names);
    free(j.tensors);
    return code;
}
