/* Texts: those of a file, and others that requests contain. */
#include <stdio.h>
#include <string.h>

#include "lab/serve/engine_parts.h"

/* Begins the identifier of a text that is not of the file. */
static const char given[] = "text:";
enum { GIVEN = sizeof given - 1, SHOWN = 160 };

/* Copies the beginning of a text, in whole characters. */
static void shorten(const att_encode_text *text, char name[static SHOWN + 4])
{
    size_t length = text->length;
    if (length > SHOWN)
        for (length = SHOWN; length > 0 && ((unsigned char)text->bytes[length] & 0xC0) == 0x80;)
            length--;
    snprintf(name, SHOWN + 4, "%.*s%s", (int)length, text->bytes ? text->bytes : "",
             length < text->length ? "\xE2\x80\xA6" : "");
}

void att_engine_write_texts(const att_engine *engine, int64_t first, int64_t count, att_json_writer *writer)
{
    char id[ATT_ENGINE_ID], name[SHOWN + 4];
    const int64_t all = engine->texts.count;
    att_json_put_array(writer, "texts");
    for (int64_t i = first; i < all && i - first < count; i++) {
        snprintf(id, sizeof id, "t%lld", (long long)i);
        shorten(&engine->texts.texts[i], name);
        att_json_begin_object(writer);
        att_json_put_string(writer, "id", id);
        att_json_put_string(writer, "name", name);
        att_json_end_object(writer);
    }
    att_json_end_array(writer);
    att_json_put_integer(writer, "text_count", all);
}

static att_status find_text(const att_engine *engine, const char *id, att_encode_text *text)
{
    int64_t number;
    if (strncmp(id, given, GIVEN) == 0) {
        *text = (att_encode_text){.bytes = id + GIVEN, .length = strlen(id + GIVEN)};
        return ATT_OK;
    }
    if (*id != 't' || id[1] < '0' || id[1] > '9' || !att_text_to_i64(id + 1, &number) || number >= engine->texts.count)
        return att_fail(engine->context, ATT_ERR_NOT_FOUND,
                        "there is no text \"%.40s\": expected t0 to t%d, or text: and the text itself", id,
                        engine->texts.count - 1);
    *text = engine->texts.texts[number];
    return ATT_OK;
}

att_status att_engine_tokenize(const att_engine *engine, const att_opened *o, const char *id, att_token_texts *tokens)
{
    att_encode_text text;
    ATT_TRY(find_text(engine, id, &text));
    return att_network_tokenize(o->network, engine->tokenizer, &text, 1, 0, NULL, tokens);
}

void att_engine_write_text(const att_token_texts *text, att_json_writer *writer)
{
    const att_token_ids *ids = text->texts;
    att_json_put_object(writer, "text");
    att_json_put_array(writer, "pieces");
    for (int i = 0; i < ids->count; i++) {
        att_json_begin_object(writer);
        att_json_put_string(writer, "piece", att_tokenizer_piece(text->tokenizer, ids->tokens[i]));
        att_json_put_bool(writer, "special", ids->special[i]);
        att_json_end_object(writer);
    }
    att_json_end_array(writer);
    att_json_put_integer(writer, "shortened", text->shortened > 0 ? text->most : 0);
    att_json_end_object(writer);
}
