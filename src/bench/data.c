#include <attscope/bench.h>

#include "bench/clock.h"
#include "bench/limits.h"
#include "core/error.h"
#include "core/memory.h"

enum { SEED = 1, BATCH = 32 };

typedef struct data_bench {
    att_context *context;
    const att_dataset *dataset;
    const att_bench_data_options *options;
    att_transform_options transform;
    float *out; /* one transformed image */
} data_bench;

static const att_bench_data_case cases[] = {
    {"data/decode", ATT_BENCH_DECODE, 0},   {"data/evaluate", ATT_BENCH_EVALUATE, 0},
    {"data/train", ATT_BENCH_AUGMENT, 0},   {"data/loader-1", ATT_BENCH_LOADER, 1},
    {"data/loader-2", ATT_BENCH_LOADER, 2},
};

int att_bench_data_case_count(void)
{
    return (int)(sizeof cases / sizeof *cases);
}

att_bench_data_case att_bench_data_case_at(int index)
{
    return index >= 0 && index < att_bench_data_case_count() ? cases[index] : (att_bench_data_case){0};
}

att_bench_data_options att_bench_data_options_defaults(void)
{
    return (att_bench_data_options){.img_size = 224, .crop_pct = 0.875, .repeats = 5, .warmup = 1};
}

static att_transform_options transform_of(const att_bench_data_options *options)
{
    att_transform_options transform = att_transform_options_defaults(options->img_size, options->img_size, 3);
    transform.crop_pct = options->crop_pct;
    if (options->what == ATT_BENCH_AUGMENT || options->what == ATT_BENCH_LOADER) {
        transform.crop = ATT_CROP_RANDOM_RESIZED;
        transform.flip = 0.5;
    }
    return transform;
}

static att_status make_one(const data_bench *b, int64_t epoch, int64_t index)
{
    att_image image = {0};
    ATT_TRY(att_dataset_read(b->dataset, b->context, index, 3, &image));
    att_status status = ATT_OK;
    if (b->options->what != ATT_BENCH_DECODE)
        status = att_transform_image(b->context, &b->transform, &image, SEED, epoch, index, b->out);
    att_image_free(b->context, &image);
    return status;
}

static att_status pass_alone(const data_bench *b, int64_t epoch)
{
    for (int64_t i = 0; i < att_dataset_count(b->dataset); i++)
        ATT_TRY(make_one(b, epoch, i));
    return ATT_OK;
}

static att_status pass_loader(att_loader *loader, int64_t epoch)
{
    att_batch batch = {.count = 1};
    ATT_TRY(att_loader_start(loader, epoch, 0));
    while (batch.count > 0)
        ATT_TRY(att_loader_next(loader, &batch));
    return ATT_OK;
}

static att_status time_passes(const data_bench *b, att_loader *loader, double *rates)
{
    int warmup = b->options->warmup;
    for (int pass = 0; pass < warmup + b->options->repeats; pass++) {
        double begin = att_clock_now();
        ATT_TRY(loader ? pass_loader(loader, pass) : pass_alone(b, pass));
        if (pass >= warmup)
            rates[pass - warmup] = (double)att_dataset_count(b->dataset) / (att_clock_now() - begin);
    }
    return ATT_OK;
}

static att_status run_case(data_bench *b, double *rates)
{
    att_loader *loader = NULL;
    if (b->options->what == ATT_BENCH_LOADER) {
        att_loader_options options = att_loader_options_defaults(b->options->img_size, b->options->img_size, 3);
        options.transform = b->transform;
        options.batch_size = BATCH;
        options.workers = b->options->workers;
        options.shuffle = true;
        options.seed = SEED;
        ATT_TRY(att_loader_create(b->context, b->dataset, &options, &loader));
    } else {
        size_t floats = (size_t)b->options->img_size * (size_t)b->options->img_size * 3;
        b->out = att_allocate_array(b->context, floats, sizeof *b->out);
        if (!b->out)
            return att_fail_memory(b->context, floats * sizeof *b->out, "a transformed image");
    }
    att_status status = time_passes(b, loader, rates);
    att_loader_destroy(&loader);
    att_free(b->context, b->out);
    return status;
}

att_status att_bench_data(att_context *context, const att_dataset *dataset, const att_bench_data_options *options,
                          double *images_per_second)
{
    if (options->repeats < 1 || options->repeats > ATT_BENCH_REPEATS || options->warmup < 0 || options->img_size < 1)
        return att_fail(context, ATT_ERR_ARGUMENT, "bench: repeats must be in 1..%d, warmup and img_size not negative",
                        ATT_BENCH_REPEATS);
    double rates[ATT_BENCH_REPEATS];
    data_bench b = {context, dataset, options, transform_of(options), NULL};
    ATT_TRY(run_case(&b, rates));
    *images_per_second = att_clock_median(rates, options->repeats);
    return ATT_OK;
}
