/* network.h - opens the network of a checkpoint as the flags say. */
#ifndef CLI_NETWORK_H
#define CLI_NETWORK_H

#include "cli.h"
#include "flags.h"

/* An open network, which owns all members. */
typedef struct cli_loaded {
    att_network *network;
    const att_tensors *file; /* NULL: the weights were drawn, see cli_load_options.init_seed */
    const att_model *model;
    const att_identity *identity; /* its preprocess includes the flags */
} cli_loaded;

/* Whether `text` begins with `prefix`. */
bool cli_has_prefix(const char *text, const char *prefix);

/* Number of outputs of the classifier; 0 if there is none. */
int cli_identity_classes(const att_identity *identity);
/* Writes "224", or "224x160" (height x width) if the sides differ. Returns `text`. */
enum { CLI_SIDES_TEXT = 24 };
char *cli_sides_text(int height, int width, char text[CLI_SIDES_TEXT]);
/* Writes a member of the current JSON object: a number, or [height, width] if the sides differ. */
void cli_json_sides(att_json_writer *writer, const char *key, int height, int width);
/* Writes a member with the option's value. Writes nothing if the option was not given. */
void cli_json_option(att_json_writer *writer, const att_option *option, const att_option_values *values);
/* Description of the network's family. */
att_family_info cli_family_of(const att_identity *identity);

/* Opens a checkpoint and notes which of its tensors are skipped. network: as att_model_open_file_as(). Returns CLI_OK
 * or an exit code. */
int cli_tensors_open(cli_app *cli, const char *path, const char *network, att_tensors **file);

/* Checks that --model names a network. If the name is deprecated, notes the current name. Returns CLI_OK or an exit
 * code. */
int cli_model_check(cli_app *cli, const char *name);
/* As cli_check(), for the status of att_model_identify(). name: the value of --model; NULL: not given, and the
 * message suggests it if nothing else names the network. Returns CLI_USAGE if --model names no network. */
int cli_identity_check(cli_app *cli, const char *name, att_status status);

/* As cli_file_check(), for a file, a folder or a name of pretrained weights (attscope/hub.h), which passes. */
int cli_checkpoint_check(const char *flag, const char *checkpoint);
/* Finds the file of a checkpoint. `checkpoint` is a file, a folder or a name of pretrained weights. In a folder, the
 * best weights are chosen, and a note says so; named weights are downloaded if they are in no cache. Returns CLI_OK or
 * an exit code. */
int cli_checkpoint_locate(cli_app *cli, const char *checkpoint, char path[CLI_PATH]);
/* Flags of an att_pass_options. */
typedef struct cli_passes {
    double img_scale[2];
    int stride[2], stride_count;
    att_reals scales;
    bool flips;
    int batch_size; /* 0: the default */
} cli_passes;
extern const att_flag_group cli_group_passes;
/* Writes how photographs are seen as members of the current JSON object; nothing if they are seen once. */
void cli_json_passes(att_json_writer *writer, const cli_passes *passes);
/* Prints the number of passes and what each sees, on one line. */
void cli_passes_print(const cli_passes *passes, const att_preprocess *images);

/* Options of cli_load(). */
typedef struct cli_load_options {
    const att_recipe_network *network;
    const att_recipe_preprocess *preprocess;
    const att_recipe_engine *engine;
    bool averaged;            /* use the averaged weights */
    bool test_images;         /* use the image size and crop with which timm's validate.py evaluates the weights */
    att_dtype dtype;          /* in which the network computes, see att_network_options */
    const cli_passes *passes; /* NULL: photographs are seen once */
    int init_seed;            /* above 0: `path` can also be a network's name, whose weights are drawn from this seed */
} cli_load_options;
/* Whether `checkpoint` is the name of a network, and neither a file, a folder nor a name of pretrained weights. */
bool cli_is_network(cli_app *cli, const char *checkpoint);
/* Opens the network of the checkpoint at `path`, a file or a run's folder. Notes on stderr which file was used and
 * how the network was identified. *loaded is zeroed before the call. The caller calls cli_unload(), also after a
 * failure. Returns CLI_OK or an exit code. */
int cli_load(cli_app *cli, const char *path, const cli_load_options *options, cli_loaded *loaded);
void cli_unload(cli_loaded *loaded);

/* Applies the flags to the network's preprocessing, and notes a description of the network. Returns CLI_OK or an exit
 * code. */
int cli_preprocess_apply(cli_app *cli, const att_recipe_preprocess *flags, att_network *network);

#define CLI_LABELS_HELP                                                                                       \
    "names of the network's classes: a data set (imagenet-1k, imagenet-21k, imagenet-22k, imagenet-12k, "     \
    "imagenet-21k-p, imagenet-21k-p-w21, coco, coco-91, ade20k, camvid, cityscapes, voc, cifar10, cifar100, " \
    "fashion-mnist) or a file with one name per line, from class 0; without it, the training's names, those " \
    "of config.json beside the weights, or ImageNet's if the weights are for it"
/* Sets the names of the network's classes by --labels (NULL: not given). Without --labels, built-in names may apply; a
 * note then names their data set. Returns CLI_OK or an exit code. */
int cli_classes_name(cli_app *cli, att_network *network, const char *labels);

/* Writes the members mean, std, crop_pct, crop_mode and interpolation of the current JSON object. */
void cli_json_preprocess(att_json_writer *writer, const att_preprocess *preprocess);

#endif
