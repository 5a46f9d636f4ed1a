/* io/pickle.h - an interpreter of Python's pickles that builds texts, numbers, containers and tensor descriptions only.
 *
 * It never runs code of the pickle. Each Python name in the pickle (a "global") is looked up in a fixed list
 * (pickle_globals.c), which says how objects of that name are handled:
 *   - Names that build tensors and containers are interpreted here.
 *   - Objects of classes that only describe a training run (argparse.Namespace, numpy scalars), and objects of classes
 *     that are not in the list, become OPAQUE values. An OPAQUE value stores the class and its arguments without using
 *     them.
 *   - Calling a function that is not in the list fails.
 *   - Names of modules that can affect the machine (os, builtins, subprocess) fail even if they are not called.
 *
 * Values are numbered, and a container is a linked list of cells. The interpreter is not recursive, and each opcode
 * makes a small, fixed number of values, so the length of the pickle and MOST_VALUES bound the memory. Values may
 * contain themselves: code that walks over them must limit its depth and its number of steps. Opcodes: protocols 2 to
 * 5, Lib/pickletools.py of CPython 3.12.
 */
#ifndef ATT_IO_PICKLE_H
#define ATT_IO_PICKLE_H

#include <attscope/safetensors.h>

typedef uint32_t att_pickle_ref;

typedef enum att_pickle_kind {
    ATT_PICKLE_NONE,
    ATT_PICKLE_BOOL,
    ATT_PICKLE_INT,
    ATT_PICKLE_LONG, /* an integer of more than 64 bits */
    ATT_PICKLE_REAL,
    ATT_PICKLE_TEXT, /* str and bytes */
    ATT_PICKLE_TUPLE,
    ATT_PICKLE_LIST,
    ATT_PICKLE_DICT, /* cells: key, value, key, value...; keys are unique once the pickle is read */
    ATT_PICKLE_GLOBAL,
    ATT_PICKLE_UNKNOWN, /* a name that is not in the list; cells: module, name */
    ATT_PICKLE_STORAGE,
    ATT_PICKLE_TENSOR,
    ATT_PICKLE_OPAQUE, /* cells: class or function (GLOBAL, UNKNOWN), arguments, then items added and states set later
                        */
} att_pickle_kind;

/* Points into the bytes of the pickle. Not NUL-terminated. */
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
            uint32_t first, last, count; /* first and last cell, undefined if count is 0 */
        } cells;
        const struct att_pickle_global *global; /* GLOBAL */
        uint32_t index;                         /* STORAGE, TENSOR: index into att_pickle.storages or .tensors */
    };
} att_pickle_value;

typedef struct att_pickle_cell {
    att_pickle_ref value;
    uint32_t next;
} att_pickle_cell;

/* A block of data outside the pickle, to which the pickle refers by a key. */
typedef struct att_pickle_storage {
    att_pickle_text key;
    bool typed; /* true: `count` elements of `dtype`; false: `count` bytes, and each tensor has its own dtype */
    att_safetensors_dtype dtype;
    int64_t count;       /* >= 0 */
    int64_t view_offset; /* offset of the view's first element in the block, >= 0 */
    bool placed;         /* whether `place` is set; the reader of the file sets both */
    uint64_t place;      /* offset of the block in the file */
} att_pickle_storage;

/* A tensor as the pickle describes it. The pickle reader checks only that the rank is at most ATT_MAX_RANK and that
 * dims, strides and offset are not negative. */
typedef struct att_pickle_tensor {
    uint32_t storage;
    att_safetensors_dtype dtype;
    int64_t offset; /* in elements */
    att_shape shape;
    int64_t strides[ATT_MAX_RANK];
} att_pickle_tensor;

typedef struct att_pickle {
    att_context *context;
    const char *path;     /* for messages; owned by the caller */
    const char *advice;   /* appended to messages: what to do if the pickle is not supported; may be NULL */
    const uint8_t *bytes; /* the pickle that is being read: `size` bytes, of which `at` are consumed */
    size_t size, at;
    bool truncated; /* reading failed because the pickle is incomplete */
    att_pickle_value *values;
    att_pickle_cell *cells;
    att_pickle_ref *stack, *memo;
    int *marks;
    att_pickle_storage *storages;
    att_pickle_tensor *tensors;
    int value_count, cell_count, stack_count, memo_count, mark_count, storage_count, tensor_count;
    int value_capacity, cell_capacity, stack_capacity, memo_capacity, mark_capacity, storage_capacity, tensor_capacity;
} att_pickle;

/* Reads the pickle that begins at `bytes`. Before the first call, zero-initialise *pickle and set context and path.
 * Several pickles can be read into the same *pickle, one after the other. On success, *root is the pickled value, and
 * pickle->at is the length of the pickle. The bytes must live as long as the values. Errors: ERR_FORMAT,
 * ERR_UNSUPPORTED, ERR_MEMORY. */
att_status att_pickle_read(att_pickle *pickle, const uint8_t *bytes, size_t size, att_pickle_ref *root);
void att_pickle_free(att_pickle *pickle);

static inline const att_pickle_value *att_pickle_at(const att_pickle *pickle, att_pickle_ref ref)
{
    return &pickle->values[ref];
}
/* Copies at most `most` values from the cells of `value` to `items`. Returns the number of cells. */
uint32_t att_pickle_items(const att_pickle *pickle, const att_pickle_value *value, att_pickle_ref *items,
                          uint32_t most);
/* Compares like memcmp(). A text that is a prefix of the other comes first. */
int att_pickle_text_compare(att_pickle_text a, att_pickle_text b);
bool att_pickle_text_is(const att_pickle_value *value, const char *text);
/* Looks up `key`, first as a str, then as bytes. Returns false if `dict` lacks the key or is not a DICT. */
bool att_pickle_find(const att_pickle *pickle, att_pickle_ref dict, const char *key, att_pickle_ref *found);
/* Writes at most 80 bytes of the text to `shown`, with "?" for unprintable characters. Returns `shown`. */
enum { ATT_PICKLE_SHOWN = 88 };
char *att_pickle_show(att_pickle_text text, char shown[ATT_PICKLE_SHOWN]);

/* --- shared by the pickle_*.c files ------------------------------------------------------------------------------- */

/* An entry of the list of known Python names. */
typedef struct att_pickle_global att_pickle_global;
/* Returns NULL if the name is not in the list. */
const att_pickle_global *att_pickle_global_find(att_pickle_text module, att_pickle_text name);
/* Returns whether an OPAQUE value is a tensor in a representation that is not supported. *what: its kind, for messages:
 * "a quantised tensor". */
bool att_pickle_is_unsupported_tensor(const att_pickle *pickle, const att_pickle_value *value, const char **what);
/* Returns whether an OPAQUE value cannot contain weights, according to the list. */
bool att_pickle_is_inert(const att_pickle *pickle, const att_pickle_value *value);
/* If *ref is a module of a TorchScript program, sets *ref to its state, a DICT of its parts, and returns true. The
 * program itself is not read. */
bool att_pickle_script_state(const att_pickle *pickle, att_pickle_ref *ref);
/* The name of an OPAQUE value's class, without its module. */
att_pickle_text att_pickle_class_name(const att_pickle *pickle, const att_pickle_value *value);
/* Fails with ERR_UNSUPPORTED because the pickle calls this name. */
att_status att_pickle_refuse_name(const att_pickle *pickle, att_pickle_text module, att_pickle_text name);
/* Returns whether a pickle may contain this name, which is not in the list, without calling it: both texts are
 * identifiers, and the module cannot affect the machine. */
bool att_pickle_may_be_named(att_pickle_text module, att_pickle_text name);
att_status att_pickle_make_set(att_pickle *pickle, att_pickle_ref *result);
/* Makes the value that stands for the result of calling `function` with the tuple `arguments`. */
att_status att_pickle_call(att_pickle *pickle, att_pickle_ref function, att_pickle_ref arguments,
                           att_pickle_ref *result);
/* Makes the storage with this persistent id. */
att_status att_pickle_persistent(att_pickle *pickle, att_pickle_ref id, att_pickle_ref *result);

/* Removes duplicate keys from each DICT, starting at value `first`, as Python does. */
att_status att_pickle_unique_keys(att_pickle *pickle, int first);

/* Fails with ERR_FORMAT and a message that contains the path and the offset in the pickle. */
att_status att_pickle_refuse(const att_pickle *pickle, const char *what);
att_status att_pickle_add(att_pickle *pickle, att_pickle_value value, att_pickle_ref *ref);
/* Appends an item to a container's cells. */
att_status att_pickle_append(att_pickle *pickle, att_pickle_ref container, att_pickle_ref item);

#endif
