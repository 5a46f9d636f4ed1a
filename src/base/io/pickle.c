#include "base/io/pickle.h"

#include <string.h>

#include "base/core/error.h"
#include "base/core/memory.h"

enum { MOST_VALUES = 1 << 24, HIGHEST_PROTOCOL = 5 };

/* --- values ------------------------------------------------------------------------------------------------------- */

att_status att_pickle_refuse(const att_pickle *pickle, const char *what)
{
    return att_fail(pickle->context, ATT_ERR_FORMAT, "%s: byte %zu of its pickle: %s", pickle->path, pickle->at, what);
}

/* Makes room for one more item in a list. */
static att_status grow(att_pickle *pickle, void *items_at, int count, int *capacity, size_t size)
{
    if (count >= MOST_VALUES)
        return att_fail(pickle->context, ATT_ERR_UNSUPPORTED, "%s: its pickle has more than %d values", pickle->path,
                        (int)MOST_VALUES);
    if (!att_list_grow(pickle->context, items_at, count, capacity, size))
        return att_fail_memory(pickle->context, (size_t)count * 2 * size, pickle->path);
    return ATT_OK;
}

#define GROW(pickle, list) \
    grow(pickle, &(pickle)->list##s, (pickle)->list##_count, &(pickle)->list##_capacity, sizeof *(pickle)->list##s)

att_status att_pickle_add(att_pickle *pickle, att_pickle_value value, att_pickle_ref *ref)
{
    ATT_TRY(GROW(pickle, value));
    *ref = (att_pickle_ref)pickle->value_count;
    pickle->values[pickle->value_count++] = value;
    return ATT_OK;
}

att_status att_pickle_append(att_pickle *pickle, att_pickle_ref container, att_pickle_ref item)
{
    ATT_TRY(GROW(pickle, cell));
    uint32_t cell = (uint32_t)pickle->cell_count++;
    att_pickle_value *value = &pickle->values[container];
    pickle->cells[cell] = (att_pickle_cell){.value = item};
    if (value->cells.count++ == 0)
        value->cells.first = cell;
    else
        pickle->cells[value->cells.last].next = cell;
    value->cells.last = cell;
    return ATT_OK;
}

uint32_t att_pickle_items(const att_pickle *pickle, const att_pickle_value *value, att_pickle_ref *items, uint32_t most)
{
    uint32_t cell = value->cells.first;
    for (uint32_t i = 0; i < value->cells.count && i < most; i++, cell = pickle->cells[cell].next)
        items[i] = pickle->cells[cell].value;
    return value->cells.count;
}

int att_pickle_text_compare(att_pickle_text a, att_pickle_text b)
{
    int order = memcmp(a.bytes, b.bytes, a.length < b.length ? a.length : b.length);
    return order != 0 ? order : (a.length > b.length) - (a.length < b.length);
}

bool att_pickle_text_is(const att_pickle_value *value, const char *text)
{
    size_t length = strlen(text);
    return value->kind == ATT_PICKLE_TEXT && value->text.length == length &&
           memcmp(value->text.bytes, text, length) == 0;
}

bool att_pickle_find(const att_pickle *pickle, att_pickle_ref dict, const char *key, att_pickle_ref *found)
{
    const att_pickle_value *value = att_pickle_at(pickle, dict);
    const att_pickle_cell *cells = pickle->cells;
    if (value->kind != ATT_PICKLE_DICT)
        return false;
    uint32_t cell = value->cells.first;
    bool has_bytes = false;
    for (uint32_t i = 0; i + 1 < value->cells.count; i += 2, cell = cells[cells[cell].next].next) {
        const att_pickle_value *name = att_pickle_at(pickle, cells[cell].value);
        if (!att_pickle_text_is(name, key))
            continue;
        *found = cells[cells[cell].next].value;
        if (!name->is_bytes)
            return true;
        has_bytes = true;
    }
    return has_bytes;
}

char *att_pickle_show(att_pickle_text text, char shown[ATT_PICKLE_SHOWN])
{
    enum { MOST = 80 };
    size_t length = text.length < MOST ? text.length : MOST;
    for (size_t i = 0; i < length; i++) {
        char c = text.bytes[i];
        shown[i] = (char)(c >= ' ' && c <= '~' ? c : '?');
    }
    strcpy(shown + length, text.length > MOST ? "..." : "");
    return shown;
}

/* --- the stack ---------------------------------------------------------------------------------------------------- */

static att_status push(att_pickle *pickle, att_pickle_ref ref)
{
    ATT_TRY(grow(pickle, &pickle->stack, pickle->stack_count, &pickle->stack_capacity, sizeof *pickle->stack));
    pickle->stack[pickle->stack_count++] = ref;
    return ATT_OK;
}

static att_status push_value(att_pickle *pickle, att_pickle_value value)
{
    att_pickle_ref ref;
    ATT_TRY(att_pickle_add(pickle, value, &ref));
    return push(pickle, ref);
}

/* Number of values on the stack above the last mark. */
static int depth(const att_pickle *pickle)
{
    return pickle->stack_count - (pickle->mark_count ? pickle->marks[pickle->mark_count - 1] : 0);
}

static att_status need_values(const att_pickle *pickle, int count)
{
    return depth(pickle) >= count ? ATT_OK
                                  : att_pickle_refuse(pickle, "an opcode needs more values than are on the stack");
}

static att_pickle_ref pop(att_pickle *pickle)
{
    return pickle->stack[--pickle->stack_count];
}

static att_pickle_ref top(const att_pickle *pickle)
{
    return pickle->stack[pickle->stack_count - 1];
}

/* Removes the last mark. *first: position on the stack of the first value above it. */
static att_status pop_mark(att_pickle *pickle, int *first)
{
    if (pickle->mark_count == 0)
        return att_pickle_refuse(pickle, "an opcode needs a mark, but there is none");
    *first = pickle->marks[--pickle->mark_count];
    return ATT_OK;
}

/* --- bytes -------------------------------------------------------------------------------------------------------- */

static att_status fail_truncated(att_pickle *pickle)
{
    pickle->truncated = true;
    return att_pickle_refuse(pickle, "truncated");
}

static att_status read_bytes(att_pickle *pickle, uint64_t count, const uint8_t **bytes)
{
    if (count > pickle->size - pickle->at)
        return fail_truncated(pickle);
    *bytes = pickle->bytes + pickle->at;
    pickle->at += (size_t)count;
    return ATT_OK;
}

/* Reads an unsigned little-endian number of `count` bytes. */
static att_status read_number(att_pickle *pickle, int count, uint64_t *number)
{
    const uint8_t *bytes;
    ATT_TRY(read_bytes(pickle, (uint64_t)count, &bytes));
    *number = 0;
    for (int i = count; i-- > 0;)
        *number = *number << 8 | bytes[i];
    return ATT_OK;
}

static att_status read_line(att_pickle *pickle, att_pickle_text *line)
{
    const uint8_t *begin = pickle->bytes + pickle->at;
    const uint8_t *end = memchr(begin, '\n', pickle->size - pickle->at);
    if (!end)
        return fail_truncated(pickle);
    *line = (att_pickle_text){(const char *)begin, (size_t)(end - begin)};
    pickle->at += line->length + 1;
    return ATT_OK;
}

/* Defines the function of an opcode that consists of one call. */
#define OPERATION(name, call)                       \
    static att_status op_##name(att_pickle *pickle) \
    {                                               \
        return call;                                \
    }

/* --- numbers and texts -------------------------------------------------------------------------------------------- */

static att_status push_integer(att_pickle *pickle, int64_t number)
{
    return push_value(pickle, (att_pickle_value){.kind = ATT_PICKLE_INT, .number = number});
}

OPERATION(none, push_value(pickle, (att_pickle_value){.kind = ATT_PICKLE_NONE}))
OPERATION(true, push_value(pickle, (att_pickle_value){.kind = ATT_PICKLE_BOOL, .number = 1}))
OPERATION(false, push_value(pickle, (att_pickle_value){.kind = ATT_PICKLE_BOOL}))

static att_status push_unsigned(att_pickle *pickle, int bytes)
{
    uint64_t number;
    ATT_TRY(read_number(pickle, bytes, &number));
    return push_integer(pickle, (int64_t)number);
}

OPERATION(binint1, push_unsigned(pickle, 1))
OPERATION(binint2, push_unsigned(pickle, 2))

static att_status op_binint(att_pickle *pickle)
{
    uint64_t number;
    ATT_TRY(read_number(pickle, 4, &number));
    return push_integer(pickle, (int64_t)number - (number >> 31 ? (int64_t)1 << 32 : 0));
}

/* Reads a length of `bytes` bytes, then a two's complement number of that length. */
static att_status push_long(att_pickle *pickle, int bytes)
{
    uint64_t length;
    const uint8_t *digits;
    ATT_TRY(read_number(pickle, bytes, &length));
    ATT_TRY(read_bytes(pickle, length, &digits));
    if (length > sizeof(int64_t))
        return push_value(pickle,
                          (att_pickle_value){.kind = ATT_PICKLE_LONG, .text = {(const char *)digits, (size_t)length}});
    uint64_t number = length > 0 && digits[length - 1] & 0x80 ? UINT64_MAX : 0;
    for (size_t i = (size_t)length; i-- > 0;)
        number = number << 8 | digits[i];
    int64_t value;
    memcpy(&value, &number, sizeof value);
    return push_integer(pickle, value);
}

OPERATION(long1, push_long(pickle, 1))
OPERATION(long4, push_long(pickle, 4))

static att_status op_binfloat(att_pickle *pickle)
{
    const uint8_t *bytes;
    ATT_TRY(read_bytes(pickle, 8, &bytes));
    uint64_t bits = 0;
    for (int i = 0; i < 8; i++)
        bits = bits << 8 | bytes[i];
    att_pickle_value value = {.kind = ATT_PICKLE_REAL};
    memcpy(&value.real, &bits, sizeof value.real);
    return push_value(pickle, value);
}

/* Reads a length of `bytes` bytes, then a text of that length. */
static att_status push_text(att_pickle *pickle, int bytes, bool is_bytes)
{
    uint64_t length;
    const uint8_t *text;
    ATT_TRY(read_number(pickle, bytes, &length));
    ATT_TRY(read_bytes(pickle, length, &text));
    return push_value(pickle, (att_pickle_value){.kind = ATT_PICKLE_TEXT,
                                                 .is_bytes = is_bytes,
                                                 .text = {(const char *)text, (size_t)length}});
}

OPERATION(text1, push_text(pickle, 1, false))
OPERATION(text4, push_text(pickle, 4, false))
OPERATION(text8, push_text(pickle, 8, false))
OPERATION(bytes1, push_text(pickle, 1, true))
OPERATION(bytes4, push_text(pickle, 4, true))
OPERATION(bytes8, push_text(pickle, 8, true))

/* --- containers --------------------------------------------------------------------------------------------------- */

static att_status op_mark(att_pickle *pickle)
{
    ATT_TRY(GROW(pickle, mark));
    pickle->marks[pickle->mark_count++] = pickle->stack_count;
    return ATT_OK;
}

static att_status op_pop(att_pickle *pickle)
{
    int first;
    if (depth(pickle) == 0)
        return pop_mark(pickle, &first);
    pop(pickle);
    return ATT_OK;
}

static att_status op_pop_mark(att_pickle *pickle)
{
    int first;
    ATT_TRY(pop_mark(pickle, &first));
    pickle->stack_count = first;
    return ATT_OK;
}

static att_status op_dup(att_pickle *pickle)
{
    ATT_TRY(need_values(pickle, 1));
    return push(pickle, top(pickle));
}

/* Moves the values from position `first` of the stack into a container. */
static att_status move_into(att_pickle *pickle, att_pickle_ref container, int first)
{
    for (int i = first; i < pickle->stack_count; i++)
        ATT_TRY(att_pickle_append(pickle, container, pickle->stack[i]));
    pickle->stack_count = first;
    return ATT_OK;
}

static att_status push_container(att_pickle *pickle, att_pickle_kind kind, int first)
{
    att_pickle_ref container;
    ATT_TRY(att_pickle_add(pickle, (att_pickle_value){.kind = kind}, &container));
    ATT_TRY(move_into(pickle, container, first));
    return push(pickle, container);
}

static att_status push_empty(att_pickle *pickle, att_pickle_kind kind)
{
    return push_value(pickle, (att_pickle_value){.kind = kind});
}

static att_status push_marked(att_pickle *pickle, att_pickle_kind kind)
{
    int first;
    ATT_TRY(pop_mark(pickle, &first));
    return push_container(pickle, kind, first);
}

static att_status push_tuple(att_pickle *pickle, int count)
{
    ATT_TRY(need_values(pickle, count));
    return push_container(pickle, ATT_PICKLE_TUPLE, pickle->stack_count - count);
}

OPERATION(empty_tuple, push_empty(pickle, ATT_PICKLE_TUPLE))
OPERATION(tuple, push_marked(pickle, ATT_PICKLE_TUPLE))
OPERATION(tuple1, push_tuple(pickle, 1))
OPERATION(tuple2, push_tuple(pickle, 2))
OPERATION(tuple3, push_tuple(pickle, 3))
OPERATION(empty_list, push_empty(pickle, ATT_PICKLE_LIST))
OPERATION(list, push_marked(pickle, ATT_PICKLE_LIST))
OPERATION(empty_dict, push_empty(pickle, ATT_PICKLE_DICT))

static att_status op_empty_set(att_pickle *pickle)
{
    att_pickle_ref set;
    ATT_TRY(att_pickle_make_set(pickle, &set));
    return push(pickle, set);
}

static att_status op_frozenset(att_pickle *pickle)
{
    int first;
    att_pickle_ref set;
    ATT_TRY(pop_mark(pickle, &first));
    ATT_TRY(att_pickle_make_set(pickle, &set));
    ATT_TRY(move_into(pickle, set, first));
    return push(pickle, set);
}

/* Moves the values from position `first` of the stack into the container below them. */
static att_status add_items(att_pickle *pickle, att_pickle_kind kind, int first)
{
    int floor = pickle->mark_count ? pickle->marks[pickle->mark_count - 1] : 0;
    if (first <= floor)
        return att_pickle_refuse(pickle, "an opcode adds items, but there is no container");
    att_pickle_ref container = pickle->stack[first - 1];
    att_pickle_kind found = pickle->values[container].kind;
    if (found != kind && found != ATT_PICKLE_OPAQUE)
        return att_pickle_refuse(pickle, "an opcode adds items to a value that is not a container");
    if (kind == ATT_PICKLE_DICT && (pickle->stack_count - first) % 2 != 0)
        return att_pickle_refuse(pickle, "a key without a value");
    return move_into(pickle, container, first);
}

static att_status add_marked_items(att_pickle *pickle, att_pickle_kind kind)
{
    int first;
    ATT_TRY(pop_mark(pickle, &first));
    return add_items(pickle, kind, first);
}

static att_status op_append(att_pickle *pickle)
{
    ATT_TRY(need_values(pickle, 2));
    return add_items(pickle, ATT_PICKLE_LIST, pickle->stack_count - 1);
}

OPERATION(appends, add_marked_items(pickle, ATT_PICKLE_LIST))

static att_status op_setitem(att_pickle *pickle)
{
    ATT_TRY(need_values(pickle, 3));
    return add_items(pickle, ATT_PICKLE_DICT, pickle->stack_count - 2);
}

OPERATION(setitems, add_marked_items(pickle, ATT_PICKLE_DICT))

static att_status op_dict(att_pickle *pickle)
{
    int first;
    ATT_TRY(pop_mark(pickle, &first));
    if ((pickle->stack_count - first) % 2 != 0)
        return att_pickle_refuse(pickle, "a key without a value");
    return push_container(pickle, ATT_PICKLE_DICT, first);
}

OPERATION(additems, add_marked_items(pickle, ATT_PICKLE_OPAQUE))

/* --- the memo ----------------------------------------------------------------------------------------------------- */

/* Stores the top of the stack in the memo. Python numbers memo entries consecutively and writes an opcode for each, so
 * no entry number exceeds the size of the pickle. */
static att_status store_memo(att_pickle *pickle, uint64_t place)
{
    ATT_TRY(need_values(pickle, 1));
    if (place > pickle->size)
        return att_pickle_refuse(pickle, "a memo index is beyond the length of the pickle");
    while ((uint64_t)pickle->memo_count <= place) {
        ATT_TRY(grow(pickle, &pickle->memo, pickle->memo_count, &pickle->memo_capacity, sizeof *pickle->memo));
        pickle->memo[pickle->memo_count++] = UINT32_MAX;
    }
    pickle->memo[place] = top(pickle);
    return ATT_OK;
}

static att_status load_memo(att_pickle *pickle, int bytes)
{
    uint64_t place;
    ATT_TRY(read_number(pickle, bytes, &place));
    if (place >= (uint64_t)pickle->memo_count || pickle->memo[place] == UINT32_MAX)
        return att_pickle_refuse(pickle, "an opcode reads a memo entry that is not set");
    return push(pickle, pickle->memo[place]);
}

static att_status op_binput(att_pickle *pickle)
{
    uint64_t place;
    ATT_TRY(read_number(pickle, 1, &place));
    return store_memo(pickle, place);
}

static att_status op_long_binput(att_pickle *pickle)
{
    uint64_t place;
    ATT_TRY(read_number(pickle, 4, &place));
    return store_memo(pickle, place);
}

OPERATION(memoize, store_memo(pickle, (uint64_t)pickle->memo_count))
OPERATION(binget, load_memo(pickle, 1))
OPERATION(long_binget, load_memo(pickle, 4))

/* --- names and calls ---------------------------------------------------------------------------------------------- */

static att_status append_text(att_pickle *pickle, att_pickle_ref container, att_pickle_text text)
{
    att_pickle_ref ref;
    ATT_TRY(att_pickle_add(pickle, (att_pickle_value){.kind = ATT_PICKLE_TEXT, .text = text}, &ref));
    return att_pickle_append(pickle, container, ref);
}

static att_status push_unknown(att_pickle *pickle, att_pickle_text module, att_pickle_text name)
{
    att_pickle_ref ref;
    if (!att_pickle_may_be_named(module, name))
        return att_pickle_refuse_name(pickle, module, name);
    ATT_TRY(att_pickle_add(pickle, (att_pickle_value){.kind = ATT_PICKLE_UNKNOWN}, &ref));
    ATT_TRY(append_text(pickle, ref, module));
    ATT_TRY(append_text(pickle, ref, name));
    return push(pickle, ref);
}

static att_status push_global(att_pickle *pickle, att_pickle_text module, att_pickle_text name)
{
    const att_pickle_global *global = att_pickle_global_find(module, name);
    if (!global)
        return push_unknown(pickle, module, name);
    return push_value(pickle, (att_pickle_value){.kind = ATT_PICKLE_GLOBAL, .global = global});
}

static att_status op_global(att_pickle *pickle)
{
    att_pickle_text module, name;
    ATT_TRY(read_line(pickle, &module));
    ATT_TRY(read_line(pickle, &name));
    return push_global(pickle, module, name);
}

static att_status op_stack_global(att_pickle *pickle)
{
    ATT_TRY(need_values(pickle, 2));
    const att_pickle_value *name = att_pickle_at(pickle, pop(pickle)), *module = att_pickle_at(pickle, pop(pickle));
    if (name->kind != ATT_PICKLE_TEXT || module->kind != ATT_PICKLE_TEXT)
        return att_pickle_refuse(pickle, "a name that is not a text");
    return push_global(pickle, module->text, name->text);
}

/* REDUCE calls a function or class, NEWOBJ makes an object of a class. Both have the same effect here. */
static att_status op_call(att_pickle *pickle)
{
    ATT_TRY(need_values(pickle, 2));
    att_pickle_ref arguments = pop(pickle), function = pop(pickle), result;
    ATT_TRY(att_pickle_call(pickle, function, arguments, &result));
    return push(pickle, result);
}

static att_status op_newobj_ex(att_pickle *pickle)
{
    ATT_TRY(need_values(pickle, 3));
    pop(pickle); /* keyword arguments */
    return op_call(pickle);
}

/* Sets an object's state: added to the cells of an OPAQUE value, ignored for a DICT (OrderedDict). */
static att_status op_build(att_pickle *pickle)
{
    ATT_TRY(need_values(pickle, 2));
    att_pickle_ref state = pop(pickle);
    att_pickle_kind kind = att_pickle_at(pickle, top(pickle))->kind;
    if (kind == ATT_PICKLE_OPAQUE)
        return att_pickle_append(pickle, top(pickle), state);
    if (kind != ATT_PICKLE_DICT)
        return att_pickle_refuse(pickle, "an opcode sets the state of a value that has none");
    return ATT_OK;
}

static att_status op_persistent(att_pickle *pickle)
{
    ATT_TRY(need_values(pickle, 1));
    att_pickle_ref result;
    ATT_TRY(att_pickle_persistent(pickle, pop(pickle), &result));
    return push(pickle, result);
}

/* --- the interpreter ---------------------------------------------------------------------------------------------- */

static att_status op_protocol(att_pickle *pickle)
{
    uint64_t protocol;
    ATT_TRY(read_number(pickle, 1, &protocol));
    return protocol <= HIGHEST_PROTOCOL ? ATT_OK : att_pickle_refuse(pickle, "protocol above 5; expected 2 to 5");
}

static att_status op_frame(att_pickle *pickle)
{
    uint64_t length;
    return read_number(pickle, 8, &length);
}

typedef att_status (*operation)(att_pickle *pickle);

enum { STOP = '.' };

static const operation operations[256] = {
    [0x80] = op_protocol,   [0x95] = op_frame,      ['('] = op_mark,          ['0'] = op_pop,
    ['1'] = op_pop_mark,    ['2'] = op_dup,         ['N'] = op_none,          [0x88] = op_true,
    [0x89] = op_false,      ['K'] = op_binint1,     ['M'] = op_binint2,       ['J'] = op_binint,
    [0x8a] = op_long1,      [0x8b] = op_long4,      ['G'] = op_binfloat,      ['U'] = op_text1, /* SHORT_BINSTRING */
    ['T'] = op_text4,                                                                           /* BINSTRING */
    [0x8c] = op_text1,                                                                          /* SHORT_BINUNICODE */
    ['X'] = op_text4,                                                                           /* BINUNICODE */
    [0x8d] = op_text8,                                                                          /* BINUNICODE8 */
    ['C'] = op_bytes1,                                                                          /* SHORT_BINBYTES */
    ['B'] = op_bytes4,                                                                          /* BINBYTES */
    [0x8e] = op_bytes8,                                                                         /* BINBYTES8 */
    [0x96] = op_bytes8,                                                                         /* BYTEARRAY8 */
    [')'] = op_empty_tuple, ['t'] = op_tuple,       [0x85] = op_tuple1,       [0x86] = op_tuple2,
    [0x87] = op_tuple3,     [']'] = op_empty_list,  ['l'] = op_list,          ['a'] = op_append,
    ['e'] = op_appends,     ['}'] = op_empty_dict,  ['d'] = op_dict,          ['s'] = op_setitem,
    ['u'] = op_setitems,    [0x8f] = op_empty_set,  [0x90] = op_additems,     [0x91] = op_frozenset,
    ['q'] = op_binput,      ['r'] = op_long_binput, [0x94] = op_memoize,      ['h'] = op_binget,
    ['j'] = op_long_binget, ['c'] = op_global,      [0x93] = op_stack_global, ['R'] = op_call,
    [0x81] = op_call, /* NEWOBJ */
    [0x92] = op_newobj_ex,  ['b'] = op_build,       ['Q'] = op_persistent,
};

/* Called at opcode STOP. */
static att_status finish(att_pickle *pickle, att_pickle_ref *root)
{
    if (pickle->stack_count != 1 || pickle->mark_count != 0)
        return att_pickle_refuse(pickle, "expected exactly one value at the end");
    *root = pop(pickle);
    return ATT_OK;
}

att_status att_pickle_read(att_pickle *pickle, const uint8_t *bytes, size_t size, att_pickle_ref *root)
{
    pickle->bytes = bytes;
    pickle->size = size;
    pickle->at = 0;
    pickle->stack_count = pickle->mark_count = pickle->memo_count = 0;
    int first = pickle->value_count;
    for (;;) {
        const uint8_t *opcode;
        ATT_TRY(att_check_stop(pickle->context, pickle->path));
        ATT_TRY(read_bytes(pickle, 1, &opcode));
        if (*opcode == STOP) {
            ATT_TRY(finish(pickle, root));
            return att_pickle_unique_keys(pickle, first);
        }
        if (!operations[*opcode])
            return att_fail(pickle->context, ATT_ERR_FORMAT,
                            "%s: byte %zu of its pickle: opcode 0x%02x is not supported: it is not in protocols 2 to "
                            "5, or runs code",
                            pickle->path, pickle->at - 1, *opcode);
        ATT_TRY(operations[*opcode](pickle));
    }
}

void att_pickle_free(att_pickle *pickle)
{
    void *const lists[] = {pickle->values, pickle->cells,    pickle->stack,  pickle->memo,
                           pickle->marks,  pickle->storages, pickle->tensors};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        att_free(pickle->context, lists[i]);
    *pickle = (att_pickle){.context = pickle->context, .path = pickle->path};
}
