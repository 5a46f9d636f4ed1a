/* The module of an advice: its options, its place, and the check that it starts as the identity. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/random.h"
#include "base/core/text.h"
#include "lab/runs/advise/advice.h"
#include "networks/nn/module.h"

/* Returns whether the module has the option "start" with the choice "identity". */
static bool can_start_as_identity(const att_module *module)
{
    for (int i = 0; i < module->option_count; i++)
        for (const char *const *choice = module->options[i].choices; choice && *choice; choice++)
            if (strcmp(module->options[i].name, "start") == 0 && strcmp(*choice, "identity") == 0)
                return true;
    return false;
}

/* "se:ratio=8" becomes "se:ratio=8,start=identity", unless it gives "start". */
static const char *complete(att_advice *advice, const att_module *module, const char *text)
{
    if (!can_start_as_identity(module) || strstr(text, ":start=") || strstr(text, ",start="))
        return text;
    return att_advice_text(advice, "%s%sstart=identity", text, strchr(text, ':') ? "," : ":");
}

static att_status find_place(att_advice *advice, const att_module *module, const att_family_info *family,
                             const char *given)
{
    for (int i = 0; i < family->hook_count && !advice->place; i++)
        if (given ? strcmp(family->hooks[i].name, given) == 0 : (family->hooks[i].place & module->places) != 0)
            advice->place = family->hooks[i].name;
    if (advice->place)
        return ATT_OK;
    return att_fail(advice->context, ATT_ERR_ARGUMENT, "module \"%s\": this network has no place %s%s%sfor it",
                    module->name, given ? "@" : "", given ? given : "", given ? " " : "");
}

/* A training run adds modules only to a file that has no parameters of modules. */
static att_status check_base(const att_advice *advice)
{
    for (const char *at = advice->base; *at; at += strcspn(at, "+"), at += *at == '+') {
        char module[ATT_OPTION_TEXT_BYTES];
        att_module_choice choice = {0};
        snprintf(module, sizeof module, "%.*s", (int)strcspn(at, "@+"), at);
        ATT_TRY(att_module_parse(advice->context, module, &choice));
        if (choice.module && att_module_has_parameters(&choice))
            return att_fail(advice->context, ATT_ERR_UNSUPPORTED,
                            "%s has the modules %s: a fine-tuning can add a module only to a checkpoint whose modules "
                            "have no parameters",
                            advice->options.checkpoint, advice->base);
    }
    return ATT_OK;
}

att_status att_advice_read_module(att_advice *advice, const att_network *network)
{
    const att_family_info family = att_model_family_of(att_network_identity(network)->name);
    char *text = att_arena_string(&advice->texts, advice->options.module);
    if (!text)
        return att_fail_memory(advice->context, strlen(advice->options.module), "the name of a module");
    char *place = strchr(text, '@');
    if (place)
        *place++ = '\0';
    if (strchr(advice->options.module, '+') || (place && strchr(place, ':')))
        return att_fail(advice->context, ATT_ERR_ARGUMENT,
                        "module \"%s\": expected one module without blocks, MODULE[:OPTION=VALUE,...][@PLACE], because "
                        "each block is a candidate",
                        advice->options.module);
    ATT_TRY(check_base(advice));
    att_module_choice choice = {0};
    ATT_TRY(att_module_parse(advice->context, text, &choice));
    if (!choice.module)
        return att_fail(advice->context, ATT_ERR_ARGUMENT, "module \"%s\": expected the name of a module", text);
    ATT_TRY(find_place(advice, choice.module, &family, place));
    advice->module = complete(advice, choice.module, text);
    return advice->module ? ATT_OK : att_fail_memory(advice->context, strlen(text), "the name of a module");
}

/* --- the start ---------------------------------------------------------------------------------------------------- */

/* The same random pixels for both networks. */
static att_status answer(att_network *network, const float *pixels, const att_field *field, att_batch *answers)
{
    const void *const data[] = {pixels};
    const att_batch inputs = {.count = 1, .field_count = 1, .fields = field, .data = data};
    return att_network_run(network, &inputs, answers);
}

/* The largest difference of the first answers, relative to the largest element. */
static double difference(const att_batch *a, const att_batch *b)
{
    const int64_t count = att_shape_count(a->fields[0].shape);
    const float *x = a->data[0], *y = b->data[0];
    double size = 0, worst = 0;
    for (int64_t i = 0; i < count; i++) {
        size = fmax(size, fabs((double)y[i]));
        worst = fmax(worst, fabs((double)x[i] - y[i]));
    }
    return size > 0 ? worst / size : worst;
}

static att_status compare(const att_advice *advice, att_network *plain, att_network *candidate, const char *modules)
{
    const double most = 1e-5; /* measured: 0; other modules differ from 1e-3 on */
    const att_field field = att_model_input_at(att_network_model(plain), 0).field;
    const int64_t count = att_shape_count(field.shape);
    att_batch answers[2];
    float *pixels;
    ATT_TRY(att_new_array(advice->context, &pixels, (size_t)count, sizeof *pixels, "an image"));
    att_random random = att_random_from(att_random_key(1, att_random_hash("start"), 0));
    for (int64_t i = 0; i < count; i++)
        pixels[i] = (float)att_random_normal(&random);
    att_status status = answer(plain, pixels, &field, &answers[0]);
    if (status == ATT_OK)
        status = answer(candidate, pixels, &field, &answers[1]);
    if (status == ATT_OK && answers[0].fields[0].dtype == ATT_F32 && !(difference(&answers[1], &answers[0]) <= most))
        status = att_fail(advice->context, ATT_ERR_ARGUMENT,
                          "modules \"%s\" changes the answers of %s before any training (by %.2g of the largest), so "
                          "that its gain could not be told from the change; use a module that starts as the identity: "
                          "cb_s, or cb, se or step with start=identity",
                          modules, advice->options.checkpoint, difference(&answers[1], &answers[0]));
    att_free(advice->context, pixels);
    return status;
}

/* Gives `weights` the values that the network has for the parameters of the same names. */
static att_status copy_weights(const att_advice *advice, const att_weights *from, att_weights *to)
{
    for (int i = 0; i < att_weights_count(from); i++) {
        const att_parameter_info parameter = att_weights_at(from, i);
        const int index = att_weights_find(to, parameter.name);
        const int64_t count = att_shape_count(parameter.shape);
        float *values;
        if (index < 0)
            continue;
        ATT_TRY(att_new_array(advice->context, &values, (size_t)count, sizeof *values, "weights"));
        att_status status = att_weights_get(from, -1, i, values, count);
        if (status == ATT_OK)
            status = att_weights_set(to, -1, index, values, count);
        att_free(advice->context, values);
        ATT_TRY(status);
    }
    return ATT_OK;
}

/* Starts the candidate as a training run would: from the network's weights and initial values of the module's. */
static att_status start(const att_advice *advice, const att_network *network, const char *modules, att_model **model,
                        att_weights **weights)
{
    const att_identity *identity = att_network_identity(network);
    att_option_values values = identity->options;
    att_options_set_text(&values, "modules", modules);
    ATT_TRY(att_model_create(advice->context, identity->name, &values, ATT_F32, model));
    ATT_TRY(att_weights_create(att_model_graph(*model), "cpu", weights));
    ATT_TRY(att_weights_initialise(*weights, 1));
    return copy_weights(advice, att_network_weights(network), *weights);
}

att_status att_advice_check_start(const att_advice *advice, att_network *network)
{
    const char *modules = NULL;
    for (int i = 0; i < advice->count && !modules; i++)
        modules = advice->blocks[i].shown.modules;
    if (!modules)
        return att_fail(advice->context, ATT_ERR_ARGUMENT,
                        "modules \"%s@%s\": no block of %s can have it beside its modules %s", advice->module,
                        advice->place, advice->options.checkpoint, advice->base);
    att_model *model = NULL;
    att_weights *weights = NULL;
    att_network *candidate = NULL;
    att_status status = start(advice, network, modules, &model, &weights);
    if (status == ATT_OK)
        status = att_network_wrap(model, weights, NULL, &candidate);
    if (status == ATT_OK)
        status = compare(advice, network, candidate, modules);
    att_network_close(&candidate);
    att_weights_destroy(&weights);
    att_model_destroy(&model);
    return status;
}
