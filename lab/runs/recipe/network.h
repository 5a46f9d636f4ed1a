/* recipe/network.h - the network of a training run. It is identified before the data sets are opened, created after,
 * and its weights are filled last. */
#ifndef ATT_RECIPE_NETWORK_H
#define ATT_RECIPE_NETWORK_H

#include <attscope/checkpoint.h>
#include <attscope/lab/recipe.h>
#include <attscope/lab/runs.h>
#include <attscope/models.h>
#include <attscope/network.h>

#include "base/core/text.h"

typedef struct att_trained_network {
    att_context *context;
    const char *name, *checkpoint; /* checkpoint: the file to start from or to continue; NULL: none */
    char path[ATT_RUN_PATH];       /* path of the file, if initial_checkpoint is a folder */
    bool resumes;                  /* `checkpoint` is continued */
    att_identity identity;         /* of the checkpoint */
    att_checkpoint_info progress;  /* of the checkpoint's training */
    /* How the network of a continued training differs from that of its checkpoint, for a message; "": not at all. */
    char difference[ATT_OPTION_KEY + 2 * ATT_OPTION_TEXT_BYTES + 64];
    att_preprocess preprocess;
    att_model *model;
    att_weights *weights;
    att_text with;        /* the list of instruments, with those of alerts; empty: none */
    att_measure *measure; /* NULL: none */
    att_network *teacher; /* NULL: none */
} att_trained_network;

/* Finds the network that the recipe and the checkpoint describe, writes its options to the recipe, and refuses networks
 * that cannot be built or measured. resume: the checkpoint to continue; "": a new training. Before the call, *network
 * is zero except for its context. The caller frees *network, also after a failure. */
att_status att_trained_network_find(att_recipe *recipe, const char *resume, att_trained_network *network);
/* Checks that the network can be built and that the instruments `with` (NULL: none) apply to it. If the recipe has no
 * number of classes, builds it with one class. Fills in `preprocess`. */
att_status att_trained_network_try(const att_recipe *recipe, att_trained_network *network, const char *with,
                                   const char *nodes);
/* *sees: whether each of the instruments `with`, which exist, finds a node in the network. */
att_status att_trained_network_sees(const att_recipe *recipe, const att_trained_network *network, const char *with,
                                    bool *sees);
/* Creates the model for the data set, its instruments, and its weights without contents. */
att_status att_trained_network_make(att_recipe *recipe, const att_dataset *data, att_trained_network *network);
/* Opens the teacher, if the recipe names one, for the images of the network. */
att_status att_trained_network_open_teacher(const att_recipe *recipe, const att_dataset *data,
                                            att_trained_network *network);
/* Initialises the weights or loads them from the initial checkpoint, and says if that has classes of other names than
 * the data set. When a training run is continued, att_train() loads the weights. */
att_status att_trained_network_fill(const att_recipe *recipe, const att_dataset *data, att_trained_network *network);
void att_trained_network_free(att_trained_network *network);

#endif
