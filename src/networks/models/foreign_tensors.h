/* models/foreign_tensors.h - explains tensors of networks that attscope does not have. */
#ifndef ATT_MODELS_FOREIGN_TENSORS_H
#define ATT_MODELS_FOREIGN_TENSORS_H

#include <attscope/tensors.h>

/* Tensors of a file that no network of a family has. */
typedef struct att_foreign {
    int count, total; /* how many they are; how many tensors the file's network has */
    const char *name; /* the most telling one, which shows best what the file's network is; NULL: there is none */
    const char *sign; /* what this name is a sign of ("CaiT"); NULL: not known */
} att_foreign;

/* Returns whether networks of the family can have a tensor of this name. user: see att_foreign_find(). */
typedef bool att_knows(const void *user, const char *name);
/* Asks for every tensor but those of a training run and of the heads of tasks. Ends early if it is asked to stop; then
 * att_check_stop() and att_foreign_refuse() fail. */
att_foreign att_foreign_find(const att_context *context, const att_tensors *file, att_knows *knows, const void *user);

/* Returns ERR_UNSUPPORTED, naming the most telling tensor, if there are any. what: the family's networks ("ViT"). */
att_status att_foreign_refuse(att_context *context, const att_tensors *file, const att_foreign *foreign,
                              const char *what);

#endif
