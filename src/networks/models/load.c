#include <attscope/nn.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/memory.h"
#include "base/core/text.h"
#include "engine/weights/weights.h"
#include "networks/models/checkpoint.h"
#include "networks/models/family.h"

enum { NAME_BYTES = 256, LISTED = 12 };

typedef struct loading {
    att_context *context;
    const att_model *model;
    const att_graph *graph;
    const att_tensors *file;
    const char *prefix;
    bool without_head;              /* the head keeps its values: the file has another head or none */
    bool again;                     /* the weights had these values before: notes are not repeated */
    bool without_added;             /* parameters of modules keep their values: the file has none */
    int64_t head_classes;           /* the file's number of classes if it differs; else 0 */
    att_option_values file_options; /* options in the file's metadata */
    /* Tensors with values that are not finite: the first one, how many of its values, and how many other tensors. */
    const char *damaged;
    int64_t damaged_values;
    int damaged_others;
} loading;

static int find_prefixed(const loading *l, const char *name)
{
    char full[NAME_BYTES];
    int length = snprintf(full, sizeof full, "%s%s", l->prefix, name);
    return length > 0 && length < NAME_BYTES ? att_tensors_find(l->file, full) : -1;
}

static bool has_alias(const loading *l, const char *name, int index, char *other, size_t size)
{
    const att_family *family = att_model_family(l->model);
    return family->alias && family->alias(l->context, name, index, other, size);
}

/* Returns the index of a parameter's tensor in the file, by its name or an alternative name; -1 if missing. */
static int tensor_of(const loading *l, const char *name)
{
    char other[NAME_BYTES];
    int index = find_prefixed(l, name);
    for (int i = 0; index < 0 && has_alias(l, name, i, other, sizeof other); i++)
        index = find_prefixed(l, other);
    return index;
}

static bool is_number(att_safetensors_dtype dtype)
{
    return dtype == ATT_SAFETENSORS_F32 || dtype == ATT_SAFETENSORS_F16 || dtype == ATT_SAFETENSORS_BF16 ||
           dtype == ATT_SAFETENSORS_F64;
}

/* Reads tensor `index` as `dtype` (F32 or F64); `buffer` must have room for f64. */
static att_status read_as(const loading *l, int index, att_dtype dtype, int64_t count, void *buffer)
{
    if (dtype == ATT_F32)
        return att_tensors_read_f32(l->file, index, buffer, count);
    if (att_tensors_at(l->file, index).dtype == ATT_SAFETENSORS_F64)
        return att_tensors_read(l->file, index, ATT_SAFETENSORS_F64, buffer, count);
    float *narrow = buffer;
    ATT_TRY(att_tensors_read_f32(l->file, index, narrow, count));
    double *wide = buffer;
    for (int64_t i = count; i-- > 0;) {
        float value;
        memcpy(&value, (const char *)buffer + (size_t)i * sizeof value, sizeof value);
        wide[i] = value;
    }
    return ATT_OK;
}

/* --- the head ---------------------------------------------------------------------------------------------------- */

static bool is_head(const loading *l, const char *name)
{
    return att_model_is_head(l->model, name);
}

static bool is_added(const loading *l, const char *name)
{
    return att_family_is_added(l->context, att_model_family(l->model), name);
}

/* Whether a parameter keeps its value instead of being loaded. */
static bool is_kept(const loading *l, const char *name)
{
    return (l->without_head && is_head(l, name)) || (l->without_added && is_added(l, name));
}

/* Whether two parameters are those of one layer: "head.weight" and "head.bias". */
static bool share_layer(const char *one, const char *other)
{
    const char *dot = strrchr(one, '.');
    const size_t length = dot ? (size_t)(dot - one) + 1 : 0;
    return length > 0 && strncmp(one, other, length) == 0 && !strchr(other + length, '.');
}

/* Returns the file's number of classes if its head differs from the model's in nothing else; else 0. Other layers of
 * the head are the same; in a layer that has the classes all parameters have them. */
static int64_t other_classes(const loading *l)
{
    int64_t classes = 0;
    const char *last = "";
    bool last_differs = false;
    for (int i = 0; i < att_graph_parameter_count(l->graph); i++) {
        att_parameter_info parameter = att_graph_parameter_at(l->graph, i);
        if (!is_head(l, parameter.name))
            continue;
        int index = tensor_of(l, parameter.name);
        if (index < 0)
            return 0;
        att_tensors_info info = att_tensors_at(l->file, index);
        int64_t found = info.shape.rank > 0 ? info.shape.dims[0] : 0;
        info.shape.dims[0] = parameter.shape.dims[0];
        const bool fits = att_checkpoint_same_shape(info.shape, parameter.shape) && is_number(info.dtype);
        const bool differs = found != parameter.shape.dims[0];
        if (!fits || (differs && classes > 0 && found != classes) ||
            (share_layer(last, parameter.name) && differs != last_differs))
            return 0;
        classes = differs ? found : classes;
        last = parameter.name, last_differs = differs;
    }
    return classes;
}

/* Whether the file lacks all parameters of a kind. */
static bool lacks(const loading *l, bool (*is_kind)(const loading *l, const char *name))
{
    for (int i = 0; i < att_graph_parameter_count(l->graph); i++) {
        const char *name = att_graph_parameter_at(l->graph, i).name;
        if (is_kind(l, name) && tensor_of(l, name) >= 0)
            return false;
    }
    return true;
}

static void describe_head(const loading *l, att_new_head *head)
{
    enum { NAMED = 8 };
    *head = (att_new_head){.classes = l->head_classes};
    size_t length = 0;
    int count = 0;
    for (int i = 0; i < att_graph_parameter_count(l->graph); i++) {
        const char *name = att_graph_parameter_at(l->graph, i).name;
        if (l->without_head && is_head(l, name) && count++ < NAMED && length < sizeof head->names)
            length +=
                (size_t)snprintf(head->names + length, sizeof head->names - length, "%s%s", length ? ", " : "", name);
    }
    if (count > NAMED && length < sizeof head->names)
        snprintf(head->names + length, sizeof head->names - length, " and %d more", count - NAMED);
}

static void log_added(const loading *l)
{
    const char *first = NULL;
    int count = 0;
    for (int i = 0; i < att_graph_parameter_count(l->graph) && l->without_added; i++) {
        const char *name = att_graph_parameter_at(l->graph, i).name;
        if (is_added(l, name) && count++ == 0)
            first = name;
    }
    if (count == 1)
        att_log(l->context, ATT_LOG_INFO, "%s keeps its initial values: %s has no such tensor", first,
                att_tensors_path(l->file));
    else if (count > 1)
        att_log(l->context, ATT_LOG_INFO, "%s and %d more like it keep their initial values: %s has no such tensors",
                first, count - 1, att_tensors_path(l->file));
}

/* --- adapting to other images ------------------------------------------------------------------------------------- */

static bool needs_regrid(const loading *l, const att_parameter_info *parameter, const att_tensors_info *info,
                         att_regrid *grid)
{
    const att_family *family = att_model_family(l->model);
    return is_number(info->dtype) && family->regrids &&
           family->regrids(att_model_settings(l->model), &l->file_options, parameter->name, info->shape,
                           parameter->shape, grid);
}

/* Whether the shapes of a first convolution [width, channels, height, width] differ in the channels. */
static bool differs_in_channels(const loading *l, const att_parameter_info *parameter, const att_tensors_info *info)
{
    att_shape shape = info->shape;
    if (!is_number(info->dtype) || shape.rank != 4 || parameter->shape.rank != 4 ||
        shape.dims[1] == parameter->shape.dims[1] || att_model_layer(l->model, parameter->name) != 0)
        return false;
    shape.dims[1] = parameter->shape.dims[1];
    return att_shape_equal(shape, parameter->shape);
}

/* Whether the tensor is for images of three colours, and the parameter for grey images. */
static bool needs_sum(const loading *l, const att_parameter_info *parameter, const att_tensors_info *info)
{
    return differs_in_channels(l, parameter, info) && info->shape.dims[1] == 3 && parameter->shape.dims[1] == 1;
}

/* Sums over the colours, as timm does for in_chans 1: a grey image in three equal channels gives the same. */
static void sum_colours(att_shape shape, const double *in, double *out)
{
    int64_t pixels = shape.dims[2] * shape.dims[3];
    for (int64_t i = 0; i < shape.dims[0]; i++, in += 3 * pixels, out += pixels)
        for (int64_t p = 0; p < pixels; p++)
            out[p] = in[p] + in[pixels + p] + in[2 * pixels + p];
}

static void log_adapted(const loading *l, const char *name, const att_regrid *grid)
{
    if (l->again)
        return;
    if (grid)
        att_log(l->context, ATT_LOG_INFO, "%s: resampled from %d x %d %s to %d x %d", name, grid->from[0],
                grid->from[1], grid->way == ATT_REGRID_SHIFTS ? "shifts" : "patches", grid->to[0], grid->to[1]);
    else
        att_log(l->context, ATT_LOG_INFO, "%s: summed over the three colours, for grey images", name);
}

/* Reads a tensor as the graph's type, and resamples it to the network's grid. grid: NULL sums over the colours. */
static att_status read_adapted(const loading *l, int index, const att_regrid *grid, int64_t count, void *buffer)
{
    att_tensors_info info = att_tensors_at(l->file, index);
    size_t bytes = att_size_product((size_t)info.count, sizeof(double));
    double *from = att_allocate(l->context, bytes);
    double *made =
        att_graph_dtype(l->graph) == ATT_F64 ? buffer : att_allocate_array(l->context, (size_t)count, sizeof *made);
    att_status status =
        from && made ? read_as(l, index, ATT_F64, info.count, from) : att_fail_memory(l->context, bytes, info.name);
    if (status == ATT_OK && grid)
        status = att_regrid_table(l->context, grid, from, made);
    else if (status == ATT_OK)
        sum_colours(info.shape, from, made);
    for (int64_t i = 0; i < count && status == ATT_OK && made != buffer; i++)
        ((float *)buffer)[i] = (float)made[i];
    att_free(l->context, from);
    if (made != buffer)
        att_free(l->context, made);
    if (status == ATT_OK)
        log_adapted(l, info.name, grid);
    return status;
}

/* --- reporting differences ---------------------------------------------------------------------------------------- */

/* A list for a message, "3 missing: a, b, c": counts all names, lists at most LISTED. */
typedef struct listing {
    att_text text;
    int count;
} listing;

static void list_name(listing *list, const char *name, const char *detail)
{
    if (list->count < LISTED)
        att_text_append(&list->text, "%s%.100s%s", list->count ? ", " : "", name, detail);
    else if (list->count == LISTED)
        att_text_append(&list->text, ", ...");
    list->count++;
}

/* The first tensor that is for other images and cannot be adapted: its rows are those of another grid, or it reads
 * other channels. count: of all such tensors. */
typedef struct misfit {
    const char *name, *options; /* options: those that decide the grid; NULL: other channels */
    att_shape has, wants;
    int count;
} misfit;

static void note_misfit(const loading *l, const att_parameter_info *parameter, const att_tensors_info *info,
                        misfit *grids)
{
    att_regrid grid = {.options = NULL};
    att_shape rows = info->shape;
    (void)needs_regrid(l, parameter, info, &grid);
    bool has_rows = grid.options && rows.rank > 1;
    if (has_rows)
        rows.dims[rows.rank - 2] = parameter->shape.dims[rows.rank - 2];
    bool other_rows = has_rows && att_shape_equal(rows, parameter->shape);
    if ((!other_rows && !differs_in_channels(l, parameter, info)) || grids->count++ > 0)
        return;
    grids->name = parameter->name, grids->options = grid.options;
    grids->has = info->shape, grids->wants = parameter->shape;
}

static void list_wrong(const att_parameter_info *parameter, const att_tensors_info *info, listing *mistyped,
                       listing *misshaped)
{
    const char *type = att_safetensors_dtype_name(info->dtype);
    char has[96], wants[96], detail[240];
    if (att_checkpoint_same_shape(info->shape, parameter->shape)) {
        snprintf(detail, sizeof detail, " %s", type);
        list_name(mistyped, parameter->name, detail);
        return;
    }
    snprintf(detail, sizeof detail, " %s %s instead of %s", type, att_shape_format(info->shape, has, sizeof has),
             att_shape_format(parameter->shape, wants, sizeof wants));
    list_name(misshaped, parameter->name, detail);
}

static void list_parameters(const loading *l, listing *missing, listing *mistyped, listing *misshaped, misfit *grids)
{
    for (int i = 0; i < att_graph_parameter_count(l->graph); i++) {
        att_parameter_info parameter = att_graph_parameter_at(l->graph, i);
        if (is_kept(l, parameter.name))
            continue;
        int index = tensor_of(l, parameter.name);
        if (index < 0) {
            list_name(missing, parameter.name, "");
            continue;
        }
        att_tensors_info info = att_tensors_at(l->file, index);
        att_regrid grid;
        if (is_number(info.dtype) && (att_checkpoint_same_shape(info.shape, parameter.shape) ||
                                      needs_regrid(l, &parameter, &info, &grid) || needs_sum(l, &parameter, &info)))
            continue;
        list_wrong(&parameter, &info, mistyped, misshaped);
        note_misfit(l, &parameter, &info, grids);
    }
}

static bool is_alias(const loading *l, const char *parameter, const char *name)
{
    char other[NAME_BYTES];
    for (int i = 0; has_alias(l, parameter, i, other, sizeof other); i++)
        if (strcmp(other, name) == 0)
            return true;
    return false;
}

static bool is_parameter(const loading *l, const char *name)
{
    for (int i = 0; i < att_graph_parameter_count(l->graph); i++) {
        const char *own = att_graph_parameter_at(l->graph, i).name;
        if (strcmp(own, name) == 0 || is_alias(l, own, name))
            return true;
    }
    return false;
}

/* With a prefix, tensors without the prefix do not matter. */
static void list_extra(const loading *l, listing *extra)
{
    for (int i = 0; !l->prefix[0] && i < att_tensors_count(l->file); i++) {
        const char *name = att_tensors_at(l->file, i).name;
        bool passed_over = att_checkpoint_ignores(l->context, l->file, name) || (l->without_head && is_head(l, name));
        if (!passed_over && !is_parameter(l, name))
            list_name(extra, name, "");
    }
}

/* The tolerance is 5 % of 1 / sqrt(h w), the scale of a cosine; the values of another basis differ by about 100 %. */
static bool is_constant(const att_module *module, att_shape shape, const float *read)
{
    double most = 0.05 / sqrt((double)shape.dims[1] * (double)shape.dims[2]);
    for (int64_t e = 0; e < att_shape_count(shape); e++)
        if (!(fabs(read[e] - module->constant_at(shape, e)) <= most))
            return false;
    return true;
}

static att_status check_constant(const loading *l, int index, const att_module *module)
{
    att_tensors_info info = att_tensors_at(l->file, index);
    int64_t count = att_shape_count(info.shape);
    bool same = info.shape.rank == 3 && is_number(info.dtype);
    float *read = same ? att_allocate_array(l->context, (size_t)count, sizeof *read) : NULL;
    if (same && !read)
        return att_fail_memory(l->context, (size_t)count * sizeof *read, "a tensor");
    att_status status = same ? att_tensors_read_f32(l->file, index, read, count) : ATT_OK;
    same = same && status == ATT_OK && is_constant(module, info.shape, read);
    att_free(l->context, read);
    if (status == ATT_OK && !same)
        return att_fail(l->context, ATT_ERR_UNSUPPORTED,
                        "%s: \"%s\" is not the constant of the module %s: the network was made with other settings",
                        att_tensors_path(l->file), info.name, module->name);
    return status;
}

static att_status check_constants(const loading *l)
{
    for (int i = 0; i < att_tensors_count(l->file); i++) {
        const att_module *module = att_checkpoint_constant(l->context, att_tensors_at(l->file, i).name);
        if (module)
            ATT_TRY(check_constant(l, i, module));
    }
    return ATT_OK;
}

enum { MISSING, EXTRA, MISTYPED, MISSHAPED, LISTS };

/* Appends the options of the file's network in which it differs from the model: "it was made with depth 12, embed_dim
 * 192; ". They say
 * more than a long list of tensors. Appends nothing if the file's tensors do not show them. */
static void list_differences(const loading *l, att_text *text)
{
    const att_family *family = att_model_family(l->model);
    const att_identity own = att_model_identity(l->model);
    att_option_values found = att_options_none();
    if (family != att_family_nearest(l->context, l->file) ||
        att_family_recognise(l->context, family, l->file, &found) != ATT_OK)
        return;
    att_options_unset(&found, "num_classes");
    att_text differing = {.context = l->context};
    if (att_options_differences(&differing, family->options, &found, &own.options))
        att_text_append(text, "it was made with %s; ", differing.data ? differing.data : "");
    text->failed = text->failed || differing.failed;
    att_text_free(&differing);
}

static att_status report(const loading *l, const listing *lists)
{
    static const char *const heads[LISTS] = {
        [MISSING] = "missing",
        [EXTRA] = "extra",
        [MISTYPED] = "of a type other than F32, F16, BF16 and F64",
        [MISSHAPED] = "mis-shaped",
    };
    att_text text = {.context = l->context};
    int named = 0, wrong = 0;
    for (int i = 0; i < LISTS; i++)
        wrong += lists[i].count;
    if (wrong > LISTED)
        list_differences(l, &text);
    for (int i = 0; i < LISTS; i++)
        if (lists[i].count)
            att_text_append(&text, "%s%d %s: %s", named++ ? "; " : "", lists[i].count, heads[i],
                            lists[i].text.data ? lists[i].text.data : "");
    att_status status = ATT_OK;
    if (text.failed)
        status = att_fail_memory(l->context, 1024, "a message");
    else if (wrong)
        status = att_fail(l->context, ATT_ERR_MISMATCH, "%s does not fit the model: %s", att_tensors_path(l->file),
                          text.data);
    att_text_free(&text);
    return status;
}

static att_status report_grid(const loading *l, const misfit *grids)
{
    char has[96], wants[96];
    if (!grids->options)
        return att_fail(l->context, ATT_ERR_MISMATCH,
                        "%s: \"%s\" reads images of %d channel%s, not of %d: leave in_chans out",
                        att_tensors_path(l->file), grids->name, (int)grids->has.dims[1],
                        grids->has.dims[1] == 1 ? "" : "s", (int)grids->wants.dims[1]);
    return att_fail(
        l->context, ATT_ERR_MISMATCH,
        "%s: \"%s\" is %s, not %s: it was made for another grid, which is not known, since it is no square; "
        "give the values of %s that it was made for",
        att_tensors_path(l->file), grids->name, att_shape_format(grids->has, has, sizeof has),
        att_shape_format(grids->wants, wants, sizeof wants), grids->options);
}

static att_status check(const loading *l)
{
    listing lists[LISTS] = {0};
    misfit grids = {0};
    for (int i = 0; i < LISTS; i++)
        lists[i].text.context = l->context;
    list_parameters(l, &lists[MISSING], &lists[MISTYPED], &lists[MISSHAPED], &grids);
    list_extra(l, &lists[EXTRA]);
    int others =
        lists[MISSING].count + lists[EXTRA].count + lists[MISTYPED].count + lists[MISSHAPED].count - grids.count;
    att_status status = grids.count > 0 && others == 0 ? report_grid(l, &grids) : report(l, lists);
    for (int i = 0; i < LISTS; i++)
        att_text_free(&lists[i].text);
    return status;
}

/* --- copying ----------------------------------------------------------------------------------------------------- */

static void note_nonfinite(loading *l, const char *name, const void *values, int64_t count)
{
    const int64_t found = att_count_nonfinite(values, att_graph_dtype(l->graph), count);
    l->damaged_others += found > 0 && l->damaged;
    if (found > 0 && !l->damaged)
        l->damaged = name, l->damaged_values = found;
}

static void warn_nonfinite(const loading *l)
{
    char more[64] = "";
    if (!l->damaged || l->again)
        return;
    if (l->damaged_others > 0)
        snprintf(more, sizeof more, "; so %s %d other tensor%s", l->damaged_others == 1 ? "has" : "have",
                 l->damaged_others, l->damaged_others == 1 ? "" : "s");
    att_log(
        l->context, ATT_LOG_WARNING,
        "%s: tensor %s has %lld value%s that %s NaN or infinite%s: the file is damaged, or its training run diverged",
        att_tensors_path(l->file), l->damaged, (long long)l->damaged_values, l->damaged_values == 1 ? "" : "s",
        l->damaged_values == 1 ? "is" : "are", more);
}

/* weights: NULL: reads the tensors only. */
static att_status copy_all(loading *l, att_weights *weights, void *buffer)
{
    for (int i = 0; i < att_graph_parameter_count(l->graph); i++) {
        att_parameter_info parameter = att_graph_parameter_at(l->graph, i);
        if (is_kept(l, parameter.name))
            continue;
        int64_t count = att_shape_count(parameter.shape);
        int index = tensor_of(l, parameter.name);
        att_tensors_info info = att_tensors_at(l->file, index);
        att_regrid grid;
        bool regrids = needs_regrid(l, &parameter, &info, &grid);
        if (regrids || needs_sum(l, &parameter, &info))
            ATT_TRY(read_adapted(l, index, regrids ? &grid : NULL, count, buffer));
        else
            ATT_TRY(read_as(l, index, att_graph_dtype(l->graph), count, buffer));
        note_nonfinite(l, info.name, buffer, count);
        if (weights)
            ATT_TRY(att_weights_set(weights, -1, att_weights_find(weights, parameter.name), buffer, count));
    }
    warn_nonfinite(l);
    return ATT_OK;
}

static att_status check_weights(const loading *l, const att_weights *weights)
{
    for (int i = 0; i < att_graph_parameter_count(l->graph); i++) {
        att_parameter_info parameter = att_graph_parameter_at(l->graph, i);
        int index = att_weights_find(weights, parameter.name);
        if (index < 0 || !att_shape_equal(att_weights_at(weights, index).shape, parameter.shape))
            return att_fail(l->context, ATT_ERR_MISMATCH, "the weights were not made for this model: \"%s\" differs",
                            parameter.name);
    }
    return ATT_OK;
}

/* Reads the options of the file's network from its metadata. */
static att_status read_made_for(loading *l)
{
    const char *text = att_tensors_metadata(l->file, ATT_IDENTITY_KEY);
    att_config config = att_config_none();
    if (text)
        ATT_TRY(att_config_parse(l->context, att_tensors_path(l->file), text, &config));
    l->file_options = config.options;
    return ATT_OK;
}

/* weights: NULL: reads and checks only. */
static att_status load(loading *l, att_weights *weights)
{
    if (weights)
        ATT_TRY(check_weights(l, weights));
    ATT_TRY(read_made_for(l));
    ATT_TRY(check(l));
    ATT_TRY(check_constants(l));
    int64_t largest = 0;
    for (int i = 0; i < att_graph_parameter_count(l->graph); i++) {
        int64_t count = att_shape_count(att_graph_parameter_at(l->graph, i).shape);
        largest = count > largest ? count : largest;
    }
    void *buffer = att_allocate_array(l->context, (size_t)largest, sizeof(double));
    if (!buffer)
        return att_fail_memory(l->context, (size_t)largest * sizeof(double), "a tensor");
    att_status status = copy_all(l, weights, buffer);
    att_free(l->context, buffer);
    return status;
}

static loading loading_of(const att_model *model, const att_tensors *file, const char *prefix)
{
    const att_graph *graph = att_model_graph(model);
    return (loading){
        .context = att_graph_context(graph), .model = model, .graph = graph, .file = file, .prefix = prefix};
}

att_status att_model_check_file(const att_model *model, const att_tensors *file)
{
    loading l = loading_of(model, file, "");
    ATT_TRY(att_require(l.context, file, "the file to check"));
    return load(&l, NULL);
}

static att_status check_arguments(const att_model *model, const att_tensors *file, const att_weights *weights)
{
    att_context *context = att_graph_context(att_model_graph(model));
    ATT_TRY(att_require(context, file, "the file to load weights from"));
    return att_require(context, weights, "the object to load weights into");
}

att_status att_model_load_prefixed(const att_model *model, const att_tensors *file, const char *prefix,
                                   att_weights *weights)
{
    ATT_TRY(check_arguments(model, file, weights));
    loading l = loading_of(model, file, prefix);
    l.again = att_weights_has_source(weights);
    return load(&l, weights);
}

att_status att_model_load(const att_model *model, const att_tensors *file, att_weights *weights)
{
    return att_model_load_prefixed(model, file, "", weights);
}

att_status att_model_load_pretrained(const att_model *model, const att_tensors *file, att_weights *weights,
                                     att_new_head *head)
{
    ATT_TRY(check_arguments(model, file, weights));
    loading l = loading_of(model, file, "");
    l.head_classes = other_classes(&l);
    l.without_head = l.head_classes > 0 || lacks(&l, is_head);
    l.without_added = lacks(&l, is_added);
    ATT_TRY(load(&l, weights));
    if (head)
        describe_head(&l, head);
    log_added(&l);
    return ATT_OK;
}
