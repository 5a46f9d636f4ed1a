#include "base/io/json.h"

static void write_choices(att_json_writer *writer, const char *const *choices)
{
    att_json_put_array(writer, "choices");
    for (; *choices; choices++)
        att_json_string(writer, *choices);
    att_json_end_array(writer);
}

void att_detail_write_json(const att_detail *option, att_json_writer *writer)
{
    att_json_begin_object(writer);
    att_json_put_string(writer, "option", option->name);
    att_json_put_string(writer, "summary", option->meaning);
    if (option->choices) {
        att_json_put_string(writer, "default", option->choices[(int)option->start]);
        write_choices(writer, option->choices);
    } else {
        att_json_put_number(writer, "default", option->start);
        att_json_put_number(writer, "low", option->low);
        att_json_put_number(writer, "high", option->high);
    }
    att_json_end_object(writer);
}
