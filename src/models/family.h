/* models/family.h - a family of networks: one file that ends in one descriptor, plus its line in models/list.h. */
#ifndef ATT_MODELS_FAMILY_H
#define ATT_MODELS_FAMILY_H

#include <attscope/models.h>

#include "models/claims.h"
#include "models/regrid.h"

typedef struct att_family {
    const char *name; /* "vit" */
    const char *mark; /* a tensor that every network of it has: "patch_embed.proj.weight" */
    /* Scope of the tensors whose first axis is the classes: "head". */
    const char *(*classifier)(const att_model_options *options);
    int variant_count;
    /* Name, summary and image size. */
    att_model_info (*variant)(int index);
    /* Every option of variant `index` that the family has. Those that follow from other options (fc_norm, layers, ...)
     * may stay open; complete() sets them. said: options that are known to differ, which may bring other images with
     * them (NULL: none). */
    void (*defaults)(int index, const att_model_options *said, att_model_options *options, att_preprocess *preprocess);
    /* Sets what follows from other options, and checks that they go together. */
    att_status (*complete)(att_context *context, att_model_options *options);
    /* Adds input "image", the network, and output "logits", without a head "features"; returns that output. */
    att_value (*build)(att_graph *graph, const att_model_options *options);
    /* What the names and shapes of tensors say; options that they leave open are not touched. A tensor that no network
     * of this family has is refused by name (ERR_UNSUPPORTED). */
    att_status (*recognise)(att_context *context, const att_tensors *file, att_model_options *found);
    /* Sets those of the options, which are complete, that are known from the tensors alone; NULL: there are none. */
    att_status (*fit)(att_context *context, const att_tensors *file, att_model_options *options);
    /* Whether a file's tensor `name` differs from the one of a network with these options in nothing but the grid of
     * patches that it was made for: then *grid says how to make it anew. */
    bool (*regrids)(const att_model_options *options, const char *name, att_shape file, att_shape own,
                    att_regrid *grid);
    /* Whether `name` is a parameter of a module, which the same network without that module has not. */
    bool (*is_added)(const char *name);
    /* Writes the index-th other name under which files have parameter `name`; false past the last. */
    bool (*alias)(const char *name, int index, char *other, size_t size);
} att_family;

const att_family *att_model_family(const att_model *model);

/* A named variant. */
typedef struct att_variant {
    const att_family *family;
    int index; /* within the family */
    att_claims
        tag; /* what the pretrained tag in its name has otherwise than the variant; nothing where there is none */
} att_variant;
int att_variant_count(void);
att_variant att_variant_at(int index);
/* The family whose mark the file bears; NULL: none. */
const att_family *att_family_shown(const att_tensors *file);
/* text: as att_model_resolve() takes it, with the same errors. */
att_status att_variant_find(att_context *context, const char *text, att_variant *variant);
/* As att_family.defaults, with what the pretrained tag says laid over. */
void att_variant_defaults(const att_variant *variant, const att_model_options *said, att_model_options *options,
                          att_preprocess *preprocess);

#endif
