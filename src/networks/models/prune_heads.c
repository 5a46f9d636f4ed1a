/* Degenerate heads, and networks without some of their heads. */
#include <string.h>

#include "base/core/error.h"
#include "base/core/memory.h"
#include "networks/models/family.h"

static att_status list_degenerate(const att_position_heads *heads, int layer, att_head_place *places, int most,
                                  int *count)
{
    for (int h = 0; h < heads->count; h++) {
        att_position_head head;
        ATT_TRY(att_position_heads_at(heads, h, &head));
        if (head.degenerate && *count < most && places)
            places[*count] = (att_head_place){layer, h};
        *count += head.degenerate;
    }
    return ATT_OK;
}

att_status att_model_degenerate_heads(const att_model *model, const att_weights *weights, att_head_place *places,
                                      int most, int *count)
{
    *count = 0;
    for (int layer = 0; layer < att_position_layers(model); layer++) {
        att_position_heads *heads;
        ATT_TRY(att_position_heads_read(model, weights, layer, &heads));
        att_status status = list_degenerate(heads, layer, places, most, count);
        att_position_heads_destroy(&heads);
        ATT_TRY(status);
    }
    return ATT_OK;
}

typedef struct pruning {
    att_context *context;
    const att_model *model, *pruned;
    const att_weights *weights;
    const att_position_family *positions;
    int layers, most; /* of heads in a layer */
    bool *removed;    /* [layers, most] */
    int *kept;        /* [layers]: how many */
} pruning;

static int count_heads(const pruning *p, int layer)
{
    return p->positions->heads(att_model_settings(p->model), layer);
}

static att_status mark(pruning *p, const att_head_place *removed, int count)
{
    for (int i = 0; i < count; i++) {
        const int layer = removed[i].layer, head = removed[i].head;
        if (layer < 0 || layer >= p->layers || head < 0 || head >= count_heads(p, layer))
            return att_fail(p->context, ATT_ERR_ARGUMENT, "there is no head %d in layer %d to remove", head, layer);
        if (p->removed[layer * p->most + head])
            return att_fail(p->context, ATT_ERR_ARGUMENT, "head %d of layer %d is removed twice", head, layer);
        p->removed[layer * p->most + head] = true;
    }
    for (int layer = 0; layer < p->layers; layer++) {
        for (int head = 0; head < count_heads(p, layer); head++)
            p->kept[layer] += !p->removed[layer * p->most + head];
        if (p->kept[layer] == 0) {
            p->removed[layer * p->most] = false;
            p->kept[layer] = 1;
        }
    }
    return ATT_OK;
}

static int64_t product(const int64_t *dims, int count)
{
    int64_t all = 1;
    for (int i = 0; i < count; i++)
        all *= dims[i];
    return all;
}

/* Moves the parts of the heads that stay to the front. bytes: of an element. Returns the number of elements left. */
static int64_t compact(const pruning *p, int layer, att_shape shape, int axis, size_t bytes, char *values)
{
    const int heads = count_heads(p, layer);
    const int64_t outer = product(shape.dims, axis), inner = product(shape.dims + axis, shape.rank - axis) / heads;
    int64_t to = 0;
    for (int64_t from = 0; from < outer * heads; from++) {
        if (p->removed[layer * p->most + (int)(from % heads)])
            continue;
        memmove(values + (size_t)(to * inner) * bytes, values + (size_t)(from * inner) * bytes, (size_t)inner * bytes);
        to++;
    }
    return to * inner;
}

static att_status copy_parameter(const pruning *p, int index, att_weights *to)
{
    const att_parameter_info info = att_weights_at(to, index);
    const int at = att_weights_find(p->weights, info.name);
    if (at < 0)
        return att_fail(p->context, ATT_ERR_NOT_FOUND, "the weights have no parameter \"%s\"", info.name);
    const att_shape shape = att_weights_at(p->weights, at).shape;
    const size_t bytes = att_dtype_size(att_graph_dtype(att_model_graph(p->model)));
    int64_t count = att_shape_count(shape);
    char *values = att_allocate_array(p->context, (size_t)count, bytes);
    if (!values)
        return att_fail_memory(p->context, (size_t)count * bytes, "a parameter");
    att_status status = att_weights_get(p->weights, -1, at, values, count);
    for (int layer = 0; layer < p->layers && status == ATT_OK; layer++) {
        const int axis = p->positions->head_axis(info.name, layer);
        if (axis >= 0)
            count = compact(p, layer, shape, axis, bytes, values);
    }
    if (status == ATT_OK)
        status = att_weights_set(to, -1, index, values, count);
    att_free(p->context, values);
    return status;
}

static att_status copy_all(const pruning *p, att_weights *to)
{
    att_status status = ATT_OK;
    for (int i = 0; i < att_weights_count(to) && status == ATT_OK; i++)
        status = copy_parameter(p, i, to);
    return status;
}

static att_status make(pruning *p, const att_head_place *removed, int count, att_model **model, att_weights **weights)
{
    att_option_values options = *att_model_options(p->model);
    p->removed = att_allocate_array(p->context, (size_t)(p->layers * p->most), sizeof *p->removed);
    p->kept = att_allocate_array(p->context, (size_t)p->layers, sizeof *p->kept);
    if (!p->removed || !p->kept)
        return att_fail_memory(p->context, (size_t)p->layers * sizeof *p->kept, "a list of heads");
    ATT_TRY(mark(p, removed, count));
    if (!p->positions->set_heads(p->kept, p->layers, &options))
        return att_fail(
            p->context, ATT_ERR_UNSUPPORTED,
            "the %d blocks would have different numbers of heads, and the list of these numbers is too long "
            "for an option",
            p->layers);
    ATT_TRY(att_model_rebuild(p->model, &options, model));
    ATT_TRY(att_weights_create(att_model_graph(*model), "cpu", weights));
    return copy_all(p, *weights);
}

att_status att_model_prune_heads(const att_model *model, const att_weights *weights, const att_head_place *removed,
                                 int removed_count, att_model **pruned, att_weights **pruned_weights)
{
    pruning p = {.context = att_graph_context(att_model_graph(model)),
                 .model = model,
                 .weights = weights,
                 .positions = att_model_family(model)->positions,
                 .layers = att_position_layers(model)};
    att_model *made = NULL;
    att_weights *made_weights = NULL;
    if (p.layers == 0)
        return att_fail(p.context, ATT_ERR_UNSUPPORTED,
                        "%s: heads can be removed from attention_cnn_isotropic, _quadratic and _learned only",
                        att_model_name(model));
    for (int layer = 0; layer < p.layers; layer++)
        p.most = count_heads(&p, layer) > p.most ? count_heads(&p, layer) : p.most;
    att_status status = make(&p, removed, removed_count, &made, &made_weights);
    att_free(p.context, p.removed);
    att_free(p.context, p.kept);
    if (status == ATT_OK) {
        *pruned = made;
        *pruned_weights = made_weights;
        return ATT_OK;
    }
    att_weights_destroy(&made_weights);
    att_model_destroy(&made);
    return status;
}
