#include "base/io/json.h"

static void write_text(att_json_writer *writer, const char *key, const char *text)
{
    att_json_key(writer, key);
    att_json_string(writer, text);
}

static void write_number(att_json_writer *writer, const char *key, double number)
{
    att_json_key(writer, key);
    att_json_number(writer, number);
}

static void write_choices(att_json_writer *writer, const char *const *choices)
{
    att_json_key(writer, "choices");
    att_json_begin_array(writer);
    for (; *choices; choices++)
        att_json_string(writer, *choices);
    att_json_end_array(writer);
}

void att_detail_write_json(const att_detail *option, att_json_writer *writer)
{
    att_json_begin_object(writer);
    write_text(writer, "option", option->name);
    write_text(writer, "summary", option->meaning);
    if (option->choices) {
        write_text(writer, "default", option->choices[(int)option->start]);
        write_choices(writer, option->choices);
    } else {
        write_number(writer, "default", option->start);
        write_number(writer, "low", option->low);
        write_number(writer, "high", option->high);
    }
    att_json_end_object(writer);
}
