#include "lab/papers/ode/expression.h"

#include <math.h>
#include <string.h>

#include <muParserDLL.h>

#include "base/core/error.h"
#include "base/core/text.h"

/* muParser's codes of errors (muParserError.h, which is C++ only). */
enum { UNKNOWN_TOKEN = 1, UNEXPECTED_END = 2 };

/* The functions and constants of the parser that may not be names of variables: a name would hide them. */
static const char *const builtin[] = {"sin",  "cos",   "tan",   "asin",  "acos",  "atan",  "sinh", "cosh",
                                      "tanh", "asinh", "acosh", "atanh", "log2",  "log10", "log",  "ln",
                                      "exp",  "sqrt",  "sign",  "rint",  "abs",   "min",   "max",  "sum",
                                      "avg",  "rnd",   "_pi",   "_e",    "atan2", "round", "trunc"};

bool att_ode_is_builtin_name(const char *name)
{
    for (size_t i = 0; i < sizeof builtin / sizeof *builtin; i++)
        if (strcmp(name, builtin[i]) == 0)
            return true;
    return false;
}

/* "x = 1" would assign to a variable. */
static const char *find_assignment(const char *text)
{
    for (const char *at = strchr(text, '='); at; at = strchr(at + 1, '=')) {
        if (at[1] == '=')
            at++;
        else if (at == text || !strchr("<>!=", at[-1]))
            return at;
    }
    return NULL;
}

typedef struct names {
    const att_ode_name *items;
    int count;
} names;

static const char *name_at(const void *user, int index)
{
    return ((const names *)user)->items[index].name;
}

static att_status fail_parser(att_context *context, void *parser, const char *text, att_ode_place where,
                              const names *known)
{
    int code = mupGetErrorCode(parser), at = mupGetErrorPos(parser);
    const char *token = mupGetErrorToken(parser);
    int column = where.column + (at >= 0 && (size_t)at <= strlen(text) ? at : 0);
    if (code == UNKNOWN_TOKEN) {
        const char *nearest = token[0] && token[1] ? att_text_nearest(token, name_at, known, known->count) : NULL;
        return att_fail(context, ATT_ERR_FORMAT, "%s: line %d, column %d: there is no name \"%s\"%s%s%s", where.path,
                        where.line, column, token, nearest ? "; did you mean " : "", nearest ? nearest : "",
                        nearest ? "?" : "");
    }
    if (code == UNEXPECTED_END)
        return att_fail(context, ATT_ERR_FORMAT, "%s: line %d, column %d: the expression is not complete", where.path,
                        where.line, where.column + (int)strlen(text));
    return att_fail(context, ATT_ERR_FORMAT, "%s: line %d, column %d: this is not an expression%s%s%s", where.path,
                    where.line, column, *token ? ", near \"" : "", token, *token ? "\"" : "");
}

static att_status compile(att_context *context, void *parser, const char *text, att_ode_place where, const names *known)
{
    int results = 0;
    for (int i = 0; i < known->count; i++)
        mupDefineVar(parser, known->items[i].name, known->items[i].value);
    mupSetExpr(parser, text);
    mupEvalMulti(parser, &results);
    if (mupError(parser))
        return fail_parser(context, parser, text, where, known);
    if (results != 1)
        return att_fail(context, ATT_ERR_FORMAT, "%s: line %d, column %d: %d expressions, expected one", where.path,
                        where.line, where.column, results);
    return ATT_OK;
}

att_status att_ode_expression_create(att_context *context, const char *text, att_ode_place where,
                                     const att_ode_name *items, int count, att_ode_expression **expression)
{
    const names known = {items, count};
    const char *assignment = find_assignment(text);
    if (assignment)
        return att_fail(context, ATT_ERR_FORMAT,
                        "%s: line %d, column %d: \"=\" in an expression; \"==\" compares two values", where.path,
                        where.line, where.column + (int)(assignment - text));
    void *parser = mupCreate(muBASETYPE_FLOAT);
    if (!parser)
        return att_fail_memory(context, strlen(text), where.path);
    att_status status = compile(context, parser, text, where, &known);
    if (status == ATT_OK)
        *expression = parser;
    else
        mupRelease(parser);
    return status;
}

double att_ode_expression_value(att_ode_expression *expression)
{
    double value = mupEval(expression);
    return mupError(expression) ? NAN : value;
}

void att_ode_expression_free(att_ode_expression *expression)
{
    if (expression)
        mupRelease(expression);
}
