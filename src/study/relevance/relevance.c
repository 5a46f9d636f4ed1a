#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/core/details.h"
#include "base/core/error.h"
#include "base/core/text.h"
#include "engine/graph/graph.h"
#include "engine/session/session.h"
#include "networks/tasks/task.h"
#include "study/relevance/list.h"
#include <attscope/encoder.h>

/* --- methods ------------------------------------------------------------------------------------------------------ */

#define ATT_RELEVANCE_ADDRESS(name) &att_relevance_##name,
static const att_relevance_method *const methods[] = {ATT_RELEVANCE_LIST(ATT_RELEVANCE_ADDRESS)};
#undef ATT_RELEVANCE_ADDRESS
enum { METHODS = sizeof methods / sizeof *methods };

int att_relevance_method_count(void)
{
    return METHODS;
}

att_relevance_method_info att_relevance_method_at(int index)
{
    return index >= 0 && index < METHODS ? methods[index]->info : (att_relevance_method_info){0};
}

static const char *method_name(const void *user, int index)
{
    (void)user;
    return methods[index]->info.name;
}

static att_status fail_method(att_context *context, const char *name)
{
    const char *nearest = att_text_nearest(name, method_name, NULL, METHODS);
    char names[256] = "";
    if (nearest)
        return att_fail(context, ATT_ERR_NOT_FOUND, "there is no method of relevance \"%s\"; did you mean \"%s\"?",
                        name, nearest);
    for (int i = 0; i < METHODS; i++)
        snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", i ? ", " : "", methods[i]->info.name);
    return att_fail(context, ATT_ERR_NOT_FOUND, "there is no method of relevance \"%s\"; available: %s", name, names);
}

/* Parses "name:key=value,key=value". */
static att_status parse(att_context *context, const char *text, const att_relevance_method **method, double *values)
{
    char words[256];
    bool given[ATT_RELEVANCE_OPTIONS] = {false};
    if (strlen(text) >= sizeof words)
        return att_fail(context, ATT_ERR_ARGUMENT, "a method of relevance with its options has at most %zu bytes",
                        sizeof words - 1);
    snprintf(words, sizeof words, "%s", text);
    char *options = strchr(words, ':');
    if (options)
        *options++ = '\0';
    *method = NULL;
    for (int i = 0; i < METHODS; i++)
        if (strcmp(methods[i]->info.name, words) == 0)
            *method = methods[i];
    if (!*method)
        return fail_method(context, words);
    const att_relevance_method_info *info = &(*method)->info;
    const att_detail_owner owner = {"method", info->name, info->options, info->option_count};
    att_details_start(&owner, values);
    for (char *next; options; options = next) {
        if ((next = strchr(options, ',')))
            *next++ = '\0';
        ATT_TRY(att_detail_set(context, &owner, options, given, values));
    }
    return ATT_OK;
}

att_status att_relevance_check(att_context *context, const char *method)
{
    const att_relevance_method *found;
    double values[ATT_RELEVANCE_OPTIONS];
    return parse(context, method, &found, values);
}

/* --- creating ----------------------------------------------------------------------------------------------------- */

bool att_relevance_applies(const att_explorer *explorer)
{
    const att_graph *graph = explorer->graph;
    const att_value logits = att_graph_find_output(graph, att_task_class_output(graph));
    const att_model *model = att_reshaped_model(explorer->network, &explorer->reshaped);
    return att_network_check_scores(explorer->network, NULL) == ATT_OK && logits != ATT_NONE &&
           att_value_shape(graph, logits).rank == 1 &&
           (att_model_image(model).field.name || att_network_most_tokens(explorer->network) > 0);
}

static att_status check_network(att_relevance *r, const att_model *model)
{
    const att_graph *graph = r->explorer->graph;
    ATT_TRY(att_network_check_scores(r->explorer->network, "relevance needs classes"));
    if (!att_relevance_applies(r->explorer))
        return att_fail(r->context, ATT_ERR_UNSUPPORTED,
                        "relevance needs a network that gives an image or a text one class, and this one has %s",
                        att_model_classes(model) == 0       ? "no head"
                        : att_model_image(model).field.name ? "classes of pixels or boxes"
                                                            : "neither an image nor a text as input");
    r->wide = att_graph_dtype(graph) == ATT_F64;
    if (r->wide && att_model_input_at(model, 1).field.name)
        return att_fail(r->context, ATT_ERR_UNSUPPORTED,
                        "relevance in double precision needs a network whose single input is an image");
    r->logits_name = att_task_class_output(graph);
    const att_field image = att_model_image(model).field;
    r->image_name = image.name;
    r->classes = (int)att_value_shape(graph, att_graph_find_output(graph, r->logits_name)).dims[0];
    if (!image.name)
        return ATT_OK;
    r->height = (int)image.shape.dims[0];
    r->width = (int)image.shape.dims[1];
    r->channels = (int)image.shape.dims[2];
    return ATT_OK;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static att_status allocate(att_relevance *r)
{
    const att_graph *graph = r->explorer->graph;
    const int64_t pixels = (int64_t)r->height * r->width * r->channels;
    r->room = pixels;
    for (int l = 0; l < r->explorer->layer_count; l++)
        r->room = larger(r->room, att_shape_count(att_value_shape(graph, r->explorer->layers[l].output)));
    if (r->features.value != ATT_NONE)
        r->room = larger(r->room, att_shape_count(att_value_shape(graph, r->features.value)));
    const size_t room = (size_t)r->room * (r->wide ? 2 : 1);
    if (r->wide)
        ATT_TRY(att_new(r->context, &r->wide_in, (size_t)r->classes + (size_t)pixels, "inputs in double precision"));
    ATT_TRY(att_new(r->context, &r->seed, (size_t)r->classes, "the seed of a gradient"));
    ATT_TRY(att_new(r->context, &r->image, (size_t)pixels + 1, "an image"));
    ATT_TRY(att_new(r->context, &r->gradient, room, "a gradient"));
    ATT_TRY(att_new(r->context, &r->values, room, "the values of a layer"));
    return att_new(r->context, &r->map, (size_t)r->room, "a map of relevance");
}

static att_status prepare(att_relevance *r)
{
    att_explorer *e = r->explorer;
    ATT_TRY(check_network(r, att_reshaped_model(e->network, &e->reshaped)));
    r->features = att_relevance_find_features(r);
    if (e->layer_count > 0)
        r->read = att_relevance_find_read(e->graph, att_graph_find_output(e->graph, r->logits_name),
                                          e->layers[e->layer_count - 1].tokens);
    ATT_TRY(allocate(r));
    ATT_TRY(att_relevance_compile(r));
    ATT_TRY(att_session_create(r->plan, att_reshaped_weights(e->network, &e->reshaped), 1, &r->session));
    r->session->stops = true;
    return ATT_OK;
}

att_status att_relevance_create(att_explorer *explorer, att_relevance **out)
{
    att_relevance *r;
    ATT_TRY(att_new(explorer->context, &r, 1, "maps of relevance"));
    r->context = explorer->context;
    r->explorer = explorer;
    const att_status status = prepare(r);
    if (status == ATT_OK)
        *out = r;
    else
        att_relevance_destroy(&r);
    return status;
}

void att_relevance_destroy(att_relevance **out)
{
    if (!out || !*out)
        return;
    att_relevance *r = *out;
    att_context *context = r->context;
    att_session_destroy(&r->session);
    att_plan_destroy(&r->plan);
    att_free(context, r->seed);
    att_free(context, r->wide_in);
    att_free(context, r->image);
    att_free(context, r->gradient);
    att_free(context, r->values);
    att_free(context, r->map);
    att_free(context, r);
    *out = NULL;
}

/* --- running ------------------------------------------------------------------------------------------------------ */

static int largest(const float *logits, int count)
{
    int best = 0;
    for (int i = 1; i < count; i++)
        best = logits[i] > logits[best] ? i : best;
    return best;
}

static att_status check_method(const att_relevance *r, const att_relevance_method *method)
{
    char names[256] = "";
    if (!method->info.needs_image || r->image_name)
        return ATT_OK;
    for (int i = 0; i < METHODS; i++)
        if (!methods[i]->info.needs_image)
            snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", *names ? ", " : "",
                     methods[i]->info.name);
    return att_fail(r->context, ATT_ERR_UNSUPPORTED,
                    "%s needs an image, and this network reads texts; these methods apply to texts: %s",
                    method->info.name, names);
}

att_status att_relevance_run(att_relevance *r, const att_batch *inputs, const char *text, int target,
                             att_relevance_map *map)
{
    const att_relevance_method *method;
    double options[ATT_RELEVANCE_OPTIONS];
    att_batch answers;
    ATT_TRY(parse(r->context, text, &method, options));
    if (target < -1 || target >= r->classes)
        return att_fail(r->context, ATT_ERR_ARGUMENT,
                        "class %d does not exist: expected 0 to %d, or -1 for the most "
                        "probable one",
                        target, r->classes - 1);
    ATT_TRY(check_method(r, method));
    ATT_TRY(att_explorer_run(r->explorer, inputs, &answers));
    const float *logits = att_batch_field(&answers, r->logits_name);
    const int chosen = target < 0 ? largest(logits, r->classes) : target;
    att_relevance_job job = {.relevance = r,
                             .inputs = inputs,
                             .image = r->image_name ? att_batch_field(inputs, r->image_name) : NULL,
                             .options = options,
                             .target = chosen,
                             .logit = (double)logits[chosen],
                             .map = map};
    return method->compute(&job);
}

att_status att_relevance_logit(const att_relevance_job *job, const float *image, double *logit)
{
    const att_relevance *r = job->relevance;
    att_replaced_batch replaced;
    att_batch answers;
    ATT_TRY(att_explorer_run(r->explorer, att_batch_replace(job->inputs, r->image_name, image, &replaced), &answers));
    const float *logits = att_batch_field(&answers, r->logits_name);
    *logit = (double)logits[job->target];
    return ATT_OK;
}
