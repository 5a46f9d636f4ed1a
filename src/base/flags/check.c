/* Values that a program stored in the struct of a table. */
#include <stdio.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/memory.h"
#include "base/flags/flags.h"

enum { WHERE = 128 };

/* Writes "--batch-size (train.batch_size)". */
static void name_row(const att_flags *flags, int row, char where[WHERE])
{
    const att_flag *flag = &flags->rows[row];
    const char *owner = flags->groups[row]->owner;
    if (flag->member)
        snprintf(where, WHERE, "--%s (%s%s%s)", flag->name, owner ? owner : "", owner ? "." : "", flag->member);
    else
        snprintf(where, WHERE, "--%s", flag->name);
}

/* Checks the count of a list, because att_flag_format() reads as many numbers as the count says. */
static att_status check_count(const att_flags *flags, const att_flag *flag, const char *where, const void *at)
{
    int count = 0, most = flag->kind == ATT_FLAG_TEXTS ? ATT_MOST_TEXTS : att_flag_numbers(flag);
    if (flag->kind == ATT_FLAG_REALS)
        count = ((const att_reals *)at)->count;
    else if (flag->kind == ATT_FLAG_INTS)
        count = att_flag_ints_count(flag, at);
    else if (flag->kind == ATT_FLAG_TEXTS)
        count = ((const att_texts *)at)->count;
    if (count >= 0 && count <= most)
        return ATT_OK;
    return att_fail(flags->context, ATT_ERR_ARGUMENT, "%s: its count is %d, expected 0 to %d", where, count, most);
}

/* Formats the value as text and stores the text in *scratch as if it came from a flag, so that the same checks apply.
 */
static att_status check_row(const att_flags *flags, int row, const void *values, void *scratch)
{
    const att_flag *flag = &flags->rows[row];
    const att_named_flag named = {flag, flags->offsets[row] + flag->offset, false};
    const void *at = (const char *)values + named.at, *start = (const char *)flags->defaults + named.at;
    char where[WHERE], numbers[ATT_MOST_REALS][ATT_FLAG_VALUE_BYTES];
    const char *texts[ATT_MOST_REALS];
    name_row(flags, row, where);
    ATT_TRY(check_count(flags, flag, where, at));
    /* NaN means "not given" only if the default is not given either. */
    bool needed = flag->kind == ATT_FLAG_REAL && !flag->open && att_flag_is_given(flag, start);
    if (!needed && !att_flag_is_given(flag, at))
        return ATT_OK;
    int count = att_flag_texts(flag, at, numbers, texts);
    if (att_flag_is_text(flag) && !*texts[0])
        return ATT_OK;
    return att_flags_store(flags, &named, where, texts, count, scratch);
}

static void fill_text(const att_flags *flags, int row, void *values)
{
    const att_flag *flag = &flags->rows[row];
    size_t at = flags->offsets[row] + flag->offset;
    const char **text = (const char **)((char *)values + at);
    if (flag->kind == ATT_FLAG_TEXT && (!*text || (!**text && !flag->empty)))
        *text = *(const char *const *)((const char *)flags->defaults + at);
}

/* Checks every row. scratch: a copy of the values, which is overwritten. */
static att_status check_rows(const att_flags *flags, const void *values, void *scratch)
{
    for (int i = 0; i < flags->count; i++)
        ATT_TRY(check_row(flags, i, values, scratch));
    return ATT_OK;
}

att_status att_flags_check_values(const att_flags *flags, const void *values)
{
    size_t size = flags->options.size;
    void *scratch = att_allocate(flags->context, size);
    if (!scratch)
        return att_fail_memory(flags->context, size, "the values of flags");
    memcpy(scratch, values, size);
    att_status status = check_rows(flags, values, scratch);
    att_free(flags->context, scratch);
    return status;
}

att_status att_flags_check(const att_flags *flags, void *values)
{
    ATT_TRY(att_flags_check_values(flags, values));
    for (int i = 0; i < flags->count; i++)
        fill_text(flags, i, values);
    return ATT_OK;
}
