/* RoIAlign and its gradient against torchvision, in f64 (tools/goldens/detectors.py); proposals and detections against
 * numbers computed by hand; what boxes do with numbers that are not finite. */
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

TEST(a_box_of_nearly_the_finest_size_is_read_in_its_map)
{
    const double nearly = 32 * (1 - 1e-8), box[4] = {0, 0, nearly, nearly};
    assert_int_equal(att_roi_level(box, 3, 16), 1);
}

/* --- proposals ---------------------------------------------------------------------------------------------------- */

/* Anchors of the place in the upper left corner, cut off at the borders. */
TEST(equal_proposals_go_by_level_and_place)
{
    enum { LEVELS = 2, KEPT = 2, MOST = LEVELS * KEPT };
    att_box_proposals_attrs attrs = {
        .size = 8, .overlap = 1, .stride = {{8, 8}, {16, 16}}, .per_level = KEPT, .most = MOST};
    const double equal[ATT_BOX_RATIOS] = {1, 1, 1}, deltas[4 * ATT_BOX_RATIOS] = {0}, size[2] = {5, 100};
    double boxes[4 * MOST], scores[MOST];
    int32_t count;
    const double half = 4 * sqrt(2); /* of the longer side of the first anchor, which is twice the other one */
    for (int rounded = 0; rounded < 2; rounded++) {
        attrs.rounded = rounded;
        DIRECT("box_proposals", &attrs, 1, OUTPUTS(boxes, scores, &count), SAMPLE(equal, 1, 1, ATT_BOX_RATIOS),
               SAMPLE(equal, 1, 1, ATT_BOX_RATIOS), SAMPLE(deltas, 1, 1, 4 * ATT_BOX_RATIOS),
               SAMPLE(deltas, 1, 1, 4 * ATT_BOX_RATIOS), SAMPLE(size, 2));
        assert_int_equal(count, MOST);
        if (rounded)
            CLOSE(boxes, 0, 0, 0, 6, 3, 0, 0, 4, 4, 0, 0, 11, 5, 0, 0, 8, 5);
        else
            CLOSE(boxes, 1e-15, 0, 0, half, half / 2, 0, 0, 4, 4, 0, 0, 2 * half, 5, 0, 0, 8, 5);
    }
}

/* The anchor of the last place is to the right of the image and below it. */
TEST(each_corner_is_clipped_to_height_and_width)
{
    enum { ROWS = 3, COLUMNS = 4, ANCHORS = ROWS * COLUMNS * ATT_BOX_RATIOS };
    static const att_box_proposals_attrs attrs = {
        .size = 8, .overlap = 1, .stride = {{8, 8}}, .per_level = 1, .most = 1};
    const double objectness[ANCHORS] = {[ANCHORS - 2] = 1}, deltas[4 * ANCHORS] = {0}, size[2] = {10, 15};
    double box[4], score;
    int32_t count;
    DIRECT("box_proposals", &attrs, 1, OUTPUTS(box, &score, &count), SAMPLE(objectness, ROWS, COLUMNS, ATT_BOX_RATIOS),
           SAMPLE(deltas, ROWS, COLUMNS, 4 * ATT_BOX_RATIOS), SAMPLE(size, 2));
    assert_int_equal(count, 1);
    CLOSE(box, 0, 15, 10, 15, 10);
}

TEST(sides_change_by_a_factor_of_62_5_at_most)
{
    att_box_proposals_attrs attrs = {.size = 8, .overlap = 1, .stride = {{8, 8}}, .per_level = 1, .most = 1};
    const double objectness[ATT_BOX_RATIOS] = {0, 1, 0}, size[2] = {800, 800};
    const double deltas[4 * ATT_BOX_RATIOS] = {0, 0, 0, 0, 50, 50, 10, -10}, least = 4 * exp(-10);
    double box[4], score;
    int32_t count;
    for (int bounded = 0; bounded < 2; bounded++) {
        attrs.bounded = bounded;
        DIRECT("box_proposals", &attrs, 1, OUTPUTS(box, &score, &count), SAMPLE(objectness, 1, 1, ATT_BOX_RATIOS),
               SAMPLE(deltas, 1, 1, 4 * ATT_BOX_RATIOS), SAMPLE(size, 2));
        const double half = bounded ? 4 / 62.5 : least;
        CLOSE(box, 1e-13, 400 - 250, 400 - half, 400 + 250, 400 + half);
    }
}

/* --- detections --------------------------------------------------------------------------------------------------- */

/* The first logit is that of the background, which may have deltas, too. */
TEST(deltas_are_those_of_the_class)
{
    enum { TWO = 2 };
    static const att_box_detections_attrs attrs = {
        .weights = {1, 1, 1, 1}, .score = 0.5, .overlap = 0.5, .most = 1, .background_first = 1};
    const double logits[TWO + 1] = {0, 5, 0}, proposal[4] = {10, 10, 20, 20}, size[2] = {50, 50};
    const double with[4 * (TWO + 1)] = {0, 0, 0, 0, 0.5}, without[4 * TWO] = {0.5};
    double box[4], score;
    int32_t found, count, one = 1;
    for (int all = 0; all < 2; all++) {
        DIRECT("box_detections", &attrs, 1, OUTPUTS(box, &score, &found, &count), SAMPLE(logits, 1, TWO + 1),
               SAMPLE(all ? with : without, 1, all ? 4 * (TWO + 1) : 4 * TWO), SAMPLE(proposal, 1, 4), CLASSES(&one),
               SAMPLE(size, 2));
        assert_true(found == 0 && count == 1);
        CLOSE(box, 1e-15, 15, 10, 25, 20);
    }
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
