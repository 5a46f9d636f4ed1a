/* serve/members.h - members of JSON objects: a key and its value in one call. */
#ifndef ATT_SERVE_MEMBERS_H
#define ATT_SERVE_MEMBERS_H

#include <attscope/lab/json.h>

/* text: NULL is written as null */
static inline void att_member_text(att_json_writer *writer, const char *key, const char *text)
{
    att_json_key(writer, key);
    att_json_string(writer, text);
}

static inline void att_member_integer(att_json_writer *writer, const char *key, int64_t value)
{
    att_json_key(writer, key);
    att_json_integer(writer, value);
}

static inline void att_member_number(att_json_writer *writer, const char *key, double value)
{
    att_json_key(writer, key);
    att_json_number(writer, value);
}

static inline void att_member_bool(att_json_writer *writer, const char *key, bool value)
{
    att_json_key(writer, key);
    att_json_bool(writer, value);
}

#endif
