#include "networks/layouts/pattern.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

static bool take_number(const char **name, int less, att_captured *found)
{
    int number = 0, digits = 0;
    for (; isdigit((unsigned char)**name) && digits < 6; ++*name, digits++)
        number = 10 * number + (**name - '0');
    if (digits == 0 || number < less || found->count == ATT_PATTERN_NUMBERS)
        return false;
    found->numbers[found->count++] = number - less;
    return true;
}

bool att_pattern_matches(const char *pattern, const char *name, att_captured *found)
{
    *found = (att_captured){.count = 0};
    for (; *pattern; pattern++) {
        if (*pattern == '*' || *pattern == '@') {
            found->text = name;
            return *pattern == '*' || (*name && !strchr(name, '.'));
        }
        const bool number = *pattern == '#' || *pattern == '+';
        if (number ? !take_number(&name, *pattern == '+', found) : *pattern != *name++)
            return false;
    }
    return *name == '\0';
}

void att_pattern_name(const char *pattern, const att_captured *found, char name[ATT_PATTERN_NAME])
{
    size_t length = 0;
    int number = 0;
    for (; *pattern && length < ATT_PATTERN_NAME - 1; pattern++) {
        const size_t room = ATT_PATTERN_NAME - length;
        if (*pattern == '#' || *pattern == '+')
            length += (size_t)snprintf(name + length, room, "%d", found->numbers[number++] + (*pattern == '+'));
        else if (*pattern == '@' || *pattern == '*')
            length += (size_t)snprintf(name + length, room, "%s", found->text);
        else
            name[length++] = *pattern;
    }
    name[length < ATT_PATTERN_NAME ? length : ATT_PATTERN_NAME - 1] = '\0';
}
