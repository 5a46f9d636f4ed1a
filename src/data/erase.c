#include "data/erase.h"

#include <math.h>

/* Range of the total area of all boxes, as fractions of the image's area; least aspect ratio of a box (the largest is 1
 * / least_aspect). */
static const double least_area = 0.02, most_area = 1.0 / 3, least_aspect = 0.3;
enum { TRIES = 10 };

static double draw_between(att_random *random, double low, double high)
{
    return low + (high - low) * att_random_uniform(random);
}

bool att_erase_draw(const att_transform_options *options, att_random *random, int count, att_box *box)
{
    double area = (double)options->height * options->width, log_aspect = log(least_aspect);
    for (int attempt = 0; attempt < TRIES; attempt++) {
        double target = draw_between(random, least_area, most_area) * area / count;
        double aspect = exp(draw_between(random, log_aspect, -log_aspect));
        int height = (int)rint(sqrt(target * aspect)), width = (int)rint(sqrt(target / aspect));
        if (width >= options->width || height >= options->height)
            continue;
        int y = (int)att_random_below(random, options->height - height + 1);
        int x = (int)att_random_below(random, options->width - width + 1);
        *box = (att_box){x, y, width, height};
        return true;
    }
    return false;
}

static void fill_box(const att_transform_options *options, att_random *random, const att_box *box, float *image)
{
    int channels = options->channels == 1 ? 1 : 3;
    float values[3] = {0, 0, 0};
    for (int c = 0; c < channels && options->erase_mode == ATT_ERASE_RAND; c++)
        values[c] = (float)att_random_normal(random);
    for (int y = box->y; y < box->y + box->height; y++)
        for (int x = box->x; x < box->x + box->width; x++)
            for (int c = 0; c < channels; c++)
                image[((size_t)y * (size_t)options->width + (size_t)x) * (size_t)channels + (size_t)c] =
                    options->erase_mode == ATT_ERASE_PIXEL ? (float)att_random_normal(random) : values[c];
}

void att_erase(const att_transform_options *options, att_random *random, float *image)
{
    if (!(att_random_uniform(random) < options->erase))
        return;
    int count = 1 + (int)att_random_below(random, options->erase_count);
    for (int i = 0; i < count; i++) {
        att_box box;
        if (att_erase_draw(options, random, count, &box))
            fill_box(options, random, &box, image);
    }
}
