/* Gives the tensors of a file the names of a layout's table. */
#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"
#include "networks/layouts/layout.h"
#include "networks/layouts/pattern.h"
#include "networks/models/regrid.h"

/* --- pieces ------------------------------------------------------------------------------------------------------- */

/* A tensor of the file, or a part of it, that becomes a tensor or a part of one. */
typedef struct piece {
    att_tensors_item item; /* item.info.name: the new name */
    const char *from;      /* the name in the file */
    const att_layout_row *row;
} piece;

typedef struct applying {
    const att_layout *layout;
    att_tensors *file;
    piece *pieces;
    int count, capacity;
    int *left_out; /* [layout->row_count], tensors that a row leaves out */
    bool *applies; /* [layout->row_count], whether the file is as the row's `when` says */
} applying;

static att_status fail_piece(const applying *a, const char *from, const char *problem)
{
    return att_fail(a->file->context, ATT_ERR_FORMAT, "%s: tensor \"%.200s\" of %s %s", a->file->path, from,
                    a->layout->name, problem);
}

/* Keeps a part of the tensor, as the row says. */
static att_status cut(const applying *a, piece *p)
{
    const att_layout_row *row = p->row;
    att_tensors_info *info = &p->item.info;
    int d = 0;
    int64_t inner = 1;
    while (d < info->shape.rank - 1 && info->shape.dims[d] == 1)
        d++;
    if (info->shape.rank == 0)
        return fail_piece(a, p->from, "has no elements");
    for (int i = d + 1; i < info->shape.rank; i++)
        inner *= info->shape.dims[i];
    const int64_t length = info->shape.dims[d], unit = row->of ? length / row->of : 1;
    const int64_t first = row->first * unit, end = row->end ? row->end * unit : length;
    if ((row->of && length % row->of != 0) || first >= end || end > length)
        return fail_piece(a, p->from, "has too few rows");
    const int64_t step = first * (p->item.strides ? p->item.strides[d] : inner);
    const size_t bytes = (size_t)step * att_safetensors_dtype_size(info->dtype);
    p->item.place += bytes;
    p->item.data = p->item.data ? (const uint8_t *)p->item.data + bytes : NULL;
    info->shape.dims[d] = end - first;
    info->count = (end - first) * inner;
    return ATT_OK;
}

/* Sets strides of a tensor whose elements are contiguous. */
static void make_strides(const att_shape *shape, int64_t strides[ATT_MAX_RANK])
{
    int64_t step = 1;
    for (int d = shape->rank; d-- > 0; step *= shape->dims[d])
        strides[d] = step;
}

/* Changes the order of the dimensions, as the row says. Dimensions that become one must follow each other in the file.
 */
static att_status reorder(const applying *a, piece *p)
{
    att_shape *shape = &p->item.info.shape, made = {.rank = 0};
    int64_t old[ATT_MAX_RANK], *strides = att_arena_allocate(&a->file->arena, sizeof(int64_t[ATT_MAX_RANK]));
    if (!strides)
        return att_fail_memory(a->file->context, sizeof(int64_t[ATT_MAX_RANK]), p->from);
    make_strides(shape, old);
    if (p->item.strides)
        memcpy(old, p->item.strides, (size_t)shape->rank * sizeof *old);
    int read = 0;
    for (const char *axis = p->row->axes, *joins = NULL; *axis; axis++) {
        const int d = *axis - '0', last = made.rank - 1;
        if (*axis == '(' || *axis == ')') {
            joins = *axis == '(' ? axis + 1 : NULL;
            continue;
        }
        if (d >= shape->rank)
            return fail_piece(a, p->from, "has too few dimensions");
        read++;
        if (!joins || joins == axis) {
            made.dims[made.rank] = shape->dims[d];
            strides[made.rank++] = old[d];
            continue;
        }
        if (made.dims[last] != 1 && strides[last] != old[d] * shape->dims[d])
            return fail_piece(a, p->from, "is stored in another order than the program writes");
        made.dims[last] *= shape->dims[d];
        strides[last] = old[d];
    }
    if (read != shape->rank)
        return fail_piece(a, p->from, "has too many dimensions");
    *shape = made;
    p->item.strides = strides;
    return ATT_OK;
}

/* Puts dimensions of 1 in front of the others. */
static att_status raise(const applying *a, piece *p)
{
    att_shape *shape = &p->item.info.shape;
    const int more = p->row->rank - shape->rank;
    if (more <= 0)
        return ATT_OK;
    int64_t *strides = p->item.strides ? att_arena_allocate(&a->file->arena, sizeof(int64_t[ATT_MAX_RANK])) : NULL;
    if (p->item.strides && !strides)
        return att_fail_memory(a->file->context, sizeof(int64_t[ATT_MAX_RANK]), p->from);
    for (int d = shape->rank; d-- > 0;) {
        shape->dims[d + more] = shape->dims[d];
        if (strides)
            strides[d + more] = p->item.strides[d];
    }
    for (int d = 0; d < more; d++) {
        shape->dims[d] = 1;
        if (strides)
            strides[d] = 0;
    }
    shape->rank += more;
    p->item.strides = strides;
    return ATT_OK;
}

static att_status make_vector(const applying *a, piece *p, float value)
{
    att_tensors_info *info = &p->item.info;
    const int64_t count = info->shape.rank > 0 ? info->shape.dims[0] : 1;
    float *values = att_arena_allocate(&a->file->arena, (size_t)count * sizeof *values);
    if (!values)
        return att_fail_memory(a->file->context, (size_t)count * sizeof *values, info->name);
    for (int64_t i = 0; i < count; i++)
        values[i] = value;
    *info = (att_tensors_info){info->name, ATT_SAFETENSORS_F32, att_shape_of(count), count};
    p->item = (att_tensors_item){.info = *info, .data = values};
    return ATT_OK;
}

/* Changes a row of 2 x 2 patches from [channels][y][x] to [x][y][channels]. */
static void move_patches(const float *from, int64_t channels, float *to)
{
    for (int x = 0; x < 2; x++)
        for (int y = 0; y < 2; y++)
            for (int64_t c = 0; c < channels; c++)
                to[(2 * x + y) * channels + c] = from[4 * c + 2 * y + x];
}

/* The values are then in memory, as F32. */
static att_status merge_patches(const applying *a, piece *p)
{
    att_tensors_info *info = &p->item.info;
    const int64_t n = info->count, row = info->shape.rank > 0 ? info->shape.dims[info->shape.rank - 1] : 0;
    if (row == 0 || row % 4 != 0)
        return fail_piece(a, p->from, "does not hold patches of 2 x 2 places");
    float *values = att_arena_allocate(&a->file->arena, (size_t)n * sizeof *values);
    float *moved = att_arena_allocate(&a->file->arena, (size_t)n * sizeof *moved);
    if (!values || !moved)
        return att_fail_memory(a->file->context, (size_t)n * sizeof *values, info->name);
    if (a->file->whole == 0)
        ATT_TRY(att_tensors_read_item_f32(a->file, &p->item, values));
    for (int64_t first = 0; first < n; first += row)
        move_patches(values + first, row / 4, moved + first);
    info->dtype = ATT_SAFETENSORS_F32;
    p->item = (att_tensors_item){.info = *info, .data = moved};
    return ATT_OK;
}

enum { COLOURS = 3 };

/* Changes values of a patch's pixels from [h][w][3] to [3][h][w]. They are then in memory, as F32. */
static att_status move_pixels(const applying *a, piece *p)
{
    att_tensors_info *info = &p->item.info;
    const int64_t n = info->count, pixels = n / COLOURS;
    float *values = att_arena_allocate(&a->file->arena, (size_t)n * sizeof *values);
    float *moved = att_arena_allocate(&a->file->arena, (size_t)n * sizeof *moved);
    if (n % COLOURS != 0)
        return fail_piece(a, p->from, "is no vector for pixels with three channels");
    if (!values || !moved)
        return att_fail_memory(a->file->context, (size_t)n * sizeof *values, info->name);
    if (a->file->whole == 0)
        ATT_TRY(att_tensors_read_item_f32(a->file, &p->item, values));
    for (int64_t i = 0; i < n; i++)
        moved[i % COLOURS * pixels + i / COLOURS] = values[i];
    info->dtype = ATT_SAFETENSORS_F32;
    p->item = (att_tensors_item){.info = *info, .data = moved};
    return ATT_OK;
}

/* Returns the side of a patch whose rows of pixels are [h][w][3], h = w; 0: there is none. */
static int64_t patch_side(int64_t width)
{
    int64_t side = 0;
    while (side * side * COLOURS < width)
        side++;
    return side * side * COLOURS == width ? side : 0;
}

/* The rows of a patch's pixels are [h][w][3]. */
static att_status make_convolution(const applying *a, piece *p)
{
    att_shape *shape = &p->item.info.shape;
    if (shape->rank == 1)
        return move_pixels(a, p);
    if (shape->rank != 2)
        return ATT_OK;
    const int64_t width = shape->dims[1], rows = shape->dims[0];
    const int64_t row = p->item.strides ? p->item.strides[0] : width, pixel = p->item.strides ? p->item.strides[1] : 1;
    const int64_t side = patch_side(width);
    if (side == 0)
        return fail_piece(a, p->from, "is no layer for patches of square sides with three channels");
    int64_t *strides = att_arena_allocate(&a->file->arena, sizeof(int64_t[ATT_MAX_RANK]));
    if (!strides)
        return att_fail_memory(a->file->context, sizeof(int64_t[ATT_MAX_RANK]), p->from);
    *shape = att_shape_of(rows, COLOURS, side, side);
    strides[0] = row, strides[1] = pixel, strides[2] = pixel * side * COLOURS, strides[3] = pixel * COLOURS;
    p->item.strides = strides;
    return ATT_OK;
}

static att_status make_sines(const applying *a, piece *p)
{
    const att_shape *layer = &p->item.info.shape;
    const int64_t side = layer->rank == 2 ? patch_side(layer->dims[1]) : 0, width = layer->dims[0];
    const int patches = side > 0 ? (int)(ATT_LAYOUT_SIDE / side) : 0, grid[] = {patches, patches};
    if (patches == 0 || width % 4 != 0 || width < 8 || width > 1 << 16)
        return fail_piece(a, p->from, "is no layer for square patches of three channels in images of 224 x 224 pixels");
    const int64_t count = patches * patches * width;
    double *wide = att_arena_allocate(&a->file->arena, (size_t)count * sizeof *wide);
    float *values = att_arena_allocate(&a->file->arena, (size_t)count * sizeof *values);
    if (!wide || !values)
        return att_fail_memory(a->file->context, (size_t)count * sizeof *wide, p->item.info.name);
    att_regrid_sines(grid, width, wide);
    for (int64_t i = 0; i < count; i++)
        values[i] = (float)wide[i];
    const att_tensors_info info = {p->item.info.name, ATT_SAFETENSORS_F32, att_shape_of(1, patches * patches, width),
                                   count};
    p->item = (att_tensors_item){.info = info, .data = values};
    return ATT_OK;
}

static att_status add_piece(applying *a, const att_tensors_item *item, const att_layout_row *row, const char *name)
{
    if (!att_list_grow(a->file->context, &a->pieces, a->count, &a->capacity, sizeof *a->pieces))
        return att_fail_memory(a->file->context, sizeof *a->pieces, "the tensors of a file");
    piece *p = &a->pieces[a->count++];
    *p = (piece){.item = *item, .from = item->info.name, .row = row};
    p->item.info.name = att_arena_string(&a->file->arena, name);
    if (!p->item.info.name)
        return att_fail_memory(a->file->context, strlen(name) + 1, "the name of a tensor");
    if (row && row->axes)
        ATT_TRY(reorder(a, p));
    if (row && (row->zeros || row->ones))
        return make_vector(a, p, row->ones ? 1 : 0);
    if (row && row->unfolded)
        return merge_patches(a, p);
    if (row && row->sines)
        return make_sines(a, p);
    if (row && row->patches)
        return make_convolution(a, p);
    if (row && (row->first || row->end))
        ATT_TRY(cut(a, p));
    return row ? raise(a, p) : ATT_OK;
}

static bool is_as_said(const applying *a, const att_layout_row *row)
{
    if (!row->when)
        return true;
    const bool lacks = *row->when == '!';
    return (att_layout_find(a->layout, a->file, row->when + lacks) < 0) == lacks;
}

/* Whether a name of the row fits the tensor's name without the prefix, or its whole name. */
static bool is_row_of(const applying *a, int index, const char *name, att_captured *found)
{
    const att_layout_row *row = &a->layout->rows[index];
    const char *const patterns[] = {row->from, row->also}, *bare = att_layout_bare(a->layout, name);
    for (int i = 0; i < 2 && patterns[i] && a->applies[index]; i++)
        if (att_pattern_matches(patterns[i], bare, found) || att_pattern_matches(patterns[i], name, found))
            return true;
    return false;
}

/* Adds the pieces that a tensor becomes. A tensor without a row keeps its name. */
static att_status add_pieces(applying *a, const att_tensors_item *item)
{
    const int before = a->count;
    int *left_out = NULL;
    bool known = item->info.count == 0; /* as DINOv3's registers, if there are none */
    for (int i = 0; i < a->layout->row_count; i++) {
        const att_layout_row *row = &a->layout->rows[i];
        att_captured found;
        char name[ATT_PATTERN_NAME];
        if ((row->others && known) || !is_row_of(a, i, item->info.name, &found))
            continue;
        known = true;
        if (!row->to && !row->computed)
            left_out = &a->left_out[i];
        if (!row->to || item->info.count == 0)
            continue;
        att_pattern_name(row->to, &found, name);
        ATT_TRY(add_piece(a, item, row, name));
    }
    if (left_out && a->count == before)
        ++*left_out;
    return known ? ATT_OK : add_piece(a, item, NULL, item->info.name);
}

/* Adds what is left out to file->skipped: "text_model.* (196), logit_scale". */
static att_status note_left_out(const applying *a)
{
    att_text text = {.context = a->file->context};
    att_text_append(&text, "%s", a->file->skipped);
    for (int i = 0; i < a->layout->row_count; i++) {
        if (a->left_out[i] == 0)
            continue;
        att_text_append(&text, "%s", text.length ? ", " : "");
        for (const char *c = a->layout->rows[i].from; *c; c++)
            att_text_append(&text, "%c", *c == '#' || *c == '@' ? '*' : *c);
        if (a->left_out[i] > 1)
            att_text_append(&text, " (%d)", a->left_out[i]);
    }
    const char *copy = text.failed ? NULL : att_arena_string(&a->file->arena, text.data ? text.data : "");
    att_text_free(&text);
    if (!copy)
        return att_fail_memory(a->file->context, 256, "the description of a file");
    a->file->skipped = copy;
    return ATT_OK;
}

/* --- joining ------------------------------------------------------------------------------------------------------ */

static int part_of(const piece *p)
{
    return p->row ? p->row->part : 0;
}

/* By name; then those that are added, last; then by part. */
static int compare_pieces(const void *a, const void *b)
{
    const piece *p = a, *q = b;
    const int order = strcmp(p->item.info.name, q->item.info.name);
    const bool p_added = p->row && p->row->add, q_added = q->row && q->row->add;
    return order ? order : p_added != q_added ? p_added - q_added : part_of(p) - part_of(q);
}

/* Returns how many parts the tensor has that the piece becomes, or becomes a part of. */
static int parts_of(const applying *a, const piece *p)
{
    int most = 0;
    for (int i = 0; p->row && i < a->layout->row_count; i++) {
        const att_layout_row *row = &a->layout->rows[i];
        if (row->to && strcmp(row->to, p->row->to) == 0 && row->part > most)
            most = row->part;
    }
    return most + 1;
}

/* Whether two tensors differ in nothing but their first dimension. */
static bool is_alike(const att_tensors_info *a, const att_tensors_info *b)
{
    bool same = a->dtype == b->dtype && a->shape.rank == b->shape.rank && a->shape.rank > 0;
    for (int d = 1; same && d < a->shape.rank; d++)
        same = a->shape.dims[d] == b->shape.dims[d];
    return same;
}

/* Joins pieces, which must be the parts 0 to most - 1 of one tensor. */
static att_status join(const applying *a, const piece *pieces, int count, int most, att_tensors_item *joined)
{
    att_tensors_item *parts = att_arena_allocate(&a->file->arena, (size_t)count * sizeof *parts);
    if (!parts)
        return att_fail_memory(a->file->context, (size_t)count * sizeof *parts, "the parts of a tensor");
    *joined = (att_tensors_item){.info = pieces[0].item.info, .parts = parts, .part_count = count};
    joined->info.shape.dims[0] = joined->info.count = 0;
    for (int i = 0; i < count; i++) {
        if (part_of(&pieces[i]) != i)
            return fail_piece(a, pieces[i].from,
                              part_of(&pieces[i]) < i ? "is there twice" : "lacks those it is joined to");
        if (!is_alike(&pieces[i].item.info, &pieces[0].item.info))
            return fail_piece(a, pieces[i].from, "has another type or width than those it is joined to");
        parts[i] = pieces[i].item;
        joined->info.shape.dims[0] += parts[i].info.shape.dims[0];
        joined->info.count += parts[i].info.count;
    }
    return count == most ? ATT_OK : fail_piece(a, pieces[0].from, "lacks those it is joined to");
}

/* Adds pieces to *sum, whose values are then in memory, as F32. */
static att_status add(const applying *a, const piece *added, int count, att_tensors_item *sum)
{
    const int64_t n = sum->info.count;
    float *values = att_arena_allocate(&a->file->arena, (size_t)n * sizeof *values);
    float *more = att_arena_allocate(&a->file->arena, (size_t)n * sizeof *more);
    if (!values || !more)
        return att_fail_memory(a->file->context, (size_t)n * sizeof *values, sum->info.name);
    const bool readable = a->file->whole == 0;
    if (readable)
        ATT_TRY(att_tensors_read_item_f32(a->file, sum, values));
    for (int i = 0; i < count; i++) {
        if (added[i].item.info.count != n)
            return fail_piece(a, added[i].from, "has another size than what it is added to");
        if (readable)
            ATT_TRY(att_tensors_read_item_f32(a->file, &added[i].item, more));
        for (int64_t e = 0; e < n; e++)
            values[e] += more[e];
    }
    sum->info.dtype = ATT_SAFETENSORS_F32;
    sum->strides = NULL;
    sum->parts = NULL;
    sum->data = values;
    return ATT_OK;
}

/* Makes one tensor of the `count` pieces with its name. */
static att_status make_item(const applying *a, const piece *pieces, int count, att_tensors_item *made)
{
    int added = 0;
    while (added < count && pieces[count - 1 - added].row && pieces[count - 1 - added].row->add)
        added++;
    if (added == count)
        return fail_piece(a, pieces[0].from, "lacks what it is added to");
    const int most = parts_of(a, &pieces[0]);
    *made = pieces[0].item;
    if (count - added > 1 || most > 1)
        ATT_TRY(join(a, pieces, count - added, most, made));
    return added > 0 ? add(a, pieces + count - added, added, made) : ATT_OK;
}

static att_status make_items(const applying *a, att_tensors_item *items, int *count)
{
    *count = 0;
    for (int i = 0, end; i < a->count; i = end) {
        for (end = i + 1; end < a->count; end++)
            if (strcmp(a->pieces[end].item.info.name, a->pieces[i].item.info.name) != 0)
                break;
        ATT_TRY(make_item(a, a->pieces + i, end - i, &items[(*count)++]));
    }
    return ATT_OK;
}

static att_status rename_all(applying *a)
{
    att_context *context = a->file->context;
    att_tensors_item *items;
    int count;
    for (int i = 0; i < a->file->count; i++)
        ATT_TRY(add_pieces(a, &a->file->items[i]));
    ATT_TRY(note_left_out(a));
    if (a->count > 0)
        qsort(a->pieces, (size_t)a->count, sizeof *a->pieces, compare_pieces);
    ATT_TRY(att_new_array(context, &items, (size_t)a->count + 1, sizeof *items, "the tensors of a file"));
    att_status status = make_items(a, items, &count);
    if (status == ATT_OK)
        return att_tensors_replace(a->file, items, count);
    att_free(context, items);
    return status;
}

att_status att_layout_apply(const att_layout *layout, att_tensors *file)
{
    const size_t rows = (size_t)layout->row_count;
    applying a = {.layout = layout,
                  .file = file,
                  .left_out = att_arena_allocate(&file->arena, rows * sizeof *a.left_out),
                  .applies = att_arena_allocate(&file->arena, rows * sizeof *a.applies)};
    if (!a.left_out || !a.applies)
        return att_fail_memory(file->context, rows * sizeof *a.left_out, "the tensors of a file");
    for (int i = 0; i < layout->row_count; i++)
        a.applies[i] = is_as_said(&a, &layout->rows[i]);
    att_status status = rename_all(&a);
    att_free(file->context, a.pieces);
    return status;
}
