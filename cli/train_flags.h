/* train_flags.h - the options of attscope train. */
#ifndef CLI_TRAIN_FLAGS_H
#define CLI_TRAIN_FLAGS_H

#include "flags.h"

typedef struct train_data {
    const char *data_dir, *train_split, *val_split, *class_map;
    bool coarse_labels;
    int64_t cache_bytes;
} train_data;

typedef struct train_images {
    bool no_aug;
    const char *crop_mode, *interpolation; /* interpolation NULL: evaluation's */
    cli_reals scale, ratio;
    int pad;
    double hflip, vflip, color_jitter;
    const char *aa;                /* NULL: none */
    att_rand_augment rand_augment; /* what that describes */
    double reprob;
    const char *remode;
    int recount;
    double aug_repeats;
} train_images;

typedef struct train_files {
    const char *config, *initial_checkpoint, *resume, *output, *experiment;
} train_files;

enum { CLI_MEASURE_EVERY = 50 };

typedef struct train_measure {
    const char *with; /* NULL: no instruments */
    const char *nodes;
    int64_t every;
} train_measure;

typedef struct train_settings {
    train_data data;
    cli_network network;
    cli_preprocess preprocess;
    train_images images;
    att_train_options recipe;
    att_option_values task; /* options of the network's task */
    cli_reals betas, milestones, cutmix_minmax;
    train_measure measure;
    train_files files;
    cli_engine engine;
    cli_output output;
} train_settings;

/* Refuses an option that only another task has, unless it has its default value. CLI_OK or a code. */
int cli_train_task_check(const train_settings *settings, const att_task_info *task);
/* Makes the settings say what the task does where they leave it open, and drops options of other tasks. */
void cli_train_task_settle(train_settings *settings, const att_task_info *task);

/* Of one split; NULL: the only one there is. */
att_dataset_options cli_train_data_options(const train_data *data, const char *split);

enum { CLI_TRAIN_USES = 15 };
extern const cli_use cli_train_uses[CLI_TRAIN_USES];

#endif
