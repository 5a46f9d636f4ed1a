/* training/network.h - the network of a training: found before the data are opened, made after, filled last. */
#ifndef ATT_TRAINING_NETWORK_H
#define ATT_TRAINING_NETWORK_H

#include <attscope/checkpoint.h>
#include <attscope/lab/recipe.h>
#include <attscope/lab/runs.h>
#include <attscope/models.h>

typedef struct att_trained_network {
    att_context *context;
    const char *name, *checkpoint; /* checkpoint: to start or continue from, a file; NULL: none */
    char path[ATT_RUN_PATH];       /* of the file that was found for initial_checkpoint */
    bool resumes;                  /* it is continued */
    att_identity identity;         /* the checkpoint's */
    att_checkpoint_info stood;     /* where its training stood */
    att_preprocess preprocess;
    att_model *model;
    att_weights *weights;
    att_measure *measure; /* NULL: none */
} att_trained_network;

/* Which network recipe and checkpoint describe, put into the recipe; what cannot be built or measured is refused.
 * resume: "" for a new training. *network is zero before but for its context, and to be freed whatever comes back. */
att_status att_trained_network_find(att_recipe *recipe, const char *resume, att_trained_network *network);
/* Builds the network that was found as far as the recipe says it, with one class where it says none, and asks the
 * instruments `with` (NULL: none) of it, only to see whether that can be. Fills in `preprocess`. */
att_status att_trained_network_try(const att_recipe *recipe, att_trained_network *network, const char *with,
                                   const char *nodes);
/* Whether the instruments `with`, which there are, all find something in that network. */
bool att_trained_network_sees(const att_recipe *recipe, const att_trained_network *network, const char *with);
/* The model for that data set with its instruments, and space for its weights. */
att_status att_trained_network_make(att_recipe *recipe, const att_dataset *data, att_trained_network *network);
/* Draws the weights, or takes them from the checkpoint to start from; those of a training that is continued att_train()
 * reads. */
att_status att_trained_network_fill(const att_recipe *recipe, att_trained_network *network);
void att_trained_network_free(att_trained_network *network);

#endif
