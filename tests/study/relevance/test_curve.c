/* Deletion and insertion curves by definition, and the resizing of maps. */
#include "study/relevance/networks.h"

enum { SIDE = 28, PIXELS = SIDE * SIDE, STEPS = 8 };

/* The probability that the network gives class 3 on an image. */
static double probability(att_network *network, const float *pixels)
{
    const att_field field = {.name = "image", .dtype = ATT_F32, .shape = {3, {SIDE, SIDE, 3}}};
    const void *const data[] = {pixels};
    const att_batch inputs = {.count = 1, .field_count = 1, .fields = &field, .data = data};
    att_batch answers;
    double sum = 0;
    must(att_network_run(network, &inputs, &answers));
    const float *logits = att_batch_field(&answers, "logits");
    for (int c = 0; c < CLASSES; c++)
        sum += exp((double)logits[c]);
    return exp((double)logits[3]) / sum;
}

/* Blurred by the whole kernel of 11 x 11, which is 0 outside of the image. */
static void blur(const float *image, float *blurred)
{
    double kernel[11], total = 0;
    for (int k = 0; k < 11; k++)
        total += kernel[k] = exp(-(k - 5) * (k - 5) / 50.0);
    for (int y = 0; y < SIDE; y++)
        for (int x = 0; x < SIDE; x++)
            for (int c = 0; c < 3; c++) {
                double sum = 0;
                for (int k = 0; k < 121; k++) {
                    const int row = y + k / 11 - 5, column = x + k % 11 - 5;
                    if (row >= 0 && row < SIDE && column >= 0 && column < SIDE)
                        sum += kernel[k / 11] * kernel[k % 11] / total / total *
                               (double)image[(row * SIDE + column) * 3 + c];
                }
                blurred[(y * SIDE + x) * 3 + c] = (float)sum;
            }
}

/* The map grows from the first pixel to the last, but for the first quarter of the pixels, which are equal. So the last
 * quarter changes first, and the pixels of the first quarter change in their order. */
static void check_curve(opened *o, att_curve curve, const float *from, const float *to, const double *map_values)
{
    const att_batch inputs = image_input(SIDE);
    const att_relevance_map map = {.height = SIDE, .width = SIDE, .values = (double *)(uintptr_t)map_values};
    double found[STEPS + 1], area, expected_area = 0, most = 0;
    must(att_relevance_curve(o->relevance, &inputs, &map, 3, curve, STEPS, found, &area));
    for (int s = 0; s <= STEPS; s++) {
        static float image[3 * PIXELS];
        memcpy(image, from, sizeof image);
        for (int i = 0; i < PIXELS; i++)
            if (i >= PIXELS / 4 ? i >= PIXELS - s * PIXELS / STEPS : i < s * PIXELS / STEPS - 3 * PIXELS / 4)
                memcpy(image + (ptrdiff_t)3 * i, to + (ptrdiff_t)3 * i, 3 * sizeof *image);
        const double expected = probability(o->network, image);
        most = larger(most, fabs(found[s] - expected));
        expected_area += expected / (s == 0 || s == STEPS ? 2.0 * STEPS : STEPS);
    }
    print_message("probabilities differ by at most %.2g, the area by %.2g\n", most, fabs(area - expected_area));
    assert_true(most < 1e-6); /* measured: 2e-8 */
    assert_true(fabs(area - expected_area) < 1e-6);
    assert_true(fabs(found[0] - found[STEPS]) > 1e-3);
}

TEST(curves_are_those_of_the_definition)
{
    static float image[3 * PIXELS], zeros[3 * PIXELS], blurred[3 * PIXELS];
    static double values[PIXELS];
    opened o = open_relevance(VIT);
    const att_batch inputs = image_input(SIDE);
    memcpy(image, inputs.data[0], sizeof image);
    blur(image, blurred);
    for (int i = 0; i < PIXELS; i++)
        values[i] = i < PIXELS / 4 ? 0 : i;
    check_curve(&o, ATT_DELETION, image, zeros, values);
    check_curve(&o, ATT_INSERTION, blurred, image, values);
    close_relevance(&o);
}

TEST(maps_are_resized_between_centres_of_cells)
{
    double cells[] = {0, 1, 2, 4}, pixels[16];
    const att_relevance_map map = {.height = 2, .width = 2, .values = cells};
    static const double first[] = {0, 0.25, 0.75, 1}, last[] = {2, 2.5, 3.5, 4};
    att_relevance_resize(&map, 4, 4, pixels);
    for (int x = 0; x < 4; x++) {
        assert_true(fabs(pixels[x] - first[x]) < 1e-15);
        assert_true(fabs(pixels[4 + x] - (0.75 * first[x] + 0.25 * last[x])) < 1e-15);
        assert_true(fabs(pixels[12 + x] - last[x]) < 1e-15);
    }
}

TEST(impossible_curves_are_refused)
{
    opened o = open_relevance(VIT);
    const att_batch inputs = image_input(SIDE);
    double cell = 1, probabilities[ATT_CURVE_MOST_STEPS + 1], area;
    const att_relevance_map map = {.height = 1, .width = 1, .values = &cell}, none = {0};
    assert_fails(context, att_relevance_curve(o.relevance, &inputs, &map, 3, ATT_DELETION, 29, probabilities, &area),
                 ATT_ERR_ARGUMENT, "1 to 28 steps, not 29");
    assert_fails(context, att_relevance_curve(o.relevance, &inputs, &map, 10, ATT_DELETION, 2, probabilities, &area),
                 ATT_ERR_ARGUMENT, "class 10 does not exist");
    assert_fails(context, att_relevance_curve(o.relevance, &inputs, &none, 3, ATT_DELETION, 2, probabilities, &area),
                 ATT_ERR_ARGUMENT, "the map has no cells");
    close_relevance(&o);
}
