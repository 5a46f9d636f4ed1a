/* attscope/models.h - networks by timm's names, and loading of checkpoints.
 *
 * A model is a graph with its name, its options and its preprocessing. Its family declares the inputs
 * (att_model_input_at()). That of networks for images is "image" [height, width, channels] of the graph's type; the
 * options img_size and in_chans give its shape. The outputs are those of the model's task (option "task",
 * attscope/task.h); a classifier has "logits" [num_classes]. att_task_add_loss() adds what training needs. A network
 * without a head, as self-supervised training produces, has num_classes 0. Its only output is "features" [width], the
 * input of a classifier, as in timm with num_classes=0. Functions that need classes refuse it.
 *
 * The options of a network are values by key (attscope/options.h). Each family of networks declares its own:
 * att_model_family_at(). Options that are not given have the values of the named variant.
 */
#ifndef ATTSCOPE_MODELS_H
#define ATTSCOPE_MODELS_H

#include <attscope/field.h>
#include <attscope/nn.h>
#include <attscope/options.h>
#include <attscope/task.h>
#include <attscope/tensors.h>
#include <attscope/weights.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct att_model att_model;

/* How images are prepared for an input that is an image. All zero for a network without one. */
typedef struct att_preprocess {
    int height, width, in_chans;
    /* For pixels in 0..1; the first in_chans elements are used. Where a source gives three for a network of one
     * channel, their average is used, as in timm. */
    double mean[3], std[3];
    double crop_pct;        /* (0, 10]; evaluation resizes to the sides divided by crop_pct */
    char crop_mode[8];      /* "center", "floor", "squash", "border", "keep", "within": ATT_CROP_CENTER etc. (data.h) */
    char interpolation[16]; /* "bicubic", "bilinear", "nearest", "bicubic_float", "bilinear_float",
                               "bilinear_plain" (data.h) */
    bool exif_transpose;    /* photographs are turned as their EXIF data say (att_image_limits); files do not say it */
} att_preprocess;

/* A family of networks and its options. If two families have an option of the same key, it has the same meaning in
 * both. */
typedef struct att_family_info {
    const char *name;          /* "vit" */
    const att_option *options; /* in the order of the help */
    int option_count;
    const att_module_hook *hooks; /* places for modules; the first is the default */
    int hook_count;
} att_family_info;
ATT_API int att_model_family_count(void);
/* All zero for an index past the last. */
ATT_API att_family_info att_model_family_at(int index);
/* Returns the family of a network in the list, by name; all zero for other names and NULL. */
ATT_API att_family_info att_model_family_of(const char *network);

/* An entry of the list of models. */
typedef struct att_model_info {
    const char *name;    /* "vit_tiny_patch16_224" */
    const char *summary; /* one line */
    int64_t parameters;
    double gmacs;      /* per image, forward */
    int height, width; /* sides of its images; 0: it takes none */
} att_model_info;
/* The variants, in the list's order; index: 0..count-1, all zero for another index. parameters and gmacs are 0, because
 * computing them means building the graph, which is slow for big networks. att_model_count_cost() builds the network
 * info->name and sets both. Errors: those of att_model_create(). */
ATT_API int att_model_count(void);
ATT_API att_model_info att_model_at(int index);
ATT_API att_status att_model_count_cost(att_context *context, att_model_info *info);

/* The meaning of a network's name. */
typedef struct att_network_name {
    char network[64]; /* name in the list of models */
    char tag[64];     /* timm's pretrained tag: "fb_in1k"; "": none */
    bool deprecated;  /* the name is one that timm has replaced by this one */
} att_network_name;
/* Resolves a network's name. Functions of this library that take such a name accept: a name in the list ("resnet50"); a
 * name with a pretrained tag of timm's ("resnet50.tv_in1k"), which determines preprocessing, image size and number of
 * classes unless other sources give them; a name that timm has deprecated ("tv_resnet50"); each with the prefix
 * "hf-hub:timm/". Errors, *name unchanged: ERR_UNSUPPORTED if timm has the network and attscope does not (the message
 * says what attscope lacks); ERR_NOT_FOUND for other names, with the correct name if it is certain, and for unknown
 * tags, with the known ones. */
ATT_API att_status att_model_resolve(att_context *context, const char *text, att_network_name *name);
/* A pretrained tag of timm's. */
typedef struct att_model_tag {
    char name[64];   /* "fb_in1k"; "": none */
    int num_classes; /* classes of its weights; 0: they have no classifier */
    att_preprocess preprocess;
} att_model_tag;
/* Returns tag `index` of a network in the list. The first tag's preprocessing is the network's default. *tag is all
 * zero for an index past the last, and for other networks. */
ATT_API att_status att_model_tag_at(att_context *context, const char *network, int index, att_model_tag *tag);

/* Builds a network. name: see att_model_resolve(). options: changes to the variant's options; NULL: none. dtype:
 * ATT_F32 or ATT_F64. On success the caller owns *model and frees it with att_model_destroy(). Errors: those of
 * att_model_resolve(); ERR_NOT_FOUND for a module that is neither built in nor registered with the context;
 * ERR_ARGUMENT for an option that the family lacks (with the nearest key), a value outside its range, or incompatible
 * options (embed_dim not a multiple of num_heads, a side of img_size smaller than that of patch_size, ...); errors of
 * registered modules. */
ATT_API ATT_MUST_CHECK att_status att_model_create(att_context *context, const char *name,
                                                   const att_option_values *options, att_dtype dtype,
                                                   att_model **model);
ATT_API void att_model_destroy(att_model **model);
ATT_API att_graph *att_model_graph(const att_model *model); /* owned by the model */
ATT_API const char *att_model_name(const att_model *model);
/* Returns all options of the model's family with their values. A checkpoint records them so that the model can be
 * rebuilt. Lives as long as the model. */
ATT_API const att_option_values *att_model_options(const att_model *model);
/* Returns the number of classes of the head; 0: no head. */
ATT_API int att_model_classes(const att_model *model);
ATT_API att_task_info att_model_task(const att_model *model);

/* An input of a network. */
enum { ATT_MAX_INPUTS = 4 };
typedef struct att_model_input {
    att_field field; /* of one sample, as runs take it: ATT_F32 for numbers, even if the graph computes in F64 */
    const att_preprocess *image; /* the input is an image [height, width, channels], prepared in this way; NULL: it is
                                    another tensor */
    int32_t least, most; /* the numbers that an I32 input may have; the number of tokens of a text depends on the
                            length of the run's texts, and `most` is that of the model's own length */
} att_model_input;
/* Returns input `index`, from 0, in the order in which the family declares them; all zero past the last. The pointers
 * live as long as the model. */
ATT_API att_model_input att_model_input_at(const att_model *model, int index);
/* Returns the preprocessing of the input that is an image. */
ATT_API att_preprocess att_model_preprocess(const att_model *model);

/* The description of a network from which it can be built again, with its preprocessing. */
typedef struct att_identity {
    char name[64];
    att_option_values options; /* without options that only affect training */
    att_preprocess preprocess;
    /* Image size and crop with which timm's validate.py evaluates the weights, from config.json or the pretrained tag.
     * 0: not known, or replaced because the source that names the tag also gives an image size or crop. `preprocess` is
     * that of the weights' training. */
    int test_height, test_width;
    double test_crop_pct;
    char origin[512]; /* sources of all facts, with the options that differ from the named variant's */
    char brief[512];  /* sources of all facts only: "args.yaml" */
} att_identity;
/* Returns the identity of a model; origin and brief are "". */
ATT_API att_identity att_model_identity(const att_model *model);

/* Describes a network for people: name, size of its images, head, modules, source of the identity, and the
 * settings in which the preprocessing `taken` differs from the identity's: "vit_tiny_patch16_224, 224 x 224 x 3, 10
 * classes; network: args.yaml; --mean: as asked for". taken: NULL means the identity's own. Returns `text`. */
enum { ATT_IDENTITY_DESCRIPTION = 1024 };
ATT_API char *att_identity_describe(const att_context *context, const att_identity *identity,
                                    const att_preprocess *taken, char text[ATT_IDENTITY_DESCRIPTION]);

/* Opens a file of weights as att_tensors_open() does. If config.json in its folder describes a network of the
 * transformers library, the tensors get timm's names, and the settings in config.json and those of images in
 * processor_config.json or preprocessor_config.json become metadata of the file, from which att_model_identify() reads
 * them. Tensors of parts that attscope does not use (a text network, the decoder of a pretraining) are left out;
 * att_tensors_skipped() names them. Without a config.json, files of torchvision, of the authors of networks and of
 * small public code are recognised by their tensors; open_clip_config.json beside one of CLIP is read. Other errors:
 * ERR_UNSUPPORTED for a model type or setting that attscope lacks, and for tensors that the described network does not
 * have; ERR_FORMAT for side files that cannot be parsed. */
ATT_API ATT_MUST_CHECK att_status att_model_open_file(att_context *context, const char *path, att_tensors **file);
/* The same for a caller who knows the network's name, which att_model_identify() is then given, too: tensors that this
 * network has under their own names keep them, although they look like those of another program's network, of another
 * family. network: NULL: unknown. */
ATT_API ATT_MUST_CHECK att_status att_model_open_file_as(att_context *context, const char *path, const char *network,
                                                         att_tensors **file);

/* Identifies the network of a file. Each fact comes from the first of these sources that has it:
 *
 *   1. the caller: `name` and `flags`, each may be NULL;
 *   2. args.yaml in the file's folder, as in the folder of a training run;
 *   3. config.json in the file's folder, as timm writes it on the Hugging Face hub;
 *   4. the file's own metadata: attscope's, else the architecture and options that training scripts save;
 *   5. for dimensions, the names and shapes of the tensors;
 *   6. the named variant's own values.
 *
 * path: the file's path, whose folder is searched; NULL means att_tensors_path(file). Names: see att_model_resolve().
 * The preprocessing of a pretrained tag counts as a fact of the source that names the tag. A source that names another
 * network or tag than an earlier source is ignored. If `name` has a tag, the preprocessing in other sources is ignored.
 * The tensors decide whether there is a head, unless `flags` gives num_classes, because side files of networks without
 * a head often give the classes of another checkpoint. *identity is filled on success; its `origin` and `brief` say in
 * one line each which fact came from which source.
 *
 * Errors:
 *
 *   ERR_UNSUPPORTED   in all cases, even if the caller gives another value: a source names a network that timm has and
 *                     attscope lacks; a source names two networks; a source has an argument of timm's constructors
 *                     that changes what the same tensors compute (act_layer, down_kernel_size, ...); config.json is
 *                     that of the transformers library, and att_tensors_open() opened the file
 *   ERR_UNSUPPORTED   unless the caller gives another value: a module or task that is neither built in nor registered
 *                     with the context
 *   ERR_UNSUPPORTED   also: a tensor that no model here has (the message names it); a described network that cannot be
 *                     built (global_pool "max"); tensors with another embed_dim than the variant's, if no source gives
 *                     num_heads; tensors with an fc_norm that the variant lacks, if no source gives global_pool (the
 *                     tensors do not show these options)
 *   ERR_MISMATCH      the tensors do not fit the named network with the given options, but fit another one
 *   ERR_NOT_FOUND     no source names a known network (the message lists the models that fit)
 *   ERR_FORMAT        side files or metadata that cannot be parsed
 *
 * and those of att_model_resolve().
 */
ATT_API att_status att_model_identify(att_context *context, const att_tensors *file, const char *path, const char *name,
                                      const att_option_values *flags, att_identity *identity);

/* Writes an identity as text, at most `size` bytes with the NUL. Checkpoints store it as metadata under this key;
 * att_model_identify() reads it. Errors: ERR_ARGUMENT if `size` is too small. */
#define ATT_IDENTITY_KEY "attscope"
/* Key of "true" in the metadata of a network whose head gives features of a projection, as CLIP's, not scores of
 * classes. */
#define ATT_PROJECTION_KEY "attscope.projection"
enum { ATT_IDENTITY_TEXT = 2048 };
ATT_API att_status att_model_identity_text(att_context *context, const att_identity *identity, char *text, size_t size);

/* Loads every parameter from the file (F32, F16, BF16 and F64 are converted). If tensors are missing, extra or have
 * another shape, one message lists them all (ERR_MISMATCH) and the weights are unchanged. A position embedding for
 * another grid of patches (img_size) is resampled as in timm, and the log reports it. The grid of the file is taken
 * from its metadata, or from its side files if the model's options come from att_model_identify(). If no source gives
 * it, it is the model's grid if the number of positions is equal, else a square grid, else one with the model's
 * proportions. For a model of grey images (in_chans 1), a first convolution for three colours is summed over them as in
 * timm, and the log reports it. The log warns of parameters with values that are not finite. */
ATT_API att_status att_model_load(const att_model *model, const att_tensors *file, att_weights *weights);

/* Checks that att_model_load() would load the file: reads every parameter and fails with the same errors and messages.
 * Needs memory for the largest parameter only. */
ATT_API att_status att_model_check_file(const att_model *model, const att_tensors *file);

/* A head that was not loaded. */
typedef struct att_new_head {
    char names[512]; /* "head.weight, head.bias"; "": everything was loaded */
    int64_t classes; /* classes of the file's head; 0: it has no head of the model's kind */
} att_new_head;

/* As att_model_load(), to start another training run from the file. The model's head keeps its values in `weights` if
 * the file's head differs in nothing but the number of classes, or the file has no head or that of another task, as in
 * timm; a head of several layers keeps all of them. *head (may be NULL) is filled on success only. If the file
 * has no parameters of the model's modules (nn.h), these keep their values too, and the log reports it. */
ATT_API att_status att_model_load_pretrained(const att_model *model, const att_tensors *file, att_weights *weights,
                                             att_new_head *head);

#ifdef __cplusplus
}
#endif
#endif
