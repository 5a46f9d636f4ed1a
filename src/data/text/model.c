#include "data/text/model.h"

#include <string.h>

#include "base/core/error.h"

/* --- vocabulary --------------------------------------------------------------------------------------------------- */

att_status att_vocabulary_make(att_context *context, const char *what, int count, size_t bytes,
                               att_vocabulary *vocabulary)
{
    *vocabulary = (att_vocabulary){.count = count, .texts = {.context = context}};
    ATT_TRY(att_trie_make(context, what, bytes, &vocabulary->trie));
    ATT_TRY(att_new(context, &vocabulary->places, (size_t)count, "a vocabulary"));
    for (int i = 0; i < count; i++)
        vocabulary->places[i] = SIZE_MAX;
    return ATT_OK;
}

void att_vocabulary_free(att_vocabulary *vocabulary)
{
    att_context *context = vocabulary->texts.context;
    if (!context)
        return;
    att_free(context, vocabulary->places);
    att_text_free(&vocabulary->texts);
    att_trie_free(&vocabulary->trie);
    *vocabulary = (att_vocabulary){.count = 0};
}

void att_vocabulary_name(att_vocabulary *vocabulary, const char *piece, int id)
{
    vocabulary->places[id] = vocabulary->texts.length;
    att_text_append_bytes(&vocabulary->texts, piece, strlen(piece) + 1);
}

void att_vocabulary_add(att_vocabulary *vocabulary, const char *piece, int id)
{
    att_vocabulary_name(vocabulary, piece, id);
    att_trie_set(&vocabulary->trie, piece, strlen(piece), id);
}

int att_vocabulary_find(const att_vocabulary *vocabulary, const char *piece)
{
    const int32_t node = att_trie_find(&vocabulary->trie, piece, strlen(piece));
    return node >= 0 ? vocabulary->trie.values[node] : -1;
}

const char *att_vocabulary_piece(const att_vocabulary *vocabulary, int id)
{
    const bool there = id >= 0 && id < vocabulary->count && vocabulary->places[id] != SIZE_MAX;
    return there ? vocabulary->texts.data + vocabulary->places[id] : NULL;
}

/* --- tokens ------------------------------------------------------------------------------------------------------- */

void att_token_list_add(att_token_list *list, int id, const att_character *first, size_t count)
{
    if (list->failed)
        return;
    list->failed = !att_list_grow(list->context, &list->items, list->count, &list->capacity, sizeof *list->items);
    if (!list->failed)
        list->items[list->count++] = (att_token){.id = id, .begin = first->begin, .end = first[count - 1].end};
}

void *att_token_list_buffer(att_token_list *list, size_t size)
{
    if (size > list->buffer_size) {
        void *buffer = att_reallocate(list->context, list->buffer, size);
        list->failed = list->failed || !buffer;
        if (!buffer)
            return NULL;
        list->buffer = buffer;
        list->buffer_size = size;
    }
    return list->buffer;
}

void att_token_list_free(att_token_list *list)
{
    att_free(list->context, list->items);
    att_free(list->context, list->buffer);
    *list = (att_token_list){.context = list->context};
}

/* --- models ------------------------------------------------------------------------------------------------------- */

static const att_text_model_kind *const kinds[] = {&att_wordpiece, &att_unigram};

/* The type of files that do not name it. */
static const char *type_of(const att_part *part)
{
    const char *type = att_part_type(part);
    const bool wordpiece = json_object_get(part->object, "continuing_subword_prefix") != NULL;
    return !*type && wordpiece ? att_wordpiece.type : type;
}

att_status att_text_model_read(const att_part *part, int least, att_text_model *model)
{
    const char *names[sizeof kinds / sizeof *kinds];
    *model = (att_text_model){.kind = NULL};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        names[i] = kinds[i]->type;
        if (strcmp(kinds[i]->type, type_of(part)) != 0)
            continue;
        model->kind = kinds[i];
        ATT_TRY(att_part_check(part, kinds[i]->keys));
        ATT_TRY(kinds[i]->read(part, least, model));
        return model->vocabulary.texts.failed
                   ? att_fail_memory(part->context, model->vocabulary.texts.length, "a vocabulary")
                   : ATT_OK;
    }
    return att_part_unknown(part, names, sizeof *names, sizeof names / sizeof *names);
}

void att_text_model_free(att_text_model *model)
{
    att_context *context = model->vocabulary.texts.context;
    if (context)
        att_free(context, model->scores);
    att_vocabulary_free(&model->vocabulary);
    *model = (att_text_model){.kind = NULL};
}
