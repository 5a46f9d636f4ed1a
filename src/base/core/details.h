/* core/details.h - checks and parses options of modules and instruments, "key=value" (att_detail in
 * attscope/options.h).
 */
#ifndef ATT_CORE_DETAILS_H
#define ATT_CORE_DETAILS_H

#include <attscope/context.h>
#include <attscope/options.h>

/* The descriptor whose options these are. Messages begin with kind and name: "module se". */
typedef struct att_detail_owner {
    const char *kind, *name;
    const att_detail *options;
    int count;
} att_detail_owner;

/* Checks the declarations of a descriptor that a program registers. most: the largest count. Errors: ERR_ARGUMENT. */
att_status att_details_check(att_context *context, const att_detail_owner *owner, int most);
/* Sets all values to their defaults. */
void att_details_start(const att_detail_owner *owner, double *values);
/* Sets one value from "key=value". text: is changed. given: the options that were set before; the option is added.
 * Errors: ERR_ARGUMENT (an unknown option, with the nearest name; one given twice; an invalid value). */
att_status att_detail_set(att_context *context, const att_detail_owner *owner, char *text, bool *given, double *values);

#endif
