/* Removes duplicate keys from dictionaries as Python does: the key keeps its first position and gets its last value. */
#include <stdlib.h>

#include "base/core/error.h"
#include "base/core/memory.h"
#include "base/io/pickle.h"

typedef struct pair {
    const att_pickle_value *key;
    uint32_t cell;   /* the key's cell; the next cell is the value's */
    uint32_t number; /* position of the pair in its dictionary */
} pair;

static bool is_number(const att_pickle_value *key)
{
    return key->kind == ATT_PICKLE_INT || key->kind == ATT_PICKLE_BOOL;
}

/* Compares keys as Python does: True equals 1, and bytes differ from str. Keys of other kinds are never looked up, so
 * they count as different from each other. */
static int compare_keys(const att_pickle_value *a, const att_pickle_value *b)
{
    if (is_number(a) && is_number(b))
        return (a->number > b->number) - (a->number < b->number);
    if (a->kind != b->kind)
        return (a->kind > b->kind) - (a->kind < b->kind);
    if (a->kind != ATT_PICKLE_TEXT)
        return (a > b) - (a < b);
    return a->is_bytes != b->is_bytes ? a->is_bytes - b->is_bytes : att_pickle_text_compare(a->text, b->text);
}

static int compare_numbers(const void *a, const void *b)
{
    const pair *left = a, *right = b;
    return (left->number > right->number) - (left->number < right->number);
}

static int compare_pairs(const void *a, const void *b)
{
    int order = compare_keys(((const pair *)a)->key, ((const pair *)b)->key);
    return order != 0 ? order : compare_numbers(a, b);
}

static void list_pairs(const att_pickle *pickle, const att_pickle_value *dict, pair *pairs)
{
    uint32_t cell = dict->cells.first;
    for (uint32_t i = 0; i < dict->cells.count / 2; i++) {
        pairs[i] = (pair){att_pickle_at(pickle, pickle->cells[cell].value), cell, i};
        cell = pickle->cells[pickle->cells[cell].next].next;
    }
}

/* Keeps only the first pair of each key and gives it the value of the last pair. `pairs` is sorted by key and position.
 * Returns the number of pairs kept. */
static uint32_t merge_duplicates(att_pickle *pickle, pair *pairs, uint32_t count)
{
    uint32_t kept = 0;
    att_pickle_cell *cells = pickle->cells;
    for (uint32_t i = 0; i < count; i++) {
        if (kept > 0 && compare_keys(pairs[kept - 1].key, pairs[i].key) == 0)
            cells[cells[pairs[kept - 1].cell].next].value = cells[cells[pairs[i].cell].next].value;
        else
            pairs[kept++] = pairs[i];
    }
    return kept;
}

static void relink(att_pickle *pickle, att_pickle_value *dict, const pair *pairs, uint32_t count)
{
    dict->cells.first = pairs[0].cell;
    dict->cells.last = pickle->cells[pairs[count - 1].cell].next;
    dict->cells.count = 2 * count;
    for (uint32_t i = 0; i + 1 < count; i++)
        pickle->cells[pickle->cells[pairs[i].cell].next].next = pairs[i + 1].cell;
}

static att_status remove_duplicates(att_pickle *pickle, att_pickle_value *dict)
{
    uint32_t count = dict->cells.count / 2;
    pair *pairs;
    ATT_TRY(att_new(pickle->context, &pairs, count, pickle->path));
    list_pairs(pickle, dict, pairs);
    qsort(pairs, count, sizeof *pairs, compare_pairs);
    uint32_t kept = merge_duplicates(pickle, pairs, count);
    if (kept < count) {
        qsort(pairs, kept, sizeof *pairs, compare_numbers);
        relink(pickle, dict, pairs, kept);
    }
    att_free(pickle->context, pairs);
    return ATT_OK;
}

att_status att_pickle_unique_keys(att_pickle *pickle, int first)
{
    for (int i = first; i < pickle->value_count; i++)
        if (pickle->values[i].kind == ATT_PICKLE_DICT && pickle->values[i].cells.count > 2)
            ATT_TRY(remove_duplicates(pickle, &pickle->values[i]));
    return ATT_OK;
}
