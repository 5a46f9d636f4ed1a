#include "networks/tasks/box_precision.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/error.h"

enum { AREAS = 4, THRESHOLDS = 10, RECALLS = 101, MOST = 100 };
enum { ALL, SMALL, MEDIUM, LARGE };

/* Areas in pixels; both ends belong to a range. */
static const double areas[AREAS][2] = {
    [ALL] = {0, 1e10}, [SMALL] = {0, 32 * 32}, [MEDIUM] = {32 * 32, 96 * 96}, [LARGE] = {96 * 96, 1e10}};

/* --- figures ------------------------------------------------------------------------------------------------------ */

#define EVERY -1
static const char every_iou[] = "0.50:0.95";
static const struct figure {
    att_coco_figure shown;
    int area, threshold;
} figures_of[ATT_COCO_FIGURES] = {
    {{"AP", every_iou, "all", MOST, false}, ALL, EVERY},
    {{"AP50", "0.50", "all", MOST, false}, ALL, 0},
    {{"AP75", "0.75", "all", MOST, false}, ALL, 5},
    {{"APs", every_iou, "small", MOST, false}, SMALL, EVERY},
    {{"APm", every_iou, "medium", MOST, false}, MEDIUM, EVERY},
    {{"APl", every_iou, "large", MOST, false}, LARGE, EVERY},
    {{"AR1", every_iou, "all", 1, true}, ALL, EVERY},
    {{"AR10", every_iou, "all", 10, true}, ALL, EVERY},
    {{"AR100", every_iou, "all", MOST, true}, ALL, EVERY},
    {{"ARs", every_iou, "small", MOST, true}, SMALL, EVERY},
    {{"ARm", every_iou, "medium", MOST, true}, MEDIUM, EVERY},
    {{"ARl", every_iou, "large", MOST, true}, LARGE, EVERY},
};

att_coco_figure att_coco_figure_at(int index)
{
    return figures_of[index].shown;
}

/* As numpy.linspace(first, last, count)[index]. */
static double spaced(double first, double last, int count, int index)
{
    return index == count - 1 ? last : first + index * ((last - first) / (count - 1));
}

static double threshold_at(int index)
{
    return spaced(0.5, 0.95, THRESHOLDS, index);
}

/* --- groups ------------------------------------------------------------------------------------------------------- */

/* Boxes in the order of category, image, falling score, and place in the list. True boxes have the score 0. */
typedef struct ordered {
    const att_coco_box *boxes;
    const att_coco_box **order; /* [count], pointers into `boxes` */
    int count, at;              /* at: the first that is not yet taken */
} ordered;

static int compare_boxes(const void *a, const void *b)
{
    const att_coco_box *x = *(const att_coco_box *const *)a, *y = *(const att_coco_box *const *)b;
    if (x->category != y->category)
        return x->category < y->category ? -1 : 1;
    if (x->image != y->image)
        return x->image < y->image ? -1 : 1;
    if (x->score != y->score)
        return x->score > y->score ? -1 : 1;
    return (x > y) - (x < y);
}

static att_status order_boxes(att_context *context, const att_coco_box *boxes, int count, ordered *o)
{
    *o = (ordered){.boxes = boxes, .count = count};
    ATT_TRY(att_new(context, &o->order, (size_t)count + 1, "the order of boxes"));
    for (int i = 0; i < count; i++)
        o->order[i] = &boxes[i];
    if (count > 0)
        qsort(o->order, (size_t)count, sizeof *o->order, compare_boxes);
    return ATT_OK;
}

static const att_coco_box *first_of(const ordered *o)
{
    return o->at < o->count ? o->order[o->at] : NULL;
}

/* Takes the boxes of an image and category. Returns how many. */
static int take_group(ordered *o, int64_t category, int64_t image, const att_coco_box *const **group)
{
    const int begin = o->at;
    while (o->at < o->count && o->order[o->at]->category == category && o->order[o->at]->image == image)
        o->at++;
    *group = o->order + begin;
    return o->at - begin;
}

/* --- matches ------------------------------------------------------------------------------------------------------ */

/* A detection. Bit t of the members belongs to the threshold t. */
typedef struct judged {
    double score;
    int sequence; /* in the order of images and ranks */
    uint8_t rank; /* in its image */
    uint16_t matched[AREAS], ignored[AREAS];
} judged;

/* What is kept for each true box of an image. */
typedef struct workspace {
    uint16_t taken; /* by a detection; bit t belongs to the threshold t */
    int by_area;    /* index of a true box; those that count come first */
    /* A true box that the detection at hand overlaps by at least the lowest threshold. */
    int overlapped;
    double overlap;
} workspace;

typedef struct evaluation {
    att_context *context;
    ordered truth, found;
    judged *judged; /* of one category */
    int judged_count, judged_room;
    int64_t positives[AREAS];
    workspace *work; /* [work_room], of one image */
    int work_room;
    double *precision; /* [judged_count], and */
    double *recall;    /* recall */
} evaluation;

/* Intersection over union; over the detection if the true box is a crowd. */
static double overlap_of(const att_coco_box *found, const att_coco_box *truth)
{
    const double width = fmin(found->x + found->width, truth->x + truth->width) - fmax(found->x, truth->x);
    const double height = fmin(found->y + found->height, truth->y + truth->height) - fmax(found->y, truth->y);
    if (width <= 0 || height <= 0)
        return 0;
    const double both = width * height, own = found->width * found->height;
    return both / (truth->crowd ? own : own + truth->width * truth->height - both);
}

static bool is_outside(const att_coco_box *box, int area)
{
    return box->area < areas[area][0] || box->area > areas[area][1];
}

static bool is_ignored(const att_coco_box *truth, int area)
{
    return truth->crowd || is_outside(truth, area);
}

/* Notes the overlaps of a detection with the true boxes in the order `by_area`. Returns how many there are. */
static int find_overlaps(const evaluation *e, const att_coco_box *found, const att_coco_box *const *truth, int count)
{
    int overlaps = 0;
    for (int i = 0; i < count; i++) {
        const double overlap = overlap_of(found, truth[e->work[i].by_area]);
        if (overlap < threshold_at(0))
            continue;
        e->work[overlaps].overlapped = e->work[i].by_area;
        e->work[overlaps++].overlap = overlap;
    }
    return overlaps;
}

/* Returns the true box that a detection takes at a threshold: of those that are not taken, or crowds, the one with the
 * largest overlap, of equal ones the last; an ignored one only if no other is left. -1: none. */
static int choose(const evaluation *e, const att_coco_box *const *truth, int overlaps, int area, int threshold)
{
    double least = threshold_at(threshold);
    int chosen = -1;
    for (int i = 0; i < overlaps; i++) {
        const int index = e->work[i].overlapped;
        const att_coco_box *box = truth[index];
        if ((e->work[index].taken >> threshold & 1 && !box->crowd) || e->work[i].overlap < least)
            continue;
        if (chosen >= 0 && !is_ignored(truth[chosen], area) && is_ignored(box, area))
            break;
        least = e->work[i].overlap;
        chosen = index;
    }
    return chosen;
}

static void match(evaluation *e, const att_coco_box *found, judged *j, const att_coco_box *const *truth, int count,
                  int area)
{
    const int overlaps = find_overlaps(e, found, truth, count);
    for (int t = 0; t < THRESHOLDS; t++) {
        const uint16_t bit = (uint16_t)(1u << t);
        const int chosen = choose(e, truth, overlaps, area, t);
        if (chosen >= 0) {
            e->work[chosen].taken |= bit;
            j->matched[area] |= bit;
        }
        if (chosen >= 0 ? is_ignored(truth[chosen], area) : is_outside(found, area))
            j->ignored[area] |= bit;
    }
}

/* Puts true boxes that count before those that are ignored. */
static void order_by_area(evaluation *e, const att_coco_box *const *truth, int count, int area)
{
    int at = 0;
    for (int ignored = 0; ignored < 2; ignored++)
        for (int i = 0; i < count; i++)
            if (is_ignored(truth[i], area) == ignored)
                e->work[at++].by_area = i;
}

/* Adds the detections of an image to those of its category. */
static att_status judge(evaluation *e, const att_coco_box *const *truth, int truths, const att_coco_box *const *found,
                        int founds)
{
    const int begin = e->judged_count, most = founds < MOST ? founds : MOST;
    while (e->work_room < truths)
        if (!att_list_grow(e->context, &e->work, e->work_room, &e->work_room, sizeof *e->work))
            return att_fail_memory(e->context, sizeof *e->work, "the boxes of an image");
    for (int i = 0; i < most; i++) {
        if (!att_list_grow(e->context, &e->judged, e->judged_count, &e->judged_room, sizeof *e->judged))
            return att_fail_memory(e->context, sizeof *e->judged, "the detections of a category");
        e->judged[e->judged_count] =
            (judged){.score = found[i]->score, .sequence = e->judged_count, .rank = (uint8_t)i};
        e->judged_count++;
    }
    for (int area = 0; area < AREAS; area++) {
        order_by_area(e, truth, truths, area);
        for (int i = 0; i < truths; i++) {
            e->work[i].taken = 0;
            e->positives[area] += !is_ignored(truth[i], area);
        }
        for (int i = 0; i < most; i++)
            match(e, found[i], &e->judged[begin + i], truth, truths, area);
    }
    return ATT_OK;
}

/* --- precision and recall ----------------------------------------------------------------------------------------- */

static int compare_judged(const void *a, const void *b)
{
    const judged *x = a, *y = b;
    return x->score != y->score ? (x->score > y->score ? -1 : 1)
                                : (x->sequence > y->sequence) - (x->sequence < y->sequence);
}

/* Sets the precision and recall after each detection, in the order of scores; precision is that of the best later one.
 */
static void follow(const evaluation *e, int area, int threshold)
{
    double right = 0, wrong = 0;
    for (int i = 0; i < e->judged_count; i++) {
        const judged *j = &e->judged[i];
        const bool counts = !(j->ignored[area] >> threshold & 1), is_right = j->matched[area] >> threshold & 1;
        right += counts && is_right;
        wrong += counts && !is_right;
        e->recall[i] = right / (double)e->positives[area];
        e->precision[i] = right / (wrong + right + DBL_EPSILON);
    }
    for (int i = e->judged_count - 1; i > 0; i--)
        e->precision[i - 1] = fmax(e->precision[i - 1], e->precision[i]);
}

/* The mean precision at all recalls; 0 at those that are not reached. */
static double average_precision(const evaluation *e, int area, int threshold)
{
    double sum = 0;
    follow(e, area, threshold);
    for (int r = 0, i = 0; r < RECALLS; r++) {
        while (i < e->judged_count && e->recall[i] < spaced(0, 1, RECALLS, r))
            i++;
        sum += i < e->judged_count ? e->precision[i] : 0;
    }
    return sum / RECALLS;
}

/* The recall of the first `most` detections of each image. */
static double recall_of(const evaluation *e, int area, int threshold, int most)
{
    int64_t right = 0;
    for (int i = 0; i < e->judged_count; i++) {
        const judged *j = &e->judged[i];
        right += j->rank < most && j->matched[area] >> threshold & 1 && !(j->ignored[area] >> threshold & 1);
    }
    return (double)right / (double)e->positives[area];
}

/* The sum of a category's figures; the number of categories that have one. */
typedef struct total {
    double sum;
    int count;
} total;

static double figure_of_category(const evaluation *e, const struct figure *f)
{
    double sum = 0;
    const int first = f->threshold == EVERY ? 0 : f->threshold, end = f->threshold == EVERY ? THRESHOLDS : first + 1;
    for (int t = first; t < end; t++)
        sum += f->shown.recall ? recall_of(e, f->area, t, f->shown.max_detections) : average_precision(e, f->area, t);
    return sum / (end - first);
}

/* Ends a category, whose figures are added to the totals. */
static att_status close_category(evaluation *e, total totals[ATT_COCO_FIGURES], double figures[ATT_COCO_FIGURES])
{
    double *space;
    const size_t count = (size_t)e->judged_count;
    ATT_TRY(att_new(e->context, &space, 2 * count + 1, "precision and recall"));
    e->precision = space;
    e->recall = space + count;
    if (count > 0)
        qsort(e->judged, count, sizeof *e->judged, compare_judged);
    for (int i = 0; i < ATT_COCO_FIGURES; i++) {
        const bool defined = e->positives[figures_of[i].area] > 0;
        figures[i] = defined ? figure_of_category(e, &figures_of[i]) : -1;
        totals[i].sum += defined ? figures[i] : 0;
        totals[i].count += defined;
    }
    att_free(e->context, space);
    e->judged_count = 0;
    memset(e->positives, 0, sizeof e->positives);
    return ATT_OK;
}

static bool is_of(const att_coco_box *box, int64_t category)
{
    return box && box->category == category;
}

/* Judges all images of a category. */
static att_status judge_category(evaluation *e, int64_t category)
{
    for (;;) {
        const att_coco_box *truth = first_of(&e->truth), *found = first_of(&e->found);
        const att_coco_box *const *truths, *const *founds;
        int64_t image = INT64_MAX;
        if (is_of(truth, category))
            image = truth->image;
        if (is_of(found, category) && found->image < image)
            image = found->image;
        if (image == INT64_MAX)
            return ATT_OK;
        const int truth_count = take_group(&e->truth, category, image, &truths);
        const int found_count = take_group(&e->found, category, image, &founds);
        ATT_TRY(judge(e, truths, truth_count, founds, found_count));
    }
}

static att_status evaluate(evaluation *e, int categories, double figures[ATT_COCO_FIGURES], att_coco_class *classes)
{
    enum { AP = 0, AP50 = 1, AP75 = 2, AR = 8 };
    total totals[ATT_COCO_FIGURES] = {0};
    for (int c = 0; c < categories; c++) {
        double own[ATT_COCO_FIGURES];
        ATT_TRY(judge_category(e, c));
        classes[c].boxes = e->positives[ALL];
        ATT_TRY(close_category(e, totals, own));
        classes[c].ap = own[AP];
        classes[c].ap50 = own[AP50];
        classes[c].ap75 = own[AP75];
        classes[c].ar = own[AR];
    }
    for (int i = 0; i < ATT_COCO_FIGURES; i++)
        figures[i] = totals[i].count > 0 ? totals[i].sum / totals[i].count : -1;
    return ATT_OK;
}

att_status att_box_precision(att_context *context, const att_coco_box *truth, int truth_count,
                             const att_coco_box *found, int found_count, int categories,
                             double figures[ATT_COCO_FIGURES], att_coco_class *classes)
{
    evaluation e = {.context = context};
    att_status status = order_boxes(context, truth, truth_count, &e.truth);
    if (status == ATT_OK)
        status = order_boxes(context, found, found_count, &e.found);
    if (status == ATT_OK)
        status = evaluate(&e, categories, figures, classes);
    att_free(context, e.truth.order);
    att_free(context, e.found.order);
    att_free(context, e.judged);
    att_free(context, e.work);
    return status;
}
