#include "data/splits.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/core/error.h"
#include "data/dataset.h"

static const char *const any_split[ATT_SPLITS + 1] = {"train", "training", "val",     "validation",
                                                      "valid", "test",     "testing", NULL};
static const char *const train_splits[] = {"train", "training", NULL};
static const char *const val_splits[] = {"val", "validation", "valid", "test", "testing", NULL};
static const char *const test_splits[] = {"test", "testing", "val", "validation", "valid", NULL};

static const struct {
    const char *wanted;
    const char *const *names;
} wanted_splits[] = {{"train", train_splits},    {"training", train_splits}, {"val", val_splits},
                     {"validation", val_splits}, {"valid", val_splits},      {"test", test_splits},
                     {"testing", test_splits}};

const char *const *att_split_names(const char *wanted)
{
    if (!wanted)
        return any_split;
    for (size_t i = 0; i < sizeof wanted_splits / sizeof *wanted_splits; i++)
        if (strcasecmp(wanted, wanted_splits[i].wanted) == 0)
            return wanted_splits[i].names;
    return NULL;
}

att_status att_split_unknown(att_context *context, const char *wanted)
{
    return att_fail(context, ATT_ERR_ARGUMENT,
                    "unknown split \"%s\"; expected train, training, val, valid, validation, test or testing, or a "
                    ".tar in the data set's folder",
                    wanted);
}

/* --- names -------------------------------------------------------------------------------------------------------- */

/* Returns where the word begins in the name; NULL if it is no word of it. */
static const char *find_word(const char *name, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = name; *at;) {
        size_t size = 0;
        while (isalpha((unsigned char)at[size]))
            size++;
        if (size == length && strncasecmp(at, word, length) == 0)
            return at;
        at += size > 0 ? size : 1;
    }
    return NULL;
}

bool att_split_is_word(const char *name, const char *split)
{
    return find_word(name, split) != NULL;
}

/* Finds the split whose name the text has as a word. Returns its number; -1 if there is none, or several. */
static int find_split(const char *name, att_split *found)
{
    int number = -1;
    for (int i = 0; i < ATT_SPLITS; i++) {
        const char *word = find_word(name, any_split[i]);
        if (!word)
            continue;
        if (number >= 0)
            return -1;
        number = i;
        *found = (att_split){.split = any_split[i], .begin = (size_t)(word - name), .length = strlen(any_split[i])};
    }
    if (number >= 0)
        snprintf(found->name, sizeof found->name, "%s", name);
    return number;
}

static bool is_equal(const att_split *split)
{
    return split->begin == 0 && split->name[split->length] == '\0';
}

bool att_split_is_name(const char *name)
{
    att_split found;
    return strlen(name) < ATT_SPLIT_NAME && find_split(name, &found) >= 0 && is_equal(&found);
}

/* Whether the names differ only in the word. */
static bool differ_in_word(const att_split *a, const att_split *b)
{
    return a->begin == b->begin && strncasecmp(a->name, b->name, a->begin) == 0 &&
           strcasecmp(a->name + a->begin + a->length, b->name + b->begin + b->length) == 0;
}

bool att_split_are_all(const char *const *names, int count)
{
    att_split first = {.split = NULL}, found;
    for (int i = 0; i < count; i++) {
        if (strlen(names[i]) >= ATT_SPLIT_NAME || find_split(names[i], i == 0 ? &first : &found) < 0)
            return false;
        if (i > 0 && !differ_in_word(&first, &found))
            return false;
    }
    return count > 1 || (count == 1 && is_equal(&first));
}

/* --- the splits of a data set ------------------------------------------------------------------------------------- */

/* Copies a name. Returns false for a name that is too long for one of a split. */
static bool copy_name(const char *name, size_t length, char copy[ATT_SPLIT_NAME])
{
    if (length >= ATT_SPLIT_NAME)
        return false;
    memcpy(copy, name, length);
    copy[length] = '\0';
    return true;
}

void att_splits_add(att_splits *splits, const char *name, size_t length)
{
    char copy[ATT_SPLIT_NAME];
    att_split found;
    int number = copy_name(name, length, copy) ? find_split(copy, &found) : -1;
    if (number < 0)
        return;
    att_split *place = is_equal(&found) ? &splits->equal[number] : &splits->word[number];
    if (!place->split) {
        *place = found;
    } else if (strcmp(copy, place->name) < 0) {
        memcpy(found.other, *place->other ? place->other : place->name, sizeof found.other);
        *place = found;
    } else if (strcmp(copy, place->name) > 0 && strcmp(copy, place->other) > 0) {
        memcpy(place->other, copy, sizeof copy);
    }
}

void att_splits_add_flat(att_splits *splits, const char *name, size_t length)
{
    char copy[ATT_SPLIT_NAME];
    att_split found;
    int number = copy_name(name, length, copy) ? find_split(copy, &found) : -1;
    if (number >= 0 && is_equal(&found))
        memcpy(splits->flat[number], copy, sizeof copy);
}

void att_splits_scan(att_splits *splits, const char *folder, bool (*holds_classes)(const char *path))
{
    DIR *entries = opendir(folder);
    for (struct dirent *entry; entries && (entry = readdir(entries));) {
        char path[ATT_DATA_MAX_NAME];
        att_split found;
        int length = snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (*entry->d_name == '.' || length < 0 || (size_t)length >= sizeof path ||
            find_split(entry->d_name, &found) < 0 || !att_is_folder(path))
            continue;
        if (holds_classes(path))
            att_splits_add(splits, entry->d_name, strlen(entry->d_name));
        else
            att_splits_add_flat(splits, entry->d_name, strlen(entry->d_name));
    }
    if (entries)
        closedir(entries);
}

static bool has_equal(const att_splits *splits)
{
    for (int i = 0; i < ATT_SPLITS; i++)
        if (splits->equal[i].split)
            return true;
    return false;
}

/* Whether a name of the one split differs only in the word from a name of the other. */
static bool are_counterparts(const att_split *a, const att_split *b)
{
    const char *const of_a[] = {a->name, a->other}, *const of_b[] = {b->name, b->other};
    for (int i = 0; i < 4; i++) {
        att_split x, y;
        if (find_split(of_a[i / 2], &x) >= 0 && find_split(of_b[i % 2], &y) >= 0 && differ_in_word(&x, &y))
            return true;
    }
    return false;
}

/* Whether another split has a name that differs only in the word. */
static bool has_counterpart(const att_splits *splits, int number)
{
    for (int i = 0; i < ATT_SPLITS; i++)
        if (i != number && splits->word[i].split && are_counterparts(&splits->word[i], &splits->word[number]))
            return true;
    return false;
}

static bool is_split(const att_splits *splits, bool equal, int number)
{
    return equal ? splits->equal[number].split != NULL
                 : splits->word[number].split && (splits->words || has_counterpart(splits, number));
}

static int number_of(const char *split)
{
    int i = 0;
    while (strcmp(any_split[i], split) != 0)
        i++;
    return i;
}

const att_split *att_splits_find(const att_splits *splits, const char *const *names)
{
    const bool equal = has_equal(splits);
    for (; *names; names++) {
        const int i = number_of(*names);
        if (is_split(splits, equal, i))
            return equal ? &splits->equal[i] : &splits->word[i];
    }
    return NULL;
}

/* Returns a split with two names of which the split's name is only a word; NULL if there is none. */
static const att_split *find_ambiguous(const att_splits *splits)
{
    for (int i = 0; i < ATT_SPLITS && !has_equal(splits); i++)
        if (*splits->word[i].other && is_split(splits, false, i))
            return &splits->word[i];
    return NULL;
}

const char *att_splits_flat(const att_splits *splits, const char *wanted)
{
    for (const char *const *names = att_split_names(wanted); *names; names++)
        if (*splits->flat[number_of(*names)])
            return splits->flat[number_of(*names)];
    return NULL;
}

att_status att_splits_choose(const att_splits *splits, att_context *context, const char *path, const char *wanted,
                             const att_split **found)
{
    const att_split *ambiguous = wanted ? NULL : find_ambiguous(splits);
    *found = ambiguous ? ambiguous : att_splits_find(splits, att_split_names(wanted));
    if (!*found || !*(*found)->other)
        return ATT_OK;
    return att_fail(
        context, ATT_ERR_FORMAT,
        "%s: the names \"%s\" and \"%s\" can both be the split \"%s\"; expected one of them: open one by its own "
        "path, or rename the other",
        path, (*found)->name, (*found)->other, (*found)->split);
}
