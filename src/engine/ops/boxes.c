#include "engine/ops/boxes.h"

#include "engine/ops/box_parts.h"

/* A box that may become a result. */
typedef struct candidate {
    double box[4], score;
    int32_t group; /* level or class: suppression is within a group */
    int32_t index; /* in its group */
} candidate;

/* --- order -------------------------------------------------------------------------------------------------------- */

static bool is_before(const candidate *a, const candidate *b)
{
    if (a->score != b->score)
        return a->score > b->score;
    return a->group != b->group ? a->group < b->group : a->index < b->index;
}

/* Restores a heap whose root is the last in order, after item `at` has changed. */
static void sift(candidate *heap, int64_t count, int64_t at)
{
    const candidate moved = heap[at];
    for (int64_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && is_before(&heap[child], &heap[child + 1]))
            child++;
        if (!is_before(&moved, &heap[child]))
            break;
        heap[at] = heap[child];
    }
    heap[at] = moved;
}

static void make_heap(candidate *items, int64_t count)
{
    for (int64_t i = count / 2; i-- > 0;)
        sift(items, count, i);
}

static void sort(candidate *items, int64_t count)
{
    make_heap(items, count);
    while (count > 1) {
        const candidate last = items[0];
        items[0] = items[--count];
        items[count] = last;
        sift(items, count, 0);
    }
}

/* --- boxes -------------------------------------------------------------------------------------------------------- */

static double clip(double value, double high)
{
    return fmin(fmax(value, 0), high);
}

/* Applies deltas to a box and clips it. limits: height and width. */
static void decode(const double from[ATT_BOX], const double deltas[ATT_BOX], bool bounded,
                   const att_box_numbers *limits, double to[ATT_BOX])
{
    const double most = log(1000.0 / 16), height = att_box_number(limits, 0), width = att_box_number(limits, 1);
    const double w = from[2] - from[0], h = from[3] - from[1];
    const double x = from[0] + w / 2 + deltas[0] * w, y = from[1] + h / 2 + deltas[1] * h;
    const double least = bounded ? -most : -INFINITY;
    const double half_w = w * exp(fmax(fmin(deltas[2], most), least)) / 2;
    const double half_h = h * exp(fmax(fmin(deltas[3], most), least)) / 2;
    to[0] = clip(x - half_w, width);
    to[1] = clip(y - half_h, height);
    to[2] = clip(x + half_w, width);
    to[3] = clip(y + half_h, height);
}

static bool is_small(const double box[ATT_BOX], double least)
{
    return !(box[2] - box[0] >= least && box[3] - box[1] >= least);
}

static bool is_suppressed(const candidate *taken, int64_t count, const candidate *next, double overlap)
{
    for (int64_t i = 0; i < count; i++)
        if (taken[i].group == next->group && att_box_overlap(taken[i].box, next->box) > overlap)
            return true;
    return false;
}

/* Sorts the candidates and moves those that the suppression leaves to the front. Returns their number, at most `most`.
 */
static int64_t suppress(candidate *items, int64_t count, double overlap, int64_t most)
{
    int64_t taken = 0;
    sort(items, count);
    for (int64_t i = 0; i < count && taken < most; i++)
        if (!is_suppressed(items, taken, &items[i], overlap))
            items[taken++] = items[i];
    return taken;
}

/* --- results ------------------------------------------------------------------------------------------------------ */

/* Outputs of one sample, of `room` boxes each. */
typedef struct results {
    att_box_result boxes, scores;
    int32_t *classes, *count; /* NULL: nobody reads them, or there are none */
    int64_t room;
} results;

static void write_results(const results *to, const candidate *items, int64_t count)
{
    for (int64_t i = 0; i < to->room; i++) {
        for (int c = 0; c < ATT_BOX; c++)
            att_box_put(&to->boxes, ATT_BOX * i + c, i < count ? items[i].box[c] : 0);
        att_box_put(&to->scores, i, i < count ? items[i].score : 0);
        if (to->classes)
            to->classes[i] = i < count ? items[i].group : 0;
    }
    if (to->count)
        *to->count = (int32_t)count;
}

static void write_nan(const results *to)
{
    write_results(to, NULL, 0);
    for (int64_t i = 0; i < to->room; i++) {
        for (int c = 0; c < ATT_BOX; c++)
            att_box_put(&to->boxes, ATT_BOX * i + c, (double)NAN);
        att_box_put(&to->scores, i, (double)NAN);
    }
    if (to->count)
        *to->count = (int32_t)to->room;
}

/* --- proposals ---------------------------------------------------------------------------------------------------- */

/* One level of one sample. */
typedef struct level {
    const att_box_proposals_attrs *attrs;
    int number;
    int64_t width, anchors; /* places in a row; number of anchors */
    att_box_numbers objectness, deltas;
} level;

static void place_anchor(const level *of, int64_t index, double anchor[ATT_BOX])
{
    const int64_t place = index / ATT_BOX_RATIOS;
    double half[2];
    att_anchor_half(of->attrs->size, of->attrs->rounded, of->number, (int)(index % ATT_BOX_RATIOS), half);
    att_anchor_at(half, of->attrs->stride[of->number], place / of->width, place % of->width, anchor);
}

static int64_t at_most(int64_t value, int64_t limit)
{
    return value < limit ? value : limit;
}

/* Sets the candidates of a level without their boxes. Returns their number; -1 if an objectness is NaN. */
static int64_t choose(const level *of, candidate *items)
{
    const int64_t room = at_most(of->anchors, of->attrs->per_level);
    for (int64_t i = 0; i < of->anchors; i++) {
        const candidate next = {
            .score = att_box_number(&of->objectness, i), .group = (int32_t)of->number, .index = (int32_t)i};
        if (isnan(next.score))
            return -1;
        if (i < room)
            items[i] = next;
        if (i == room - 1)
            make_heap(items, room);
        if (i < room || !is_before(&next, &items[0]))
            continue;
        items[0] = next;
        sift(items, room, 0);
    }
    return room;
}

/* Decodes the candidates and moves those that are large enough to the front. Returns their number; -1 after NaN. */
static int64_t decode_all(const level *of, const att_box_numbers *limits, candidate *items, int64_t count)
{
    int64_t kept = 0;
    for (int64_t i = 0; i < count; i++) {
        double anchor[ATT_BOX], deltas[ATT_BOX];
        place_anchor(of, items[i].index, anchor);
        for (int c = 0; c < ATT_BOX; c++) {
            deltas[c] = att_box_number(&of->deltas, ATT_BOX * (int64_t)items[i].index + c);
            if (isnan(deltas[c]))
                return -1;
        }
        decode(anchor, deltas, of->attrs->bounded, limits, items[i].box);
        if (!is_small(items[i].box, of->attrs->least))
            items[kept++] = items[i];
    }
    return kept;
}

static int64_t anchors_of(const att_desc *objectness)
{
    return att_shape_count(objectness->shape);
}

size_t att_box_proposals_scratch(const void *attrs, const att_desc *in, int in_count)
{
    const att_box_proposals_attrs *own = attrs;
    int64_t count = 0;
    for (int l = 0; l < in_count / 2; l++)
        count += at_most(anchors_of(&in[l]), own->per_level);
    return (size_t)count * sizeof(candidate);
}

static void propose(const att_box_work *work, int64_t sample)
{
    const att_box_proposals_attrs *attrs = work->attrs;
    const att_desc *in = work->in;
    const void *const *data = work->data;
    void *const *out = work->out;
    candidate *items = work->scratch;
    const int in_count = work->in_count, levels = in_count / 2;
    const bool is_wide = in[0].dtype == ATT_F64;
    const att_box_numbers limits = att_box_numbers_of(&in[in_count - 1], data[in_count - 1], sample);
    const results to = {.boxes = {out[0], is_wide, ATT_BOX * sample * attrs->most},
                        .scores = {out[1], is_wide, sample * attrs->most},
                        .count = out[2] ? (int32_t *)out[2] + sample : NULL,
                        .room = attrs->most};
    int64_t count = 0;
    for (int l = 0; l < levels; l++) {
        const level of = {attrs,
                          l,
                          in[l].shape.dims[1],
                          anchors_of(&in[l]),
                          att_box_numbers_of(&in[l], data[l], sample),
                          att_box_numbers_of(&in[levels + l], data[levels + l], sample)};
        const int64_t chosen = choose(&of, items + count);
        const int64_t decoded = chosen < 0 ? -1 : decode_all(&of, &limits, items + count, chosen);
        if (decoded < 0) {
            write_nan(&to);
            return;
        }
        count += decoded;
    }
    write_results(&to, items, suppress(items, count, attrs->overlap, attrs->most));
}

void att_box_proposals_run(const att_box_work *work)
{
    for (int64_t sample = work->begin; sample < work->end; sample++)
        propose(work, sample);
}

/* --- detections --------------------------------------------------------------------------------------------------- */

enum { LOGITS, DELTAS, PROPOSALS, COUNT, IMAGE_SIZE };

/* The answers to the proposals of one sample. */
typedef struct answers {
    const att_box_detections_attrs *attrs;
    int64_t classes;                /* without the background */
    int64_t first, first_delta;     /* column of class 0 */
    int64_t columns, delta_columns; /* of a row */
    att_box_numbers logits, deltas, proposals, limits;
} answers;

static answers answers_of(const att_box_detections_attrs *attrs, const att_desc *in, const void *const *data,
                          int64_t sample)
{
    const int64_t columns = in[LOGITS].shape.dims[1], delta_columns = in[DELTAS].shape.dims[1];
    const int64_t first = attrs->background_first ? 1 : 0;
    return (answers){.attrs = attrs,
                     .classes = columns - 1,
                     .first = first,
                     .first_delta = delta_columns == ATT_BOX * columns ? first : 0,
                     .columns = columns,
                     .delta_columns = delta_columns,
                     .logits = att_box_numbers_of(&in[LOGITS], data[LOGITS], sample),
                     .deltas = att_box_numbers_of(&in[DELTAS], data[DELTAS], sample),
                     .proposals = att_box_numbers_of(&in[PROPOSALS], data[PROPOSALS], sample),
                     .limits = att_box_numbers_of(&in[IMAGE_SIZE], data[IMAGE_SIZE], sample)};
}

/* Classes of a proposal whose score can be larger than `score`. */
static int64_t most_classes(double score, int64_t classes)
{
    return score * (double)classes < 1 ? classes : at_most((int64_t)(1 / score), classes);
}

/* Returns the logarithm of the sum of exponentials of a row of logits. */
static double log_sum_exp(const answers *of, int64_t row)
{
    double largest = -INFINITY, sum = 0;
    for (int64_t c = 0; c < of->columns; c++)
        largest = fmax(largest, att_box_number(&of->logits, row * of->columns + c));
    for (int64_t c = 0; c < of->columns; c++)
        sum += exp(att_box_number(&of->logits, row * of->columns + c) - largest);
    return largest + log(sum);
}

/* Sets the box of class item->group. Returns whether it has no NaN. */
static bool decode_class(const answers *of, candidate *item)
{
    double from[ATT_BOX], deltas[ATT_BOX];
    bool is_number = true;
    for (int c = 0; c < ATT_BOX; c++) {
        const int64_t column = ATT_BOX * (of->first_delta + item->group) + c;
        from[c] = att_box_number(&of->proposals, ATT_BOX * (int64_t)item->index + c);
        deltas[c] = att_box_number(&of->deltas, item->index * of->delta_columns + column) / of->attrs->weights[c];
        is_number &= !isnan(from[c]) && !isnan(deltas[c]);
    }
    decode(from, deltas, of->attrs->bounded, &of->limits, item->box);
    return is_number;
}

/* Adds the candidates of a proposal. Returns their number; -1 after NaN. */
static int64_t add_row(const answers *of, int64_t row, candidate *items)
{
    const double total = log_sum_exp(of, row);
    int64_t count = 0;
    if (isnan(total))
        return -1;
    for (int64_t c = 0; c < of->classes; c++) {
        candidate next = {.score = exp(att_box_number(&of->logits, row * of->columns + of->first + c) - total),
                          .group = (int32_t)c,
                          .index = (int32_t)row};
        if (!(next.score > of->attrs->score))
            continue;
        if (!decode_class(of, &next))
            return -1;
        if (!is_small(next.box, of->attrs->least))
            items[count++] = next;
    }
    return count;
}

size_t att_box_detections_scratch(const void *attrs, const att_desc *in, int in_count)
{
    (void)in_count;
    const att_box_detections_attrs *own = attrs;
    const int64_t *logits = in[LOGITS].shape.dims;
    return (size_t)(logits[0] * (most_classes(own->score, logits[1] - 1) + 1)) * sizeof(candidate);
}

static void detect(const att_box_work *work, int64_t sample)
{
    const att_box_detections_attrs *attrs = work->attrs;
    const att_desc *in = work->in;
    const void *const *data = work->data;
    void *const *out = work->out;
    candidate *items = work->scratch;
    const bool is_wide = in[LOGITS].dtype == ATT_F64;
    const answers of = answers_of(attrs, in, data, sample);
    const int64_t rows = at_most(((const int32_t *)data[COUNT])[sample], in[LOGITS].shape.dims[0]);
    const results to = {.boxes = {out[0], is_wide, ATT_BOX * sample * attrs->most},
                        .scores = {out[1], is_wide, sample * attrs->most},
                        .classes = out[2] ? (int32_t *)out[2] + sample * attrs->most : NULL,
                        .count = out[3] ? (int32_t *)out[3] + sample : NULL,
                        .room = attrs->most};
    int64_t count = 0;
    for (int64_t row = 0; row < rows; row++) {
        const int64_t added = add_row(&of, row, items + count);
        if (added < 0) {
            write_nan(&to);
            return;
        }
        count += added;
    }
    write_results(&to, items, suppress(items, count, attrs->overlap, attrs->most));
}

void att_box_detections_run(const att_box_work *work)
{
    for (int64_t sample = work->begin; sample < work->end; sample++)
        detect(work, sample);
}
