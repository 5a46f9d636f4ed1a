/* Gives the parameters of a network the names of a layout's table, read backwards. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"
#include "networks/layouts/layout.h"
#include "networks/layouts/pattern.h"

/* A part of a written tensor: elements of a parameter, from..from+count-1, which begin at element `to`. */
typedef struct att_layout_slice {
    const char *name; /* of the written tensor */
    att_shape shape;  /* of the written tensor */
    int parameter;
    int64_t from, to, count;
} att_layout_slice;

typedef struct naming {
    const att_layout_target *target;
    att_layout_tensors *made;
    int slice_capacity, tensor_capacity;
} naming;

/* --- rows --------------------------------------------------------------------------------------------------------- */

static const att_layout_row *find_row(const att_layout_target *target, const char *name, int part, att_captured *found);

/* Whether the option has the text that the row asks for. */
static bool is_written(const att_layout_target *target, const att_layout_row *row)
{
    char key[ATT_OPTION_KEY];
    if (!row->to || row->add)
        return false;
    if (!row->writes)
        return true;
    const size_t length = strcspn(row->writes, "=");
    if (length == 0 || length >= sizeof key)
        return false;
    memcpy(key, row->writes, length);
    key[length] = '\0';
    return strcmp(att_options_text(&target->identity->options, key), row->writes + length + 1) == 0;
}

/* Whether the written file has a tensor of this name, without prefix. */
static bool writes_name(const att_layout_target *target, const char *name)
{
    for (int i = 0; i < target->layout->row_count; i++) {
        const att_layout_row *row = &target->layout->rows[i];
        att_captured found;
        char own[ATT_PATTERN_NAME];
        if (!is_written(target, row) || !att_pattern_matches(row->from, name, &found))
            continue;
        att_pattern_name(row->to, &found, own);
        if (att_weights_find(target->weights, own) >= 0 && find_row(target, own, row->part, &found) == row)
            return true;
    }
    return false;
}

static bool applies(const att_layout_target *target, const att_layout_row *row)
{
    const bool lacks = row->when && *row->when == '!';
    return !row->when || writes_name(target, row->when + lacks) != lacks;
}

/* Returns the row with which the parameter, or a part of it, is written; NULL: there is none. If it is a row of zeros,
 * there is no tensor to write. The conditions of rows name tensors whose rows have none, so that this ends. */
static const att_layout_row *find_row(const att_layout_target *target, const char *name, int part, att_captured *found)
{
    for (int i = 0; i < target->layout->row_count; i++) {
        const att_layout_row *row = &target->layout->rows[i];
        if (row->part == part && is_written(target, row) && att_pattern_matches(row->to, name, found) &&
            applies(target, row))
            return row;
    }
    return NULL;
}

static int count_parts(const att_layout *layout, const att_layout_row *row)
{
    int most = 0;
    for (int i = 0; i < layout->row_count; i++)
        if (layout->rows[i].to && strcmp(layout->rows[i].to, row->to) == 0 && layout->rows[i].part > most)
            most = layout->rows[i].part;
    return most + 1;
}

/* --- slices ------------------------------------------------------------------------------------------------------- */

/* Removes dimensions of 1 in front of the others. */
static att_shape lower(att_shape shape)
{
    while (shape.rank > 1 && shape.dims[0] == 1) {
        shape.rank--;
        memmove(shape.dims, shape.dims + 1, sizeof shape.dims[0] * (size_t)shape.rank);
    }
    return shape;
}

/* Places the rows of a tensor of which the layout takes a part. */
static void place(const att_layout_row *row, att_layout_slice *slice)
{
    int d = 0;
    while (d < slice->shape.rank - 1 && slice->shape.dims[d] == 1)
        d++;
    const int64_t length = slice->shape.dims[d], inner = slice->count / length;
    const int units = (row->end ? row->end : row->of) - row->first;
    const int64_t unit = row->of ? length / units : 1;
    slice->to = row->first * unit * inner;
    slice->shape.dims[d] = row->of ? unit * row->of : row->first + length;
}

/* Sets shape and elements of part `part` of `parts` of a parameter. */
static void cut(const att_layout_row *row, int parts, att_shape whole, att_layout_slice *slice)
{
    slice->shape = whole;
    slice->count = att_shape_count(whole);
    slice->shape.dims[0] /= parts;
    slice->count /= parts;
    slice->from = row->part * slice->count;
    if (row->first || row->end)
        place(row, slice);
    if (row->rank)
        slice->shape = lower(slice->shape);
}

static att_status add_slice(naming *n, const att_layout_row *row, const att_captured *found, att_layout_slice slice)
{
    att_context *context = n->target->context;
    char bare[ATT_PATTERN_NAME], name[2 * ATT_PATTERN_NAME];
    att_pattern_name(row->from, found, bare);
    snprintf(name, sizeof name, "%s%s", row->bare ? "" : n->target->form->prefix, bare);
    slice.name = att_arena_string(&n->made->arena, name);
    if (!slice.name ||
        !att_list_grow(context, &n->made->slices, n->made->slice_count, &n->slice_capacity, sizeof slice))
        return att_fail_memory(context, sizeof slice, "the tensors of a file");
    n->made->slices[n->made->slice_count++] = slice;
    return ATT_OK;
}

static att_status place_parameter(naming *n, int index)
{
    const att_parameter_info info = att_weights_at(n->target->weights, index);
    att_captured found;
    const att_layout_row *row = find_row(n->target, info.name, 0, &found);
    const int parts = row ? count_parts(n->target->layout, row) : 1;
    att_layout_slice slice = {.parameter = index};
    for (int part = 0; part < parts && row; part++) {
        row = find_row(n->target, info.name, part, &found);
        if (!row || row->zeros)
            continue;
        cut(row, parts, info.shape, &slice);
        ATT_TRY(add_slice(n, row, &found, slice));
    }
    if (!row && n->made->unplaced++ == 0)
        n->made->first_unplaced = info.name;
    return ATT_OK;
}

/* --- tensors ------------------------------------------------------------------------------------------------------ */

static int compare_slices(const void *a, const void *b)
{
    const att_layout_slice *s = a, *t = b;
    return strcmp(s->name, t->name);
}

static att_status add_tensor(naming *n, const att_safetensors_tensor *tensor)
{
    att_context *context = n->target->context;
    if (!att_list_grow(context, &n->made->tensors, n->made->count, &n->tensor_capacity, sizeof *tensor))
        return att_fail_memory(context, sizeof *tensor, "the tensors of a file");
    n->made->tensors[n->made->count++] = *tensor;
    return ATT_OK;
}

/* Makes a tensor of the slices of each name. Each of them knows the shape of the whole. */
static att_status join_slices(naming *n)
{
    const att_layout_tensors *made = n->made;
    if (made->slice_count > 0)
        qsort(made->slices, (size_t)made->slice_count, sizeof *made->slices, compare_slices);
    for (int i = 0; i < made->slice_count; i++) {
        const att_layout_slice *slice = &made->slices[i];
        const att_safetensors_tensor tensor = {slice->name, ATT_SAFETENSORS_F32, slice->shape, NULL};
        if (i + 1 == made->slice_count || strcmp(slice[0].name, slice[1].name) != 0)
            ATT_TRY(add_tensor(n, &tensor));
    }
    return ATT_OK;
}

static bool has_tensor(const att_layout_tensors *made, const char *name)
{
    for (int i = 0; i < made->count; i++)
        if (strcmp(made->tensors[i].name, name) == 0)
            return true;
    return false;
}

/* Adds the row's computed tensor beside the tensor `beside`, if both have the same scope. */
static att_status add_computed(naming *n, const att_layout_row *row, const char *beside)
{
    const char *last = strrchr(row->from, '.'), *end = strrchr(beside, '.');
    att_captured found;
    char name[2 * ATT_PATTERN_NAME];
    if (!last || !end)
        return ATT_OK;
    snprintf(name, sizeof name, "%.*s%s", (int)(end - beside), beside, last);
    if (!att_pattern_matches(row->from, name, &found) || has_tensor(n->made, name))
        return ATT_OK;
    att_safetensors_tensor tensor = {.name = att_arena_string(&n->made->arena, name)};
    if (!tensor.name)
        return att_fail_memory(n->target->context, strlen(name) + 1, "the name of a tensor");
    ATT_TRY(row->values(n->target, &n->made->arena, &tensor));
    return add_tensor(n, &tensor);
}

static att_status compute_tensors(naming *n)
{
    const att_layout *layout = n->target->layout;
    const int count = n->made->count;
    for (int i = 0; i < layout->row_count; i++)
        for (int t = 0; t < count && layout->rows[i].values; t++)
            ATT_TRY(add_computed(n, &layout->rows[i], n->made->tensors[t].name));
    return ATT_OK;
}

att_status att_layout_name_tensors(const att_layout_target *target, att_layout_tensors *made)
{
    naming n = {.target = target, .made = made};
    *made = (att_layout_tensors){.arena = {.context = target->context}};
    for (int i = 0; i < att_weights_count(target->weights); i++)
        ATT_TRY(place_parameter(&n, i));
    ATT_TRY(join_slices(&n));
    return compute_tensors(&n);
}

void att_layout_tensors_free(att_layout_tensors *made)
{
    att_context *context = made->arena.context;
    if (!context)
        return;
    att_free(context, made->slices);
    att_free(context, made->tensors);
    att_arena_free(&made->arena);
    *made = (att_layout_tensors){0};
}

/* --- values ------------------------------------------------------------------------------------------------------- */

/* Copies elements of a parameter to their place. */
static att_status copy_slice(const att_layout_target *target, const att_layout_slice *slice, float *out)
{
    const int64_t count = att_shape_count(att_weights_at(target->weights, slice->parameter).shape);
    float *values;
    if (count == slice->count)
        return att_weights_get(target->weights, -1, slice->parameter, out + slice->to, count);
    ATT_TRY(att_new(target->context, &values, (size_t)count, slice->name));
    att_status status = att_weights_get(target->weights, -1, slice->parameter, values, count);
    if (status == ATT_OK)
        memcpy(out + slice->to, values + slice->from, (size_t)slice->count * sizeof *values);
    att_free(target->context, values);
    return status;
}

/* What no parameter fills is -0, which leaves every number as it is, -0 too, where a reader adds it. */
att_status att_layout_fill(void *user, int index, void *out, size_t bytes)
{
    const att_layout_filling *f = user;
    const char *name = f->tensors->tensors[index].name;
    float *values = out;
    for (size_t i = 0; i < bytes / sizeof *values; i++)
        values[i] = -0.0F;
    for (int i = 0; i < f->tensors->slice_count; i++)
        if (strcmp(f->tensors->slices[i].name, name) == 0)
            ATT_TRY(copy_slice(f->target, &f->tensors->slices[i], values));
    return ATT_OK;
}
