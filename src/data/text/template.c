#include "data/text/template.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/core/error.h"

typedef struct att_template_kind {
    const char *type;
    const char *const keys[5]; /* of its settings, NULL at the end */
    att_status (*read)(const att_part *part, const att_vocabulary *vocabulary, att_template templates[2]);
} att_template_kind;

static att_status add(const att_part *part, att_template *to, att_template_item item)
{
    if (to->count == ATT_MOST_ITEMS)
        return att_part_fail(part, ATT_ERR_UNSUPPORTED, "more than %d parts are not supported", (int)ATT_MOST_ITEMS);
    to->items[to->count++] = item;
    to->special += item.text < 0;
    return ATT_OK;
}

/* Checks that the vocabulary has this piece with this id. */
static att_status check_special(const att_part *part, const att_vocabulary *vocabulary, const char *piece,
                                const json_t *id)
{
    const json_int_t number = json_integer_value(id);
    const bool inside = json_is_integer(id) && number >= 0 && number < vocabulary->count;
    const char *found = inside ? att_vocabulary_piece(vocabulary, (int)number) : NULL;
    if (!piece || !found || strcmp(found, piece) != 0)
        return att_part_fail(part, ATT_ERR_FORMAT, "\"%s\" has id %lld, but the vocabulary has %s there",
                             piece ? piece : "", (long long)number, found ? found : "no piece");
    return ATT_OK;
}

/* --- BertProcessing, RobertaProcessing ---------------------------------------------------------------------------- */

/* Reads ["[SEP]", 102]. */
static att_status read_pair(const att_part *part, const char *key, const att_vocabulary *vocabulary, int *id)
{
    const json_t *pair = json_object_get(part->object, key), *number = json_array_get(pair, 1);
    if (json_array_size(pair) != 2)
        return att_part_fail(part, ATT_ERR_FORMAT, "\"%s\" must be an array of a piece and its id", key);
    ATT_TRY(check_special(part, vocabulary, json_string_value(json_array_get(pair, 0)), number));
    *id = (int)json_integer_value(number);
    return ATT_OK;
}

/* Makes [CLS] A [SEP] and [CLS] A [SEP] B [SEP], with a further [SEP] before B if `twice`. type: of B and the [SEP]
 * after it. */
static att_status make_classic(const att_part *part, const att_vocabulary *vocabulary, bool twice, int type,
                               att_template templates[2])
{
    int begin, separator;
    ATT_TRY(read_pair(part, "cls", vocabulary, &begin));
    ATT_TRY(read_pair(part, "sep", vocabulary, &separator));
    for (int i = 0; i < 2; i++) {
        ATT_TRY(add(part, &templates[i], (att_template_item){-1, begin, 0}));
        ATT_TRY(add(part, &templates[i], (att_template_item){0, 0, 0}));
        ATT_TRY(add(part, &templates[i], (att_template_item){-1, separator, 0}));
    }
    if (twice)
        ATT_TRY(add(part, &templates[1], (att_template_item){-1, separator, 0}));
    ATT_TRY(add(part, &templates[1], (att_template_item){1, 0, type}));
    return add(part, &templates[1], (att_template_item){-1, separator, type});
}

static att_status read_bert(const att_part *part, const att_vocabulary *vocabulary, att_template templates[2])
{
    return make_classic(part, vocabulary, false, 1, templates);
}

static att_status read_roberta(const att_part *part, const att_vocabulary *vocabulary, att_template templates[2])
{
    return make_classic(part, vocabulary, true, 0, templates);
}

/* --- TemplateProcessing ------------------------------------------------------------------------------------------- */

/* Adds the tokens that "special_tokens" lists for a name. */
static att_status add_special(const att_part *part, const att_part *named, const char *name,
                              const att_vocabulary *vocabulary, int type, att_template *to)
{
    const json_t *entry = json_object_get(json_object_get(part->object, "special_tokens"), name);
    const json_t *ids = json_object_get(entry, "ids"), *tokens = json_object_get(entry, "tokens");
    if (json_array_size(ids) == 0 || json_array_size(tokens) != json_array_size(ids))
        return att_part_fail(named, ATT_ERR_FORMAT, "\"special_tokens\" gives \"%s\" no ids, or not as many tokens",
                             name);
    for (size_t i = 0; i < json_array_size(ids); i++) {
        const json_t *id = json_array_get(ids, i);
        ATT_TRY(check_special(named, vocabulary, json_string_value(json_array_get(tokens, i)), id));
        ATT_TRY(add(named, to, (att_template_item){-1, (int)json_integer_value(id), type}));
    }
    return ATT_OK;
}

/* Adds a part: {"SpecialToken": {"id": "[CLS]", "type_id": 0}} or {"Sequence": {"id": "A", "type_id": 0}}. */
static att_status add_part(const att_part *part, const att_part *named, const att_vocabulary *vocabulary,
                           att_template *to)
{
    const att_part special = att_part_member(named, "SpecialToken", named->name),
                   text = att_part_member(named, "Sequence", named->name), found = special.object ? special : text;
    const char *id;
    int type;
    ATT_TRY(att_part_check(named, (const char *const[]){"SpecialToken", "Sequence", NULL}));
    if (!found.object)
        return att_part_fail(named, ATT_ERR_FORMAT, "expected \"%s\" or \"Sequence\"", "SpecialToken");
    ATT_TRY(att_part_check(&found, (const char *const[]){"id", "type_id", NULL}));
    ATT_TRY(att_part_text(&found, "id", NULL, &id));
    ATT_TRY(att_part_number(&found, "type_id", 0, INT_MAX, 0, &type));
    if (special.object)
        return add_special(part, named, id, vocabulary, type, to);
    if (strcmp(id, "A") != 0 && strcmp(id, "B") != 0)
        return att_part_fail(named, ATT_ERR_FORMAT, "the sequence \"%s\" is neither A nor B", id);
    return add(named, to, (att_template_item){*id - 'A', 0, type});
}

/* Reads the template `key`, in which each of `texts` texts must be once. */
static att_status read_template(const att_part *part, const char *key, int texts, const att_vocabulary *vocabulary,
                                att_template *to)
{
    const json_t *list = json_object_get(part->object, key);
    int times[2] = {0, 0};
    for (size_t i = 0; i < json_array_size(list); i++) {
        char name[64];
        att_part named = *part;
        snprintf(name, sizeof name, "%s.%s[%zu]", part->name, key, i);
        named.name = name;
        named.object = json_array_get(list, i);
        ATT_TRY(add_part(part, &named, vocabulary, to));
    }
    for (int i = 0; i < to->count; i++)
        if (to->items[i].text >= 0)
            times[to->items[i].text]++;
    if (times[0] != 1 || times[1] != texts - 1)
        return att_part_fail(part, ATT_ERR_UNSUPPORTED, "\"%s\" must be a list that has the sequence A%s once", key,
                             texts == 2 ? " and the sequence B" : ", and no sequence B,");
    return ATT_OK;
}

static att_status read_lists(const att_part *part, const att_vocabulary *vocabulary, att_template templates[2])
{
    ATT_TRY(read_template(part, "single", 1, vocabulary, &templates[0]));
    return read_template(part, "pair", 2, vocabulary, &templates[1]);
}

/* --- reading ------------------------------------------------------------------------------------------------------ */

static const att_template_kind kinds[] = {
    {"TemplateProcessing", {"single", "pair", "special_tokens"}, read_lists},
    {"BertProcessing", {"sep", "cls"}, read_bert},
    {"RobertaProcessing", {"sep", "cls", "trim_offsets", "add_prefix_space"}, read_roberta},
};

att_status att_templates_read(const att_part *part, const att_vocabulary *vocabulary, att_template templates[2])
{
    templates[0] = templates[1] = (att_template){.count = 0};
    if (!part->object) {
        ATT_TRY(add(part, &templates[0], (att_template_item){0, 0, 0}));
        ATT_TRY(add(part, &templates[1], (att_template_item){0, 0, 0}));
        return add(part, &templates[1], (att_template_item){1, 0, 1});
    }
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(kinds[i].type, att_part_type(part)) == 0) {
            ATT_TRY(att_part_check(part, kinds[i].keys));
            return kinds[i].read(part, vocabulary, templates);
        }
    return att_part_unknown(part, kinds, sizeof *kinds, sizeof kinds / sizeof *kinds);
}
