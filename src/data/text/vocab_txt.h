/* text/vocab_txt.h - tokenizers that are a list of pieces, vocab.txt, and settings in files beside it. */
#ifndef ATT_TEXT_VOCAB_TXT_H
#define ATT_TEXT_VOCAB_TXT_H

#include "data/text/members.h"

/* Reads the list of pieces at `path` and the settings in `folder`, and makes the object that tokenizer.json would have.
 * The caller frees *root with json_decref(). Errors: ERR_FORMAT, ERR_UNSUPPORTED, ERR_IO, ERR_MEMORY. */
att_status att_vocab_txt_read(att_context *context, att_arena *arena, const char *path, const char *folder,
                              json_t **root);

/* Reads the JSON object of FOLDER/NAME. *object: NULL if there is no such file. The caller frees it with json_decref().
 * path: receives the file's path. Errors: ERR_FORMAT, ERR_IO, ERR_MEMORY, ERR_ARGUMENT (the path is too long). */
enum { ATT_TEXT_PATH = 4096 };
att_status att_text_settings_read(att_context *context, const char *folder, const char *name, char path[ATT_TEXT_PATH],
                                  json_t **object);

#endif
