#include "networks/models/module_options.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/text.h"
#include "base/io/json.h"
#include "networks/models/checkpoint.h"
#include "networks/nn/module.h"

enum { MAP_SIDE = 8, NAME_BYTES = 256, MOST_RATIOS = 8, MOST_WIDTHS = 8, MOST_HIDDEN = 1 << 16 };

typedef struct search {
    att_context *context;
    const att_module_places *at;
    double ratios[MOST_RATIOS]; /* candidate ratios, from the widths of the tensors */
    int ratio_count;
    att_module_choice choice;
    bool widths_are_free; /* each site may have its own hidden width */
    bool keeps_ratio;     /* the hidden width of a site must equal C / ratio up to rounding */
    int *hidden;          /* receives the hidden width of each site; NULL: not wanted */
} search;

/* Returns the index of a module's option; -1 if it has none of that name. */
static int option_of(const att_module *module, const char *name)
{
    for (int i = 0; module && i < module->option_count; i++)
        if (strcmp(module->options[i].name, name) == 0)
            return i;
    return -1;
}

bool att_module_set_hidden(att_module_choice *choice, int hidden)
{
    int option = option_of(choice->module, "hidden");
    if (option >= 0)
        choice->values[option] = hidden;
    return option >= 0;
}

/* --- testing options ---------------------------------------------------------------------------------------------- */

/* Returns the index of a site's tensor for a parameter; -1 if missing. */
static int tensor_of(const search *s, const att_module_block *site, const char *name)
{
    char full[NAME_BYTES];
    snprintf(full, sizeof full, "%s.%s", site->block, name);
    int index = att_tensors_find(s->at->file, full);
    char other[NAME_BYTES];
    for (int i = 0; index < 0 && s->at->alias && s->at->alias(s->context, full, i, other, sizeof other); i++)
        index = att_tensors_find(s->at->file, other);
    return index;
}

static bool has_parameters(const search *s, const att_module_block *site, const att_graph *graph)
{
    for (int i = 0; i < att_graph_parameter_count(graph); i++) {
        att_parameter_info parameter = att_graph_parameter_at(graph, i);
        int index = tensor_of(s, site, parameter.name);
        if (index < 0 || !att_checkpoint_same_shape(att_tensors_at(s->at->file, index).shape, parameter.shape))
            return false;
    }
    return att_graph_parameter_count(graph) == site->tensors;
}

static int replaced_heads(const att_module_choice *choice)
{
    return choice->module->replaced_heads ? choice->module->replaced_heads(choice->values) : 0;
}

/* Builds the module on a small graph and compares its parameters with the file's. Options that cannot be built do not
 * fit. */
static att_status fits_with(const search *s, const att_module_block *site, const att_module_choice *choice, bool *fits)
{
    att_graph *graph;
    ATT_TRY(att_graph_create(s->context, ATT_F32, &graph));
    att_shape shape = site->place == ATT_ON_MAPS ? att_shape_of(MAP_SIDE, MAP_SIDE, site->channels)
                                                 : att_shape_of(MAP_SIDE * MAP_SIDE, site->channels);
    att_scope root = att_scope_root(graph);
    const att_module_site at = {.branch = att_graph_input(graph, "branch", ATT_F32, shape),
                                .identity = att_graph_input(graph, "identity", ATT_F32, shape),
                                .input = att_graph_input(graph, "input", ATT_F32, shape),
                                .prefix = 1,
                                .heads = site->heads,
                                .qkv_bias = site->has_bias};
    att_module_apply(choice, &root, &at);
    att_status status = att_graph_status(graph);
    *fits = status == ATT_OK && replaced_heads(choice) == site->replaced_heads && has_parameters(s, site, graph);
    att_graph_destroy(&graph);
    return status == ATT_ERR_MEMORY ? status : ATT_OK;
}

/* If tensor `index` is a layer of the block, returns the number of its outputs, a candidate for the hidden width; else
 * 0. */
static int64_t width_in(const search *s, const att_module_block *site, int index)
{
    att_tensors_info info = att_tensors_at(s->at->file, index);
    size_t length = strlen(site->block);
    bool here = strncmp(info.name, site->block, length) == 0 && info.name[length] == '.';
    return here && info.shape.rank >= 2 && info.shape.dims[0] <= MOST_HIDDEN ? info.shape.dims[0] : 0;
}

/* Collects the candidates for the site's hidden width. Returns their number. */
static int list_widths(const search *s, const att_module_block *site, int widths[MOST_WIDTHS])
{
    int count = 0, ratio = option_of(s->choice.module, "ratio");
    for (int i = 0; i < att_tensors_count(s->at->file) && count < MOST_WIDTHS; i++) {
        int width = (int)width_in(s, site, i), known = 0;
        double exact = ratio < 0 ? width : (double)site->channels / s->choice.values[ratio];
        while (known < count && widths[known] != width)
            known++;
        if (width > 0 && known == count && (!s->keeps_ratio || fabs(exact - width) < 1))
            widths[count++] = width;
    }
    return count;
}

/* Finds the hidden width with which the module fits the site. */
static att_status fits_own(const search *s, const att_module_block *site, int *hidden, bool *fits)
{
    int widths[MOST_WIDTHS], count = list_widths(s, site, widths);
    att_module_choice choice = s->choice;
    *fits = false;
    for (int i = 0; i < count && !*fits; i++) {
        *hidden = widths[i];
        att_module_set_hidden(&choice, widths[i]);
        ATT_TRY(fits_with(s, site, &choice, fits));
    }
    return ATT_OK;
}

static att_status fits_all(const search *s, bool *fits)
{
    int own = 0;
    *fits = true;
    for (int i = 0; i < s->at->count && *fits; i++) {
        const att_module_block *site = &s->at->sites[i];
        int *hidden = s->hidden ? &s->hidden[i] : &own;
        ATT_TRY(s->widths_are_free ? fits_own(s, site, hidden, fits) : fits_with(s, site, &s->choice, fits));
    }
    return ATT_OK;
}

/* --- enumerating options ------------------------------------------------------------------------------------------ */

static void add_ratio(search *s, double ratio)
{
    for (int i = 0; i < s->ratio_count; i++)
        if (s->ratios[i] == ratio)
            return;
    if (s->ratio_count < MOST_RATIOS)
        s->ratios[s->ratio_count++] = ratio;
}

static const att_module_block *widest_site(const search *s)
{
    const att_module_block *widest = s->at->sites;
    for (int i = 1; i < s->at->count; i++)
        if (s->at->sites[i].channels > widest->channels)
            widest = &s->at->sites[i];
    return widest;
}

/* Collects ratios of channels to hidden widths. The widest site is used, because rounding matters least there. Modules
 * round widths down or to the nearest, so both neighbouring whole ratios come first, then the exact ratio. */
static void collect_ratios(search *s)
{
    const att_module_block *site = widest_site(s);
    for (int i = 0; i < att_tensors_count(s->at->file); i++) {
        int64_t width = width_in(s, site, i);
        if (width == 0 || width >= site->channels)
            continue;
        double ratio = (double)site->channels / (double)width;
        add_ratio(s, floor(ratio));
        add_ratio(s, ceil(ratio));
        add_ratio(s, ratio);
    }
}

/* Returns how many values of an option are tried: the default first, then others. Hidden widths are not tried in turn,
 * since the tensors show them. */
static int value_count(const search *s, const att_detail *option)
{
    bool is_ratio = !option->choices && !option->whole && !s->widths_are_free;
    return 1 + (option->choices ? (int)option->high + 1 : is_ratio ? s->ratio_count : 0);
}

static double value_at(const search *s, const att_detail *option, int index)
{
    return index == 0 ? option->start : option->choices ? index - 1 : s->ratios[index - 1];
}

/* Sets the values with these indices; returns false if one is out of range or repeats the default. */
static bool choose(search *s, const int index[ATT_MODULE_OPTIONS])
{
    const att_module *module = s->choice.module;
    bool fine = true;
    for (int i = 0; i < ATT_MODULE_OPTIONS && i < module->option_count; i++) {
        const att_detail *option = &module->options[i];
        double value = value_at(s, option, index[i]);
        fine = fine && value >= option->low && value <= option->high && (index[i] == 0 || value != option->start);
        s->choice.values[i] = value;
    }
    return fine;
}

/* Advances to the next combination, the first option fastest; returns false past the last. */
static bool advance(const search *s, int index[ATT_MODULE_OPTIONS])
{
    const att_module *module = s->choice.module;
    for (int i = 0; i < ATT_MODULE_OPTIONS && i < module->option_count; i++) {
        if (++index[i] < value_count(s, &module->options[i]))
            return true;
        index[i] = 0;
    }
    return false;
}

static att_status search_all(search *s, bool *fits)
{
    int index[ATT_MODULE_OPTIONS] = {0};
    *fits = false;
    do
        if (choose(s, index))
            ATT_TRY(fits_all(s, fits));
    while (!*fits && advance(s, index));
    return ATT_OK;
}

/* --- writing ------------------------------------------------------------------------------------------------------ */

static void write_choice(const att_module_choice *choice, char *text, size_t size)
{
    const att_module *module = choice->module;
    int length = snprintf(text, size, "%s", module->name);
    char comma = ':';
    for (int i = 0; i < module->option_count && length < (int)size; i++) {
        const att_detail *option = &module->options[i];
        char number[ATT_NUMBER_TEXT];
        if (choice->values[i] == option->start)
            continue;
        const char *value =
            option->choices ? option->choices[(int)choice->values[i]] : att_format_number(choice->values[i], number);
        length += snprintf(text + length, size - (size_t)length, "%c%s=%s", comma, option->name, value);
        comma = ',';
    }
    if (length >= (int)size)
        snprintf(text, size, "%s", module->name);
}

static bool sets_option(const char *text, const char *option)
{
    size_t length = strlen(option);
    for (const char *at = strpbrk(text, ":,"); at; at = strpbrk(at + 1, ","))
        if (strncmp(at + 1, option, length) == 0 && at[1 + length] == '=')
            return true;
    return false;
}

att_status att_module_options_infer(att_context *context, const att_module_places *places, const att_module *module,
                                    char *text, size_t size, bool *fits)
{
    search s = {.context = context, .at = places, .choice.module = module};
    collect_ratios(&s);
    ATT_TRY(search_all(&s, fits));
    s.widths_are_free = option_of(module, "hidden") >= 0;
    if (!*fits && s.widths_are_free)
        ATT_TRY(search_all(&s, fits));
    if (*fits)
        write_choice(&s.choice, text, size);
    else
        snprintf(text, size, "%s", module->name);
    return ATT_OK;
}

att_status att_module_options_fit(att_context *context, const att_module_places *places,
                                  const att_module_choice *choice, const char *text, int *hidden, bool *own)
{
    search s = {.context = context,
                .at = places,
                .choice = *choice,
                .keeps_ratio = sets_option(text, "ratio"),
                .hidden = hidden};
    bool fits;
    *own = false;
    ATT_TRY(fits_all(&s, &fits));
    s.widths_are_free = option_of(choice->module, "hidden") >= 0 && !sets_option(text, "hidden");
    return fits || !s.widths_are_free ? ATT_OK : fits_all(&s, own);
}
