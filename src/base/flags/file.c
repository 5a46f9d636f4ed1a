/* Flags in YAML files. */
#include <stdio.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/memory.h"
#include "base/flags/flags.h"
#include "base/flags/unknown.h"
#include "base/flags/unsupported_flags.h"
#include "base/io/yaml.h"

/* --- reading ------------------------------------------------------------------------------------------------------ */

/* Checks the value of an entry of timm's files that has no effect in attscope, and adds it to `ignored`. */
static att_status skip_ignored(const att_flags *flags, const char *path, const att_yaml_entry *entry,
                               att_ignored_flags *ignored)
{
    if (!att_unsupported_flag_accepts(entry->key, entry->values[0]))
        return att_fail(flags->context, ATT_ERR_ARGUMENT, "%.400s, line %d: %s must be true or false", path,
                        entry->line, entry->key);
    if (ignored)
        att_unsupported_flag_ignore(ignored, entry->key);
    return ATT_OK;
}

static att_status store_entry(const att_flags *flags, const char *path, const att_yaml_entry *entry, void *values,
                              att_unknown_flags *unknown, att_ignored_flags *ignored)
{
    att_named_flag named = att_flags_by_name(flags, entry->key);
    char where[600], expected[ATT_FLAG_VALUE_BYTES];
    if (!named.flag && att_unsupported_entry_is_off(entry->key, entry->values, entry->value_count))
        return ATT_OK;
    if (!named.flag && att_unsupported_flag_takes(entry->key) != ATT_TAKES_UNKNOWN)
        return skip_ignored(flags, path, entry, ignored);
    if (!named.flag || named.flag->once) {
        att_unknown_flags_add(unknown, "", entry->key, entry->line);
        return ATT_OK;
    }
    if (entry->kind == ATT_YAML_NULL)
        return ATT_OK;
    snprintf(where, sizeof where, "%.400s, line %d: %s", path, entry->line, entry->key);
    if (entry->kind == ATT_YAML_LIST && att_flag_numbers(named.flag) < 2)
        return att_fail(flags->context, ATT_ERR_ARGUMENT, "%s: a list is not %s", where,
                        att_flag_describe(named.flag, expected));
    return att_flags_store(flags, &named, where, entry->values, entry->value_count, values);
}

att_status att_flags_read(const att_flags *flags, const char *path, const att_yaml *yaml, void *values,
                          att_ignored_flags *ignored)
{
    att_unknown_flags unknown = {.file = path};
    for (int i = 0; i < att_yaml_count(yaml); i++) {
        att_yaml_entry entry = att_yaml_at(yaml, i);
        ATT_TRY(store_entry(flags, path, &entry, values, &unknown, ignored));
    }
    ATT_TRY(att_unknown_flags_refuse(flags, &unknown));
    return att_flags_merge(flags, values);
}

/* --- writing ------------------------------------------------------------------------------------------------------ */

/* The texts of one entry. */
typedef struct line {
    char key[64];
    char numbers[ATT_MOST_REALS][ATT_FLAG_VALUE_BYTES];
    const char *texts[ATT_MOST_REALS];
} line;

static att_yaml_entry make_entry(const att_flag_place *place, const void *values, line *l)
{
    const att_flag *flag = place->flag;
    snprintf(l->key, sizeof l->key, "%s", flag->name);
    for (char *c = l->key; *c; c++)
        if (*c == '-')
            *c = '_';
    int count = att_flag_format(place, values, l->numbers, l->texts);
    bool is_list = count > 1 || (count == 1 && att_flag_is_list(flag));
    return (att_yaml_entry){.key = l->key,
                            .kind = count == 0 ? ATT_YAML_NULL
                                    : is_list  ? ATT_YAML_LIST
                                               : ATT_YAML_SCALAR,
                            .values = l->texts,
                            .value_count = count,
                            .text = att_flag_is_text(flag)};
}

att_status att_flags_write(const att_flags *flags, const void *values, const char *path)
{
    ATT_TRY(att_flags_check_values(flags, values));
    att_yaml_entry *entries = att_allocate_array(flags->context, (size_t)flags->count, sizeof *entries);
    line *lines = att_allocate_array(flags->context, (size_t)flags->count, sizeof *lines);
    att_status status = ATT_OK;
    int count = 0;
    if (!entries || !lines)
        status = att_fail_memory(flags->context, (size_t)flags->count * sizeof *lines, path);
    for (int i = 0; status == ATT_OK && i < flags->count; i++) {
        att_flag_place place = att_flags_at(flags, i);
        if (place.flag->once)
            continue;
        entries[count] = make_entry(&place, values, &lines[count]);
        count++;
    }
    if (status == ATT_OK)
        status = att_yaml_write(flags->context, path, entries, count);
    att_free(flags->context, lines);
    att_free(flags->context, entries);
    return status;
}
