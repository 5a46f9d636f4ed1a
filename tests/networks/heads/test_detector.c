/* The parts of a detector: what they derive from the sizes of image and maps. */
#include <attscope/ops.h>

#include "engine/graph/graph.h"
#include "engine/ops/boxes.h"
#include "engine/ops/roi_align.h"
#include "networks/heads/detector.h"
#include "test.h"

enum { CHANNELS = 2 };

/* A detector without backbone, over an image and levels of these sides. */
typedef struct parts {
    att_context *context;
    att_graph *graph;
} parts;

static parts detect(int stride, att_shape image, const int (*sides)[2], int count)
{
    parts made;
    att_value levels[ATT_BOX_LEVELS];
    const att_detector detector = {.channels = CHANNELS,
                                   .box_channels = 3,
                                   .classes = 2,
                                   .stride = stride,
                                   .proposals = {.anchors = {.size = 32}, .per_level = 4, .most = 4, .overlap = 0.7},
                                   .align = {.side = 7, .samples = 2, .finest = 56}};
    att_rpn rpn;
    att_proposals proposals;
    att_box_answers answers;
    assert_int_equal(att_context_create(NULL, &made.context), ATT_OK);
    CHECK(made.context, att_graph_create(made.context, ATT_F32, &made.graph));
    for (int l = 0; l < count; l++) {
        char name[16];
        snprintf(name, sizeof name, "level%d", l);
        levels[l] = att_graph_input(made.graph, name, ATT_F32, att_shape_of(sides[l][0], sides[l][1], CHANNELS));
    }
    att_value size = att_graph_input(made.graph, "image_size", ATT_F32, att_shape_of(2));
    const att_scope root = att_scope_root(made.graph), scope = att_scope_in(&root, "detector");
    att_head_rpn(&scope, &detector, levels, count, &rpn);
    att_head_proposals(&scope, &detector, &rpn, image, size, &proposals);
    att_head_boxes(&scope, &detector, levels, count, image, &proposals, &answers);
    CHECK(made.context, att_graph_status(made.graph));
    return made;
}

static void close_parts(parts *made)
{
    att_graph_destroy(&made->graph);
    att_context_destroy(&made->context);
}

static const void *attrs_of(const parts *made, const char *op)
{
    const att_graph *graph = made->graph;
    for (int i = 0; i < graph->nodes.count; i++)
        if (strcmp(graph->nodes.items[i].op->name, op) == 0)
            return graph->nodes.items[i].attrs;
    fail_msg("there is no %s", op);
    return NULL;
}

TEST(anchors_lie_as_far_apart_as_places_or_by_the_option)
{
    enum { LEVELS = 5 };
    static const int sides[LEVELS][2] = {{200, 264}, {100, 132}, {50, 66}, {25, 33}, {13, 17}};
    static const int of_places[LEVELS][2] = {{4, 4}, {8, 8}, {16, 16}, {32, 32}, {61, 62}};
    for (int stride = 0; stride <= 6; stride += 3) {
        parts made = detect(stride, att_shape_of(800, 1056, 3), sides, LEVELS);
        const att_box_proposals_attrs *attrs = attrs_of(&made, "box_proposals");
        for (int l = 0; l < LEVELS; l++)
            for (int axis = 0; axis < 2; axis++)
                assert_int_equal(attrs->stride[l][axis], stride > 0 ? stride << l : of_places[l][axis]);
        close_parts(&made);
    }
}

TEST(boxes_are_read_at_the_nearest_power_of_two)
{
    static const struct {
        int image, map, stride;
    } cases[] = {{64, 16, 4}, {33, 9, 4}, {72, 17, 4}, {45, 16, 2}, {46, 16, 4}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const int side = cases[i].map, sides[2][2] = {{side, 2 * side}, {(side + 1) / 2, side}};
        parts made = detect(0, att_shape_of(cases[i].image, 2 * cases[i].image, 3), sides, 2);
        const att_roi_align_attrs *attrs = attrs_of(&made, "roi_align");
        assert_int_equal(attrs->stride, cases[i].stride);
        close_parts(&made);
    }
}
