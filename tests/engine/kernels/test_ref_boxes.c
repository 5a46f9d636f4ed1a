/* RoIAlign and its gradient against torchvision, in f64 (tools/goldens/detectors.py), and what boxes do with numbers
 * that are not finite. */
#include "engine/kernels/direct.h"
#include "engine/ops/boxes.h"
#include "engine/ops/roi_align.h"
#include "formula.h"
#include "golden_path.h"

TEST_GROUP(direct_setup, close_context)

enum { ALIGNED = 4096, LINE = 1 << 16 };

/* Reads `count` numbers from a line. */
static void take(double *numbers, int count)
{
    assert_in_range(count, 1, ALIGNED);
    for (int i = 0; i < count; i++)
        numbers[i] = strtod(strtok(NULL, " \n"), NULL);
}

static void draw(double *numbers, const char *name, int count)
{
    for (int i = 0; i < count; i++)
        numbers[i] = formula(name, (uint32_t)i);
}

static int take_whole(void)
{
    return (int)strtol(strtok(NULL, " \n"), NULL, 10);
}

static void check_align(void)
{
    enum { SIDE = 3, CHANNELS = 3 };
    static double boxes[ALIGNED], y[ALIGNED], maps[2][ALIGNED], dy[ALIGNED], expected[ALIGNED], back[2][ALIGNED];
    att_roi_align_attrs attrs = {.finest = 16, .levels = 2, .side = SIDE, .stride = 4};
    attrs.aligned = take_whole();
    attrs.samples = take_whole();
    const int32_t count = take_whole();
    for (int l = 0; l < 2; l++) {
        char name[8];
        attrs.height[l] = take_whole();
        attrs.width[l] = take_whole();
        snprintf(name, sizeof name, "map%d", l);
        draw(maps[l], name, attrs.height[l] * attrs.width[l] * CHANNELS);
    }
    const int values = count * SIDE * SIDE * CHANNELS;
    att_roi_align_attrs forward = attrs;
    memset(forward.height, 0, sizeof forward.height);
    memset(forward.width, 0, sizeof forward.width);
    take(boxes, 4 * count);
    draw(dy, "dy", values);
    DIRECT("roi_align", &forward, 1, OUTPUTS(y), SAMPLE(maps[0], attrs.height[0], attrs.width[0], CHANNELS),
           SAMPLE(maps[1], attrs.height[1], attrs.width[1], CHANNELS), SAMPLE(boxes, count, 4), CLASSES(&count));
    take(expected, values);
    direct_close(y, expected, values, 1e-13);
    DIRECT("roi_align_grad", &attrs, 1, OUTPUTS(back[0], back[1]), SAMPLE(dy, count, SIDE, SIDE, CHANNELS),
           SAMPLE(boxes, count, 4), CLASSES(&count));
    for (int l = 0; l < 2; l++) {
        const int elements = attrs.height[l] * attrs.width[l] * CHANNELS;
        take(expected, elements);
        direct_close(back[l], expected, elements, 1e-13);
    }
}

TEST(roi_align_and_its_gradient_are_torchvisions)
{
    static char line[LINE];
    int count = 0;
    char path[4096];
    golden_path("detectors.txt", path, sizeof path);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file))
        if (strcmp(strtok(line, " \n"), "align") == 0) {
            check_align();
            count++;
        }
    fclose(file);
    assert_int_equal(count, 4);
}

/* --- NaN ---------------------------------------------------------------------------------------------------------- */

static void assert_all_nan(const double *numbers, int count)
{
    for (int i = 0; i < count; i++)
        assert_true(isnan(numbers[i]));
}

TEST(nan_reaches_the_detections)
{
    enum { SIDE = 2, ANCHORS = SIDE * SIDE * ATT_BOX_RATIOS, MOST = 3 };
    static const att_box_proposals_attrs attrs = {
        .size = 8, .overlap = 0.7, .stride = {{8, 8}}, .per_level = ANCHORS, .most = MOST};
    double objectness[ANCHORS] = {0}, deltas[4 * ANCHORS] = {0}, size[2] = {16, 16}, boxes[4 * MOST], scores[MOST];
    int32_t count;
    objectness[5] = (double)NAN;
    DIRECT("box_proposals", &attrs, 1, OUTPUTS(boxes, scores, &count), SAMPLE(objectness, SIDE, SIDE, ATT_BOX_RATIOS),
           SAMPLE(deltas, SIDE, SIDE, 4 * ATT_BOX_RATIOS), SAMPLE(size, 2));
    assert_int_equal(count, MOST);
    assert_all_nan(boxes, 4 * MOST);
    assert_all_nan(scores, MOST);

    static const att_roi_align_attrs align = {.finest = 8, .levels = 1, .side = 1, .stride = 8, .samples = 2};
    double y[MOST], logits[2 * MOST] = {0}, changes[8 * MOST] = {0}, found[4], best[1];
    int32_t classes[1];
    DIRECT("roi_align", &align, 1, OUTPUTS(y), SAMPLE(objectness, SIDE, SIDE, 1), SAMPLE(boxes, MOST, 4),
           CLASSES(&count));
    assert_all_nan(y, MOST);
    memcpy(logits, y, sizeof y);
    static const att_box_detections_attrs ends = {.weights = {10, 10, 5, 5}, .most = 1, .background_first = 1};
    DIRECT("box_detections", &ends, 1, OUTPUTS(found, best, classes, &count), SAMPLE(logits, MOST, 2),
           SAMPLE(changes, MOST, 8), SAMPLE(boxes, MOST, 4), CLASSES(&count), SAMPLE(size, 2));
    assert_all_nan(found, 4);
    assert_all_nan(best, 1);
}
