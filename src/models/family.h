/* models/family.h - a family of networks: one file that ends in one descriptor, plus its line in models/list.h. */
#ifndef ATT_MODELS_FAMILY_H
#define ATT_MODELS_FAMILY_H

#include <attscope/models.h>
#include <attscope/nn.h>

#include "core/options.h"
#include "models/config.h"
#include "models/module_options.h"
#include "models/placement.h"
#include "models/regrid.h"
#include "tasks/task.h"

/* An argument of timm's constructors that is no option here, and the value for which timm computes what attscope
 * computes. */
#define ATT_ANY_VALUE "*"
typedef struct att_idle_argument {
    const char *key, *value;
} att_idle_argument;

/* What is known of a file's network before what tensors do not show is taken from the named variant. */
typedef struct att_unsaid {
    const char *path, *name;                     /* of the file and of the network, for messages */
    const att_option_values *said, *found, *own; /* by the sources, by the tensors, by the variant */
} att_unsaid;

/* What helps to read tensors that fit several networks: all that the sources say, what those beside the caller say,
 * which is of the file itself, and the variant's own options. */
typedef struct att_known {
    const att_option_values *said, *of_file, *own;
} att_known;

/* Functions that are NULL have nothing to do. `options` is the family's struct, of options->size bytes. */
typedef struct att_family {
    const char *name;                        /* "vit" */
    const char *mark;                        /* a tensor that every network of it has: "patch_embed.proj.weight" */
    const att_option_table *options;         /* ATT_SHARED_OPTIONS among them */
    att_hooks hooks;                         /* where modules can be put; the option "modules" says which */
    const att_idle_argument *idle_arguments; /* up to a key NULL */
    att_classifier_form (*classifier)(const void *options); /* where the task's head is one */
    int variant_count;
    /* Name, summary and sides of images. */
    att_model_info (*variant)(int index);
    /* Sets every option of variant `index`. Those that follow from other options (fc_norm, layers, ...) may stay open;
     * complete() sets them. said: options that are known to differ, which may bring other images with them. */
    void (*defaults)(int index, const att_option_values *said, att_option_values *options, att_preprocess *preprocess);
    /* Sets what follows from other options, and checks that they go together. */
    att_status (*complete)(att_context *context, void *options);
    /* Adds the input named ATT_IMAGE, and the network up to what a head reads. */
    void (*build)(att_graph *graph, const void *options, att_features *features);
    /* What the names and shapes of tensors say; options that they leave open are not touched. A tensor that no network
     * of this family has is refused by name (ERR_UNSUPPORTED). */
    att_status (*recognise)(att_context *context, const att_tensors *file, att_option_values *found);
    /* Corrects in *found what recognise() made of tensors that fit several networks. */
    void (*reread)(const att_tensors *file, const att_known *known, att_option_values *found);
    /* Sets those of the options, which are complete, that are known from the tensors alone. */
    att_status (*fit)(att_context *context, const att_tensors *file, void *options);
    /* Takes an argument of timm's constructor that has another form there than its option here, such as two ratios in
     * one list, and sets those of the options that are still open. False: it is no such argument. */
    bool (*take_argument)(const char *key, const att_fact *fact, att_option_values *options);
    /* ERR_UNSUPPORTED where no network has both what was said and the file's tensors, or where tensors leave something
     * open that the variant's own value cannot stand in for. */
    att_status (*check_unsaid)(att_context *context, const att_tensors *file, const att_unsaid *unsaid);
    /* Whether a file's tensor `name`, which holds numbers, differs from the one of a network with these options in
     * nothing but the grid of patches that it was made for: then *grid says how to make it anew. Grids of 2 x 8 and
     * 4 x 4 patches differ, too. made_for: the options that the file's metadata say. */
    bool (*regrids)(const void *options, const att_option_values *made_for, const char *name, att_shape file,
                    att_shape own, att_regrid *grid);
    /* Whether `name` is a parameter of a module, which the same network without that module has not. */
    bool (*is_added)(const att_context *context, const char *name);
    att_alias *alias;
} att_family;

/* The input that every family has, and the output of a network without a head. */
#define ATT_IMAGE "image"
#define ATT_FEATURES "features"

/* Options that every family declares, and their members, of a struct `type`. */
#define ATT_SHARED_MEMBERS                  \
    int img_size[2], in_chans, num_classes; \
    char task[ATT_OPTION_KEY];              \
    char modules[ATT_OPTION_TEXT_BYTES];    \
    double drop_rate, drop_path_rate
#define ATT_SHARED_OPTIONS(type)                                                                           \
    {.key = "img_size",                                                                                    \
     .kind = ATT_OPTION_SIDES,                                                                             \
     .value = "H [W]",                                                                                     \
     .help = "pixels of an image, height and width; one number is both",                                   \
     .low = 1,                                                                                             \
     .high = 65536,                                                                                        \
     ATT_OPTION_AT(type, img_size)},                                                                       \
        {.key = "in_chans",                                                                                \
         .kind = ATT_OPTION_WHOLE,                                                                         \
         .value = "N",                                                                                     \
         .help = "channels of an image: 1 or 3",                                                           \
         .low = 1,                                                                                         \
         .high = 3,                                                                                        \
         .free = true,                                                                                     \
         ATT_OPTION_AT(type, in_chans)},                                                                   \
        {.key = "num_classes",                                                                             \
         .kind = ATT_OPTION_WHOLE,                                                                         \
         .value = "N",                                                                                     \
         .help = "classes, the outputs of the classifier; 0: no classifier",                               \
         .low = 0,                                                                                         \
         .high = 10000000,                                                                                 \
         .free = true,                                                                                     \
         ATT_OPTION_AT(type, num_classes)},                                                                \
        {.key = "task",                                                                                    \
         .kind = ATT_OPTION_TEXT,                                                                          \
         .value = "NAME",                                                                                  \
         .help = "what the head answers, and what the network is trained for",                             \
         .choice = att_task_choice_name,                                                                   \
         .choice_in = att_task_choice_in,                                                                  \
         .free = true,                                                                                     \
         ATT_OPTION_AT(type, task)},                                                                       \
        {.key = "modules",                                                                                 \
         .kind = ATT_OPTION_TEXT,                                                                          \
         .value = "LIST",                                                                                  \
         .help =                                                                                           \
             "modules and where they are: cb_s, se:ratio=8@after_branch:every:2, cb@after_attn+cb_s:0-5; " \
             "attscope modules lists both",                                                                \
         .choice = att_module_choice_name,                                                                 \
         .choice_in = att_module_choice_in,                                                                \
         .beside = "the module",                                                                           \
         .detailed = true,                                                                                 \
         .free = true,                                                                                     \
         ATT_OPTION_AT(type, modules)},                                                                    \
        {.key = "drop_rate",                                                                               \
         .flag = "drop",                                                                                   \
         .kind = ATT_OPTION_REAL,                                                                          \
         .value = "X",                                                                                     \
         .help = "dropout before the head",                                                                \
         .high = 0.999999,                                                                                 \
         .free = true,                                                                                     \
         .training = true,                                                                                 \
         ATT_OPTION_AT(type, drop_rate)},                                                                  \
    {                                                                                                      \
        .key = "drop_path_rate", .flag = "drop-path", .kind = ATT_OPTION_REAL, .value = "X",               \
        .help = "drop path rate of the last block; no block's is larger", .high = 0.999999, .free = true,  \
        .training = true, ATT_OPTION_AT(type, drop_path_rate)                                              \
    }

/* "none", then every built-in module; every built-in task; NULL past the last. */
const char *att_module_choice_name(int index);
const char *att_task_choice_name(int index);
/* The same with those that were registered with a context. */
const char *att_module_choice_in(const att_context *context, int index);
const char *att_task_choice_in(const att_context *context, int index);
extern const att_option_table att_old_options;

const att_family *att_model_family(const att_model *model);
/* The struct of the model's options, complete. */
const void *att_model_settings(const att_model *model);
/* Of the model's network; ATT_NONE for what it has not. */
const att_features *att_model_features(const att_model *model);
const att_task *att_model_task_of(const att_model *model);
/* Whether `name` is a parameter of a head: of any task's own, or of the model's family's classifier. */
bool att_model_is_head(const att_model *model, const char *name);

/* The parameters that `model` has in another shape, or for another grid of patches, than `from`, the weights of the
 * same network for other images, made anew from these as att_model_load() does: *resized, the caller's, covers them
 * (att_weights_cover()); NULL where there are none. ERR_UNSUPPORTED where one can only be as it is. */
att_status att_model_resize_weights(const att_model *model, const att_model *from_model, const att_weights *from,
                                    const char *backend, att_weights **resized);

int att_family_count(void);
const att_family *att_family_at(int index);
/* The declaration of a key, or an alias, in the first family that has it; NULL: none has. */
const att_option *att_family_option(const char *key);
/* The family whose mark the file bears; NULL: none. */
const att_family *att_family_shown(const att_tensors *file);
/* ERR_ARGUMENT where a key is none of the family's, or a value cannot be. */
att_status att_family_check(att_context *context, const att_family *family, const att_option_values *options);
/* Completes options in place: reads, completes and writes them. */
att_status att_family_complete(att_context *context, const att_family *family, att_option_values *options);

/* A named variant. */
typedef struct att_variant {
    const att_family *family;
    int index; /* within the family */
    /* What the pretrained tag in its name has otherwise than the variant; nothing where there is none. */
    att_config tag;
} att_variant;
int att_variant_count(void);
att_variant att_variant_at(int index);
/* text: as att_model_resolve() takes it, with the same errors. */
att_status att_variant_find(att_context *context, const char *text, att_variant *variant);
/* The variant's own options, as att_family.defaults gives them, and its preprocessing, with what the pretrained tag
 * says laid over. said: NULL: nothing. */
void att_variant_defaults(const att_variant *variant, const att_option_values *said, att_option_values *options,
                          att_preprocess *preprocess);

#endif
