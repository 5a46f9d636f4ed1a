#include "networks/models/checkpoint.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <attscope/models.h>
#include <attscope/nn.h>

#include "base/core/text.h"
#include "base/io/tensors.h"

/* --- names ------------------------------------------------------------------------------------------------------- */

bool att_checkpoint_owns(const att_tensors *file, const char *name)
{
    bool ours = att_tensors_metadata(file, ATT_IDENTITY_KEY) != NULL;
    return (strncmp(name, "ema.", 4) == 0 && (ours || att_tensors_has_average(file))) ||
           (strncmp(name, "optimizer.", 10) == 0 && ours);
}

const att_module *att_checkpoint_constant(const att_context *context, const char *name)
{
    for (int i = 0; i < att_module_count(context); i++) {
        const char *constant = att_module_at(context, i)->constant;
        size_t length = strlen(name), tail = constant ? strlen(constant) : length;
        if (length > tail && name[length - tail - 1] == '.' && strcmp(name + length - tail, constant) == 0)
            return att_module_at(context, i);
    }
    return NULL;
}

bool att_checkpoint_ignores(const att_context *context, const att_tensors *file, const char *name)
{
    /* PyTorch's batch norms count batches; the count has no effect if a momentum is set. Swins and BEiT store shifts
     * between tokens or the index into the table of relative positions, Swins also the mask of shifted windows; all of
     * these follow from the options. So do the tables of rotary positions that EVA-02's files may store. */
    static const char *const buffers[] = {"*.num_batches_tracked",
                                          "*.relative_position_index",
                                          "*.attn.relative_coords_table",
                                          "*.attn.relative_coordinates_log",
                                          "*.attn_mask",
                                          "*rope.freqs_*"};
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++)
        if (att_text_matches(buffers[i], name))
            return true;
    return att_checkpoint_owns(file, name) || att_checkpoint_constant(context, name);
}

bool att_checkpoint_same_shape(att_shape a, att_shape b)
{
    while (a.rank > 0 && a.dims[a.rank - 1] == 1)
        a.rank--;
    while (b.rank > 0 && b.dims[b.rank - 1] == 1)
        b.rank--;
    return att_shape_equal(a, b);
}

bool att_checkpoint_lists(const char *names, const char *name)
{
    size_t length = strlen(name);
    if (length == 0 || strchr(name, ' '))
        return false;
    for (const char *at = names; (at = strstr(at, name)); at += length)
        if ((at == names || at[-1] == ' ') && (at[length] == ' ' || !at[length]))
            return true;
    return false;
}

const char *att_checkpoint_below(const char *name, const char *scope)
{
    size_t length = strlen(scope);
    return strncmp(name, scope, length) == 0 && name[length] == '.' ? name + length + 1 : NULL;
}

int att_checkpoint_number(const char **at)
{
    const size_t count = strspn(*at, "0123456789");
    int number = 0;
    if (count < 1 || count > 4 || (*at)[count] != '.' || ((*at)[0] == '0' && count > 1))
        return -1;
    for (size_t i = 0; i < count; i++)
        number = 10 * number + ((*at)[i] - '0');
    *at += count + 1;
    return number;
}

int att_checkpoint_block(const char *name, const char *prefix, const char **rest)
{
    size_t length = strlen(prefix);
    if (strncmp(name, prefix, length) != 0 || name[length] != '.')
        return -1;
    const char *digits = name + length + 1;
    const int number = att_checkpoint_number(&digits);
    if (number >= 0)
        *rest = digits;
    return number;
}

/* --- tensors ------------------------------------------------------------------------------------------------------ */

/* A longer name is cut off; no tensor that a family looks for has one. */
enum { NAME_BYTES = 160 };

bool att_checkpoint_has(const att_tensors *file, const char *format, ...)
{
    char name[NAME_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(name, sizeof name, format, arguments);
    va_end(arguments);
    return att_tensors_find(file, name) >= 0;
}

const int64_t *att_checkpoint_dims(const att_tensors *file, const char *name, int rank, att_shape *shape)
{
    int index = att_tensors_find(file, name);
    if (index < 0)
        return NULL;
    *shape = att_tensors_at(file, index).shape;
    if (shape->rank != rank)
        return NULL;
    for (int i = 0; i < rank; i++)
        if (shape->dims[i] < 1 || shape->dims[i] > 1 << 24)
            return NULL;
    return shape->dims;
}

int64_t att_checkpoint_side(const att_tensors *file, int axis, const char *format, ...)
{
    char name[NAME_BYTES];
    att_shape shape;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(name, sizeof name, format, arguments);
    va_end(arguments);
    const int64_t *dims = att_checkpoint_dims(file, name, 2, &shape);
    return dims ? dims[axis] : 0;
}
