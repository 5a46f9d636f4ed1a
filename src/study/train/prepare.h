/* train/prepare.h - prepares a training run for its first update. */
#ifndef ATT_TRAIN_PREPARE_H
#define ATT_TRAIN_PREPARE_H

#include "study/train/trainer.h"

/* Checks the arguments, compiles, opens the loader, and initialises the state or loads it from options->resume. The
 * caller calls att_trainer_free(), also after a failure. */
att_status att_trainer_prepare(att_trainer *trainer);
void att_trainer_free(att_trainer *trainer);
/* Dry run: makes the checks of att_trainer_prepare() without allocating the training's memory and without reading or
 * writing the weights. The caller calls att_trainer_free(), also after a failure. */
att_status att_trainer_dry_run(att_trainer *trainer);

/* Stores the path of a checkpoint, for the messages of later failures. */
att_status att_trainer_set_checkpoint(att_trainer *trainer, const char *path);

/* Number of updates per epoch. */
int64_t att_trainer_updates_per_epoch(const att_trainer *trainer);
/* Number of batches in the first `update` updates of the training. */
int64_t att_trainer_batches_of(const att_trainer *trainer, int64_t update);
/* Images of the first `batches` batches, over all epochs. Short batches come last in an epoch. */
int64_t att_trainer_images_of(const att_trainer *trainer, int64_t batches);

#endif
