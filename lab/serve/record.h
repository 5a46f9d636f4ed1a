/* serve/record.h - members of a record of metrics.jsonl. */
#ifndef ATT_SERVE_RECORD_H
#define ATT_SERVE_RECORD_H

#include <jansson.h>
#include <stddef.h>

/* A number, or a text that is a number, as run_begin has them; NaN if it is missing or neither. */
double att_record_number(const json_t *record, const char *key);
/* Copies a text, truncated to fit; "" if it is missing. */
void att_record_text(const json_t *record, const char *key, char *text, size_t size);

#endif
