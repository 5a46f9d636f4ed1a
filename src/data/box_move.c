/* Moves boxes as their images were moved. */
#include <math.h>
#include <string.h>

#include <attscope/data.h>

/* Sides in pixels. Cropping leaves boxes of rounding errors. */
static const double least_side = 1e-3;

typedef struct edges {
    double left, top, right, bottom;
} edges;

static void cut(edges *box, double width, double height)
{
    box->left = fmin(fmax(box->left, 0), width);
    box->top = fmin(fmax(box->top, 0), height);
    box->right = fmin(fmax(box->right, 0), width);
    box->bottom = fmin(fmax(box->bottom, 0), height);
}

/* The smallest upright box around the moved one. */
static edges move(const edges *box, const att_geometry *geometry)
{
    edges moved = {INFINITY, INFINITY, -INFINITY, -INFINITY};
    for (int corner = 0; corner < 4; corner++) {
        double x = corner % 2 ? box->right : box->left, y = corner / 2 ? box->bottom : box->top;
        att_geometry_move(geometry, &x, &y);
        moved.left = fmin(moved.left, x);
        moved.top = fmin(moved.top, y);
        moved.right = fmax(moved.right, x);
        moved.bottom = fmax(moved.bottom, y);
    }
    return moved;
}

/* Writes a box to `row`. Returns false if nothing of it is left. */
static bool write_box(const att_true_box *box, const att_geometry *geometry, float row[ATT_BOX_COLUMNS])
{
    edges of = {box->x, box->y, box->x + box->width, box->y + box->height};
    cut(&of, geometry->from_width, geometry->from_height);
    of = move(&of, geometry);
    cut(&of, geometry->width, geometry->height);
    if (of.right - of.left < least_side || of.bottom - of.top < least_side)
        return false;
    row[0] = (float)of.left;
    row[1] = (float)of.top;
    row[2] = (float)of.right;
    row[3] = (float)of.bottom;
    row[4] = box->crowd ? ATT_BOX_IGNORED : (float)box->label;
    return true;
}

int att_boxes_move(const att_true_box *boxes, int count, const att_geometry *geometry, int most, float *rows)
{
    int written = 0;
    for (int crowd = 0; crowd < 2; crowd++) /* if there are too many, crowds are left out first */
        for (int i = 0; i < count && written < most; i++)
            if (boxes[i].crowd == (crowd > 0))
                written += write_box(&boxes[i], geometry, rows + (size_t)written * ATT_BOX_COLUMNS);
    memset(rows + (size_t)written * ATT_BOX_COLUMNS, 0, (size_t)(most - written) * ATT_BOX_COLUMNS * sizeof *rows);
    return written;
}
