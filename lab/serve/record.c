#include "lab/serve/record.h"

#include <math.h>
#include <stdio.h>

#include "base/core/text.h"

double att_record_number(const json_t *record, const char *key)
{
    const json_t *value = json_object_get(record, key);
    double number = NAN;
    if (json_is_string(value) && !att_text_to_f64(json_string_value(value), &number))
        return NAN;
    return json_is_number(value) ? json_number_value(value) : number;
}

void att_record_text(const json_t *record, const char *key, char *text, size_t size)
{
    const char *value = json_string_value(json_object_get(record, key));
    snprintf(text, size, "%s", value != NULL ? value : "");
}
