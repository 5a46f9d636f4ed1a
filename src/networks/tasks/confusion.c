#include "networks/tasks/confusion.h"

#include <math.h>

#include "base/core/error.h"
#include "base/core/memory.h"

att_status att_confusion_begin(att_context *context, att_confusion *confusion, int classes)
{
    if (confusion->counts)
        return ATT_OK;
    confusion->classes = classes;
    return att_new(context, &confusion->counts, (size_t)classes * (size_t)classes, "the counts of right pixels");
}

void att_confusion_free(att_context *context, att_confusion *confusion)
{
    att_free(context, confusion->counts);
    *confusion = (att_confusion){0};
}

att_status att_confusion_add(att_context *context, att_confusion *confusion, const uint16_t *classes,
                             const uint16_t *predicted, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        if (classes[i] == ATT_MASK_NONE)
            continue;
        if (classes[i] >= confusion->classes)
            return att_fail(context, ATT_ERR_MISMATCH, "a mask has class %d, but the network has %d classes",
                            (int)classes[i], confusion->classes);
        confusion->counts[(int64_t)classes[i] * confusion->classes + predicted[i]]++;
    }
    return ATT_OK;
}

/* 0 / 0 is NaN. */
static double share(int64_t part, int64_t whole)
{
    return whole > 0 ? (double)part / (double)whole : (double)NAN;
}

att_class_score att_confusion_class(const att_confusion *confusion, int class_number)
{
    const int64_t classes = confusion->classes, *own = confusion->counts + class_number * classes;
    int64_t truth = 0, predicted = 0, both = own[class_number];
    for (int64_t c = 0; c < classes; c++) {
        truth += own[c];
        predicted += confusion->counts[c * classes + class_number];
    }
    return (att_class_score){share(both, truth + predicted - both), share(both, truth), truth};
}

typedef struct mean {
    double sum;
    int count;
} mean;

static void add(mean *to, double value)
{
    if (isnan(value))
        return;
    to->sum += value;
    to->count++;
}

static double mean_of(const mean *of)
{
    return of->count > 0 ? of->sum / of->count : (double)NAN;
}

att_segmentation_scores att_confusion_scores(const att_confusion *confusion)
{
    mean iou = {0}, accuracy = {0};
    int64_t right = 0, all = 0;
    for (int c = 0; c < confusion->classes; c++) {
        const att_class_score of = att_confusion_class(confusion, c);
        add(&iou, of.iou);
        add(&accuracy, of.accuracy);
        right += confusion->counts[(int64_t)c * confusion->classes + c];
        all += of.pixels;
    }
    return (att_segmentation_scores){mean_of(&iou), mean_of(&accuracy), share(right, all)};
}
