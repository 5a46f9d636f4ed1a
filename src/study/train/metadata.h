/* train/metadata.h - the text metadata of a checkpoint. */
#ifndef ATT_TRAIN_METADATA_H
#define ATT_TRAIN_METADATA_H

#include "base/core/memory.h"
#include "study/train/checkpoint.h"

/* Key and value pairs, whose strings are in the arena. Zero-initialise, then set arena.context. */
enum { ATT_METADATA_MAX = 128 };
typedef struct att_metadata {
    att_arena arena;
    att_safetensors_pair pairs[ATT_METADATA_MAX];
    int count;
    bool failed; /* out of memory; reported at the end */
} att_metadata;
void att_metadata_free(att_metadata *metadata);

/* Fills the metadata with the model's identity only, or with everything that a resume needs. projects: as for
 * att_checkpoint_export_named(). */
att_status att_metadata_identity(att_metadata *metadata, const att_model *model, bool projects);
/* Adds the names of the classes, one per line, or if they are NULL the data set that has them, unless it is NULL. */
att_status att_metadata_classes(att_metadata *metadata, const char *lines, const char *known);
att_status att_metadata_training(att_metadata *metadata, const att_train_run *run, const att_train_state *state);

/* Passes each setting that a resume compares to `line`. what: the key after "attscope.train.". default_value: the value
 * to assume for files that lack the key because they are older than the key; NULL if all files have it. */
typedef void (*att_metadata_line)(void *user, const char *what, const char *value, const char *default_value);
void att_metadata_each(const att_train_run *run, att_metadata_line line, void *user);

/* Whether the file holds the state of a training run, of any version. */
bool att_metadata_has_training(const att_tensors *file);
/* Returns ERR_MISMATCH if the file holds no training, ERR_UNSUPPORTED if this version cannot resume it. */
att_status att_metadata_check_version(att_context *context, const att_tensors *file);
/* Compares all settings that affect the results bit by bit. ERR_MISMATCH names the first difference. */
att_status att_metadata_compare(const att_train_run *run, const att_tensors *file);
/* Reads the state. history.capacity is unchanged. Errors: ERR_FORMAT (a value is missing or invalid). */
att_status att_metadata_state(const att_train_run *run, const att_tensors *file, att_train_state *state);
/* Reads an integer in [least, most]. what: key such as "epoch". Errors: ERR_FORMAT. */
att_status att_metadata_integer(att_context *context, const att_tensors *file, const char *what, int64_t least,
                                int64_t most, int64_t *value);
/* Reads a number that is stored as the 64-bit pattern of a double. Errors: ERR_FORMAT. */
att_status att_metadata_real(att_context *context, const att_tensors *file, const char *what, double *value);
/* Returns the value of "attscope.train.<what>"; NULL if there is none. */
const char *att_metadata_text(const att_tensors *file, const char *what);

#endif
