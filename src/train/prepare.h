/* train/prepare.h - everything that a training needs before its first update. */
#ifndef ATT_TRAIN_PREPARE_H
#define ATT_TRAIN_PREPARE_H

#include "train/trainer.h"

/* Checks the arguments, compiles, opens the loader, and starts from nothing or from options->resume. On failure too,
 * att_trainer_free() is to be called. */
att_status att_trainer_prepare(att_trainer *trainer);
void att_trainer_free(att_trainer *trainer);
/* Makes the checks of att_trainer_prepare() without allocating the training's memory and without reading or writing the
 * weights. The caller then frees the trainer, on failure too. */
att_status att_trainer_rehearse(att_trainer *trainer);

/* Remembers the path of a checkpoint that a later failure can point to. */
att_status att_trainer_remember(att_trainer *trainer, const char *path);

/* Updates in each epoch. */
int64_t att_trainer_updates_per_epoch(const att_trainer *trainer);
/* The rate of the update that follows `update` finished ones, in the epoch at hand. */
double att_trainer_lr(const att_trainer *trainer, int64_t update);

#endif
