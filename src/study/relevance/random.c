#include "base/core/random.h"
#include "study/relevance/list.h"

enum { SEED, CELLS };
static const att_detail options[] = {
    {"seed", "seed of the numbers", 42, 0, 1e9, NULL, true},
    {"cells", "cells along a side", 14, 1, 224, NULL, true},
};

static int smaller(int a, int b)
{
    return a < b ? a : b;
}

/* The numbers depend on the image, so that the maps of several images differ. */
static att_status compute(att_relevance_job *job)
{
    const att_relevance *r = job->relevance;
    const int height = smaller((int)job->options[CELLS], r->height),
              width = smaller((int)job->options[CELLS], r->width);
    const size_t pixels = (size_t)r->height * (size_t)r->width * (size_t)r->channels;
    const uint64_t image = att_random_hash_more(att_random_hash(""), job->image, pixels * sizeof *job->image);
    att_random random = att_random_from(att_random_key((uint64_t)job->options[SEED], image, 0));
    double *map = att_relevance_begin_map(job, height, width);
    for (int i = 0; i < height * width; i++)
        map[i] = att_random_uniform(&random);
    return ATT_OK;
}

const att_relevance_method att_relevance_random = {.info = {.name = "random",
                                                            .title = "Random",
                                                            .summary = "random numbers, for comparisons",
                                                            .options = options,
                                                            .option_count = sizeof options / sizeof *options,
                                                            .needs_image = true},
                                                   .compute = compute};
