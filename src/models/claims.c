#include "models/claims.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/error.h"

typedef enum field_kind {
    WHOLE,  /* int, 0: open */
    SWITCH, /* int 1 or 0, -1: open */
    RATIO,  /* double, 0: open */
    START,  /* double, 0: none, -1: open */
    WORD    /* text, "": open */
} field_kind;

typedef struct field {
    const char *key;
    field_kind kind;
    bool free;           /* any variant may have another value */
    const char *family;  /* that has it; NULL: all */
    size_t offset, size; /* in att_model_options */
    double low, high;
} field;

static const char VIT[] = "vit", RESNET[] = "resnet";

#define FIELD(member, kind, free, family, low, high)                                                                   \
    {                                                                                                                  \
#member, kind, free, family, offsetof(att_model_options, member), sizeof((att_model_options *)0)->member, low, \
            high                                                                                                       \
    }
static const field fields[] = {
    FIELD(img_size, WHOLE, false, NULL, 1, 65536),
    FIELD(in_chans, WHOLE, true, NULL, 1, 3),
    FIELD(num_classes, WHOLE, true, NULL, 0, 10000000),
    FIELD(head, SWITCH, true, NULL, 0, 1),
    FIELD(depth, WHOLE, false, NULL, 1, 1024),
    FIELD(global_pool, WORD, false, NULL, 0, 0),
    FIELD(patch_size, WHOLE, false, VIT, 1, 65536),
    FIELD(embed_dim, WHOLE, false, VIT, 1, 65536),
    FIELD(num_heads, WHOLE, false, VIT, 1, 65536),
    FIELD(mlp_ratio, RATIO, false, VIT, 1e-3, 64),
    FIELD(final_norm, SWITCH, false, VIT, 0, 1),
    FIELD(fc_norm, SWITCH, false, VIT, 0, 1),
    FIELD(class_token, SWITCH, false, VIT, 0, 1),
    FIELD(embed_class, SWITCH, false, VIT, 0, 1),
    FIELD(qkv_bias, SWITCH, false, VIT, 0, 1),
    FIELD(init_values, START, false, VIT, 0, 1e3),
    FIELD(broadcast, WORD, true, VIT, 0, 0),
    FIELD(block, WORD, false, RESNET, 0, 0),
    FIELD(stem_type, WORD, false, RESNET, 0, 0),
    FIELD(shortcut, WORD, false, RESNET, 0, 0),
    FIELD(layers, WORD, false, RESNET, 0, 0),
    FIELD(width, WHOLE, false, RESNET, 1, 65536),
    FIELD(cardinality, WHOLE, false, RESNET, 1, 65536),
    FIELD(base_width, WHOLE, false, RESNET, 1, 65536),
    FIELD(zero_init_last, SWITCH, true, RESNET, 0, 1),
    FIELD(attn, WORD, true, RESNET, 0, 0),
    FIELD(attn_blocks, WORD, true, RESNET, 0, 0),
};
enum { FIELD_COUNT = sizeof fields / sizeof *fields };

static bool is_whole_kind(const field *f)
{
    return f->kind == WHOLE || f->kind == SWITCH;
}

static double open_value(const field *f)
{
    return f->kind == SWITCH || f->kind == START ? -1 : 0;
}

static double get_number(const att_model_options *options, const field *f)
{
    const char *at = (const char *)options + f->offset;
    if (is_whole_kind(f)) {
        int value;
        memcpy(&value, at, sizeof value);
        return value;
    }
    double value;
    memcpy(&value, at, sizeof value);
    return value;
}

static void set_number(att_model_options *options, const field *f, double number)
{
    char *at = (char *)options + f->offset;
    if (is_whole_kind(f)) {
        int value = (int)number;
        memcpy(at, &value, sizeof value);
    } else {
        memcpy(at, &number, sizeof number);
    }
}

static bool is_open(const att_model_options *options, const field *f)
{
    if (f->kind == WORD)
        return *((const char *)options + f->offset) == '\0';
    return get_number(options, f) == open_value(f);
}

static bool in_range(const field *f, double number)
{
    return number >= f->low && number <= f->high && (!is_whole_kind(f) || number == floor(number));
}

att_model_options att_model_options_defaults(void)
{
    att_model_options options = {0};
    for (int i = 0; i < FIELD_COUNT; i++)
        if (fields[i].kind != WORD)
            set_number(&options, &fields[i], open_value(&fields[i]));
    return options;
}

att_claims att_claims_none(void)
{
    return (att_claims){.options = att_model_options_defaults()};
}

void att_options_fill(att_model_options *to, const att_model_options *from)
{
    bool says_layers = to->layers[0] != '\0';
    for (int i = 0; i < FIELD_COUNT; i++)
        if (is_open(to, &fields[i]) && !(says_layers && fields[i].offset == offsetof(att_model_options, depth)))
            memcpy((char *)to + fields[i].offset, (const char *)from + fields[i].offset, fields[i].size);
}

void att_options_settle_head(const att_model_options *own, att_model_options *options)
{
    if (options->head == -1)
        options->head = options->num_classes > 0 ? 1 : own->head;
    if (options->head == 0)
        options->num_classes = 0;
}

void att_claims_fill(att_claims *to, const att_claims *from)
{
    att_options_fill(&to->options, &from->options);
    if (!to->name[0])
        memcpy(to->name, from->name, sizeof to->name);
    if (!to->has_mean)
        memcpy(to->mean, from->mean, sizeof to->mean);
    if (!to->has_std)
        memcpy(to->std, from->std, sizeof to->std);
    to->has_mean |= from->has_mean;
    to->has_std |= from->has_std;
    if (to->crop_pct == 0)
        to->crop_pct = from->crop_pct;
    if (!to->crop_mode[0])
        memcpy(to->crop_mode, from->crop_mode, sizeof to->crop_mode);
    if (!to->interpolation[0])
        memcpy(to->interpolation, from->interpolation, sizeof to->interpolation);
    if (to->test_img_size == 0)
        to->test_img_size = from->test_img_size;
    if (to->test_crop_pct == 0)
        to->test_crop_pct = from->test_crop_pct;
}

void att_claims_lay_over(const att_claims *claims, att_preprocess *preprocess)
{
    if (claims->has_mean)
        memcpy(preprocess->mean, claims->mean, sizeof preprocess->mean);
    if (claims->has_std)
        memcpy(preprocess->std, claims->std, sizeof preprocess->std);
    if (claims->crop_pct != 0)
        preprocess->crop_pct = claims->crop_pct;
    if (claims->crop_mode[0])
        memcpy(preprocess->crop_mode, claims->crop_mode, sizeof preprocess->crop_mode);
    if (claims->interpolation[0])
        memcpy(preprocess->interpolation, claims->interpolation, sizeof preprocess->interpolation);
}

att_status att_options_check(att_context *context, const char *family, const att_model_options *options)
{
    if (options->in_chans == 2)
        return att_fail(context, ATT_ERR_ARGUMENT, "in_chans must be 1 or 3, not 2");
    for (int i = 0; i < FIELD_COUNT; i++) {
        const field *f = &fields[i];
        if (f->family && strcmp(f->family, family) != 0 && !is_open(options, f))
            return att_fail(context, ATT_ERR_ARGUMENT, "%s is an option of the family \"%s\", not of \"%s\"", f->key,
                            f->family, family);
        if (f->kind == WORD || is_open(options, f) || in_range(f, get_number(options, f)))
            continue;
        return att_fail(context, ATT_ERR_ARGUMENT, "%s must be in %g..%g, not %g", f->key, f->low, f->high,
                        get_number(options, f));
    }
    return ATT_OK;
}

att_status att_options_check_attn(att_context *context, const att_model_options *options,
                                  const att_model_options *known)
{
    bool has_module = known->attn[0] && strcmp(known->attn, "none") != 0;
    if (!options->attn_blocks[0] || options->attn[0] || has_module)
        return ATT_OK;
    return att_fail(context, ATT_ERR_ARGUMENT,
                    "attn_blocks \"%s\" says which blocks have a module, but attn does not say which module",
                    options->attn_blocks);
}

static bool is_same(const att_model_options *a, const att_model_options *b, const field *f)
{
    if (f->kind == WORD)
        return strcmp((const char *)a + f->offset, (const char *)b + f->offset) == 0;
    return get_number(a, f) == get_number(b, f);
}

bool att_options_agree(const att_model_options *found, const att_model_options *own)
{
    for (int i = 0; i < FIELD_COUNT; i++) {
        const field *f = &fields[i];
        bool both_start = f->kind == START && get_number(found, f) > 0 && get_number(own, f) > 0;
        if (!f->free && !both_start && !is_open(found, f) && !is_same(found, own, f))
            return false;
    }
    return true;
}

bool att_options_differences(att_text *text, const att_model_options *options, const att_model_options *own)
{
    const char *comma = "";
    for (int i = 0; i < FIELD_COUNT; i++) {
        const field *f = &fields[i];
        bool is_head = f->offset == offsetof(att_model_options, head); /* num_classes tells */
        if (is_head || is_same(options, own, f))
            continue;
        if (f->kind == WORD)
            att_text_append(text, "%s%s %s", comma, f->key, (const char *)options + f->offset);
        else
            att_text_append(text, "%s%s %g", comma, f->key, get_number(options, f));
        comma = ", ";
    }
    return comma[0] != '\0';
}

void att_options_write(att_json_writer *writer, const att_model_options *options)
{
    for (int i = 0; i < FIELD_COUNT; i++) {
        const field *f = &fields[i];
        if (is_open(options, f))
            continue;
        att_json_key(writer, f->key);
        if (f->kind == WORD)
            att_json_string(writer, (const char *)options + f->offset);
        else if (is_whole_kind(f))
            att_json_integer(writer, (int64_t)get_number(options, f));
        else
            att_json_number(writer, get_number(options, f));
    }
}

/* --- noting a fact ----------------------------------------------------------------------------------------------- */

typedef struct note {
    att_context *context;
    const char *what, *key;
    const att_fact *fact;
} note;

static att_status fail_note(const note *n, const char *expected)
{
    return att_fail(n->context, ATT_ERR_FORMAT, "%s: \"%s\" must be %s", n->what, n->key, expected);
}

static att_status note_word(const note *n, char *to, size_t size)
{
    if (n->fact->kind != ATT_FACT_TEXT)
        return fail_note(n, "a text");
    if (!n->fact->text[0] || strlen(n->fact->text) >= size)
        return att_fail(n->context, ATT_ERR_UNSUPPORTED, "%s: %s is \"%.64s\", which attscope does not have", n->what,
                        n->key, n->fact->text);
    if (!to[0])
        snprintf(to, size, "%s", n->fact->text);
    return ATT_OK;
}

/* A list of blocks or layers may be one number or, as timm has it, a list of numbers. */
static att_status note_field_word(const note *n, const field *f, char *to)
{
    const att_fact *fact = n->fact;
    char text[64] = "";
    bool numbers = fact->kind == ATT_FACT_NUMBERS;
    for (int i = 0; numbers && i < fact->count; i++) {
        numbers = fabs(fact->numbers[i]) <= 1e6;
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%.7g", i ? "," : "", fact->numbers[i]);
    }
    if (!numbers)
        return note_word(n, to, f->size);
    att_fact word = {.kind = ATT_FACT_TEXT, .text = text};
    note as_word = {n->context, n->what, n->key, &word};
    return note_word(&as_word, to, f->size);
}

static att_status note_field(const note *n, const field *f, att_model_options *options)
{
    if (f->kind == WORD)
        return note_field_word(n, f, (char *)options + f->offset);
    /* timm writes patch_size and img_size as a number or a pair. */
    bool pair = n->fact->count == 2 && n->fact->numbers[0] == n->fact->numbers[1];
    if (n->fact->kind != ATT_FACT_NUMBERS || (n->fact->count != 1 && !pair) || !in_range(f, n->fact->numbers[0])) {
        char expected[96];
        snprintf(expected, sizeof expected, "a %s in %g..%g", is_whole_kind(f) ? "whole number" : "number", f->low,
                 f->high);
        return fail_note(n, expected);
    }
    if (is_open(options, f))
        set_number(options, f, n->fact->numbers[0]);
    return ATT_OK;
}

static att_status note_name(const note *n, att_claims *claims)
{
    return note_word(n, claims->name, sizeof claims->name);
}

/* [channels, height, width] */
static att_status note_input_size(const note *n, att_claims *claims)
{
    const double *size = n->fact->numbers;
    if (n->fact->kind != ATT_FACT_NUMBERS || n->fact->count != 3)
        return fail_note(n, "[channels, height, width]");
    if (size[1] != size[2])
        return att_fail(n->context, ATT_ERR_UNSUPPORTED, "%s: images of %g x %g are not square", n->what, size[1],
                        size[2]);
    att_fact channels = {.kind = ATT_FACT_NUMBERS, .numbers = {size[0]}, .count = 1};
    att_fact side = {.kind = ATT_FACT_NUMBERS, .numbers = {size[1]}, .count = 1};
    ATT_TRY(att_claims_note(n->context, n->what, "in_chans", &channels, claims));
    return att_claims_note(n->context, n->what, "img_size", &side, claims);
}

/* One number for all channels, or three. */
static att_status note_channels(const note *n, double low, double *to, bool *has)
{
    const att_fact *fact = n->fact;
    bool counted = fact->kind == ATT_FACT_NUMBERS && (fact->count == 1 || fact->count == 3);
    for (int i = 0; counted && i < fact->count; i++)
        counted = fact->numbers[i] >= low && fact->numbers[i] <= 1e3;
    if (!counted)
        return fail_note(n, low > 0 ? "one or three positive numbers" : "one or three numbers");
    if (*has)
        return ATT_OK;
    for (int i = 0; i < 3; i++)
        to[i] = fact->numbers[fact->count == 1 ? 0 : i];
    *has = true;
    return ATT_OK;
}

static att_status note_crop(const note *n, double *crop_pct)
{
    if (n->fact->kind != ATT_FACT_NUMBERS || n->fact->count != 1 || !(n->fact->numbers[0] > 0.01) ||
        !(n->fact->numbers[0] <= 1))
        return fail_note(n, "a number above 0.01 and up to 1");
    if (*crop_pct == 0)
        *crop_pct = n->fact->numbers[0];
    return ATT_OK;
}

/* [channels, height, width], or the height alone. */
static att_status note_test_size(const note *n, att_claims *claims)
{
    const att_fact *fact = n->fact;
    double side = fact->count == 3 ? fact->numbers[1] : fact->numbers[0];
    bool square = fact->count == 1 || (fact->count == 3 && fact->numbers[2] == side);
    if (fact->kind != ATT_FACT_NUMBERS || !square || !(side >= 1 && side <= 65536 && side == floor(side)))
        return fail_note(n, "[channels, height, width] of square images");
    if (claims->test_img_size == 0)
        claims->test_img_size = (int)side;
    return ATT_OK;
}

static att_status note_crop_mode(const note *n, att_claims *claims)
{
    if (n->fact->kind != ATT_FACT_TEXT ||
        (strcmp(n->fact->text, "center") != 0 && strcmp(n->fact->text, "squash") != 0 &&
         strcmp(n->fact->text, "border") != 0))
        return fail_note(n, "\"center\", \"squash\" or \"border\"");
    return note_word(n, claims->crop_mode, sizeof claims->crop_mode);
}

static att_status note_interpolation(const note *n, att_claims *claims)
{
    if (n->fact->kind != ATT_FACT_TEXT ||
        (strcmp(n->fact->text, "bicubic") != 0 && strcmp(n->fact->text, "bilinear") != 0))
        return fail_note(n, "\"bicubic\" or \"bilinear\"");
    return note_word(n, claims->interpolation, sizeof claims->interpolation);
}

static att_status note_no_embed_class(const note *n, att_claims *claims)
{
    att_fact inverse = *n->fact;
    inverse.numbers[0] = inverse.numbers[0] == 0;
    return att_claims_note(n->context, n->what, "embed_class", &inverse, claims);
}

att_status att_claims_note(att_context *context, const char *what, const char *key, const att_fact *fact,
                           att_claims *claims)
{
    note n = {context, what, key, fact};
    if (strcmp(key, "gp") == 0)
        key = "global_pool";
    for (int i = 0; i < FIELD_COUNT; i++)
        if (strcmp(key, fields[i].key) == 0)
            return note_field(&n, &fields[i], &claims->options);
    if (strcmp(key, "model") == 0 || strcmp(key, "architecture") == 0)
        return note_name(&n, claims);
    if (strcmp(key, "input_size") == 0)
        return note_input_size(&n, claims);
    if (strcmp(key, "no_embed_class") == 0)
        return note_no_embed_class(&n, claims);
    if (strcmp(key, "mean") == 0)
        return note_channels(&n, -1e3, claims->mean, &claims->has_mean);
    if (strcmp(key, "std") == 0)
        return note_channels(&n, 1e-6, claims->std, &claims->has_std);
    if (strcmp(key, "crop_pct") == 0)
        return note_crop(&n, &claims->crop_pct);
    if (strcmp(key, "test_crop_pct") == 0)
        return note_crop(&n, &claims->test_crop_pct);
    if (strcmp(key, "test_input_size") == 0 || strcmp(key, "test_img_size") == 0)
        return note_test_size(&n, claims);
    if (strcmp(key, "crop_mode") == 0)
        return note_crop_mode(&n, claims);
    if (strcmp(key, "interpolation") == 0)
        return note_interpolation(&n, claims);
    return ATT_ERR_NOT_FOUND;
}
