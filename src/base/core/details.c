#include "base/core/details.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/core/catalog.h"
#include "base/core/error.h"
#include "base/core/text.h"

/* --- declarations ------------------------------------------------------------------------------------------------- */

static att_status refuse(att_context *context, const att_detail_owner *owner, const char *what)
{
    return att_fail(context, ATT_ERR_ARGUMENT, "%s \"%s\": %s", owner->kind, owner->name, what);
}

static att_status refuse_option(att_context *context, const att_detail_owner *owner, const att_detail *option,
                                const char *what)
{
    return att_fail(context, ATT_ERR_ARGUMENT, "%s \"%s\", option \"%s\": %s", owner->kind, owner->name, option->name,
                    what);
}

/* Returns the number of choices; -1 if a choice cannot be written as a value. */
static int count_choices(const char *const *choices)
{
    int count = 0;
    for (; choices[count]; count++)
        if (!choices[count][0] || choices[count][strcspn(choices[count], ":,=@+ \t\n")])
            return -1;
    return count;
}

static att_status check_choices(att_context *context, const att_detail_owner *owner, const att_detail *option)
{
    int count = count_choices(option->choices);
    if (count < 1)
        return refuse_option(context, owner, option, "its choices must be texts without blanks and \":,=@+\"");
    if (option->low != 0 || option->high != count - 1 || option->start != floor(option->start))
        return refuse_option(context, owner, option,
                             "low, high and start must be indices of choices: 0, that of the last, and the default's");
    return ATT_OK;
}

static att_status check_option(att_context *context, const att_detail_owner *owner, int index)
{
    const att_detail *option = &owner->options[index];
    if (!att_name_is_valid(option->name))
        return refuse(context, owner,
                      "each option needs a name of 1 to 23 letters, digits and underscores, the first a letter");
    for (int i = 0; i < index; i++)
        if (strcmp(owner->options[i].name, option->name) == 0)
            return refuse_option(context, owner, option, "there are two of this name");
    if (!option->meaning)
        return refuse_option(context, owner, option, "it has no `meaning`");
    if (!(isfinite(option->low) && isfinite(option->high) && option->low <= option->start &&
          option->start <= option->high))
        return refuse_option(context, owner, option, "low <= start <= high must hold, all finite");
    return option->choices ? check_choices(context, owner, option) : ATT_OK;
}

att_status att_details_check(att_context *context, const att_detail_owner *owner, int most)
{
    char what[64];
    snprintf(what, sizeof what, "`option_count` must be in 0..%d", most);
    if (owner->count < 0 || owner->count > most)
        return refuse(context, owner, what);
    for (int i = 0; i < owner->count; i++)
        ATT_TRY(check_option(context, owner, i));
    return ATT_OK;
}

/* --- values ------------------------------------------------------------------------------------------------------- */

void att_details_start(const att_detail_owner *owner, double *values)
{
    for (int i = 0; i < owner->count; i++)
        values[i] = owner->options[i].start;
}

static const char *option_name(const void *user, int index)
{
    return ((const att_detail *)user)[index].name;
}

static const char *choice_name(const void *user, int index)
{
    return ((const att_detail *)user)->choices[index];
}

static att_status read_choice(att_context *context, const att_detail_owner *owner, const att_detail *option,
                              const char *text, double *value)
{
    int count = 0;
    for (; option->choices[count]; count++)
        if (strcmp(option->choices[count], text) == 0) {
            *value = count;
            return ATT_OK;
        }
    const char *nearest = att_text_nearest(text, choice_name, option, count);
    if (nearest)
        return att_fail(context, ATT_ERR_ARGUMENT, "%s %s: %s cannot be \"%s\"; did you mean \"%s\"?", owner->kind,
                        owner->name, option->name, text, nearest);
    char names[128] = "";
    for (int i = 0; i < count; i++)
        snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", i ? ", " : "", option->choices[i]);
    return att_fail(context, ATT_ERR_ARGUMENT, "%s %s: %s cannot be \"%s\", only %s", owner->kind, owner->name,
                    option->name, text, names);
}

static att_status read_number(att_context *context, const att_detail_owner *owner, const att_detail *option,
                              const char *text, double *value)
{
    double number;
    if (!att_text_to_f64(text, &number))
        return att_fail(context, ATT_ERR_ARGUMENT, "%s %s: %s must be a number, not \"%s\"", owner->kind, owner->name,
                        option->name, text);
    if (number < option->low || number > option->high)
        return att_fail(context, ATT_ERR_ARGUMENT, "%s %s: %s must be in %.10g..%.10g, not %g", owner->kind,
                        owner->name, option->name, option->low, option->high, number);
    if (option->whole && number != floor(number))
        return att_fail(context, ATT_ERR_ARGUMENT, "%s %s: %s must be a whole number, not %g", owner->kind, owner->name,
                        option->name, number);
    *value = number;
    return ATT_OK;
}

static att_status fail_option(att_context *context, const att_detail_owner *owner, const char *name)
{
    const char *nearest = att_text_nearest(name, option_name, owner->options, owner->count);
    if (owner->count == 0)
        return att_fail(context, ATT_ERR_ARGUMENT, "%s %s has no options, and so no \"%s\"", owner->kind, owner->name,
                        name);
    if (nearest)
        return att_fail(context, ATT_ERR_ARGUMENT, "%s %s has no option \"%s\"; did you mean \"%s\"?", owner->kind,
                        owner->name, name, nearest);
    char names[128] = "";
    for (int i = 0; i < owner->count; i++)
        snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", i ? ", " : "", owner->options[i].name);
    return att_fail(context, ATT_ERR_ARGUMENT, "%s %s has no option \"%s\", only %s", owner->kind, owner->name, name,
                    names);
}

/* Returns the option that has this choice; NULL if none has. */
static const att_detail *option_with_choice(const att_detail_owner *owner, const char *text)
{
    for (int i = 0; i < owner->count; i++)
        for (const char *const *choice = owner->options[i].choices; choice && *choice; choice++)
            if (strcmp(*choice, text) == 0)
                return &owner->options[i];
    return NULL;
}

static att_status fail_assignment(att_context *context, const att_detail_owner *owner, const char *text)
{
    const att_detail *option = option_with_choice(owner, text);
    if (option)
        return att_fail(context, ATT_ERR_ARGUMENT, "%s %s: \"%s\" is not option=value; did you mean \"%s=%s\"?",
                        owner->kind, owner->name, text, option->name, text);
    return att_fail(context, ATT_ERR_ARGUMENT, "%s %s: \"%s\" is not option=value", owner->kind, owner->name, text);
}

att_status att_detail_set(att_context *context, const att_detail_owner *owner, char *text, bool *given, double *values)
{
    char *equals = strchr(text, '=');
    if (!equals)
        return fail_assignment(context, owner, text);
    *equals = '\0';
    for (int i = 0; i < owner->count; i++) {
        const att_detail *option = &owner->options[i];
        if (strcmp(option->name, text) != 0)
            continue;
        if (given[i])
            return att_fail(context, ATT_ERR_ARGUMENT, "%s %s: %s is given twice", owner->kind, owner->name, text);
        given[i] = true;
        return (option->choices ? read_choice : read_number)(context, owner, option, equals + 1, &values[i]);
    }
    return fail_option(context, owner, text);
}
