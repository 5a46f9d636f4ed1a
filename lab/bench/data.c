#include <attscope/lab/bench.h>

#include "base/core/error.h"
#include "lab/bench/clock.h"
#include "lab/bench/limits.h"

enum { SEED = 1, BATCH = 32 };

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
    return (att_bench_data_options){.height = 224, .width = 224, .crop_pct = 0.875, .repeats = 5, .warmup = 1};
}

static att_transform_options transform_of(const att_bench_data_options *options)
{
    att_transform_options transform = att_transform_options_defaults(options->height, options->width, 3);
    transform.crop_pct = options->crop_pct;
    if (options->what == ATT_BENCH_AUGMENT || options->what == ATT_BENCH_LOADER) {
        transform.crop = ATT_CROP_RANDOM_RESIZED;
        transform.flip = 0.5;
    }
    return transform;
}

static att_status decode_all(att_context *context, const att_dataset *dataset)
{
    for (int64_t i = 0; i < att_dataset_count(dataset); i++) {
        att_image image;
        ATT_TRY(att_dataset_read(dataset, context, i, 3, &image));
        att_image_free(context, &image);
    }
    return ATT_OK;
}

static att_status load_all(att_loader *loader, int64_t epoch)
{
    att_batch batch = {.count = 1};
    ATT_TRY(att_loader_start(loader, epoch, 0));
    while (batch.count > 0)
        ATT_TRY(att_loader_next(loader, &batch));
    return ATT_OK;
}

/* Times passes over the data set. loader: NULL only decodes images. */
static att_status time_passes(att_context *context, const att_dataset *dataset, const att_bench_data_options *options,
                              att_loader *loader, double *rates)
{
    for (int pass = 0; pass < options->warmup + options->repeats; pass++) {
        double begin = att_seconds_now();
        ATT_TRY(loader ? load_all(loader, pass) : decode_all(context, dataset));
        if (pass >= options->warmup)
            rates[pass - options->warmup] = (double)att_dataset_count(dataset) / (att_seconds_now() - begin);
    }
    return ATT_OK;
}

static att_status make_loader(att_context *context, const att_dataset *dataset, const att_bench_data_options *options,
                              att_loader **loader)
{
    att_loader_options loader_options = att_loader_options_defaults(options->height, options->width, 3);
    loader_options.transform = transform_of(options);
    loader_options.batch_size = BATCH;
    loader_options.workers = options->what == ATT_BENCH_LOADER ? options->workers : 0;
    loader_options.shuffle = options->what != ATT_BENCH_EVALUATE;
    loader_options.seed = SEED;
    return att_loader_create(context, dataset, &loader_options, loader);
}

att_status att_bench_data(att_context *context, const att_dataset *dataset, const att_bench_data_options *options,
                          double *images_per_second)
{
    ATT_TRY(att_bench_check_repeats(context, options->repeats, options->warmup));
    double rates[ATT_BENCH_REPEATS];
    att_loader *loader = NULL;
    if (options->what != ATT_BENCH_DECODE)
        ATT_TRY(make_loader(context, dataset, options, &loader));
    att_status status = time_passes(context, dataset, options, loader, rates);
    if (status == ATT_OK)
        *images_per_second = att_median(rates, options->repeats);
    att_loader_destroy(&loader);
    return status;
}
