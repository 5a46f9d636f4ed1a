/* report/json_members.h - members of a JSON object: a key and its value. */
#ifndef ATT_REPORT_JSON_MEMBERS_H
#define ATT_REPORT_JSON_MEMBERS_H

#include <attscope/lab/json.h>

/* text: NULL is written as null */
static inline void write_text(att_json_writer *json, const char *key, const char *text)
{
    att_json_key(json, key);
    att_json_string(json, text);
}

static inline void write_number(att_json_writer *json, const char *key, double value)
{
    att_json_key(json, key);
    att_json_number(json, value);
}

static inline void write_integer(att_json_writer *json, const char *key, int64_t value)
{
    att_json_key(json, key);
    att_json_integer(json, value);
}

static inline void write_bool(att_json_writer *json, const char *key, bool value)
{
    att_json_key(json, key);
    att_json_bool(json, value);
}

#endif
