#include "data/text/members.h"

#include <stdio.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/text.h"

static bool is_known(const char *const *keys, const char *key)
{
    for (; *keys; keys++)
        if (strcmp(*keys, key) == 0)
            return true;
    return strcmp(key, "type") == 0;
}

att_status att_part_check(const att_part *part, const char *const *keys)
{
    const char *key;
    json_t *value;
    if (!json_is_object(part->object))
        return att_part_fail(part, ATT_ERR_FORMAT, "expected %s", "an object in {}");
    json_object_foreach((json_t *)part->object, key, value)
    {
        if (!is_known(keys, key))
            return att_part_fail(part, ATT_ERR_UNSUPPORTED, "the setting \"%s\" is not supported", key);
    }
    return ATT_OK;
}

/* Returns the member; NULL if it is missing or null. */
static const json_t *member_of(const att_part *part, const char *key)
{
    const json_t *value = json_object_get(part->object, key);
    return json_is_null(value) ? NULL : value;
}

att_status att_part_flag(const att_part *part, const char *key, bool otherwise, bool *flag)
{
    const json_t *value = member_of(part, key);
    if (value && !json_is_boolean(value))
        return att_part_fail(part, ATT_ERR_FORMAT, "\"%s\" must be true or false", key);
    *flag = value ? json_is_true(value) : otherwise;
    return ATT_OK;
}

att_status att_part_number(const att_part *part, const char *key, int low, int high, int otherwise, int *number)
{
    const json_t *value = member_of(part, key);
    const json_int_t found = value ? json_integer_value(value) : otherwise;
    if ((value && !json_is_integer(value)) || found < low || found > high)
        return att_part_fail(part, ATT_ERR_FORMAT, "\"%s\" must be a whole number from %d to %d", key, low, high);
    *number = (int)found;
    return ATT_OK;
}

att_status att_part_text(const att_part *part, const char *key, const char *otherwise, const char **text)
{
    const json_t *value = member_of(part, key);
    *text = value ? json_string_value(value) : otherwise;
    return *text ? ATT_OK : att_part_fail(part, ATT_ERR_FORMAT, "\"%s\" must be a text", key);
}

const char *att_part_type(const att_part *part)
{
    const char *type = json_string_value(json_object_get(part->object, "type"));
    return type ? type : "";
}

att_status att_part_unknown(const att_part *part, const void *kinds, size_t size, size_t count)
{
    att_text known = {.context = part->context};
    att_status status;
    for (size_t i = 0; i < count; i++) {
        const char *name;
        memcpy(&name, (const char *)kinds + i * size, sizeof name);
        att_text_append(&known, "%s%s", i > 0 ? ", " : "", name);
    }
    status = known.failed
                 ? att_fail_memory(part->context, known.length, "a message")
                 : att_part_fail(part, ATT_ERR_UNSUPPORTED, "the type \"%s\" is not supported; those that are: %s",
                                 att_part_type(part), known.data);
    att_text_free(&known);
    return status;
}

att_part att_part_member(const att_part *part, const char *key, const char *name)
{
    att_part member = *part;
    member.name = name;
    member.object = json_object_get(part->object, key);
    if (json_is_null(member.object))
        member.object = NULL;
    return member;
}

static att_status each_element(const att_part *part, const att_part_steps *steps)
{
    const json_t *list = json_object_get(part->object, steps->list);
    ATT_TRY(att_part_check(part, (const char *const[]){steps->list, NULL}));
    if (!json_is_array(list))
        return att_part_fail(part, ATT_ERR_FORMAT, "\"%s\" must be an array", steps->list);
    for (size_t i = 0; i < json_array_size(list); i++) {
        char name[256];
        att_part element = *part;
        snprintf(name, sizeof name, "%s[%zu]", part->name, i);
        element.name = name;
        element.object = json_array_get(list, i);
        ATT_TRY(att_part_each_step(&element, steps));
    }
    return ATT_OK;
}

att_status att_part_each_step(const att_part *part, const att_part_steps *steps)
{
    const char *type = att_part_type(part);
    for (size_t i = 0; i < steps->count; i++) {
        const char *name;
        memcpy(&name, (const char *)steps->kinds + i * steps->size, sizeof name);
        if (strcmp(name, type) == 0)
            return steps->add(part, i, steps->user);
    }
    if (strcmp(type, "Sequence") == 0)
        return each_element(part, steps);
    return att_part_unknown(part, steps->kinds, steps->size, steps->count);
}
