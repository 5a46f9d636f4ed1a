/* io/pickle.h - a machine for Python's pickles that builds texts, numbers, containers and descriptions of tensors.
 *
 * It runs no code. A name of Python's (a "global") is looked up in a fixed list (pickle_globals.c) that says what takes
 * its place. The objects of names that only describe a training (argparse.Namespace, numpy's scalars) become opaque:
 * what they were made of is noted, and nothing is made of it. So do objects of a class that is not in the list. What is
 * refused: a function that is not in it, where it would be called; and names of modules that act on the machine (os,
 * builtins, subprocess), even unused.
 *
 * Values are numbered; a container is a chain of cells. Nothing is recursive, and each opcode makes at most a few
 * values, so that memory is bounded by the pickle's length, and by MOST_VALUES. Values may contain themselves: who
 * walks over them must bound its depth and its steps. Opcodes: Lib/pickletools.py of CPython 3.12, protocols 2 to 5.
 */
#ifndef ATT_IO_PICKLE_H
#define ATT_IO_PICKLE_H

#include <attscope/safetensors.h>

typedef uint32_t att_pickle_ref;

typedef enum att_pickle_kind {
    ATT_PICKLE_NONE,
    ATT_PICKLE_BOOL,
    ATT_PICKLE_INT,
    ATT_PICKLE_LONG, /* of more than 64 bits */
    ATT_PICKLE_REAL,
    ATT_PICKLE_TEXT, /* str and bytes */
    ATT_PICKLE_TUPLE,
    ATT_PICKLE_LIST,
    ATT_PICKLE_DICT, /* its cells: key, value, key, value...; once the pickle is read, no key is there twice */
    ATT_PICKLE_GLOBAL,
    ATT_PICKLE_UNKNOWN, /* a name that is not in the list; its cells: module, name */
    ATT_PICKLE_STORAGE,
    ATT_PICKLE_TENSOR,
    ATT_PICKLE_OPAQUE, /* its cells: what was called (GLOBAL, UNKNOWN), arguments, then what it was given */
} att_pickle_kind;

/* In the bytes that were read. */
typedef struct att_pickle_text {
    const char *bytes;
    size_t length;
} att_pickle_text;

typedef struct att_pickle_value {
    att_pickle_kind kind;
    bool is_bytes; /* TEXT: bytes, not str */
    union {
        int64_t number;       /* BOOL, INT */
        double real;          /* REAL */
        att_pickle_text text; /* TEXT, LONG (little-endian) */
        struct {
            uint32_t first, last, count; /* cells; first and last count where count > 0 */
        } cells;
        const struct att_pickle_global *global; /* GLOBAL */
        uint32_t index;                         /* STORAGE, TENSOR: of the list below */
    };
} att_pickle_value;

typedef struct att_pickle_cell {
    att_pickle_ref value;
    uint32_t next;
} att_pickle_cell;

/* Bytes that a pickle says lie beside it. */
typedef struct att_pickle_storage {
    att_pickle_text key;
    bool typed; /* dtype counts; otherwise each tensor says its own, and count is of bytes */
    att_safetensors_dtype dtype;
    int64_t count;       /* elements, >= 0 */
    int64_t view_offset; /* where the elements meant begin, >= 0 */
    bool placed;         /* for the container's reader to set, with the place of its bytes in the file */
    uint64_t place;
} att_pickle_storage;

/* A tensor as the pickle describes it. Only rank, and that dims, strides and offset are not negative, was checked. */
typedef struct att_pickle_tensor {
    uint32_t storage;
    att_safetensors_dtype dtype;
    int64_t offset; /* in elements */
    att_shape shape;
    int64_t strides[ATT_MAX_RANK];
} att_pickle_tensor;

typedef struct att_pickle {
    att_context *context;
    const char *path;     /* for messages; the caller's */
    const char *advice;   /* for messages: what to do instead of a pickle that is refused, NULL: nothing */
    const uint8_t *bytes; /* the pickle that is being read: `size` bytes, `at` of them are done */
    size_t size, at;
    bool truncated; /* reading failed because the bytes ended */
    att_pickle_value *values;
    att_pickle_cell *cells;
    att_pickle_ref *stack, *memo;
    int *marks;
    att_pickle_storage *storages;
    att_pickle_tensor *tensors;
    int value_count, cell_count, stack_count, memo_count, mark_count, storage_count, tensor_count;
    int value_capacity, cell_capacity, stack_capacity, memo_capacity, mark_capacity, storage_capacity, tensor_capacity;
} att_pickle;

/* Reads the pickle that begins at `bytes`, which must live as long as the values: zero-initialise *pickle and set
 * context and path before the first one; several may follow each other into the same lists. *root is what it holds,
 * pickle->at its length. Errors: ERR_FORMAT, ERR_UNSUPPORTED, ERR_MEMORY, each in a sentence that names the file. */
att_status att_pickle_read(att_pickle *pickle, const uint8_t *bytes, size_t size, att_pickle_ref *root);
void att_pickle_free(att_pickle *pickle);

static inline const att_pickle_value *att_pickle_at(const att_pickle *pickle, att_pickle_ref ref)
{
    return &pickle->values[ref];
}
/* Copies the values of a TUPLE or LIST, at most `most`, to items; returns how many there are. */
uint32_t att_pickle_items(const att_pickle *pickle, const att_pickle_value *value, att_pickle_ref *items,
                          uint32_t most);
/* As memcmp(); a text that only ends earlier comes first. */
int att_pickle_text_compare(att_pickle_text a, att_pickle_text b);
bool att_pickle_text_is(const att_pickle_value *value, const char *text);
/* What a DICT has under `key`, as str or else as bytes; false where it has no such key, or the value is no DICT. */
bool att_pickle_find(const att_pickle *pickle, att_pickle_ref dict, const char *key, att_pickle_ref *found);
/* At most 80 bytes of a text from the file, safe to be shown. Returns `shown`. */
enum { ATT_PICKLE_SHOWN = 88 };
char *att_pickle_show(att_pickle_text text, char shown[ATT_PICKLE_SHOWN]);

/* --- for pickle.c, pickle_dict.c, pickle_globals.c
 * ---------------------------------------------------------------------------- */

/* What takes the place of a name of Python's. */
typedef struct att_pickle_global att_pickle_global;
/* NULL: it is not let through. */
const att_pickle_global *att_pickle_global_find(att_pickle_text module, att_pickle_text name);
/* Whether an OPAQUE is a tensor kept in a way that is not read; `what` is "a quantised tensor" then. */
bool att_pickle_hides_tensor(const att_pickle *pickle, const att_pickle_value *value, const char **what);
/* Whether what an OPAQUE was made of never is a weight: its class is in the list. */
bool att_pickle_is_inert(const att_pickle *pickle, const att_pickle_value *value);
/* The name of an OPAQUE's class, without its module. */
att_pickle_text att_pickle_class_name(const att_pickle *pickle, const att_pickle_value *value);
/* ERR_UNSUPPORTED: the file asks for this name to be called. */
att_status att_pickle_refuse_name(const att_pickle *pickle, att_pickle_text module, att_pickle_text name);
/* Whether a name that is not in the list may stand in a pickle as long as it is no function that is called. */
bool att_pickle_may_be_named(att_pickle_text module, att_pickle_text name);
att_status att_pickle_make_set(att_pickle *pickle, att_pickle_ref *result);
/* What calling `function` with the tuple `arguments` gives. */
att_status att_pickle_call(att_pickle *pickle, att_pickle_ref function, att_pickle_ref arguments,
                           att_pickle_ref *result);
/* The storage that a persistent id stands for. */
att_status att_pickle_persistent(att_pickle *pickle, att_pickle_ref id, att_pickle_ref *result);

/* Makes each key of the DICTs from value `first` on unique, as Python does. */
att_status att_pickle_settle_dicts(att_pickle *pickle, int first);

/* ERR_FORMAT with the file and the place. */
att_status att_pickle_refuse(const att_pickle *pickle, const char *what);
att_status att_pickle_add(att_pickle *pickle, att_pickle_value value, att_pickle_ref *ref);
/* Puts an item at the end of a container's chain. */
att_status att_pickle_append(att_pickle *pickle, att_pickle_ref container, att_pickle_ref item);

#endif
