/* data/loading.h - for tests: opens the scratch folder as a data set, and loads it. */
#ifndef TESTS_DATA_LOADING_H
#define TESTS_DATA_LOADING_H

#include <attscope/data.h>

#include "base/io/scratch.h"

static inline att_dataset *open_folder(scratch *self)
{
    att_dataset *dataset = NULL;
    CHECK(self->context, att_dataset_open(self->context, self->folder, NULL, &dataset));
    return dataset;
}

static inline att_loader *make_loader(scratch *self, const att_dataset *dataset, const att_loader_options *options)
{
    att_loader *loader = NULL;
    CHECK(self->context, att_loader_create(self->context, dataset, options, &loader));
    return loader;
}

static inline att_batch next(scratch *self, att_loader *loader)
{
    att_batch batch;
    CHECK(self->context, att_loader_next(loader, &batch));
    return batch;
}

/* Loads an epoch. Returns the first failure. */
static inline att_status load_epoch(scratch *self, const att_dataset *dataset, const att_loader_options *options)
{
    att_loader *loader = NULL;
    att_batch batch = {.count = 1};
    att_status status = att_loader_create(self->context, dataset, options, &loader);
    while (status == ATT_OK && batch.count > 0)
        status = att_loader_next(loader, &batch);
    att_loader_destroy(&loader);
    return status;
}

#endif
