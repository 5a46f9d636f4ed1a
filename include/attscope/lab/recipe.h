/* attscope/lab/recipe.h - every setting of a training in one struct: data, network, images, optimiser, run.
 *
 * Each setting has a name, range, default and help (att_recipe_flags()), the same on the command line of attscope
 * train, in the args.yaml of a run and in programs. A setting that is not given is left to the network or the task.
 *
 *     att_recipe recipe;
 *     att_recipe_default(context, &recipe);
 *     recipe.network.model = "vit_tiny_patch16_224";
 *     recipe.data.data_dir = "images";
 *     recipe.train.epochs = 10;
 *     att_training_open(context, &recipe, &training);
 *
 * Texts are not copied: they must outlive the struct. Messages call a setting by its flag, "--opt-betas".
 */
#ifndef ATTSCOPE_LAB_RECIPE_H
#define ATTSCOPE_LAB_RECIPE_H

#include <attscope/data.h>
#include <attscope/lab/flags.h>
#include <attscope/models.h>
#include <attscope/train.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct att_recipe_data {
    const char *data_dir;    /* as att_dataset_open() takes it */
    const char *train_split; /* what to train on */
    const char *val_split;   /* what to evaluate on; "": nothing */
    const char *class_map;   /* file with one class a line; NULL: none */
    bool coarse_labels;      /* CIFAR-100: its 20 superclasses */
    int64_t cache_bytes;     /* most memory for the files of a .tar.gz; 0: the default */
} att_recipe_data;

typedef struct att_recipe_network {
    const char *model; /* timm's name; NULL: not given */
    att_option_values options;
    att_reals input_size;                /* channels, height, width; what is given goes over into the options */
    const char *adaptor, *adaptor_input; /* of the module "step"; NULL: not given; what is given goes over into it */
} att_recipe_network;

/* What is not given is the network's own. */
typedef struct att_recipe_preprocess {
    att_reals mean, std;                   /* of pixels in 0..1: one number, or one a channel */
    double crop_pct;                       /* 0: not given */
    const char *crop_mode, *interpolation; /* NULL: not given */
} att_recipe_preprocess;

/* How training images are augmented (att_transform_options). */
typedef struct att_recipe_images {
    bool no_aug;               /* every image as evaluation sees it */
    const char *crop_mode;     /* "rrc", "pad", "center" */
    const char *interpolation; /* NULL: evaluation's */
    att_reals scale, ratio;
    int pad;
    double hflip, vflip, color_jitter;
    const char *aa; /* RandAugment as timm describes it; NULL: none */
    double reprob;
    const char *remode; /* "const", "rand", "pixel" */
    int recount;
    double aug_repeats;
} att_recipe_images;

typedef struct att_recipe_measure {
    const char *with;  /* instruments, by commas; NULL: none */
    const char *nodes; /* pattern of their names */
    int64_t every;     /* updates between two measurements */
} att_recipe_measure;

typedef struct att_recipe_files {
    const char *initial_checkpoint; /* weights to start from; NULL: they are drawn */
    const char *resume;             /* a checkpoint to continue, its folder, or "auto"; NULL: a new training */
    const char *output;             /* where runs lie */
    const char *experiment;         /* the run's folder in there; NULL: named by date, time, model and size */
} att_recipe_files;

typedef struct att_recipe_engine {
    int threads; /* 0: one per processor; read by who makes the context */
    const char *backend;
    bool amp; /* mixed precision */
    const char *amp_dtype;
    bool amp_force; /* amp also where the processor has no products in bf16 */
} att_recipe_engine;

typedef struct att_recipe {
    att_recipe_data data;
    att_recipe_network network;
    att_recipe_preprocess preprocess;
    att_recipe_images images;
    att_train_options train; /* output, resume, measure and task_options are filled in by a training */
    att_option_values task;  /* options of the network's task */
    att_reals betas, milestones, cutmix_minmax; /* go over into `train` */
    att_recipe_measure measure;
    att_recipe_files files;
    att_recipe_engine engine;
} att_recipe;

/* Stores every default. Error: ERR_MEMORY. */
ATT_API att_status att_recipe_default(att_context *context, att_recipe *recipe);

/* Reads a YAML file, such as the args.yaml of a run or of a timm training, over *recipe. Texts point into *yaml, which
 * is the caller's on success, freed by att_yaml_destroy() after the recipe's last use. Errors: as of att_yaml_read()
 * and att_flags_read(). */
ATT_API ATT_MUST_CHECK att_status att_recipe_read(att_context *context, const char *path, att_recipe *recipe,
                                                  att_yaml **yaml);
/* Writes every setting to a file that att_recipe_read() reads back. */
ATT_API att_status att_recipe_write(att_context *context, const char *path, const att_recipe *recipe);

/* --- the flags of a recipe ---------------------------------------------------------------------------------------- */

/* The group of all settings; its struct is att_recipe. */
ATT_API extern const att_flag_group att_recipe_group;
/* A table of that group alone. */
ATT_API ATT_MUST_CHECK att_status att_recipe_flags(att_context *context, att_flags **flags);

/* Groups that other commands have too. Their structs are those above. */
ATT_API extern const att_flag_group att_recipe_network_group;
ATT_API extern const att_flag_group att_recipe_preprocess_group;
ATT_API extern const att_flag_group att_recipe_engine_group;

ATT_API att_precision att_recipe_precision(const att_recipe_engine *engine);
/* Lays what is given over *preprocess. ERR_ARGUMENT where there are not as many numbers as channels. */
ATT_API att_status att_recipe_preprocess_apply(att_context *context, const att_recipe_preprocess *given,
                                               att_preprocess *preprocess);
/* What "interpolation" can name, NULL past the last. */
ATT_API const char *att_choose_interpolation(int index);
/* "all" and the instruments, for help and completion of lists of them. */
ATT_API const char *att_choose_instrument(int index);

#ifdef __cplusplus
}
#endif
#endif
