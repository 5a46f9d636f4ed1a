#include "lab/bench/inputs.h"

#include <string.h>

#include "engine/graph/graph.h"
#include "networks/models/family.h"

enum { OBJECTS = 8 }; /* COCO has seven in an image on average */

/* limit: integers are below it; 0: they are 0 */
static void fill_numbers(att_random *random, att_dtype dtype, int limit, void *input, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (dtype == ATT_I32)
            ((int32_t *)input)[i] = limit > 0 ? (int32_t)att_random_below(random, limit) : 0;
        else
            ((float *)input)[i] = (float)(2 * att_random_uniform(random) - 1);
}

/* Texts without padding: the number of their tokens is the length of the input with the tokens. */
static void fill_counts(const att_graph *graph, int rows, int32_t *counts)
{
    int32_t length = 1;
    for (int i = 0; i < graph->inputs.count; i++)
        if (strcmp(graph->inputs.items[i].name, ATT_TOKENS) == 0)
            length = (int32_t)att_value_shape(graph, graph->inputs.items[i].value).dims[0];
    for (int row = 0; row < rows; row++)
        counts[row] = length;
}

/* Returns the shape [h, w, c] of the graph's image; 0 x 0 if it has none. */
static att_shape image_of(const att_graph *graph)
{
    for (int i = 0; i < graph->inputs.count; i++) {
        const att_shape shape = att_value_shape(graph, graph->inputs.items[i].value);
        if (shape.rank == 3)
            return shape;
    }
    return att_shape_of(0, 0, 0);
}

static void fill_sizes(const att_shape *image, int rows, float *sizes)
{
    for (int i = 0; i < 2 * rows; i++)
        sizes[i] = (float)image->dims[i % 2];
}

/* Sides are a sixteenth to a half of the image's. */
static void fill_boxes(att_random *random, const att_shape *image, int rows, int most, int classes, float *numbers)
{
    const int height = (int)image->dims[0], width = (int)image->dims[1];
    const att_geometry whole = {
        .map = {{1, 0, 0}, {0, 1, 0}}, .from_width = width, .from_height = height, .width = width, .height = height};
    for (int row = 0; row < rows; row++) {
        att_true_box boxes[OBJECTS];
        for (int i = 0; i < OBJECTS; i++) {
            const double w = width * (1 + 7 * att_random_uniform(random)) / 16,
                         h = height * (1 + 7 * att_random_uniform(random)) / 16;
            boxes[i] = (att_true_box){.x = (width - w) * att_random_uniform(random),
                                      .y = (height - h) * att_random_uniform(random),
                                      .width = w,
                                      .height = h,
                                      .label = (int32_t)att_random_below(random, classes)};
        }
        att_boxes_move(boxes, OBJECTS, &whole, most, numbers + (size_t)row * (size_t)most * ATT_BOX_COLUMNS);
    }
}

static bool is_boxes(const att_desc *desc, const att_task *task)
{
    return task && task->annotations == ATT_ANNOTATION_BOXES && desc->shape.rank == 2 &&
           desc->shape.dims[1] == ATT_BOX_COLUMNS;
}

static int limit_of(const char *name, int classes, int vocabulary)
{
    return strcmp(name, ATT_TOKENS) == 0 ? vocabulary : strcmp(name, ATT_TOKEN_TYPES) == 0 ? 0 : classes;
}

void att_bench_fill(att_random *random, const att_graph *graph, int index, const att_task *task, int rows, int classes,
                    int vocabulary, void *input)
{
    const att_named_value *port = &graph->inputs.items[index];
    const att_desc *desc = &graph->values.items[port->value].desc;
    const att_shape image = image_of(graph);
    if (task && task->image_size && strcmp(port->name, task->image_size) == 0)
        fill_sizes(&image, rows, input);
    else if (is_boxes(desc, task))
        fill_boxes(random, &image, rows, (int)desc->shape.dims[0], classes, input);
    else if (strcmp(port->name, ATT_TOKEN_COUNT) == 0 && desc->shape.rank == 0)
        fill_counts(graph, rows, input);
    else
        fill_numbers(random, desc->dtype, limit_of(port->name, classes, vocabulary), input,
                     (size_t)rows * (size_t)att_shape_count(desc->shape));
}
