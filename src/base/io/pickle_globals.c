/* The list of known Python names, and the values that stand for the names and for the results of calling them. */
#include <string.h>

#include "base/core/error.h"
#include "base/core/memory.h"
#include "base/io/pickle.h"

/* The result of calling the name, or the meaning of the name itself. In parentheses: the arguments of the call. */
typedef enum action {
    OPAQUE_INERT,       /* an OPAQUE value that cannot contain weights */
    OPAQUE_ANY,         /* an OPAQUE value whose arguments may contain weights */
    UNSUPPORTED_TENSOR, /* an OPAQUE value that is a tensor in an unsupported representation */
    ENCODE,         /* (text, encoding): bytes if the text is ASCII and the encoding "latin1", else as OPAQUE_INERT */
    MAKE_DICT,      /* a DICT, empty or from a list of pairs */
    MAKE_TUPLE,     /* (tuple or list): its argument */
    TENSOR,         /* (storage, offset, size, stride, ...): a tensor of the storage's dtype */
    TENSOR_OF_TYPE, /* (storage, offset, size, stride, requires_grad, hooks, dtype, metadata): a tensor */
    FIRST_ARGUMENT, /* (tensor, requires_grad, hooks, ...): its first argument */
    CALL_FUNCTION,  /* (function, class, arguments, state): the result of function(*arguments) */
    STORAGE,        /* a storage class with elements of `dtype` */
    BYTES,          /* a storage class without a dtype */
    DTYPE,          /* a dtype */
} action;

struct att_pickle_global {
    const char *module, *name; /* name "*": any name of the module */
    action action;
    att_safetensors_dtype dtype;
    const char *what; /* UNSUPPORTED_TENSOR: the kind of tensor for messages, "a quantised tensor" */
};

static const char QUANTISED[] = "a quantised tensor", COMPLEX[] = "a tensor of complex128";

#define STORAGES(type, dtype)                              \
    {"torch", type "Storage", STORAGE, dtype, NULL},       \
    {                                                      \
        "torch.cuda", type "Storage", STORAGE, dtype, NULL \
    }
#define DTYPES(name, dtype)               \
    {                                     \
        "torch", name, DTYPE, dtype, NULL \
    }
#define INERT(module, name)                                   \
    {                                                         \
        module, name, OPAQUE_INERT, ATT_SAFETENSORS_F32, NULL \
    }
#define UNSUPPORTED(module, name, what)                             \
    {                                                               \
        module, name, UNSUPPORTED_TENSOR, ATT_SAFETENSORS_F32, what \
    }
#define ACTION(module, name, action)                    \
    {                                                   \
        module, name, action, ATT_SAFETENSORS_F32, NULL \
    }

/* The module's name in Python 3 and in Python 2, which pickle writes with fix_imports. */
#define BUILTIN(name) INERT("builtins", name), INERT("__builtin__", name)

static const att_pickle_global globals[] = {
    ACTION("collections", "OrderedDict", MAKE_DICT),
    ACTION("collections", "defaultdict", MAKE_DICT),
    ACTION("torch", "Size", MAKE_TUPLE),
    ACTION("torch._utils", "_rebuild_tensor", TENSOR),
    ACTION("torch._utils", "_rebuild_tensor_v2", TENSOR),
    ACTION("torch._utils", "_rebuild_tensor_v3", TENSOR_OF_TYPE),
    ACTION("torch._utils", "_rebuild_parameter", FIRST_ARGUMENT),
    ACTION("torch._utils", "_rebuild_parameter_with_state", FIRST_ARGUMENT),
    ACTION("torch._tensor", "_rebuild_from_type_v2", CALL_FUNCTION),

    STORAGES("Double", ATT_SAFETENSORS_F64),
    STORAGES("Float", ATT_SAFETENSORS_F32),
    STORAGES("Half", ATT_SAFETENSORS_F16),
    STORAGES("BFloat16", ATT_SAFETENSORS_BF16),
    STORAGES("Long", ATT_SAFETENSORS_I64),
    STORAGES("Int", ATT_SAFETENSORS_I32),
    STORAGES("Short", ATT_SAFETENSORS_I16),
    STORAGES("Char", ATT_SAFETENSORS_I8),
    STORAGES("Byte", ATT_SAFETENSORS_U8),
    STORAGES("Bool", ATT_SAFETENSORS_BOOL),
    STORAGES("ComplexFloat", ATT_SAFETENSORS_C64),
    ACTION("torch.storage", "UntypedStorage", BYTES),
    ACTION("torch", "UntypedStorage", BYTES),

    DTYPES("float64", ATT_SAFETENSORS_F64),
    DTYPES("float32", ATT_SAFETENSORS_F32),
    DTYPES("float16", ATT_SAFETENSORS_F16),
    DTYPES("bfloat16", ATT_SAFETENSORS_BF16),
    DTYPES("int64", ATT_SAFETENSORS_I64),
    DTYPES("int32", ATT_SAFETENSORS_I32),
    DTYPES("int16", ATT_SAFETENSORS_I16),
    DTYPES("int8", ATT_SAFETENSORS_I8),
    DTYPES("uint64", ATT_SAFETENSORS_U64),
    DTYPES("uint32", ATT_SAFETENSORS_U32),
    DTYPES("uint16", ATT_SAFETENSORS_U16),
    DTYPES("uint8", ATT_SAFETENSORS_U8),
    DTYPES("bool", ATT_SAFETENSORS_BOOL),
    DTYPES("float8_e5m2", ATT_SAFETENSORS_F8_E5M2),
    DTYPES("float8_e4m3fn", ATT_SAFETENSORS_F8_E4M3),
    DTYPES("float8_e8m0fnu", ATT_SAFETENSORS_F8_E8M0),
    DTYPES("complex64", ATT_SAFETENSORS_C64),

    UNSUPPORTED("torch", "ComplexDoubleStorage", COMPLEX),
    UNSUPPORTED("torch", "complex128", COMPLEX),
    UNSUPPORTED("torch", "QInt8Storage", QUANTISED),
    UNSUPPORTED("torch", "QUInt8Storage", QUANTISED),
    UNSUPPORTED("torch", "QInt32Storage", QUANTISED),
    UNSUPPORTED("torch", "qint8", QUANTISED),
    UNSUPPORTED("torch", "quint8", QUANTISED),
    UNSUPPORTED("torch", "qint32", QUANTISED),
    UNSUPPORTED("torch._utils", "_rebuild_qtensor", QUANTISED),
    UNSUPPORTED("torch._utils", "_rebuild_sparse_tensor", "a sparse tensor"),
    UNSUPPORTED("torch._utils", "_rebuild_nested_tensor", "a nested tensor"),
    UNSUPPORTED("torch._utils", "_rebuild_meta_tensor_no_storage", "a tensor without values"),
    UNSUPPORTED("torch._utils", "_rebuild_device_tensor_from_numpy", "a tensor stored as a numpy array"),
    UNSUPPORTED("torch._utils", "_rebuild_device_tensor_from_cpu_tensor", "a tensor of another device"),
    UNSUPPORTED("torch._utils", "_rebuild_wrapper_subclass", "a tensor of a custom class"),
    UNSUPPORTED("torch", "Tensor", "a tensor in an obsolete format"),
    UNSUPPORTED("torch.nn.parameter", "Parameter", "a parameter in an obsolete format"),

    INERT("torch", "device"),
    INERT("torch", "strided"),
    INERT("torch", "per_tensor_affine"),
    INERT("torch", "per_channel_affine"),
    INERT("torch.serialization", "_get_layout"),
    INERT("torch.jit._pickle", "build_intlist"),
    INERT("torch.jit._pickle", "build_doublelist"),
    INERT("torch.jit._pickle", "build_boollist"),
    ACTION("torch.jit._pickle", "build_tensorlist", OPAQUE_ANY),
    ACTION("torch.jit._pickle", "restore_type_tag", OPAQUE_ANY),
    INERT("argparse", "Namespace"),
    INERT("collections", "Counter"),
    ACTION("_codecs", "encode", ENCODE),
    INERT("numpy", "dtype"),
    INERT("numpy", "ndarray"),
    INERT("numpy", "bool_"),
    INERT("numpy", "float32"),
    INERT("numpy", "float64"),
    INERT("numpy", "int64"),
    INERT("numpy.dtypes", "*"),
    INERT("numpy.core.multiarray", "scalar"),
    INERT("numpy.core.multiarray", "_reconstruct"),
    INERT("numpy._core.multiarray", "scalar"),
    INERT("numpy._core.multiarray", "_reconstruct"),
    INERT("numpy.core.numeric", "_frombuffer"),
    INERT("numpy._core.numeric", "_frombuffer"),
    INERT("pathlib", "PosixPath"),
    INERT("pathlib", "PurePosixPath"),
    INERT("pathlib", "WindowsPath"),
    INERT("pathlib", "PureWindowsPath"),
    INERT("pathlib", "Path"),
    INERT("pathlib._local", "PosixPath"),
    INERT("pathlib._local", "WindowsPath"),
    INERT("numpy.random._pickle", "*"),
    INERT("datetime", "datetime"),
    INERT("datetime", "timedelta"),
    INERT("omegaconf.base", "*"),
    INERT("omegaconf.nodes", "*"),
    INERT("omegaconf.dictconfig", "DictConfig"),
    INERT("omegaconf.listconfig", "ListConfig"),
    INERT("typing", "Any"),
    INERT("yacs.config", "CfgNode"),
    INERT("easydict", "EasyDict"),
    INERT("addict.addict", "Dict"),
    INERT("ml_collections.config_dict.config_dict", "ConfigDict"),
    ACTION("functools", "partial", OPAQUE_ANY),
    ACTION("copyreg", "_reconstructor", OPAQUE_ANY),
    ACTION("copy_reg", "_reconstructor", OPAQUE_ANY),
    BUILTIN("set"),
    BUILTIN("frozenset"),
    BUILTIN("bytearray"),
    BUILTIN("bytes"),
    BUILTIN("complex"),
    BUILTIN("slice"),
    BUILTIN("range"),
    BUILTIN("xrange"),
    BUILTIN("object"),
    BUILTIN("int"),
    BUILTIN("long"),
    BUILTIN("float"),
    BUILTIN("bool"),
    BUILTIN("str"),
    BUILTIN("unicode"),
    BUILTIN("list"),
    BUILTIN("tuple"),
    BUILTIN("dict"),
};

/* Entries for OPAQUE values that no name in a pickle selects: sets, which opcodes make, and tensors that cannot be
 * rebuilt. */
static const att_pickle_global set = INERT("", "set");
static const att_pickle_global too_many_dimensions = UNSUPPORTED("", "", "a tensor of more than 5 dimensions");
static const att_pickle_global lazy_view = UNSUPPORTED("", "", "a conjugated or negated view");
_Static_assert(ATT_MAX_RANK == 5, "the text of too_many_dimensions contains this number");

static bool equals(att_pickle_text text, const char *known)
{
    return strlen(known) == text.length && memcmp(text.bytes, known, text.length) == 0;
}

const att_pickle_global *att_pickle_global_find(att_pickle_text module, att_pickle_text name)
{
    for (const att_pickle_global *global = globals; global < globals + sizeof globals / sizeof *globals; global++)
        if (equals(module, global->module) && (equals(name, global->name) || strcmp(global->name, "*") == 0))
            return global;
    return NULL;
}

/* --- names that are not in the list ------------------------------------------------------------------------------- */

/* Modules that can affect the machine. A pickle that contains a name of one of them, or of a submodule, is refused,
 * unless the name is in the list above. */
static const char *const unsafe_modules[] = {"builtins", "__builtin__", "os",     "posix",         "nt",
                                             "sys",      "subprocess",  "ctypes", "pickle",        "importlib",
                                             "runpy",    "code",        "pty",    "torch.storage", "multiprocessing",
                                             "socket",   "shutil"};

static bool is_unsafe(att_pickle_text module)
{
    for (size_t i = 0; i < sizeof unsafe_modules / sizeof *unsafe_modules; i++) {
        size_t length = strlen(unsafe_modules[i]);
        if (module.length >= length && memcmp(module.bytes, unsafe_modules[i], length) == 0 &&
            (module.length == length || module.bytes[length] == '.'))
            return true;
    }
    return false;
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_identifier(att_pickle_text text)
{
    for (size_t i = 0; i < text.length; i++) {
        char c = text.bytes[i];
        if (!is_letter(c) && !(c >= '0' && c <= '9') && c != '.')
            return false;
    }
    return text.length > 0;
}

bool att_pickle_may_be_named(att_pickle_text module, att_pickle_text name)
{
    return is_identifier(module) && is_identifier(name) && !is_unsafe(module);
}

/* Returns whether a name is that of a class by the convention of PEP 8: its last part begins with an upper-case letter
 * after any underscores (_Outer.Inner). */
static bool is_class_name(att_pickle_text name)
{
    size_t at = name.length;
    while (at > 0 && name.bytes[at - 1] != '.')
        at--;
    while (at < name.length && name.bytes[at] == '_')
        at++;
    return at < name.length && name.bytes[at] >= 'A' && name.bytes[at] <= 'Z';
}

att_status att_pickle_refuse_name(const att_pickle *pickle, att_pickle_text module, att_pickle_text name)
{
    char first[ATT_PICKLE_SHOWN], second[ATT_PICKLE_SHOWN];
    return att_fail(
        pickle->context, ATT_ERR_UNSUPPORTED,
        "%s: the file uses %s.%s; attscope never runs code from a file, and reads only tensors and plain containers%s",
        pickle->path, att_pickle_show(module, first), att_pickle_show(name, second),
        pickle->advice ? pickle->advice : "");
}

/* Gets the module and the name of an UNKNOWN value. */
static void names_of_unknown(const att_pickle *pickle, const att_pickle_value *unknown, att_pickle_text *module,
                             att_pickle_text *name)
{
    att_pickle_ref refs[2];
    att_pickle_items(pickle, unknown, refs, 2);
    *module = att_pickle_at(pickle, refs[0])->text;
    *name = att_pickle_at(pickle, refs[1])->text;
}

static att_status refuse_unknown(const att_pickle *pickle, const att_pickle_value *unknown)
{
    att_pickle_text module, name;
    names_of_unknown(pickle, unknown, &module, &name);
    return att_pickle_refuse_name(pickle, module, name);
}

/* --- opaque objects ----------------------------------------------------------------------------------------------- */

static const att_pickle_value *class_of(const att_pickle *pickle, const att_pickle_value *opaque)
{
    return att_pickle_at(pickle, pickle->cells[opaque->cells.first].value);
}

bool att_pickle_is_unsupported_tensor(const att_pickle *pickle, const att_pickle_value *value, const char **what)
{
    const att_pickle_value *class = class_of(pickle, value);
    if (class->kind != ATT_PICKLE_GLOBAL || class->global->action != UNSUPPORTED_TENSOR)
        return false;
    *what = class->global->what;
    return true;
}

bool att_pickle_is_inert(const att_pickle *pickle, const att_pickle_value *value)
{
    const att_pickle_value *class = class_of(pickle, value);
    return class->kind == ATT_PICKLE_GLOBAL &&
           (class->global->action == OPAQUE_INERT || class->global->action == ENCODE);
}

att_pickle_text att_pickle_class_name(const att_pickle *pickle, const att_pickle_value *value)
{
    const att_pickle_value *class = class_of(pickle, value);
    if (class->kind == ATT_PICKLE_GLOBAL)
        return (att_pickle_text){class->global->name, strlen(class->global->name)};
    att_pickle_text module, name;
    names_of_unknown(pickle, class, &module, &name);
    return name;
}

/* Whether a class that is not in the list is one of a TorchScript program, whose objects have no code of their own. */
static bool is_script_class(const att_pickle *pickle, const att_pickle_value *class)
{
    static const char scope[] = "__torch__";
    const size_t length = sizeof scope - 1;
    att_pickle_text module, name;
    if (class->kind != ATT_PICKLE_UNKNOWN)
        return false;
    names_of_unknown(pickle, class, &module, &name);
    return module.length >= length && memcmp(module.bytes, scope, length) == 0 &&
           (module.length == length || module.bytes[length] == '.');
}

bool att_pickle_script_state(const att_pickle *pickle, att_pickle_ref *ref)
{
    const att_pickle_value *value = att_pickle_at(pickle, *ref);
    if (value->kind != ATT_PICKLE_OPAQUE || !is_script_class(pickle, class_of(pickle, value)))
        return false;
    const att_pickle_ref state = pickle->cells[value->cells.last].value;
    if (att_pickle_at(pickle, state)->kind != ATT_PICKLE_DICT)
        return false;
    *ref = state;
    return true;
}

/* Makes an OPAQUE value. class: a GLOBAL or UNKNOWN value. */
static att_status make_object(att_pickle *pickle, att_pickle_ref class, att_pickle_ref *result)
{
    ATT_TRY(att_pickle_add(pickle, (att_pickle_value){.kind = ATT_PICKLE_OPAQUE}, result));
    return att_pickle_append(pickle, *result, class);
}

static att_status make_opaque(att_pickle *pickle, const att_pickle_global *global, att_pickle_ref *result)
{
    att_pickle_ref class;
    ATT_TRY(att_pickle_add(pickle, (att_pickle_value){.kind = ATT_PICKLE_GLOBAL, .global = global}, &class));
    return make_object(pickle, class, result);
}

att_status att_pickle_make_set(att_pickle *pickle, att_pickle_ref *result)
{
    return make_opaque(pickle, &set, result);
}

/* --- tensors ------------------------------------------------------------------------------------------------------ */

enum { STORAGE_ITEM, OFFSET_ITEM, SIZE_ITEM, STRIDE_ITEM, DTYPE_ITEM = 6, MOST_ARGUMENTS = 8 };

/* The arguments of a call. `count` may exceed MOST_ARGUMENTS; only the first MOST_ARGUMENTS are stored. */
typedef struct arguments {
    const att_pickle_value *items[MOST_ARGUMENTS];
    att_pickle_ref refs[MOST_ARGUMENTS];
    uint32_t count;
} arguments;

static att_status take_arguments(const att_pickle *pickle, att_pickle_ref tuple, arguments *taken)
{
    const att_pickle_value *value = att_pickle_at(pickle, tuple);
    if (value->kind != ATT_PICKLE_TUPLE)
        return att_pickle_refuse(pickle, "a call whose arguments are not a tuple");
    taken->count = att_pickle_items(pickle, value, taken->refs, MOST_ARGUMENTS);
    for (uint32_t i = 0; i < taken->count && i < MOST_ARGUMENTS; i++)
        taken->items[i] = att_pickle_at(pickle, taken->refs[i]);
    return ATT_OK;
}

static bool is_count(const att_pickle_value *value)
{
    return value->kind == ATT_PICKLE_INT && value->number >= 0;
}

/* Reads a tuple of numbers >= 0 and returns its length, or -1 if it is another value. Items beyond ATT_MAX_RANK are
 * only counted. */
static int64_t take_dims(const att_pickle *pickle, const att_pickle_value *tuple, int64_t dims[ATT_MAX_RANK])
{
    att_pickle_ref refs[ATT_MAX_RANK];
    if (tuple->kind != ATT_PICKLE_TUPLE && tuple->kind != ATT_PICKLE_LIST)
        return -1;
    uint32_t count = att_pickle_items(pickle, tuple, refs, ATT_MAX_RANK);
    for (uint32_t i = 0; i < count && i < ATT_MAX_RANK; i++) {
        const att_pickle_value *value = att_pickle_at(pickle, refs[i]);
        if (!is_count(value))
            return -1;
        dims[i] = value->number;
    }
    return count;
}

static att_status add_tensor(att_pickle *pickle, const att_pickle_tensor *tensor, att_pickle_ref *result)
{
    if (!att_list_grow(pickle->context, &pickle->tensors, pickle->tensor_count, &pickle->tensor_capacity,
                       sizeof *tensor))
        return att_fail_memory(pickle->context, (size_t)pickle->tensor_count * 2 * sizeof *tensor, pickle->path);
    att_pickle_value value = {.kind = ATT_PICKLE_TENSOR, .index = (uint32_t)pickle->tensor_count};
    pickle->tensors[pickle->tensor_count++] = *tensor;
    return att_pickle_add(pickle, value, result);
}

/* Returns whether the tensor is a lazily conjugated or negated view, which PyTorch records in a dictionary, the
 * argument at index `metadata`. */
static bool is_lazy_view(const arguments *given, uint32_t metadata)
{
    return given->count > metadata && given->items[metadata]->kind == ATT_PICKLE_DICT &&
           given->items[metadata]->cells.count > 0;
}

static bool is_unsupported(const att_pickle *pickle, const att_pickle_value *value)
{
    const char *what;
    return value->kind == ATT_PICKLE_OPAQUE && att_pickle_is_unsupported_tensor(pickle, value, &what);
}

/* Makes a tensor. dtype: NULL for the dtype of the storage. metadata: see is_lazy_view(). */
static att_status rebuild(att_pickle *pickle, const arguments *given, const att_pickle_value *dtype, uint32_t metadata,
                          att_pickle_ref *result)
{
    static const char wrong[] = "a tensor that is not (storage, offset, size, stride, ...)";
    if (given->count <= STRIDE_ITEM || given->count > metadata + 1)
        return att_pickle_refuse(pickle, wrong);
    const att_pickle_value *storage = given->items[STORAGE_ITEM];
    if (is_unsupported(pickle, storage)) {
        *result = given->refs[STORAGE_ITEM];
        return ATT_OK;
    }
    if (storage->kind != ATT_PICKLE_STORAGE || !is_count(given->items[OFFSET_ITEM]))
        return att_pickle_refuse(pickle, wrong);
    const att_pickle_storage *bytes = &pickle->storages[storage->index];
    att_pickle_tensor tensor = {
        .storage = storage->index, .dtype = bytes->dtype, .offset = given->items[OFFSET_ITEM]->number};
    int64_t rank = take_dims(pickle, given->items[SIZE_ITEM], tensor.shape.dims);
    if (rank < 0 || take_dims(pickle, given->items[STRIDE_ITEM], tensor.strides) != rank)
        return att_pickle_refuse(pickle,
                                 "a tensor whose size and strides are not tuples of equal length of numbers >= 0");
    if (rank > ATT_MAX_RANK)
        return make_opaque(pickle, &too_many_dimensions, result);
    if (is_lazy_view(given, metadata))
        return make_opaque(pickle, &lazy_view, result);
    tensor.shape.rank = (int)rank;
    if (!dtype && !bytes->typed)
        return att_pickle_refuse(pickle, "a tensor without a dtype");
    if (dtype && bytes->typed && dtype->global->dtype != bytes->dtype)
        return att_pickle_refuse(pickle, "a tensor whose dtype differs from that of its storage");
    if (dtype)
        tensor.dtype = dtype->global->dtype;
    return add_tensor(pickle, &tensor, result);
}

static att_status rebuild_typed(att_pickle *pickle, const arguments *given, att_pickle_ref *result)
{
    if (given->count > DTYPE_ITEM && given->items[DTYPE_ITEM]->kind == ATT_PICKLE_UNKNOWN)
        return refuse_unknown(pickle, given->items[DTYPE_ITEM]);
    if (given->count <= DTYPE_ITEM || given->items[DTYPE_ITEM]->kind != ATT_PICKLE_GLOBAL)
        return att_pickle_refuse(pickle, "a tensor without a dtype");
    const att_pickle_value *dtype = given->items[DTYPE_ITEM];
    if (dtype->global->action == UNSUPPORTED_TENSOR)
        return make_opaque(pickle, dtype->global, result);
    if (dtype->global->action != DTYPE)
        return att_pickle_refuse(pickle, "a tensor without a dtype");
    return rebuild(pickle, given, dtype, DTYPE_ITEM + 1, result);
}

static att_status take_first(const att_pickle *pickle, const arguments *given, att_pickle_ref *result)
{
    if (given->count == 0 || (given->items[0]->kind != ATT_PICKLE_TENSOR && !is_unsupported(pickle, given->items[0])))
        return att_pickle_refuse(pickle, "a parameter without a tensor");
    *result = given->refs[0];
    return ATT_OK;
}

/* --- containers --------------------------------------------------------------------------------------------------- */

/* Adds a list of pairs to a dictionary. Python 2 writes an OrderedDict as such a list. */
static att_status add_pairs(att_pickle *pickle, att_pickle_ref list, att_pickle_ref dict)
{
    uint32_t cell = pickle->values[list].cells.first, count = pickle->values[list].cells.count;
    for (uint32_t i = 0; i < count; i++, cell = pickle->cells[cell].next) {
        const att_pickle_value *pair = att_pickle_at(pickle, pickle->cells[cell].value);
        att_pickle_ref items[2];
        if ((pair->kind != ATT_PICKLE_LIST && pair->kind != ATT_PICKLE_TUPLE) ||
            att_pickle_items(pickle, pair, items, 2) != 2)
            return att_pickle_refuse(pickle, "a dictionary that is not made from pairs");
        ATT_TRY(att_pickle_append(pickle, dict, items[0]));
        ATT_TRY(att_pickle_append(pickle, dict, items[1]));
    }
    return ATT_OK;
}

static att_status make_dict(att_pickle *pickle, const arguments *given, att_pickle_ref *result)
{
    bool has_pairs = given->count == 1 && given->items[0]->kind == ATT_PICKLE_LIST;
    att_pickle_ref pairs = given->refs[0];
    ATT_TRY(att_pickle_add(pickle, (att_pickle_value){.kind = ATT_PICKLE_DICT}, result));
    return has_pairs ? add_pairs(pickle, pairs, *result) : ATT_OK;
}

static att_status make_tuple(const att_pickle *pickle, const arguments *given, att_pickle_ref *result)
{
    if (given->count != 1 || (given->items[0]->kind != ATT_PICKLE_TUPLE && given->items[0]->kind != ATT_PICKLE_LIST))
        return att_pickle_refuse(pickle, "a size that is not a tuple");
    *result = given->refs[0];
    return ATT_OK;
}

/* --- bytes -------------------------------------------------------------------------------------------------------- */

static bool is_ascii(att_pickle_text text)
{
    for (size_t i = 0; i < text.length; i++)
        if ((uint8_t)text.bytes[i] >= 0x80)
            return false;
    return true;
}

/* Returns whether encoding the text gives the same bytes as its UTF-8. In protocol 2, Python 3 writes bytes as a call
 * that encodes a text in Latin-1. */
static bool is_own_encoding(const arguments *given)
{
    return given->count == 2 && given->items[0]->kind == ATT_PICKLE_TEXT &&
           att_pickle_text_is(given->items[1], "latin1") && is_ascii(given->items[0]->text);
}

static att_status make_bytes(att_pickle *pickle, const arguments *given, att_pickle_ref *result)
{
    att_pickle_value value = *given->items[0];
    value.is_bytes = true;
    return att_pickle_add(pickle, value, result);
}

/* --- calls -------------------------------------------------------------------------------------------------------- */

/* Makes an OPAQUE value. tuple: the arguments of the call. */
static att_status make_call(att_pickle *pickle, const att_pickle_global *global, att_pickle_ref tuple,
                            att_pickle_ref *result)
{
    ATT_TRY(make_opaque(pickle, global, result));
    return att_pickle_append(pickle, *result, tuple);
}

static att_status call(att_pickle *pickle, const att_pickle_global *global, att_pickle_ref tuple,
                       att_pickle_ref *result)
{
    arguments given = {.count = 0};
    ATT_TRY(take_arguments(pickle, tuple, &given));
    switch (global->action) {
    case OPAQUE_INERT:
    case OPAQUE_ANY:
    case UNSUPPORTED_TENSOR:
        return make_call(pickle, global, tuple, result);
    case ENCODE:
        return is_own_encoding(&given) ? make_bytes(pickle, &given, result) : make_call(pickle, global, tuple, result);
    case MAKE_DICT:
        return make_dict(pickle, &given, result);
    case MAKE_TUPLE:
        return make_tuple(pickle, &given, result);
    case TENSOR:
        return rebuild(pickle, &given, NULL, DTYPE_ITEM, result);
    case TENSOR_OF_TYPE:
        return rebuild_typed(pickle, &given, result);
    case FIRST_ARGUMENT:
        return take_first(pickle, &given, result);
    default:
        return att_pickle_refuse(pickle, "a call of a value that is not a function");
    }
}

/* Makes a tensor that has additional attributes, which are ignored. */
static att_status call_from_type(att_pickle *pickle, att_pickle_ref tuple, att_pickle_ref *result)
{
    arguments given = {.count = 0};
    ATT_TRY(take_arguments(pickle, tuple, &given));
    if (given.count != 4 || given.items[0]->kind != ATT_PICKLE_GLOBAL)
        return att_pickle_refuse(pickle, "a tensor without a function that rebuilds it");
    return call(pickle, given.items[0]->global, given.refs[2], result);
}

/* Handles a call of a name that is not in the list: makes an OPAQUE value if it is a class, and fails if it is a
 * function. */
static att_status call_unknown(att_pickle *pickle, att_pickle_ref function, att_pickle_ref tuple,
                               att_pickle_ref *result)
{
    att_pickle_text module, name;
    names_of_unknown(pickle, att_pickle_at(pickle, function), &module, &name);
    if (!is_class_name(name) && !is_script_class(pickle, att_pickle_at(pickle, function)))
        return att_pickle_refuse_name(pickle, module, name);
    ATT_TRY(make_object(pickle, function, result));
    return att_pickle_append(pickle, *result, tuple);
}

att_status att_pickle_call(att_pickle *pickle, att_pickle_ref function, att_pickle_ref tuple, att_pickle_ref *result)
{
    const att_pickle_value *callee = att_pickle_at(pickle, function);
    if (callee->kind == ATT_PICKLE_UNKNOWN)
        return call_unknown(pickle, function, tuple, result);
    if (callee->kind != ATT_PICKLE_GLOBAL)
        return att_pickle_refuse(pickle, "a call of a value that is not a function");
    if (callee->global->action == CALL_FUNCTION)
        return call_from_type(pickle, tuple, result);
    return call(pickle, callee->global, tuple, result);
}

/* --- storages ----------------------------------------------------------------------------------------------------- */

/* Reads (key, offset, size), the description of a view of another storage before PyTorch 1.0. */
static att_status take_view(const att_pickle *pickle, const att_pickle_value *view, att_pickle_storage *storage)
{
    att_pickle_ref items[3];
    if (view->kind == ATT_PICKLE_NONE)
        return ATT_OK;
    if (view->kind != ATT_PICKLE_TUPLE || att_pickle_items(pickle, view, items, 3) != 3 ||
        !is_count(att_pickle_at(pickle, items[1])))
        return att_pickle_refuse(pickle, "a part of a storage that is not (key, offset, size)");
    storage->view_offset = att_pickle_at(pickle, items[1])->number;
    return ATT_OK;
}

/* The id is ("storage", type, key, location, elements), with a view as sixth item before PyTorch 1.6. Then there was
 * also ("module", class, file, text), the class of a network that was saved whole, with its code, which is not read. */
att_status att_pickle_persistent(att_pickle *pickle, att_pickle_ref id, att_pickle_ref *result)
{
    enum { WORD, TYPE, KEY, LOCATION, ELEMENTS, VIEW };
    arguments given = {.count = 0};
    ATT_TRY(take_arguments(pickle, id, &given));
    if (given.count > TYPE && att_pickle_text_is(given.items[WORD], "module") &&
        (given.items[TYPE]->kind == ATT_PICKLE_UNKNOWN || given.items[TYPE]->kind == ATT_PICKLE_GLOBAL)) {
        *result = given.refs[TYPE];
        return ATT_OK;
    }
    if (given.count > TYPE && given.items[TYPE]->kind == ATT_PICKLE_UNKNOWN)
        return refuse_unknown(pickle, given.items[TYPE]);
    if (given.count <= ELEMENTS || given.count > VIEW + 1 || !att_pickle_text_is(given.items[WORD], "storage") ||
        given.items[TYPE]->kind != ATT_PICKLE_GLOBAL || given.items[KEY]->kind != ATT_PICKLE_TEXT ||
        !is_count(given.items[ELEMENTS]))
        return att_pickle_refuse(pickle, "a storage that is not (\"storage\", type, key, location, elements)");
    const att_pickle_global *type = given.items[TYPE]->global;
    if (type->action == UNSUPPORTED_TENSOR)
        return make_opaque(pickle, type, result);
    if (type->action != STORAGE && type->action != BYTES)
        return att_pickle_refuse(pickle, "a storage of an unknown type");
    att_pickle_storage storage = {.key = given.items[KEY]->text,
                                  .typed = type->action == STORAGE,
                                  .dtype = type->dtype,
                                  .count = given.items[ELEMENTS]->number};
    if (given.count > VIEW)
        ATT_TRY(take_view(pickle, given.items[VIEW], &storage));
    if (!att_list_grow(pickle->context, &pickle->storages, pickle->storage_count, &pickle->storage_capacity,
                       sizeof storage))
        return att_fail_memory(pickle->context, (size_t)pickle->storage_count * 2 * sizeof storage, pickle->path);
    att_pickle_value value = {.kind = ATT_PICKLE_STORAGE, .index = (uint32_t)pickle->storage_count};
    pickle->storages[pickle->storage_count++] = storage;
    return att_pickle_add(pickle, value, result);
}
