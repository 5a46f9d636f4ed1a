#include "networks/tasks/found_boxes.h"

#include "data/geometry.h"
#include "networks/tasks/answer.h"

enum { BOX = 4 };

att_status att_found_boxes_of(att_context *context, const att_batch *answers, int row, att_found_boxes *found)
{
    const void *boxes, *scores, *classes, *count;
    const att_field *field = att_answer_field(answers, ATT_FOUND_BOXES, &boxes);
    if (!field || !att_answer_field(answers, ATT_FOUND_SCORES, &scores) ||
        !att_answer_field(answers, ATT_FOUND_CLASSES, &classes) || !att_answer_field(answers, ATT_FOUND_COUNT, &count))
        return att_answer_fail_headless(context, "so it detects nothing");
    const int64_t first = row * field->shape.dims[0];
    *found = (att_found_boxes){(const float *)boxes + BOX * first, (const float *)scores + first,
                               (const int32_t *)classes + first, ((const int32_t *)count)[row]};
    return ATT_OK;
}

void att_found_box_place(const att_found_boxes *found, int index, const att_geometry *geometry, double box[BOX])
{
    for (int corner = 0; corner < 2; corner++) {
        const int at = BOX * index + 2 * corner;
        double x = (double)found->boxes[at], y = (double)found->boxes[at + 1];
        if (geometry)
            att_geometry_move_back(geometry, &x, &y);
        box[2 * corner] = x;
        box[2 * corner + 1] = y;
    }
}
