#include <attscope/nn.h>

#include "base/core/error.h"
#include "base/core/memory.h"
#include "networks/models/family.h"

/* Resamples the parameters that depend on the image size. */
typedef struct resizing {
    att_context *context;
    const att_model *model, *from_model;
    const att_weights *from;
    att_graph *changed; /* declares only these parameters */
} resizing;

static att_status fail_shape(const resizing *r, const att_parameter_info *parameter)
{
    char text[ATT_INPUTS_TEXT];
    return att_fail(r->context, ATT_ERR_UNSUPPORTED, "%s: \"%s\" is made for %s; this network takes no other shapes",
                    att_model_name(r->model), parameter->name, att_model_inputs_describe(r->from_model, text));
}

static bool find_grid(const resizing *r, const att_parameter_info *parameter, att_shape from, att_regrid *grid)
{
    const att_family *family = att_model_family(r->model);
    return family->regrids && family->regrids(att_model_settings(r->model), att_model_options(r->from_model),
                                              parameter->name, from, parameter->shape, grid);
}

/* Sets *index to the parameter's index in the weights if its shape or grid in the weights differs; else to -1. */
static att_status find_changed(const resizing *r, const att_parameter_info *parameter, int *index)
{
    att_regrid grid;
    *index = att_weights_find(r->from, parameter->name);
    if (*index < 0)
        return fail_shape(r, parameter);
    att_shape shape = att_weights_at(r->from, *index).shape;
    if (find_grid(r, parameter, shape, &grid))
        return ATT_OK;
    *index = -1;
    return att_shape_equal(shape, parameter->shape) ? ATT_OK : fail_shape(r, parameter);
}

static att_status declare_changed(resizing *r)
{
    const att_graph *graph = att_model_graph(r->model);
    ATT_TRY(att_graph_create(r->context, att_graph_dtype(graph), &r->changed));
    for (int i = 0; i < att_graph_parameter_count(graph); i++) {
        att_parameter_info parameter = att_graph_parameter_at(graph, i);
        int index;
        ATT_TRY(find_changed(r, &parameter, &index));
        if (index >= 0)
            att_graph_parameter(r->changed, parameter.name, parameter.shape, parameter.init, parameter.decay);
    }
    return att_graph_status(r->changed);
}

/* in, out: buffers for the old and the new table */
static att_status resample(const resizing *r, att_weights *to, int index, double *in, double *out)
{
    att_parameter_info parameter = att_weights_at(to, index);
    int from = att_weights_find(r->from, parameter.name);
    att_shape shape = att_weights_at(r->from, from).shape;
    att_regrid grid;
    if (!find_grid(r, &parameter, shape, &grid))
        return fail_shape(r, &parameter);
    ATT_TRY(att_model_parameter(r->from_model, r->from, from, att_shape_count(shape), in));
    ATT_TRY(att_regrid_table(r->context, &grid, in, out));
    return att_model_set_parameter(r->model, to, index, att_shape_count(parameter.shape), out);
}

static att_status fill(const resizing *r, att_weights *to)
{
    size_t most = 1;
    for (int i = 0; i < att_weights_count(to); i++) {
        att_parameter_info parameter = att_weights_at(to, i);
        size_t count = (size_t)att_shape_count(parameter.shape);
        size_t old = (size_t)att_shape_count(att_weights_at(r->from, att_weights_find(r->from, parameter.name)).shape);
        most = count > most ? count : most;
        most = old > most ? old : most;
    }
    double *room = att_allocate_array(r->context, att_size_product(2, most), sizeof *room);
    if (!room)
        return att_fail_memory(r->context, att_size_product(2 * sizeof *room, most), "a position embedding");
    att_status status = ATT_OK;
    for (int i = 0; i < att_weights_count(to) && status == ATT_OK; i++)
        status = resample(r, to, i, room, room + most);
    att_free(r->context, room);
    return status;
}

att_status att_model_resize_weights(const att_model *model, const att_model *from_model, const att_weights *from,
                                    const char *backend, att_weights **resized)
{
    resizing r = {
        .context = att_graph_context(att_model_graph(model)), .model = model, .from_model = from_model, .from = from};
    att_weights *made = NULL;
    att_status status = declare_changed(&r);
    if (status == ATT_OK && att_graph_parameter_count(r.changed) > 0)
        status = att_weights_create(r.changed, backend, &made);
    if (status == ATT_OK && made)
        status = fill(&r, made);
    att_graph_destroy(&r.changed);
    if (status != ATT_OK)
        att_weights_destroy(&made);
    *resized = made;
    return status;
}
