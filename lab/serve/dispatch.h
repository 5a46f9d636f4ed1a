/* serve/dispatch.h - from the head of a request to the handler that answers it, or to a refusal. */
#ifndef ATT_SERVE_DISPATCH_H
#define ATT_SERVE_DISPATCH_H

#include "lab/serve/access.h"
#include "lab/serve/request.h"

/* The groups of routes, and what their open() returned. */
typedef struct att_table {
    const att_route_group *const *groups;
    void **states;
    int count;
} att_table;

/* A handler, with its group's state, and the query for it. */
typedef struct att_call {
    const att_route *route;
    void *state;
    const char *query; /* part of the head's target */
} att_call;

/* Applies all rules to a request. Returns true if the handler *call is to be called once the body is complete. Returns
 * false if the answer is complete already: a refusal, or the redirection that gives a browser its cookie. most: limit
 * for the size of a body. response: zero except for the body's context. */
bool att_dispatch(const att_table *table, const att_access *access, size_t most, const att_head *head, att_call *call,
                  att_response *response);

/* Calls the handler and turns a failure into an answer. `response` is zero except for the body's context. */
void att_dispatch_call(const att_call *call, att_request *request, att_response *response);

/* Makes the answer a refusal: JSON or a page, as the target asks for. */
void att_refuse(const char *target, int status, const char *sentence, att_response *response);

#endif
