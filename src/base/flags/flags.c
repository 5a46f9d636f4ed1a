#include <string.h>

#include "base/core/error.h"
#include "base/core/memory.h"
#include "base/core/options.h"
#include "base/flags/flags.h"

enum { MADE_ROWS = 2 * ATT_MOST_OPTIONS };

/* --- the table ---------------------------------------------------------------------------------------------------- */

static char *put_dashes(const char *key, char name[ATT_OPTION_KEY])
{
    size_t length = 0;
    for (; key[length] && length + 1 < ATT_OPTION_KEY; length++)
        name[length] = key[length] == '_' ? '-' : key[length];
    name[length] = '\0';
    return name;
}

att_flag att_flag_of_option(const att_option *option, size_t offset)
{
    return (att_flag){.name = option->flag ? option->flag : option->key,
                      .alias = option->alias,
                      .kind = ATT_FLAG_DECLARED,
                      .declared = option,
                      .value = option->value,
                      .help = option->help,
                      .choice = option->choice,
                      .choice_in = option->choice_in,
                      .detailed = option->detailed,
                      .offset = offset,
                      .size = sizeof(att_option_values)};
}

/* Copies at most `most` rows of a group to `rows` and returns the number of its rows. */
static int put_rows(att_context *context, const att_flag_group *group, att_flag *rows, int most)
{
    if (group->make_rows)
        return group->make_rows(context, rows, most);
    for (int i = 0; i < group->row_count && i < most; i++)
        rows[i] = group->rows[i];
    return group->row_count;
}

/* Appends those groups in `use` that have rows to uses[count..]. uses: NULL means that the groups are only counted.
 * Returns the new count. */
static int flatten(const att_flag_use *use, size_t offset, att_flag_use *uses, int count)
{
    const att_flag_group *group = use->group;
    for (int i = 0; i < group->part_count; i++)
        count = flatten(&group->parts[i], offset + use->offset, uses, count);
    if (group->parts)
        return count;
    if (uses)
        uses[count] = (att_flag_use){group, offset + use->offset};
    return count + 1;
}

static int flatten_all(const att_flags_options *options, att_flag_use *uses)
{
    int count = 0;
    for (int i = 0; i < options->use_count; i++)
        count = flatten(&options->uses[i], 0, uses, count);
    return count;
}

/* An upper bound on the rows of all groups. */
static int most_rows(const att_flags *flags)
{
    int most = 0;
    for (int i = 0; i < flags->use_count; i++)
        most += flags->uses[i].group->make_rows ? MADE_ROWS : flags->uses[i].group->row_count;
    return most;
}

static bool allocate_uses(att_flags *flags)
{
    flags->use_count = flatten_all(&flags->options, NULL);
    flags->uses = att_allocate_array(flags->context, (size_t)flags->use_count, sizeof *flags->uses);
    if (flags->uses)
        flatten_all(&flags->options, flags->uses);
    return flags->uses;
}

static bool allocate_rows(att_flags *flags)
{
    size_t most = (size_t)most_rows(flags);
    flags->rows = att_allocate_array(flags->context, most, sizeof *flags->rows);
    flags->offsets = att_allocate_array(flags->context, most, sizeof *flags->offsets);
    flags->groups = att_allocate_array(flags->context, most, sizeof *flags->groups);
    flags->names = att_allocate_array(flags->context, most, sizeof *flags->names);
    flags->defaults = att_allocate(flags->context, flags->options.size);
    return flags->rows && flags->offsets && flags->groups && flags->names && flags->defaults;
}

/* Fills the table. Names of declared options have underscores, and names of flags have dashes. */
static void fill(att_flags *flags)
{
    int most = most_rows(flags);
    for (int i = 0; i < flags->use_count; i++) {
        const att_flag_use *use = &flags->uses[i];
        int first = flags->count, made = put_rows(flags->context, use->group, flags->rows + first, most - first);
        flags->count = first + made < most ? first + made : most;
        for (int row = first; row < flags->count; row++) {
            flags->offsets[row] = use->offset;
            flags->groups[row] = use->group;
            if (flags->rows[row].kind == ATT_FLAG_DECLARED)
                flags->rows[row].name = put_dashes(flags->rows[row].name, flags->names[row]);
            att_flag_store_start(&flags->rows[row], (char *)flags->defaults + use->offset);
        }
        if (use->group->defaults)
            use->group->defaults(flags->context, (char *)flags->defaults + use->offset);
    }
}

/* A second flag with the name of another could not be set, and a file with both would be refused. Options of networks
 * and of tasks, which groups make, are compared when a network is made. */
static att_status check_names(const att_flags *flags)
{
    for (int i = 0; i < flags->count; i++)
        for (int j = 0; j < i; j++)
            if (strcmp(flags->rows[i].name, flags->rows[j].name) == 0 &&
                !(flags->groups[i]->make_rows && flags->groups[j]->make_rows))
                return att_fail(flags->context, ATT_ERR_ARGUMENT,
                                "there are two flags --%s, in the groups \"%s\" and \"%s\"", flags->rows[i].name,
                                flags->groups[j]->title, flags->groups[i]->title);
    return ATT_OK;
}

att_status att_flags_create(att_context *context, const att_flags_options *options, att_flags **flags)
{
    ATT_TRY(att_require(context, options, "the groups of a table of flags"));
    ATT_TRY(att_require(context, flags, "the place for a table of flags"));
    att_flags *made = att_allocate(context, sizeof *made);
    if (made) {
        made->context = context;
        made->options = *options;
    }
    if (!made || !allocate_uses(made) || !allocate_rows(made)) {
        att_flags_destroy(&made);
        return att_fail_memory(context, options->size, "a table of flags");
    }
    fill(made);
    const att_status status = check_names(made);
    if (status != ATT_OK)
        att_flags_destroy(&made);
    *flags = made;
    return status;
}

void att_flags_destroy(att_flags **flags)
{
    att_flags *own = *flags;
    if (!own)
        return;
    att_free(own->context, own->defaults);
    att_free(own->context, own->names);
    att_free(own->context, own->groups);
    att_free(own->context, own->offsets);
    att_free(own->context, own->rows);
    att_free(own->context, own->uses);
    att_free(own->context, own);
    *flags = NULL;
}

size_t att_flags_size(const att_flags *flags)
{
    return flags->options.size;
}

void att_flags_default(const att_flags *flags, void *values)
{
    memcpy(values, flags->defaults, flags->options.size);
}

const void *att_flags_defaults(const att_flags *flags)
{
    return flags->defaults;
}

int att_flags_count(const att_flags *flags)
{
    return flags->count;
}

att_flag_place att_flags_at(const att_flags *flags, int index)
{
    if (index < 0 || index >= flags->count)
        return (att_flag_place){0};
    return (att_flag_place){&flags->rows[index], flags->offsets[index], flags->groups[index]};
}

/* --- rows --------------------------------------------------------------------------------------------------------- */

bool att_flag_is_declared_switch(const att_flag *flag)
{
    return flag->kind == ATT_FLAG_DECLARED && flag->declared->kind == ATT_OPTION_SWITCH;
}

bool att_flag_is_truth(const att_flag *flag)
{
    return flag->kind == ATT_FLAG_SWITCH || att_flag_is_declared_switch(flag);
}

bool att_flag_is_text(const att_flag *flag)
{
    return flag->kind == ATT_FLAG_TEXT || flag->kind == ATT_FLAG_TEXTS ||
           (flag->kind == ATT_FLAG_DECLARED && flag->declared->kind == ATT_OPTION_TEXT);
}

bool att_flag_is_list(const att_flag *flag)
{
    return flag->kind == ATT_FLAG_PAIR || flag->kind == ATT_FLAG_REALS || flag->kind == ATT_FLAG_INTS;
}

int att_flag_numbers(const att_flag *flag)
{
    bool sides = flag->kind == ATT_FLAG_DECLARED && flag->declared->kind == ATT_OPTION_SIDES;
    if (flag->kind == ATT_FLAG_REALS || flag->kind == ATT_FLAG_INTS)
        return flag->most > 0 ? flag->most : 3;
    return sides || flag->kind == ATT_FLAG_PAIR ? ATT_OPTION_NUMBERS
                                                : !att_flag_is_text(flag) && !att_flag_is_truth(flag);
}

const char *att_flag_choice(const att_flag *flag, int index)
{
    const char *const *choice = flag->choices;
    if (!choice)
        return flag->choice ? flag->choice(index) : NULL;
    while (*choice && index-- > 0)
        choice++;
    return *choice;
}

bool att_flag_is_called(const char *a, const char *b)
{
    for (; *a && *b; a++, b++)
        if (*a != *b && !((*a == '_' || *a == '-') && (*b == '_' || *b == '-')))
            return false;
    return *a == *b;
}

att_named_flag att_flags_by_name(const att_flags *flags, const char *name)
{
    bool no = strncmp(name, "no-", 3) == 0 || strncmp(name, "no_", 3) == 0;
    for (int i = 0; i < flags->count; i++) {
        const att_flag *flag = &flags->rows[i];
        size_t at = flags->offsets[i] + flag->offset;
        if (att_flag_is_called(name, flag->name) || (flag->alias && att_flag_is_called(name, flag->alias)))
            return (att_named_flag){flag, at, false};
        if (no && att_flag_is_truth(flag) && att_flag_is_called(name + 3, flag->name))
            return (att_named_flag){flag, at, true};
    }
    return (att_named_flag){0};
}

att_named_flag att_flags_by_letter(const att_flags *flags, char letter)
{
    for (int i = 0; i < flags->count; i++)
        if (flags->rows[i].letter == letter)
            return (att_named_flag){&flags->rows[i], flags->offsets[i] + flags->rows[i].offset, false};
    return (att_named_flag){0};
}

att_flag_place att_flags_find(const att_flags *flags, const char *name)
{
    const att_flag *flag = att_flags_by_name(flags, name).flag;
    return flag ? att_flags_at(flags, (int)(flag - flags->rows)) : (att_flag_place){0};
}

/* --- groups ------------------------------------------------------------------------------------------------------- */

att_status att_flags_merge(const att_flags *flags, void *values)
{
    for (int i = 0; i < flags->use_count; i++) {
        const att_flag_use *use = &flags->uses[i];
        if (use->group->merge)
            ATT_TRY(use->group->merge(flags->context, (char *)values + use->offset));
    }
    return ATT_OK;
}

att_status att_flags_complete(const att_flags *flags, void *values)
{
    for (int i = 0; i < flags->use_count; i++) {
        const att_flag_use *use = &flags->uses[i];
        if (use->group->complete)
            ATT_TRY(use->group->complete(flags->context, (char *)values + use->offset));
    }
    return ATT_OK;
}

/* --- comparing ---------------------------------------------------------------------------------------------------- */

bool att_flag_same(const att_flag_place *place, const void *a, const void *b)
{
    char own[ATT_MOST_REALS][ATT_FLAG_VALUE_BYTES], other[ATT_MOST_REALS][ATT_FLAG_VALUE_BYTES];
    const char *texts[ATT_MOST_REALS], *others[ATT_MOST_REALS];
    const int count = att_flag_format(place, a, own, texts);
    bool same = count == att_flag_format(place, b, other, others);
    for (int i = 0; same && i < count; i++)
        same = strcmp(texts[i], others[i]) == 0;
    return same;
}

bool att_flags_same(const att_flags *flags, const void *a, const void *b)
{
    bool same = true;
    for (int i = 0; same && i < flags->count; i++) {
        const att_flag_place place = att_flags_at(flags, i);
        same = place.flag->once || att_flag_same(&place, a, b);
    }
    return same;
}
