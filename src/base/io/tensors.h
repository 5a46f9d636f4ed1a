/* io/tensors.h - an open file of named tensors, which the reader of each format fills. */
#ifndef ATT_IO_TENSORS_H
#define ATT_IO_TENSORS_H

#include <attscope/tensors.h>

#include "base/core/memory.h"
#include "base/core/text.h"
#include "base/io/file.h"

typedef struct att_tensors_item {
    att_tensors_info info;
    uint64_t place;          /* offset of element 0 in the file, in bytes */
    const int64_t *strides;  /* [rank], in elements, allocated from the arena; NULL: row-major and contiguous */
    const void *data;        /* element 0, in the caller's memory; NULL: the elements are in the file */
    att_file_reader *reader; /* of the file that holds the data; NULL: att_tensors.reader */
    /* The elements are those of these items, one after the other; NULL: they are at one place. */
    const struct att_tensors_item *parts;
    int part_count;
} att_tensors_item;

struct att_tensors {
    att_context *context;
    att_arena arena;
    char *path;
    const char *part;        /* of "FILE#PART"; NULL: the whole file */
    const char *scope;       /* keys of the dictionary that is read, "state_dict"; NULL: the tensors have full names */
    att_file_reader *reader; /* NULL: tensors in the caller's memory */
    char *header;            /* safetensors: the header, into which names and metadata point; else NULL */
    att_tensors_item *items;
    int count;
    struct att_tensors_name *names; /* [count], sorted by name; set by att_tensors_open() */
    att_safetensors_pair *metadata;
    int metadata_count;
    struct att_tensors_name *keys; /* [metadata_count], of the metadata, sorted; set by att_tensors_open() */
    const char *origin, *skipped;
    /* Sources, for people, of the network's identity and preprocessing in the metadata. NULL: the file itself. */
    const char *identity_from, *preprocess_from;
    const char *assumed; /* options of that identity that the file does not show, separated by blanks; NULL: none */
    const char *encoder; /* of a file with two encoders, the prefix of the one that is read: "base_encoder."; NULL:
                            other files */
    bool has_average;
    bool projects; /* its head projects features into a space that images and texts share: it has no classes */
    struct att_tensors **shards; /* [shard_count], the files that an index names; their items are in `items`, too */
    int shard_count;
    uint64_t whole; /* bytes of the file if only its beginning is there; 0: all of it is */
    bool is_shard;  /* an index names the file, by the names that its tensors have in the file */
};

/* Readers, one per format. They set items, metadata, origin and has_average of an open file: arrays come from
 * att_allocate(), texts are in the arena or the header. They check that the data of every item are inside the file.
 * On failure, caller frees what they have set. */
att_status att_tensors_read_safetensors(att_tensors *file);
/* For a zip archive and for a sequence of pickles. */
att_status att_tensors_read_torch_zip(att_tensors *file);
att_status att_tensors_read_torch_pickles(att_tensors *file);
/* For the index of several files. Sets file->shards. */
att_status att_tensors_read_index(att_tensors *file);
/* Opens the file `name` beside `file`, which names it, or finds it if it is open. *shard belongs to `file`, and has no
 * tensors before a reader sets them. Errors: ERR_FORMAT for a name with a path, ERR_NOT_FOUND, ERR_IO, ERR_MEMORY. */
att_status att_tensors_shard(att_tensors *file, const char *name, att_tensors **shard);
/* For an open file that an index names: safetensors, a zip archive or pickles. */
att_status att_tensors_read_shard(att_tensors *shard);
/* Fails for a file of another kind (ERR_FORMAT). is: from att_other_file(), or words like these. */
att_status att_tensors_refuse_other(const att_tensors *file, const char *is);

/* Opens the beginning of a safetensors file, with its header, as if it were the whole file of `size` bytes at `path`;
 * the file `part` has it. Names, types, shapes and metadata can be read, the tensors' elements cannot. Otherwise as
 * att_tensors_open(). */
att_status att_tensors_open_part(att_context *context, const char *part, const char *path, uint64_t size,
                                 att_tensors **file);

/* Makes *file of tensors in the caller's memory, which are then read like those of a safetensors file. Names are
 * copied. The caller keeps the contents, until att_tensors_forget() is called: from then on only names, types and
 * shapes can be read. A file of tensors in memory has neither metadata nor side files, and its path is
 * ATT_TENSORS_HERE. On success the caller owns *file and closes it with att_tensors_close(). Errors: ERR_ARGUMENT (a
 * tensor without name, or without data; an unknown type; an impossible shape), ERR_FORMAT (two tensors of one name),
 * ERR_MEMORY. */
#define ATT_TENSORS_HERE "the tensors in memory"
att_status att_tensors_borrow(att_context *context, const att_safetensors_tensor *tensors, int count,
                              att_tensors **file);
void att_tensors_forget(att_tensors *file);
/* Whether the tensors are, or were, in the caller's memory. */
bool att_tensors_are_borrowed(const att_tensors *file);

/* Changes the names of the tensors, starting at item `first`, to those of the network, as described in
 * attscope/tensors.h: selects file->part, removes common prefixes ("module."), removes tensors that only training uses
 * and adds them to file->skipped, and joins chunks of blocks. A prefix is common if at most 16 tensors, and at most a
 * quarter of them, lack it; these keep their names. If item `first` is the file's first and names begin with the keys
 * of several networks ("model.", "ema."), takes those of one network and of its average, and adds the other networks to
 * file->skipped. Appends a description of the changes to `changes`. Error: ERR_MEMORY.
 */
att_status att_tensors_normalize_names(att_tensors *file, int first, att_text *changes);
/* Names the tensors, starting at item `first`, as the average: "ema.<name>". Error: ERR_MEMORY. */
att_status att_tensors_name_average(att_tensors *file, int first);

/* Replaces the file's tensors; `items` comes from att_allocate_array() and belongs to the file from then on, also after
 * a failure. Errors: ERR_FORMAT (two tensors of one name), ERR_MEMORY. */
att_status att_tensors_replace(att_tensors *file, att_tensors_item *items, int count);
/* Adds a value to the metadata. Key and value are copied. Errors: ERR_FORMAT if the key exists; ERR_MEMORY. */
att_status att_tensors_add_metadata(att_tensors *file, const char *key, const char *value);
/* Leaves out the metadata, as if the file had none. */
void att_tensors_clear_metadata(att_tensors *file);
/* As att_tensors_read_f32(), for an item that need not be one of the file's. */
att_status att_tensors_read_item_f32(const att_tensors *file, const att_tensors_item *item, float *out);

/* Returns whether the tensors "ema.<name>" are the moving average of a PyTorch checkpoint. */
bool att_tensors_has_average(const att_tensors *file);

#endif
