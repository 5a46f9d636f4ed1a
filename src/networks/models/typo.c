#include "networks/models/typo.h"

#include <string.h>

#include "networks/models/family.h"
#include "networks/models/timm.h"

enum { MOST_RUNS = 24, NAME_BYTES = 128, FAMILY_LETTERS = 6, WORD_LETTERS = 4, SIZE_DIGITS = 3, SIZE_RUN = 4 };

/* A run of letters or of digits in a name. */
typedef struct run {
    char text[32];
    bool is_number;
} run;

typedef struct runs {
    run items[MOST_RUNS];
    int count;
} runs;

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool is_letter(char c)
{
    return lower(c) >= 'a' && lower(c) <= 'z';
}

/* Splits a name into runs; returns false if there are more or longer runs than a name of a network has. */
static bool split(const char *name, size_t length, runs *all)
{
    all->count = 0;
    for (size_t i = 0; i < length;) {
        if (!is_digit(name[i]) && !is_letter(name[i])) {
            i++;
            continue;
        }
        bool number = is_digit(name[i]);
        size_t end = i;
        while (end < length && (number ? is_digit(name[end]) : is_letter(name[end])))
            end++;
        if (all->count == MOST_RUNS || end - i >= sizeof all->items->text)
            return false;
        run *next = &all->items[all->count++];
        *next = (run){.is_number = number};
        for (size_t c = 0; i < end; i++, c++)
            next->text[c] = lower(name[i]);
    }
    return true;
}

static bool names_word(const char *name, size_t length, const char *word)
{
    runs all;
    if (!split(name, length, &all))
        return false;
    for (int i = 0; i < all.count; i++)
        if (strcmp(all.items[i].text, word) == 0)
            return true;
    return false;
}

/* Whether the name of some network contains the word. */
static bool is_known(const char *word)
{
    att_timm_name timm;
    for (size_t at = 0; att_timm_next_name(&at, &timm);)
        if (names_word(timm.name.bytes, timm.name.length, word))
            return true;
    for (int i = 0; i < att_model_count(); i++)
        if (names_word(att_model_at(i).name, strlen(att_model_at(i).name), word))
            return true;
    return false;
}

/* Whether `typed` is `word` with one letter left out, doubled, or swapped with the next. The first letter must be
 * right. */
static bool is_misspelt(const char *typed, const char *word)
{
    size_t given = strlen(typed), own = strlen(word), same = 0;
    while (typed[same] && typed[same] == word[same])
        same++;
    if (same == 0)
        return false;
    if (given + 1 == own)
        return strcmp(typed + same, word + same + 1) == 0;
    if (given == own + 1)
        return typed[same] == typed[same - 1] && strcmp(typed + same + 1, word + same) == 0;
    return given == own && same + 1 < own && typed[same] == word[same + 1] && typed[same + 1] == word[same] &&
           strcmp(typed + same + 2, word + same + 2) == 0;
}

/* Whether the texts differ in one character only, not the first. */
static bool has_wrong_letter(const char *typed, const char *word)
{
    size_t same = 0;
    while (typed[same] && typed[same] == word[same])
        same++;
    return same > 0 && typed[same] && word[same] && strcmp(typed + same + 1, word + same + 1) == 0;
}

/* Whether `typed` is a mistyped run i of `own`. Short family names differ from each other in one letter (ViT, PiT,
 * DeiT), so a short family name must be right. Numbers must be right too, except for the image size at the end of a
 * ViT's name. */
static bool is_typo(const char *typed, const runs *own, int i)
{
    const run *meant = &own->items[i];
    bool is_size = i == own->count - 1 && i >= SIZE_RUN && strlen(meant->text) == SIZE_DIGITS;
    bool is_mistyped;
    if (meant->is_number)
        is_mistyped = is_size && has_wrong_letter(typed, meant->text);
    else if (i == 0)
        is_mistyped = strlen(meant->text) >= FAMILY_LETTERS && is_misspelt(typed, meant->text);
    else
        is_mistyped = strlen(meant->text) >= WORD_LETTERS &&
                      (is_misspelt(typed, meant->text) || has_wrong_letter(typed, meant->text));
    return is_mistyped && !is_known(typed);
}

bool att_name_is_typo(const char *typed, const char *meant)
{
    runs given, own;
    int typos = 0;
    if (strlen(typed) >= NAME_BYTES || !split(typed, strlen(typed), &given) || !split(meant, strlen(meant), &own) ||
        given.count != own.count)
        return false;
    for (int i = 0; i < own.count; i++) {
        const run *a = &given.items[i], *b = &own.items[i];
        if (strcmp(a->text, b->text) == 0)
            continue;
        if (a->is_number != b->is_number || !is_typo(a->text, &own, i))
            return false;
        typos++;
    }
    return typos <= 1;
}
