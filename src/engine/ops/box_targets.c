#include "engine/ops/box_targets.h"

#include "base/core/random.h"
#include "engine/ops/box_parts.h"

enum { ROW = 5, NEITHER = -1, NEGATIVE = 0, POSITIVE = 1 };

/* An anchor or a proposal, compared with the true boxes. */
typedef struct candidate {
    double overlap; /* with its true box; less than 0: it lies in a crowd */
    int32_t truth;  /* its true box; -1: it overlaps none */
    int32_t best;   /* true box that no other candidate overlaps more; -1: none */
    int16_t kind, taken;
} candidate;

/* A candidate that may be taken, with its draw. */
typedef struct pick {
    uint32_t draw;
    int32_t index;
} pick;

/* A true box of a sample. */
typedef struct truth {
    double box[ATT_BOX];
    double best; /* its largest overlap with a candidate */
    int32_t label;
} truth;

/* One sample. */
typedef struct sample {
    const att_box_sampling_attrs *attrs;
    candidate *items; /* [count] */
    int64_t count;
    truth *truths; /* [truth_count], then those of crowds up to row_count */
    int64_t truth_count, row_count;
    pick *picks; /* [samples] */
    const att_box_work *work;
    int64_t number; /* in the group */
} sample;

/* --- true boxes --------------------------------------------------------------------------------------------------- */

static int64_t add_truths(const att_box_numbers *rows, int64_t count, bool crowds, truth *truths)
{
    int64_t found = 0;
    for (int64_t i = 0; i < count; i++) {
        truth next = {.label = (int32_t)att_box_number(rows, ROW * i + ATT_BOX)};
        for (int c = 0; c < ATT_BOX; c++)
            next.box[c] = att_box_number(rows, ROW * i + c);
        if (next.box[2] > next.box[0] && next.box[3] > next.box[1] && (next.label < 0) == crowds)
            truths[found++] = next;
    }
    return found;
}

static void read_truths(sample *of, const att_desc *desc, const void *data)
{
    const att_box_numbers rows = att_box_numbers_of(desc, data, of->number);
    of->truth_count = add_truths(&rows, desc->shape.dims[0], false, of->truths);
    of->row_count = of->truth_count + add_truths(&rows, desc->shape.dims[0], true, of->truths + of->truth_count);
}

/* --- matching ----------------------------------------------------------------------------------------------------- */

/* The passes over pairs of candidates and true boxes. */
typedef enum match_pass { CROWDS, OVERLAPS, BESTS } match_pass;

/* Compares a candidate with true box t. Every pass computes the same overlap, bit by bit. */
static void compare(sample *of, match_pass pass, candidate *item, const double box[ATT_BOX], int32_t t)
{
    truth *with = &of->truths[t];
    if (pass == CROWDS) {
        if (att_box_shared(box, with->box) > of->attrs->crowd * att_box_area(box))
            item->overlap = -1;
        return;
    }
    if (item->overlap <
        (pass == BESTS ? with->best : 0)) /* in the last pass it is the largest overlap of the candidate */
        return;
    const double overlap = att_box_overlap(box, with->box);
    if (pass == BESTS) {
        if (overlap == with->best && overlap > 0 && overlap >= of->attrs->least)
            item->best = t;
        return;
    }
    if (overlap > item->overlap) {
        item->overlap = overlap;
        item->truth = t;
    }
    with->best = fmax(with->best, overlap);
}

/* Compares all candidates with one true box. */
typedef void (*visitor)(sample *of, match_pass pass, int32_t t, const void *user);

static void decide(const sample *of, candidate *item)
{
    const att_box_sampling_attrs *attrs = of->attrs;
    item->kind = item->overlap < 0                  ? NEITHER
                 : item->overlap >= attrs->positive ? POSITIVE
                 : item->overlap < attrs->negative  ? NEGATIVE
                                                    : NEITHER;
    if (item->best < 0)
        return;
    item->kind = POSITIVE;
    if (attrs->best == ATT_BEST_OF_BOX)
        item->truth = item->best;
}

static void match(sample *of, visitor visit, const void *user)
{
    const bool uses_best = of->attrs->best != ATT_BEST_NONE;
    for (int64_t i = 0; i < of->count; i++)
        of->items[i] = (candidate){.truth = -1, .best = -1};
    for (int64_t t = of->truth_count; t < of->row_count && of->attrs->crowd < 1; t++)
        visit(of, CROWDS, (int32_t)t, user);
    for (int64_t t = 0; t < of->truth_count; t++)
        visit(of, OVERLAPS, (int32_t)t, user);
    for (int64_t t = 0; t < of->truth_count && uses_best; t++)
        visit(of, BESTS, (int32_t)t, user);
    for (int64_t i = 0; i < of->count; i++)
        decide(of, &of->items[i]);
}

/* --- sampling ----------------------------------------------------------------------------------------------------- */

static bool is_after(const pick *a, const pick *b)
{
    return a->draw != b->draw ? a->draw > b->draw : a->index > b->index;
}

/* Puts a pick into its place below `at` in a heap whose root is the last in order. */
static void sift(pick *heap, int64_t count, int64_t at, pick moved)
{
    for (int64_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && is_after(&heap[child + 1], &heap[child]))
            child++;
        if (!is_after(&heap[child], &moved))
            break;
        heap[at] = heap[child];
    }
    heap[at] = moved;
}

/* Takes the `most` candidates of a kind with the smallest draws. The draw of a candidate depends on its index, not on
 * those before it. */
static void take_drawn(sample *of, int kind, int64_t most)
{
    const uint64_t key = att_random_key(of->work->seed, (uint64_t)of->work->step, of->attrs->stream);
    const uint64_t high = (uint64_t)(of->work->position + of->number);
    att_philox block = {{0}};
    int64_t found = 0;
    for (int64_t i = 0; i < of->count; i++) {
        if (i % 4 == 0)
            block = att_philox_block(key, high, (uint64_t)i / 4);
        const pick next = {block.word[i % 4], (int32_t)i};
        if (of->items[i].kind != kind)
            continue;
        if (found < most) {
            of->picks[found++] = next;
            for (int64_t root = found == most ? most / 2 : 0; root-- > 0;)
                sift(of->picks, most, root, of->picks[root]);
        } else if (is_after(&of->picks[0], &next)) {
            sift(of->picks, most, 0, next);
        }
    }
    for (int64_t i = 0; i < found; i++)
        of->items[of->picks[i].index].taken = 1;
}

/* Takes at most `most` candidates of a kind. Returns their number. */
static int64_t take(sample *of, int kind, int64_t most)
{
    int64_t found = 0;
    for (int64_t i = 0; i < of->count; i++)
        found += of->items[i].kind == kind;
    if (found > most && most > 0)
        take_drawn(of, kind, most);
    for (int64_t i = 0; i < of->count && found <= most; i++)
        of->items[i].taken |= of->items[i].kind == kind;
    return found < most ? found : most;
}

static void take_samples(sample *of)
{
    const int64_t samples = of->attrs->samples;
    const int64_t positive = take(of, POSITIVE, (int64_t)((double)samples * of->attrs->share));
    take(of, NEGATIVE, samples - positive);
}

/* --- results ------------------------------------------------------------------------------------------------------ */

/* The deltas that change a box into the true box. */
static void encode(const double from[ATT_BOX], const double to[ATT_BOX], const double weights[ATT_BOX],
                   double deltas[ATT_BOX])
{
    for (int axis = 0; axis < 2; axis++) {
        const double side = from[axis + 2] - from[axis], wanted = to[axis + 2] - to[axis];
        deltas[axis] = weights[axis] * (to[axis] + wanted / 2 - from[axis] - side / 2) / side;
        deltas[axis + 2] = weights[axis + 2] * log(wanted / side);
    }
}

static void put_row(const att_box_result *to, int64_t row, const double numbers[ATT_BOX])
{
    for (int c = 0; c < ATT_BOX; c++)
        att_box_put(to, ATT_BOX * row + c, numbers[c]);
}

static int32_t *whole(void *out, int64_t first)
{
    return out ? (int32_t *)out + first : NULL;
}

static void put_whole(int32_t *to, int64_t i, int32_t value)
{
    if (to)
        to[i] = value;
}

/* Divides the scratch memory, whose first part holds `count` candidates. */
static sample begin_sample(const att_box_work *work, const att_box_sampling_attrs *attrs, int64_t count, int64_t rows,
                           int64_t number, void *scratch)
{
    candidate *items = scratch;
    truth *truths = (truth *)(items + count);
    return (sample){.attrs = attrs,
                    .items = items,
                    .count = count,
                    .truths = truths,
                    .picks = (pick *)(truths + rows),
                    .work = work,
                    .number = number};
}

static size_t scratch_of(const att_box_sampling_attrs *attrs, int64_t count, int64_t rows)
{
    return (size_t)count * sizeof(candidate) + (size_t)rows * sizeof(truth) + (size_t)attrs->samples * sizeof(pick);
}

/* --- anchors ------------------------------------------------------------------------------------------------------ */

static int64_t anchors_of_level(const att_anchor_sample_attrs *attrs, int level)
{
    return (int64_t)attrs->sides[level][0] * attrs->sides[level][1] * ATT_BOX_RATIOS;
}

int64_t att_anchor_count(const att_anchor_sample_attrs *attrs)
{
    int64_t count = 0;
    for (int l = 0; l < attrs->levels; l++)
        count += anchors_of_level(attrs, l);
    return count;
}

/* Places along an axis whose anchors can reach a box: first .. end - 1. */
static void find_places(double low, double high, double half, int32_t stride, int64_t count, int64_t *first,
                        int64_t *end)
{
    *first = (int64_t)fmin(fmax(floor((low - half) / stride), 0), (double)count);
    *end = (int64_t)fmin(fmax(ceil((high + half) / stride) + 1, 0), (double)count);
}

/* Compares the anchors of a level and a ratio. first: index of the level's first anchor. */
static void visit_ratio(sample *of, match_pass pass, int32_t t, const att_anchor_sample_attrs *attrs, int level,
                        int ratio, int64_t first)
{
    const double *box = of->truths[t].box;
    const int32_t *sides = attrs->sides[level], *stride = attrs->stride[level];
    double half[2], anchor[ATT_BOX];
    int64_t top, bottom, left, right;
    att_anchor_half(attrs->size, attrs->rounded, level, ratio, half);
    find_places(box[0], box[2], half[0], stride[1], sides[1], &left, &right);
    find_places(box[1], box[3], half[1], stride[0], sides[0], &top, &bottom);
    for (int64_t row = top; row < bottom; row++)
        for (int64_t column = left; column < right; column++) {
            att_anchor_at(half, stride, row, column, anchor);
            compare(of, pass, &of->items[first + (row * sides[1] + column) * ATT_BOX_RATIOS + ratio], anchor, t);
        }
}

/* As a visitor. user: the attributes. */
static void visit_anchors(sample *of, match_pass pass, int32_t t, const void *user)
{
    const att_anchor_sample_attrs *attrs = user;
    int64_t first = 0;
    for (int l = 0; l < attrs->levels; l++) {
        for (int ratio = 0; ratio < ATT_BOX_RATIOS; ratio++)
            visit_ratio(of, pass, t, attrs, l, ratio, first);
        first += anchors_of_level(attrs, l);
    }
}

static void encode_anchor(const sample *of, const att_anchor_sample_attrs *attrs, int level, int64_t index, int32_t t,
                          double deltas[ATT_BOX])
{
    static const double ones[ATT_BOX] = {1, 1, 1, 1};
    const int64_t place = index / ATT_BOX_RATIOS, width = attrs->sides[level][1];
    double half[2], anchor[ATT_BOX];
    att_anchor_half(attrs->size, attrs->rounded, level, (int)(index % ATT_BOX_RATIOS), half);
    att_anchor_at(half, attrs->stride[level], place / width, place % width, anchor);
    encode(anchor, of->truths[t].box, ones, deltas);
}

static void write_anchors(const sample *of, const att_anchor_sample_attrs *attrs, const att_desc *in, void *const *out)
{
    static const double zeros[ATT_BOX];
    const int64_t before = of->number * of->count;
    int32_t *classes = whole(out[0], before), *columns = whole(out[1], before);
    const att_box_result targets = {out[2], in[0].dtype == ATT_F64, ATT_BOX * before};
    int64_t row = 0;
    for (int l = 0; l < attrs->levels; l++)
        for (int64_t i = 0; i < anchors_of_level(attrs, l); i++, row++) {
            const candidate *item = &of->items[row];
            const bool is_object = item->taken && item->kind == POSITIVE;
            double deltas[ATT_BOX];
            if (is_object)
                encode_anchor(of, attrs, l, i, item->truth, deltas);
            put_whole(classes, row, item->taken ? item->kind : ATT_NO_CLASS);
            put_whole(columns, row, is_object ? 0 : ATT_NO_CLASS);
            put_row(&targets, row, is_object ? deltas : zeros);
        }
}

size_t att_anchor_sample_scratch(const void *attrs, const att_desc *in, int in_count)
{
    (void)in_count;
    const att_anchor_sample_attrs *own = attrs;
    return scratch_of(&own->sampling, att_anchor_count(own), in[0].shape.dims[0]);
}

void att_anchor_sample_run(const att_box_work *work)
{
    const att_anchor_sample_attrs *attrs = work->attrs;
    const int64_t count = att_anchor_count(attrs), rows = work->in[0].shape.dims[0];
    for (int64_t number = work->begin; number < work->end; number++) {
        sample of = begin_sample(work, &attrs->sampling, count, rows, number, work->scratch);
        read_truths(&of, &work->in[0], work->data[0]);
        match(&of, visit_anchors, attrs);
        take_samples(&of);
        write_anchors(&of, attrs, work->in, work->out);
    }
}

/* --- proposals ---------------------------------------------------------------------------------------------------- */

enum { PROPOSALS, COUNT, TRUE_BOXES };

/* As a visitor. user: the proposals. True boxes among the candidates lie in no crowd. */
static void visit_boxes(sample *of, match_pass pass, int32_t t, const void *user)
{
    const double *boxes = user;
    const int64_t count = pass == CROWDS ? of->count - of->truth_count : of->count;
    for (int64_t i = 0; i < count; i++)
        compare(of, pass, &of->items[i], boxes + ATT_BOX * i, t);
}

/* The proposals, then the true boxes. Returns their number. */
static int64_t list_boxes(const sample *of, const att_desc *in, const void *const *data, double *boxes)
{
    const att_box_numbers from = att_box_numbers_of(&in[PROPOSALS], data[PROPOSALS], of->number);
    const int64_t room = in[PROPOSALS].shape.dims[0], given = ((const int32_t *)data[COUNT])[of->number];
    const int64_t count = given < room ? given : room;
    for (int64_t i = 0; i < ATT_BOX * count; i++)
        boxes[i] = att_box_number(&from, i);
    for (int64_t t = 0; t < ATT_BOX * of->truth_count; t++)
        boxes[ATT_BOX * count + t] = of->truths[t / ATT_BOX].box[t % ATT_BOX];
    return count + of->truth_count;
}

/* Rows that are left repeat the samples. */
static void write_boxes(const sample *of, const att_box_sample_attrs *attrs, bool is_wide, const double *boxes,
                        void *const *out)
{
    static const double zeros[ATT_BOX];
    const int64_t room = attrs->sampling.samples, before = of->number * room;
    const att_box_result taken = {out[0], is_wide, ATT_BOX * before}, targets = {out[3], is_wide, ATT_BOX * before};
    int32_t *classes = whole(out[1], before), *columns = whole(out[2], before), *count = whole(out[4], of->number);
    int64_t row = 0;
    for (int64_t i = 0; i < of->count; i++) {
        const candidate *item = &of->items[i];
        const truth *match = item->kind == POSITIVE ? &of->truths[item->truth] : NULL;
        double deltas[ATT_BOX] = {0};
        if (!item->taken)
            continue;
        if (match)
            encode(boxes + ATT_BOX * i, match->box, attrs->weights, deltas);
        const int32_t background = attrs->background_first ? 0 : attrs->classes;
        const int32_t class_number = match ? match->label + attrs->background_first : background;
        put_row(&taken, row, boxes + ATT_BOX * i);
        put_whole(classes, row, class_number);
        put_whole(columns, row, match ? class_number : ATT_NO_CLASS);
        put_row(&targets, row++, deltas);
    }
    const bool any = row > 0;
    put_whole(count, 0, any ? (int32_t)room : 0);
    for (int64_t i = 0; row < room; i = i + 1 < of->count ? i + 1 : 0)
        if (!any || of->items[i].taken) {
            put_row(&taken, row, any ? boxes + ATT_BOX * i : zeros);
            put_whole(classes, row, ATT_NO_CLASS);
            put_whole(columns, row, ATT_NO_CLASS);
            put_row(&targets, row++, zeros);
        }
}

/* The candidates of a sample at most. */
static int64_t room_of(const att_desc *in)
{
    return in[PROPOSALS].shape.dims[0] + in[TRUE_BOXES].shape.dims[0];
}

size_t att_box_sample_scratch(const void *attrs, const att_desc *in, int in_count)
{
    (void)in_count;
    const att_box_sample_attrs *own = attrs;
    return (size_t)room_of(in) * sizeof(double[ATT_BOX]) +
           scratch_of(&own->sampling, room_of(in), in[TRUE_BOXES].shape.dims[0]);
}

void att_box_sample_run(const att_box_work *work)
{
    const att_box_sample_attrs *attrs = work->attrs;
    const att_desc *in = work->in;
    double *boxes = work->scratch;
    for (int64_t number = work->begin; number < work->end; number++) {
        sample of = begin_sample(work, &attrs->sampling, room_of(in), in[TRUE_BOXES].shape.dims[0], number,
                                 boxes + ATT_BOX * room_of(in));
        read_truths(&of, &in[TRUE_BOXES], work->data[TRUE_BOXES]);
        of.count = list_boxes(&of, in, work->data, boxes);
        match(&of, visit_boxes, boxes);
        take_samples(&of);
        write_boxes(&of, attrs, in[PROPOSALS].dtype == ATT_F64, boxes, work->out);
    }
}
