/* network.h - from flags and a checkpoint to a network that can run. */
#ifndef CLI_NETWORK_H
#define CLI_NETWORK_H

#include "cli.h"
#include "flags.h"

/* An open network with what is asked of it most. All of it is the network's. */
typedef struct cli_loaded {
    att_network *network;
    const att_tensors *file;
    const att_model *model;
    const att_identity *identity; /* its preprocess: the flags' included */
} cli_loaded;

/* Whether a text, such as a tensor's name or a key of a file's metadata, begins with `prefix`. */
bool cli_has_prefix(const char *text, const char *prefix);

/* Outputs of its classifier; 0: it has none. */
int cli_identity_classes(const att_identity *identity);
/* "224"; "224x160", height and width, where they differ. Returns `text`. */
enum { CLI_SIDES_TEXT = 24 };
char *cli_sides_text(int height, int width, char text[CLI_SIDES_TEXT]);
/* A member of the object that is open: a number, or [height, width] where they differ. */
void cli_json_sides(att_json_writer *writer, const char *key, int height, int width);
/* A member with the option's value; nothing where it was not given. */
void cli_json_option(att_json_writer *writer, const att_option *option, const att_option_values *values);
/* What the family of the named network declares. */
att_family_info cli_family_of(const att_identity *identity);

/* Opens a checkpoint and says which of its tensors are skipped. CLI_OK or a code. */
int cli_tensors_open(cli_app *cli, const char *path, att_tensors **file);

/* Whether --model names a network; says so where not, and which one a deprecated name means. CLI_OK or a code. */
int cli_model_check(cli_app *cli, const char *name);
/* cli_check() of att_model_identify(), which was given --model (NULL: none): a name of no network is a wrong usage. */
int cli_identity_check(cli_app *cli, const char *name, att_status status);

/* The file that a checkpoint's path means: of a training's folder its best weights, which a note says. CLI_OK or a
 * code.
 */
int cli_checkpoint_locate(cli_app *cli, const char *said, char path[CLI_PATH]);
/* What cli_load() goes by. */
typedef struct cli_load_options {
    const att_recipe_network *network;
    const att_recipe_preprocess *preprocess;
    const att_recipe_engine *engine;
    bool averaged;    /* take the averaged weights */
    bool test_images; /* take images of the size and crop with which timm\'s validate.py evaluates the weights */
} cli_load_options;
/* Opens the network of the checkpoint at `path`, a file or a training's folder, and says on stderr what was taken from
 * where. *loaded is zero before, and to be freed by cli_unload() whatever comes back: CLI_OK or a code. */
int cli_load(cli_app *cli, const char *path, const cli_load_options *options, cli_loaded *loaded);
void cli_unload(cli_loaded *loaded);

#define CLI_LABELS_HELP                                                                                          \
    "names of the network's classes: those of a data set (imagenet-1k, cifar10, cifar100, fashion-mnist) or of " \
    "a file, one a line from class 0; without it the training's, or ImageNet's where the file is of its networks"
/* Gives the network's classes the names that --labels says (NULL: not given); where these are built in although the
 * user did not say so, a note says whose they are. CLI_OK or a code. */
int cli_classes_name(cli_app *cli, att_network *network, const char *labels);

/* The members mean, std, crop_pct, crop_mode and interpolation of the object that is open. */
void cli_json_preprocess(att_json_writer *writer, const att_preprocess *preprocess);

#endif
