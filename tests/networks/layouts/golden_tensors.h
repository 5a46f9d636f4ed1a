/* layouts/golden_tensors.h - the tensors of a small network as the lines "tensor NAME SIDE..." of a golden text name
 * them. Their values follow from the names, as in the script that wrote the text. */
#ifndef ATT_TESTS_LAYOUTS_GOLDEN_TENSORS_H
#define ATT_TESTS_LAYOUTS_GOLDEN_TENSORS_H

#include "base/io/scratch.h"
#include "networks/models/fixture.h"

enum { GOLDEN_TENSORS = 256 };

typedef struct golden_tensors {
    char names[GOLDEN_TENSORS][96];
    att_safetensors_tensor tensors[GOLDEN_TENSORS];
    int count;
} golden_tensors;

static inline bool golden_name_ends_in(const char *name, const char *end)
{
    const size_t length = strlen(name), tail = strlen(end);
    return length >= tail && strcmp(name + length - tail, end) == 0;
}

/* Value `i` of the tensor is scale * formula(name, i), or 1 more in the weights and variances of norms. */
static inline float *golden_values_of(const char *name, att_shape shape, double scale)
{
    const int64_t count = att_shape_count(shape);
    const bool gain =
        shape.rank == 1 && (golden_name_ends_in(name, "weight") || golden_name_ends_in(name, "running_var") ||
                            golden_name_ends_in(name, "scale"));
    float *values = malloc((size_t)count * sizeof *values);
    for (int64_t i = 0; i < count; i++)
        values[i] = (float)(gain + scale * formula(name, (uint32_t)i));
    return values;
}

/* Adds the tensor that a line describes. text: the line from the name on; NULL: strtok() continues with it.
 * scale: of the values. */
static inline void golden_tensors_add(golden_tensors *golden, char *text,
                                      double (*scale)(const char *name, att_shape shape))
{
    assert_in_range(golden->count, 0, GOLDEN_TENSORS - 1);
    char *name = golden->names[golden->count];
    att_shape shape = {.rank = 0};
    snprintf(name, sizeof golden->names[0], "%s", strtok(text, " \n"));
    for (const char *side; (side = strtok(NULL, " \n"));)
        shape.dims[shape.rank++] = strtol(side, NULL, 10);
    golden->tensors[golden->count++] =
        (att_safetensors_tensor){.name = name,
                                 .dtype = ATT_SAFETENSORS_F32,
                                 .shape = shape,
                                 .data = golden_values_of(name, shape, scale(name, shape))};
}

static inline void golden_tensors_free(const golden_tensors *golden)
{
    for (int i = 0; i < golden->count; i++)
        free((void *)(uintptr_t)golden->tensors[i].data);
}

/* Writes them as model.safetensors, whose path is returned. */
static inline const char *golden_tensors_write(const scratch *self, const golden_tensors *golden, char path[512])
{
    const att_safetensors_content content = {.tensors = golden->tensors, .tensor_count = golden->count};
    must(att_safetensors_write(context, scratch_path(self, "model.safetensors", path), &content));
    return path;
}

#endif
