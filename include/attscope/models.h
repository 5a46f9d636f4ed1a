/* attscope/models.h - networks by timm's names, and the checkpoints that fit them.
 *
 * A model is a graph with its preprocessing and its names. The input of the graph is "image" [h, w,
 * channels] of the graph's type, with the sides that img_size says and in_chans channels. Its outputs are those of its
 * task (option "task", attscope/task.h); a classifier's is "logits" [num_classes]. att_task_add_loss() adds what
 * training needs. A network without a head, as self-supervised training leaves it, has no classes (num_classes 0): its
 * only output is "features" [width], what a classifier would read, which is timm's output with num_classes=0. Whatever
 * needs no classes works on it; the rest refuses it in a sentence.
 *
 * The options of a network are values by key (attscope/options.h). Each family of networks declares those that it has:
 * att_model_family_at(). What is not given is the named variant's own.
 */
#ifndef ATTSCOPE_MODELS_H
#define ATTSCOPE_MODELS_H

#include <attscope/nn.h>
#include <attscope/options.h>
#include <attscope/task.h>
#include <attscope/tensors.h>
#include <attscope/weights.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct att_model att_model;

/* What images look like when they enter the network. */
typedef struct att_preprocess {
    int height, width, in_chans;
    double mean[3], std[3]; /* of pixels in 0..1; the first in_chans count */
    double crop_pct;        /* (0, 1]; evaluation: the sides over those that are resized to */
    char crop_mode[8];      /* "center", "squash", "border": ATT_CROP_CENTER and so on (data.h) */
    char interpolation[16]; /* "bicubic", "bilinear" */
} att_preprocess;

/* A family of networks, and the options that it declares. Two families that have an option of one key mean the same by
 * it. */
typedef struct att_family_info {
    const char *name;          /* "vit" */
    const att_option *options; /* in the order in which help shows them */
    int option_count;
    const att_module_hook *hooks; /* the first is where modules go that are not told where */
    int hook_count;
} att_family_info;
ATT_API int att_model_family_count(void);
/* All zero past the last. */
ATT_API att_family_info att_model_family_at(int index);
/* Options of version 0.1, which files and flags may still hold: "broadcast", "attn", "attn_blocks". Networks have
 * "modules" in their place. No hooks. */
ATT_API att_family_info att_model_old_options(void);
/* Says in "modules" what `options` say in those. Whoever takes options from outside calls it. */
ATT_API void att_model_renew_options(att_option_values *options);
/* That of a network of the list, by its name; all zero for other names and NULL. */
ATT_API att_family_info att_model_family_of(const char *network);

/* One line of the list of models. */
typedef struct att_model_info {
    const char *name;    /* "vit_tiny_patch16_224" */
    const char *summary; /* one line */
    int64_t parameters;
    double gmacs;      /* per image, forward */
    int height, width; /* of images */
} att_model_info;
/* All variants in the list's order. parameters and gmacs are computed by building the graph: slow for big ones, so they
 * are 0 here; att_model_measure() fills them. */
ATT_API int att_model_count(void);
ATT_API att_model_info att_model_at(int index);
ATT_API att_status att_model_measure(att_context *context, att_model_info *info);

/* The network that a name means. */
typedef struct att_network_name {
    char network[64]; /* one of the list's */
    char tag[64];     /* timm's pretrained tag: "fb_in1k"; "": none was named */
    bool deprecated;  /* the name was one that timm has replaced by this one */
} att_network_name;
/* Wherever this library takes a network's name, it takes these: a name of the list ("resnet50"); with one of timm's
 * pretrained tags ("resnet50.tv_in1k"), which gives the preprocessing, the image size and the number of classes of
 * that tag's weights, where nothing else says them; a name that timm has deprecated ("tv_resnet50"); each with
 * "hf-hub:timm/" before it. Errors, *name unchanged: ERR_UNSUPPORTED where timm has the network and attscope has not
 * (the message says what attscope lacks); ERR_NOT_FOUND for other names, with the name that was meant where it is sure,
 * and for unknown tags, with the known ones. */
ATT_API att_status att_model_resolve(att_context *context, const char *text, att_network_name *name);
/* One of timm's pretrained tags of a network. */
typedef struct att_model_tag {
    char name[64];   /* "fb_in1k"; "": there is none */
    int num_classes; /* of its weights; 0: they have no classifier */
    att_preprocess preprocess;
} att_model_tag;
/* Tag `index` of a network of the list; the first one's preprocessing is the network's own. Past the last, and for
 * other networks, *tag is all zero. */
ATT_API att_status att_model_tag_at(att_context *context, const char *network, int index, att_model_tag *tag);

/* Builds variant `name` changed by `options` (NULL: none) in `dtype`. On success *model is the caller's. Errors:
 * those of att_model_resolve(); ERR_NOT_FOUND for a module that is neither built in nor registered with the context;
 * what a module of one's own fails with; ERR_ARGUMENT, in a sentence: an option of another family or of none, with the
 * nearest key; a value outside its range; options that do not go together (embed_dim not a multiple of num_heads, a
 * side of img_size not one of patch_size, ...). */
ATT_API ATT_MUST_CHECK att_status att_model_create(att_context *context, const char *name,
                                                   const att_option_values *options, att_dtype dtype,
                                                   att_model **model);
ATT_API void att_model_destroy(att_model **model);
ATT_API att_graph *att_model_graph(const att_model *model); /* owned by the model */
ATT_API const char *att_model_name(const att_model *model);
/* Every option of the model's family with its value: what a checkpoint must record to rebuild the model. Lives as long
 * as the model. */
ATT_API const att_option_values *att_model_options(const att_model *model);
/* Classes that its head tells apart; 0: it has no head. */
ATT_API int att_model_classes(const att_model *model);
ATT_API att_task_info att_model_task(const att_model *model);
/* Tokens that attend to each other: the most of any attention in the network, class tokens among them; 0 where it has
 * none. */
ATT_API int64_t att_model_tokens(const att_model *model);
ATT_API att_preprocess att_model_preprocess(const att_model *model);
/* Where the images are made ready in another way than the model's own: what att_model_preprocess() gives from now on,
 * and checkpoints record. Sides and in_chans stay the graph's. */
ATT_API void att_model_set_preprocess(att_model *model, const att_preprocess *preprocess);

/* What a checkpoint must say so that its network can be built again and fed. */
typedef struct att_identity {
    char name[64];
    att_option_values options; /* without those that only training reads */
    att_preprocess preprocess;
    /* With what timm's validate.py evaluates the weights, as config.json or the pretrained tag says; 0: nothing says
     * it, or the source that names the tag says a size or a crop itself. preprocess is what the weights were trained
     * for. */
    int test_height, test_width;
    double test_crop_pct;
    char origin[512]; /* where it is all from, with the dimensions that are not the named variant's own */
    char brief[512];  /* the same without these: "args.yaml" */
} att_identity;
/* Of a model that was made here; origin and brief are "". */
ATT_API att_identity att_model_identity(const att_model *model);

/* Describes the head of a network with these options (NULL: none): "10 classes", "no head", or "task NAME" if the task
 * has a head of its own. context: has the tasks. Returns `text`. */
enum { ATT_HEAD_TEXT = ATT_OPTION_KEY + 8 };
ATT_API char *att_head_describe(const att_context *context, const att_option_values *options, char text[ATT_HEAD_TEXT]);
/* Writes the network's name, the size of its images, its head, the source of the identity, and the settings in which
 * the preprocessing `taken` differs from the identity's:
 * "vit_tiny_patch16_224, 224 x 224 x 3, 10 classes; network: args.yaml; --mean: as asked for". taken: NULL means the
 * identity's own. Returns `text`. */
enum { ATT_IDENTITY_DESCRIPTION = 1024 };
ATT_API char *att_identity_describe(const att_context *context, const att_identity *identity,
                                    const att_preprocess *taken, char text[ATT_IDENTITY_DESCRIPTION]);

/* Which network is this file? Each fact comes from the first of these sources that has it:
 *
 *   1. the caller: `name` and `flags`, each may be NULL;
 *   2. args.yaml in the file's folder, as in the folder of a training;
 *   3. config.json in the file's folder, as timm writes it on the Hugging Face hub;
 *   4. the file's own metadata: attscope's, else the architecture and options that training scripts save;
 *   5. for dimensions, the names and shapes of the tensors;
 *   6. the named variant's own values.
 *
 * path: the file's path, whose folder is searched; NULL means att_tensors_path(file). Names are those of
 * att_model_resolve(). The preprocessing of a pretrained tag counts as a fact of the source that names the tag. A
 * source that names another network or tag than an earlier source is ignored. If `name` has a tag, the preprocessing
 * that other sources give is ignored. The tensors decide whether there is a head, unless `flags` gives num_classes,
 * because side files of networks without a head often give the classes of another checkpoint. *identity is filled on
 * success; its `origin` and `brief` say in one line each which fact came from which source.
 *
 * A file is refused (ERR_UNSUPPORTED), whatever the caller says, where any source names a network that timm has and
 * attscope has not, or an argument of timm's constructors with which the same tensors compute something else
 * (act_layer, output_stride, ...), where one source names two networks, and where config.json is of the transformers
 * library. Other errors: ERR_MISMATCH
 * where the tensors are not those of the named network, changed as the sources say, but those of another one;
 * ERR_UNSUPPORTED where the file says that its network has a module or task that is neither built in nor registered
 * with the context, unless the caller gives another;
 * ERR_NOT_FOUND where nothing names a known network (the message lists the models that fit); ERR_UNSUPPORTED for
 * tensors that no model here has (named), for a network that a file describes and that cannot be made (global_pool
 * "max"), where embed_dim is not the variant's and nothing says the number of heads, and where an fc_norm that the
 * variant lacks leaves open what is pooled and nothing says global_pool; ERR_FORMAT for side files and metadata that
 * cannot be read; those of att_model_resolve(). */
ATT_API att_status att_model_identify(att_context *context, const att_tensors *file, const char *path, const char *name,
                                      const att_option_values *flags, att_identity *identity);

/* The text that att_model_identify() understands, to be stored in a checkpoint's metadata under this key. Writes at
 * most `size` bytes with the NUL; ERR_ARGUMENT where that is too short. */
#define ATT_IDENTITY_KEY "attscope"
enum { ATT_IDENTITY_TEXT = 2048 };
ATT_API att_status att_model_identity_text(att_context *context, const att_identity *identity, char *text, size_t size);

/* Copies every parameter from the file (F32, F16, BF16, F64 are converted). All missing, extra and mis-shaped tensors
 * are listed in one message (ERR_MISMATCH); weights are then unchanged. A position embedding for another grid of
 * patches (img_size) is resampled as timm does, bicubically with antialiasing, and the log says so. The file's own grid
 * is the one that its metadata say, or the files beside it where the model's options are those of att_model_identify();
 * where nothing says it, a file with as many positions as the model has the model's grid, and others a square one or,
 * without a square number of patches, one of the model's proportions. */
ATT_API att_status att_model_load(const att_model *model, const att_tensors *file, att_weights *weights);

/* A head that was left as it was. */
typedef struct att_new_head {
    char names[128]; /* "head.weight, head.bias"; "": everything was loaded */
    int64_t classes; /* of the file's classifier; 0: it has no head of the model's kind */
} att_new_head;

/* As att_model_load(), to start another training from: where the file's head differs from the model's in nothing but
 * the number of classes, or the file has none or one of another task, the model's keeps the values that `weights` has,
 * as in timm; *head, set on success only, says whether that was so; head may be NULL. Where the file has none of the
 * parameters of the model's modules (nn.h), these keep theirs too, and the log says so. */
ATT_API att_status att_model_load_pretrained(const att_model *model, const att_tensors *file, att_weights *weights,
                                             att_new_head *head);

#ifdef __cplusplus
}
#endif
#endif
