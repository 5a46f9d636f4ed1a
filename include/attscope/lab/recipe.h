/* attscope/lab/recipe.h - every setting of a training run in one struct: data, network, images, optimiser, run.
 *
 * Each setting has one member, and one flag with a name, range, default and help (att_recipe_flags()). The flags are
 * the same on the command line of attscope train, in the args.yaml of a run and in att_flags_set().
 *
 *     att_recipe recipe;
 *     att_training *training = NULL;
 *     att_recipe_default(context, &recipe);
 *     recipe.network.model = "vit_tiny_patch16_224";
 *     att_options_set(&recipe.network.options, "img_size", 64);
 *     recipe.data.data_dir = "images";
 *     recipe.train.epochs = 10;
 *     att_training_open(context, &recipe, &training);
 *
 * Texts are not copied: they must outlive the struct. A text that is NULL or "" has its default, unless the comment
 * beside it gives another meaning. att_training_open() and att_sweep_plan_open() check every member by the rules of its
 * flag. Messages name a setting by its flag and its member: "--opt-eps (train.eps)".
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
    const char *data_dir;    /* as for att_dataset_open(); must be given */
    const char *train_split; /* the split to train on; default "train" */
    const char *val_split;   /* the split to evaluate on; NULL: "validation"; "": no evaluation */
    const char *class_map;   /* file with one class per line, numbered from 0 (IDX: names of the labels); NULL: none */
    bool coarse_labels;      /* CIFAR-100: train on its 20 superclasses */
    int reduce_zero_label;   /* as in att_dataset_options */
    int ignore_label;        /* as in att_dataset_options */
    int64_t cache_bytes;     /* most memory for the files of a .tar.gz; 0: att_dataset_options_defaults() */
} att_recipe_data;

typedef struct att_recipe_network {
    const char *model;         /* timm's name; NULL: the name recorded in files.initial_checkpoint or files.resume */
    att_option_values options; /* by key; a key that is missing has the model's value */
    /* Values of flags that are short forms of options. att_recipe_read() and att_training_open() move them into
     * `options` and empty these members. Programs set the options instead. */
    att_reals input_size;      /* channels, height, width: the options in_chans and img_size */
    const char *adaptor;       /* short form of the option modules, "step:adaptor=NAME"; NULL: not given */
    const char *adaptor_input; /* short form of the option modules, "step:input=NAME"; NULL: not given */
} att_recipe_network;

/* Values that are not given (count 0, 0 or NULL) are those of the network. */
typedef struct att_recipe_preprocess {
    att_reals mean, std; /* of pixels in 0..1: one number, or one for each channel */
    double crop_pct;
    const char *crop_mode, *interpolation;
    bool exif_transpose;
} att_recipe_preprocess;

/* Augmentation of training images (att_transform_options). */
typedef struct att_recipe_images {
    bool no_aug;           /* transform images as in evaluation, without augmentation */
    const char *crop_mode; /* "rrc" (default), "pad", "src", "center", "squash", "keep", "within" (default of tasks on
                              boxes), "rsc" */
    const char *interpolation; /* NULL: as in evaluation */
    double scale[2], ratio[2]; /* "rrc": smallest and largest area, and aspect ratio */
    int pad;
    double img_scale[2]; /* "keep", "within", "rsc": longer and shorter side to resize to; 0, 0: those of the network */
    double ratio_range[2]; /* "rsc": smallest and largest factor of img_scale */
    double cat_max_ratio;  /* "rsc": largest share of one class in a crop's mask; 1: any */
    double hflip, vflip;
    double color_jitter; /* below 0: 0.4, of tasks on boxes 0 */
    const char *aa;      /* RandAugment in timm's notation; NULL: none */
    bool three_augment;
    bool photometric_distortion;
    double reprob;
    const char *remode; /* "const", "rand", "pixel" (default) */
    int recount;
} att_recipe_images;

/* Instruments that observe the training. train.measure_every says how often they observe an update. */
typedef struct att_recipe_measure {
    const char *with;  /* instruments, separated by commas; NULL: none */
    const char *nodes; /* patterns of the names of nodes, separated by commas; default "*" */
} att_recipe_measure;

typedef struct att_recipe_files {
    const char *initial_checkpoint; /* weights to start from: what att_network_open() takes except a network's
                                       name; NULL: random weights */
    const char *resume;             /* a checkpoint to continue, its folder, or "auto"; NULL: a new training run */
    const char *teacher; /* weights of the network that teaches (att_train_options.teacher), given in the same ways;
                            NULL: none */
    const char *teacher_model; /* name of its network; NULL: the file names it */
    const char *output;        /* folder of all runs; default "output/train" */
    const char *experiment;    /* the run's folder in `output`; NULL: named by date, time, model and image size */
} att_recipe_files;

typedef struct att_recipe_engine {
    int threads;           /* for att_settings.threads of the context, which the caller creates; 0: one per processor */
    const char *backend;   /* "cpu" (default), "cuda", "ref" */
    bool amp;              /* mixed precision */
    const char *amp_dtype; /* "bfloat16" (default) */
    bool amp_force;        /* allow amp on processors without products in bf16 */
} att_recipe_engine;

typedef struct att_recipe {
    att_recipe_data data;
    att_recipe_network network;
    att_recipe_preprocess preprocess;
    att_recipe_images images;
    /* Leave these members at their defaults: backend, precision (set `engine`), task_options (set `task`), measure (set
     * `measure.with`), teacher, output, resume (set `files`), sinks, progress (pass an att_training_observer).
     * Otherwise att_training_open() refuses the recipe. eval_metric NULL: the task's first choice. */
    att_train_options train;
    att_option_values task; /* options of the network's task, by key */
    att_recipe_measure measure;
    att_recipe_files files;
    att_recipe_engine engine;
} att_recipe;

/* Stores every default. Error: ERR_MEMORY. */
ATT_API att_status att_recipe_default(att_context *context, att_recipe *recipe);

/* Reads a YAML file, such as the args.yaml of a run or of a timm training run. Settings that the file lacks keep their
 * values in *recipe. On success texts in *recipe point into *yaml, which the caller owns and frees by
 * att_yaml_destroy() after the last use of the recipe. On failure *recipe and *yaml are unchanged. The former value of
 * *yaml is neither read nor freed. Errors: see att_yaml_read() and att_flags_read(). */
ATT_API ATT_MUST_CHECK att_status att_recipe_read(att_context *context, const char *path, att_recipe *recipe,
                                                  att_yaml **yaml);
/* Writes every setting that has a flag to a file that att_recipe_read() can read. Other members and options are left
 * out, such as train.sinks. Errors, which leave the file unchanged: ERR_ARGUMENT (a value that the flag would
 * refuse, or a text that is not UTF-8), ERR_IO, ERR_MEMORY. */
ATT_API att_status att_recipe_write(att_context *context, const char *path, const att_recipe *recipe);

/* --- the flags of a recipe ---------------------------------------------------------------------------------------- */

/* The group of all settings; its struct is att_recipe. */
ATT_API extern const att_flag_group att_recipe_group;
/* Creates a table of that group alone. On success the caller owns *flags and frees it with att_flags_destroy(). Error:
 * ERR_MEMORY. */
ATT_API ATT_MUST_CHECK att_status att_recipe_flags(att_context *context, att_flags **flags);

/* Groups that other commands use, too. Their structs are those above. */
ATT_API extern const att_flag_group att_recipe_network_group;
ATT_API extern const att_flag_group att_recipe_options_group; /* that group without --model */
ATT_API extern const att_flag_group att_recipe_preprocess_group;
ATT_API extern const att_flag_group att_recipe_engine_group;

/* Checks amp, amp_dtype and amp_force. ERR_ARGUMENT if they contradict each other; ERR_UNSUPPORTED if the context
 * does not use AVX-512, unless amp_force is set or the backend is "ref". */
ATT_API att_status att_recipe_engine_check(att_context *context, const att_recipe_engine *engine);
ATT_API att_precision att_recipe_precision(const att_recipe_engine *engine);
/* Copies the values that `given` has to *preprocess. ERR_ARGUMENT if mean or std has neither one number nor one for
 * each channel. */
ATT_API att_status att_recipe_preprocess_apply(att_context *context, const att_recipe_preprocess *given,
                                               att_preprocess *preprocess);
/* "all" and the instruments, for help and completion of lists of instruments; NULL past the last. */
ATT_API const char *att_choose_instrument(int index);

#ifdef __cplusplus
}
#endif
#endif
