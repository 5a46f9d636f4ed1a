/* layouts/layout.h - the names and settings that other programs give to networks of attscope's families.
 *
 * A layout is data: a table of tensor names and a table of the settings in config.json. att_model_open_file() applies
 * it to an open file, which then has timm's names and attscope's own metadata; nothing else knows other programs.
 * att_model_export() reads the same tables backwards. Each layout is one file, with one line in list.h.
 */
#ifndef ATT_LAYOUTS_LAYOUT_H
#define ATT_LAYOUTS_LAYOUT_H

#include <attscope/weights.h>

#include "base/io/json.h"
#include "base/io/tensors.h"
#include "networks/models/config.h"
#include "networks/models/family.h"

/* A network that is written in a layout. */
typedef struct att_layout_target {
    att_context *context;
    const struct att_layout *layout;
    const struct att_layout_form *form;
    const att_family *family;
    const att_identity *identity;
    const att_weights *weights;     /* with timm's names */
    const char *const *class_names; /* of all classes; NULL: unknown */
} att_layout_target;

/* A tensor of the file and what becomes of it. All rows that match a tensor apply to it, unless they say `others`. Of a
 * network that is written, a tensor gets the name `from` of the first row that has its name as `to`, and that is not
 * excluded by `writes` or `when`; of the first such row for each part if it is joined of parts.
 *
 *     {"layer.#.key.@", .to = "blocks.#.attn.qkv.@", .part = 1}    the second of three tensors that become one
 *     {"in_proj_weight", .to = "q.weight", .end = 1, .of = 3}      the first third of a tensor
 *     {"proj.weight", .to = "proj.bias", .zeros = true, .when = "!proj.bias"}    a bias, if the file has none
 */
typedef struct att_layout_row {
    /* Name in the file, with or without a prefix of the layout. '#' stands for a whole number, '@' for a text without
     * dots at the end, as "weight", '*' for any text at the end. */
    const char *from;
    /* Another name in the file, which is not written, such as that of a newer version in memory. NULL: there is none.
     */
    const char *also;
    /* timm's name. '#' is the number of the '#' at the same place of the order, '+' that number plus one, '@' or '*'
     * the text. NULL: the tensor is left out. */
    const char *to;
    /* Tensors with the same `to` are joined along their first dimension, in the order of `part`: 0, 1, ... */
    int part;
    /* Takes a part of the tensor, along its first dimension that is larger than 1: from `first` to `end`, in units of
     * its length divided by `of`. of 0: in rows; end 0: to its end. */
    int first, end, of;
    /* The order of the file's dimensions in `to`; those in parentheses become one: "10" is the transpose, "3201" moves
     * [h][w][inputs][outputs] to [outputs][inputs][h][w], "(12)0" joins the last two in front of the first. NULL: the
     * file's order. Such rows are not written. */
    const char *axes;
    int rank;   /* rank of the tensor `to`, which gets dimensions of 1 in front; 0: the file's */
    bool add;   /* the values are added to those of `to`, as F32 */
    bool zeros; /* `to` has as many zeros, as F32, as the tensor has rows: a bias that the file lacks */
    bool ones;  /* the same with ones: the weight of a norm that the file lacks */
    /* The last dimension holds 2 x 2 patches, [C][y][x] as torch.nn.Unfold orders them; they become timm's [x][y][C],
     * as F32. */
    bool unfolded;
    /* If [C, h w 3] with h = w, a layer for pixels of a patch, it becomes the convolution [C, 3, h, w]; a vector [h w
     * 3] gets the same order, as F32. */
    bool patches;
    /* Of a layer [C, h w 3] for pixels of a patch, with h = w: `to` is made, the positions [1, patches, C] of
     * att_regrid_sines() in images of ATT_LAYOUT_SIDE pixels, which the file does not have. */
    bool sines;
    bool computed;    /* with `to` NULL: values that follow from the settings, which are left out without a word */
    const char *when; /* the row applies if the file has this tensor, "!name": if it lacks it */
    bool bare;        /* written without the prefix of the class */
    bool others;      /* the row applies to tensors to which no row before it applies */
    /* Only networks whose option has this text, "key=text", are written with the row; "": none is. NULL: all are. */
    const char *writes;
    /* Of values that are computed and written beside each tensor of the same scope: sets type, shape and data of the
     * tensor. The data is in the arena. NULL: such values are not written. */
    att_status (*values)(const att_layout_target *target, att_arena *arena, att_safetensors_tensor *tensor);
} att_layout_row;
enum { ATT_LAYOUT_SIDE = 224 };

/* A setting of config.json and the option that it sets. */
typedef struct att_layout_setting {
    const char *key, *option; /* option NULL: the setting is only written */
    /* Pairs of words in config.json and of the option, the last NULL; other words are refused. NULL: the values are the
     * same. Of several words for an option's value, the first is written. */
    const char *const (*words)[2];
    bool shown; /* the tensors show the value: another one in config.json is refused */
    bool list;  /* written as a list, also if it is one number */
    /* With `option` NULL, the value is the number of rows of this tensor, if the network has it, or whether it has this
     * tensor. */
    const char *rows_of, *has;
} att_layout_setting;

/* A class of networks that is written. */
typedef struct att_layout_form {
    const char *class;  /* for people, and in config.json: "ViTForImageClassification" */
    const char *type;   /* model_type in config.json; NULL: there is no config.json */
    const char *prefix; /* of all names but those of rows that are `bare` */
    /* What every network of this class has, separated by blanks: timm's names of tensors, "!name" of tensors that none
     * of them has, and values of options, "key=value"; ATT_LAYOUT_SQUARE: images and patches are squares. */
    const char *needs;
} att_layout_form;
#define ATT_LAYOUT_SQUARE "squares"

/* What a layout reads in a file's folder. */
typedef struct att_layout_source {
    att_context *context;
    const att_tensors *file; /* with the file's names in prepare(), with timm's in complete() */
    const char *path;        /* of config.json or layout.side_file, for messages */
    const json_t *config;    /* that describes the network: the side file or its member "vision_config" */
    const json_t *root;      /* the side file */
} att_layout_source;

typedef struct att_layout {
    const char *name; /* for people: "transformers' ViT" */
    /* Model types in config.json, "vit vit_msn". NULL: such files have no config.json. */
    const char *types;
    const char *prefixes; /* that names of tensors may begin with: "vit. deit." */
    /* Tensors that every such file has, as att_layout_find() finds them, separated by blanks; "!name": that none has.
     * NULL: the names are timm's, and such files are opened as timm's under the names of `variants`. */
    const char *signature;
    /* Names of the list of models, "vit_base_patch16_224 ...". A file is named after the first that is as wide, deep
     * and has patches as large, with the same activation, size of images and vocabulary if there is one; else after the
     * first. Its options follow from the file, whatever the name. */
    const char *variants;
    /* Options, separated by blanks, of which neither tensors nor settings show anything, unless prepare() sets them:
     * their values are those that the program has by default, and a note says so. NULL: none. */
    const char *assumed;
    /* Other networks whose files have the same tensors, for people; a note names them unless the caller gives the
     * network. NULL: there are none. */
    const char *alike;
    /* A file in JSON, whose settings prepare() and complete() read if it lies in the folder of the tensors; only of
     * layouts without `types`. NULL: there is none. */
    const char *side_file;
    /* A tensor that projects features into a space that images and texts share: a network with it has no classes. NULL:
     * no such network has one. */
    const char *projection;
    const att_layout_row *rows; /* [row_count] */
    int row_count;
    const att_layout_setting *settings; /* the last has a NULL key; NULL: none */
    /* Options of all such networks, and the values of options and of the preprocessing that the side files leave open,
     * as in att_variant_row.settings. */
    const char *defaults;
    /* Called first, when the tensors have the file's own names: refuses what attscope lacks, sets what these names
     * show. NULL: nothing. */
    att_status (*prepare)(const att_layout_source *source, att_config *config);
    /* Sets what the tables cannot express, before `defaults`; refuses settings that attscope lacks. NULL: nothing. */
    att_status (*complete)(const att_layout_source *source, att_config *config);
    /* Adds names of classes to the file's metadata, under ATT_TENSORS_CLASSES. NULL: such files have none. */
    att_status (*name_classes)(att_tensors *file);
    const att_layout_form *forms; /* the last has a NULL class; NULL: networks are not written in this layout */
    /* Writes members of config.json that the table of settings cannot express. NULL: there are none. */
    att_status (*describe)(const att_layout_target *target, att_json_writer *json);
} att_layout;

/* Gives an open file timm's names and attscope's metadata if its side files describe another program's network, as
 * att_model_open_file() does. network: its name, from the caller; NULL: not given. */
att_status att_layout_take(att_tensors *file, const char *network);
/* What the network of a config.json of the transformers library reads; ATT_READS_NONE: it is of another program. */
typedef enum att_layout_reads { ATT_READS_NONE, ATT_READS_IMAGES, ATT_READS_TEXTS } att_layout_reads;
/* Refuses a config.json that describes a network which attscope lacks (ERR_UNSUPPORTED), before there are weights.
 * Errors: also ERR_FORMAT, ERR_IO, ERR_MEMORY. */
att_status att_layout_check_config(att_context *context, const char *path, att_layout_reads *reads);

#define ATT_LAYOUT_ROWS(table) .rows = (table), .row_count = sizeof(table) / sizeof *(table)

/* transformers' words for activations, for att_layout_setting.words. */
extern const char *const att_layout_activations[][2];
/* transformers' settings of ViTs: image_size, num_attention_heads, layer_norm_eps and hidden_act are read. */
extern const att_layout_setting att_layout_vit_settings[];
/* Settings of networks of tokens that the tensors show. */
#define ATT_LAYOUT_SHOWN                                                                                            \
    {"hidden_size", .option = "embed_dim", .shown = true}, {"num_hidden_layers", .option = "depth", .shown = true}, \
        {"patch_size", .option = "patch_size", .shown = true},                                                      \
    {                                                                                                               \
        "num_channels", "in_chans", .shown = true                                                                   \
    }
/* What classes of ViTs require: positions, biases and a last norm; and a class token with a position. */
#define ATT_LAYOUT_TOKENS "pos_embed patch_embed.proj.bias blocks.0.attn.proj.bias blocks.0.mlp.fc1.bias norm.bias "
#define ATT_LAYOUT_CLASS "cls_token embed_class=1 "

/* Returns NULL past the last layout. */
const att_layout *att_layout_at(int index);
/* Returns the layout of a model type; NULL: there is none. */
const att_layout *att_layout_of_type(const char *type);
/* Returns whether the file has the layout's signature. */
bool att_layout_fits(const att_layout *layout, const att_tensors *file);
/* Returns the layout without model types whose signature the file has; NULL: there is none. */
const att_layout *att_layout_of_tensors(const att_tensors *file);
/* Returns the name without the prefix of the layout that it begins with. */
const char *att_layout_bare(const att_layout *layout, const char *name);
/* Returns the index of the tensor that is called `name`, or has the other name of its row (att_layout_row.also), with
 * or without one of the layout's prefixes; -1: none is. */
int att_layout_find(const att_layout *layout, const att_tensors *file, const char *name);

/* Gives the file's tensors timm's names. Tensors without a row keep theirs; those that are left out are added to
 * file->skipped. Errors: ERR_FORMAT if tensors to be joined do not fit together or one is missing; ERR_MEMORY; those of
 * reading, for tensors that are added. */
att_status att_layout_apply(const att_layout *layout, att_tensors *file);

/* Reads the settings of the network. On success *config names it, with its options and preprocessing. Errors:
 * ERR_UNSUPPORTED for a setting that attscope lacks, ERR_FORMAT for one of another type. */
att_status att_layout_configure(const att_layout *layout, const att_layout_source *source, att_config *config);
/* For complete(): refuse another value of a setting (ERR_UNSUPPORTED) that config.json may have. */
att_status att_layout_require_text(const att_layout_source *source, const char *key, const char *text);
att_status att_layout_require_number(const att_layout_source *source, const char *key, double number);
/* Whether a setting is true or above 0; `otherwise` if config.json lacks it. */
bool att_layout_is_on(const att_layout_source *source, const char *key, bool otherwise);
/* For prepare() and complete(): refuses a setting that is on where the file lacks its tensors, or off where it has them
 * (ERR_UNSUPPORTED), unless they agree. transformers would ignore such tensors, or draw them. */
att_status att_layout_require_agreement(const att_layout_source *source, const char *key, bool on, bool agrees);
/* For complete(): refuses an image_size that is no square (ERR_UNSUPPORTED). */
att_status att_layout_require_square(const att_layout_source *source, const att_config *config);
/* A complete(), for networks whose head is UPerNet: sets the task, the head, its channels and classes, from its tensors
 * under attscope's names. */
att_status att_layout_complete_uper(const att_layout_source *source, att_config *config);
/* The class that saved the file, from config.json: "ViTForImageClassification"; "" if it names none. */
const char *att_layout_class(const att_layout_source *source);
/* Sets mean, std, crop, interpolation and img_size of *config to those of an image processor, with the defaults of the
 * class that it names. path: of its file, for messages. Errors: ERR_UNSUPPORTED for what attscope cannot do in the same
 * way, ERR_FORMAT for values of another type. */
att_status att_layout_preprocess(att_context *context, const char *path, const json_t *settings, att_config *config);

/* --- writing ------------------------------------------------------------------------------------------------------ */

/* The tensors of a network under the names of a layout. */
typedef struct att_layout_tensors {
    att_arena arena;
    att_safetensors_tensor *tensors; /* sorted by name; those without data are filled by att_layout_fill() */
    int count;
    struct att_layout_slice *slices; /* what they consist of, sorted by name */
    int slice_count;
    int unplaced;               /* number of tensors that have no name in the layout */
    const char *first_unplaced; /* timm's name of the first; NULL: none */
} att_layout_tensors;
/* Sets *made, which the caller frees with att_layout_tensors_free() in any case. Errors: ERR_MEMORY, those of
 * att_layout_row.values. */
att_status att_layout_name_tensors(const att_layout_target *target, att_layout_tensors *made);
void att_layout_tensors_free(att_layout_tensors *made);
/* att_safetensors_content.fill for these tensors, which are F32; user: an att_layout_filling. */
typedef struct att_layout_filling {
    const att_layout_target *target;
    const att_layout_tensors *tensors;
} att_layout_filling;
att_status att_layout_fill(void *user, int index, void *out, size_t bytes);

/* Write the network's config.json and preprocessor_config.json. Errors: ERR_UNSUPPORTED for values that have no word;
 * errors of writing. */
att_status att_layout_write_config(const att_layout_target *target, const char *path);
att_status att_layout_write_processor(const att_layout_target *target, const char *path);
/* For att_layout.describe: writes whole numbers as a list. */
void att_layout_put_list(att_json_writer *json, const char *key, const int *numbers, int count);

#endif
