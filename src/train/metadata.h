/* train/metadata.h - the texts of a checkpoint. */
#ifndef ATT_TRAIN_METADATA_H
#define ATT_TRAIN_METADATA_H

#include "core/memory.h"
#include "train/checkpoint.h"

/* Key and value pairs whose strings lie in an arena. Zero-initialise, then set arena.context. */
enum { ATT_METADATA_MAX = 96 };
typedef struct att_metadata {
    att_arena arena;
    att_safetensors_pair pairs[ATT_METADATA_MAX];
    int count;
    bool failed; /* memory ran out: report once, at the end */
} att_metadata;
void att_metadata_free(att_metadata *metadata);

/* Identity only, or everything. */
att_status att_metadata_identity(att_metadata *metadata, const att_model *model);
att_status att_metadata_training(att_metadata *metadata, const att_train_run *run, const att_train_state *state);

/* Whether the file holds a training, of whichever version. */
bool att_metadata_has_training(const att_tensors *file);
/* ERR_MISMATCH where the file holds no training, ERR_UNSUPPORTED where it holds one that this version cannot continue.
 */
att_status att_metadata_check_version(att_context *context, const att_tensors *file);
/* Compares what decides bits; ERR_MISMATCH names the first difference. */
att_status att_metadata_compare(const att_train_run *run, const att_tensors *file);
/* ERR_FORMAT where a value is missing or no number. history.capacity stays. */
att_status att_metadata_state(att_context *context, const att_tensors *file, att_train_state *state);
/* One number of the metadata, in [least, most]; ERR_FORMAT otherwise. what: "epoch". */
att_status att_metadata_integer(att_context *context, const att_tensors *file, const char *what, int64_t least,
                                int64_t most, int64_t *value);
/* The bits of a number. */
att_status att_metadata_real(att_context *context, const att_tensors *file, const char *what, double *value);
/* The text under "attscope.train.<what>"; NULL where there is none. */
const char *att_metadata_text(const att_tensors *file, const char *what);

#endif
