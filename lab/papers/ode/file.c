/* Systems from files. The syntax is described at att_ode_open(). */
#include <ctype.h>
#include <math.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/text.h"
#include "lab/papers/ode/expression.h"
#include "lab/papers/ode/lines.h"

enum {
    MOST_BYTES = 64 << 10,
    MOST_LINE = 1000,
    MOST_NAME = 31,
    MOST_NAMES = 1 + ATT_ODE_MOST_EQUATIONS + ATT_ODE_MOST_CONSTANTS
};

typedef enum line_kind { CONSTANT, EQUATION, INITIAL, INTERVAL } line_kind;

/* "NAME RIGHT = TEXT", where RIGHT is "", "'" or "(0)". */
typedef struct statement {
    line_kind kind;
    char name[MOST_NAME + 1];
    const char *text;
    att_ode_place where; /* of `text` */
    int column;          /* of the name */
} statement;

typedef struct system_of {
    att_ode *ode;
    att_ode_lines lines;
    double time;
    att_ode_name names[MOST_NAMES]; /* t, the variables, the constants so far */
    int name_count, variables, constants;
    double values[MOST_NAMES];
    const char **variable_names;
    bool has_initial[ATT_ODE_MOST_EQUATIONS];
    att_ode_expression *equations[ATT_ODE_MOST_EQUATIONS];
    int lines_of[ATT_ODE_MOST_EQUATIONS];
} system_of;

/* --- statements --------------------------------------------------------------------------------------------------- */

static att_status fail_statement(const system_of *s, const char *at, const char *expected)
{
    return att_fail(s->ode->context, ATT_ERR_FORMAT, "%s: line %d, column %d: expected %s", s->lines.path,
                    s->lines.number, (int)(at - s->lines.line) + 1, expected);
}

static att_status read_name(const system_of *s, const char **at, statement *out)
{
    size_t length = 0;
    while (isalnum((unsigned char)(*at)[length]) || (*at)[length] == '_')
        length++;
    if (length == 0 || isdigit((unsigned char)**at))
        return fail_statement(s, *at, "the name of a variable or a constant");
    if (length > MOST_NAME)
        return fail_statement(s, *at, "a name of at most 31 characters");
    memcpy(out->name, *at, length);
    out->name[length] = '\0';
    *at += length;
    return ATT_OK;
}

static const char *skip_spaces(const char *at)
{
    return at + strspn(at, " \t");
}

static att_status read_statement(const system_of *s, statement *out)
{
    const char *at = skip_spaces(s->lines.line);
    *out = (statement){.kind = CONSTANT, .column = (int)(at - s->lines.line) + 1};
    if (strlen(s->lines.line) > MOST_LINE)
        return fail_statement(s, at, "a line of at most 1000 bytes");
    ATT_TRY(read_name(s, &at, out));
    if (*at == '\'') {
        out->kind = EQUATION;
        at++;
    } else if (strncmp(at, "(0)", 3) == 0) {
        out->kind = INITIAL;
        at += 3;
    } else if (strcmp(out->name, "t") == 0) {
        out->kind = INTERVAL;
    }
    at = skip_spaces(at);
    if (*at != '=')
        return fail_statement(s, at, "\"=\" after NAME, NAME' or NAME(0)");
    out->text = skip_spaces(at + 1);
    out->where = (att_ode_place){s->lines.path, s->lines.number, (int)(out->text - s->lines.line) + 1};
    return *out->text ? ATT_OK : fail_statement(s, out->text, "an expression after \"=\"");
}

/* --- names -------------------------------------------------------------------------------------------------------- */

static int find_name(const system_of *s, const char *name)
{
    for (int i = 0; i < s->name_count; i++)
        if (strcmp(s->names[i].name, name) == 0)
            return i;
    return -1;
}

static att_status add_name(system_of *s, const statement *line, double **value)
{
    char *kept = att_arena_string(&s->ode->arena, line->name);
    if (!kept)
        return att_fail_memory(s->ode->context, sizeof line->name, s->lines.path);
    if (find_name(s, line->name) >= 0 || att_ode_is_builtin_name(line->name))
        return att_fail(s->ode->context, ATT_ERR_FORMAT, "%s: line %d, column %d: the name \"%s\" is already in use",
                        s->lines.path, s->lines.number, line->column, line->name);
    *value = &s->values[s->name_count];
    s->names[s->name_count++] = (att_ode_name){kept, *value};
    return ATT_OK;
}

static att_status fail_count(const system_of *s, const char *what, int most)
{
    return att_fail(s->ode->context, ATT_ERR_FORMAT, "%s: line %d: more than %d %s", s->lines.path, s->lines.number,
                    most, what);
}

static att_status add_variable(system_of *s, const statement *line)
{
    double *value;
    if (s->variables == ATT_ODE_MOST_EQUATIONS)
        return fail_count(s, "equations", ATT_ODE_MOST_EQUATIONS);
    if (strcmp(line->name, "t") == 0)
        return att_fail(s->ode->context, ATT_ERR_FORMAT, "%s: line %d, column %d: t is the time and has no equation",
                        s->lines.path, s->lines.number, line->column);
    s->lines_of[s->variables++] = s->lines.number;
    return add_name(s, line, &value);
}

/* --- reading ------------------------------------------------------------------------------------------------------ */

static att_status evaluate(system_of *s, const char *text, att_ode_place where, int from, double *value)
{
    att_ode_expression *expression = NULL;
    ATT_TRY(
        att_ode_expression_create(s->ode->context, text, where, s->names + from, s->name_count - from, &expression));
    *value = att_ode_expression_value(expression);
    att_ode_expression_free(expression);
    if (isfinite(*value))
        return ATT_OK;
    return att_fail(s->ode->context, ATT_ERR_NONFINITE,
                    "%s: line %d, column %d: the value is %g, expected a finite number", where.path, where.line,
                    where.column, *value);
}

/* Constants and initial values may use constants only, which follow the time and the variables. */
static att_status evaluate_constant(system_of *s, const char *text, att_ode_place where, double *value)
{
    return evaluate(s, text, where, 1 + s->variables, value);
}

static att_status add_constant(system_of *s, const statement *line)
{
    double *value, result = 0;
    if (s->constants == ATT_ODE_MOST_CONSTANTS)
        return fail_count(s, "constants", ATT_ODE_MOST_CONSTANTS);
    ATT_TRY(evaluate_constant(s, line->text, line->where, &result));
    ATT_TRY(add_name(s, line, &value));
    s->constants++;
    *value = result;
    return ATT_OK;
}

static att_status set_initial(system_of *s, const statement *line)
{
    int variable = find_name(s, line->name) - 1;
    if (variable < 0 || variable >= s->variables)
        return att_fail(s->ode->context, ATT_ERR_FORMAT,
                        "%s: line %d, column %d: %s has an initial value, but no equation", s->lines.path,
                        s->lines.number, line->column, line->name);
    if (s->has_initial[variable])
        return att_fail(s->ode->context, ATT_ERR_FORMAT, "%s: line %d, column %d: %s has a second initial value",
                        s->lines.path, s->lines.number, line->column, line->name);
    s->has_initial[variable] = true;
    return evaluate_constant(s, line->text, line->where, &s->ode->initial[variable]);
}

static att_status set_interval(system_of *s, const statement *line)
{
    char *dots = strstr(line->text, "..");
    if (!dots)
        return fail_statement(s, line->text, "an interval such as 0 .. 40");
    *dots = '\0';
    const char *end = skip_spaces(dots + 2);
    att_ode_place where = line->where;
    where.column += (int)(end - line->text);
    ATT_TRY(evaluate_constant(s, line->text, line->where, &s->ode->info.start));
    return evaluate_constant(s, end, where, &s->ode->info.end);
}

static att_status set_equation(system_of *s, const statement *line)
{
    int variable = find_name(s, line->name) - 1;
    return att_ode_expression_create(s->ode->context, line->text, line->where, s->names, s->name_count,
                                     &s->equations[variable]);
}

/* Calls `use` for each line of one of the kinds. */
static att_status read_lines(system_of *s, unsigned wanted, att_status (*use)(system_of *s, const statement *line))
{
    statement line;
    ATT_TRY(att_ode_lines_rewind(s->ode, &s->lines));
    while (att_ode_lines_next(&s->lines)) {
        ATT_TRY(read_statement(s, &line));
        if (wanted >> line.kind & 1)
            ATT_TRY(use(s, &line));
    }
    return ATT_OK;
}

static att_status use_value(system_of *s, const statement *line)
{
    return line->kind == CONSTANT  ? add_constant(s, line)
           : line->kind == INITIAL ? set_initial(s, line)
                                   : set_interval(s, line);
}

static att_status check_initial(const system_of *s)
{
    for (int i = 0; i < s->variables; i++)
        if (!s->has_initial[i])
            return att_fail(s->ode->context, ATT_ERR_FORMAT,
                            "%s: line %d: %s has no initial value; add a line such as %s(0) = 1", s->lines.path,
                            s->lines_of[i], s->variable_names[i], s->variable_names[i]);
    return ATT_OK;
}

/* --- the system --------------------------------------------------------------------------------------------------- */

static void rate(att_ode *ode, double t, const double *u, double *du)
{
    system_of *s = ode->data;
    s->values[0] = t;
    memcpy(s->values + 1, u, (size_t)ode->info.size * sizeof *u);
    for (int i = 0; i < ode->info.size; i++)
        du[i] = att_ode_expression_value(s->equations[i]);
}

static void close_file(att_ode *ode)
{
    system_of *s = ode->data;
    for (int i = 0; i < s->variables; i++)
        att_ode_expression_free(s->equations[i]);
}

static att_status name_variables(system_of *s)
{
    ATT_TRY(att_ode_allocate_array(s->ode, (size_t)s->variables, sizeof *s->variable_names, &s->variable_names));
    for (int i = 0; i < s->variables; i++)
        s->variable_names[i] = s->names[1 + i].name;
    s->ode->names = s->variable_names;
    return ATT_OK;
}

att_status att_ode_from_file(att_ode *ode, const char *path)
{
    system_of *s;
    char *name = att_arena_string(&ode->arena, path);
    if (!name)
        return att_fail_memory(ode->context, strlen(path), path);
    ode->info = (att_ode_info){.name = name, .formula = "the equations of the file", .source = name, .end = 1};
    ATT_TRY(att_ode_allocate_array(ode, 1, sizeof *s, &s));
    s->ode = ode;
    s->names[s->name_count++] = (att_ode_name){"t", &s->values[0]};
    ode->data = s;
    ode->close = close_file;
    ode->rate = rate;
    ATT_TRY(att_ode_lines_open(ode, name, MOST_BYTES, &s->lines));
    ATT_TRY(read_lines(s, 1u << EQUATION, add_variable));
    if (s->variables == 0)
        return att_fail(ode->context, ATT_ERR_FORMAT, "%s has no equation, expected lines such as x' = -x and x(0) = 1",
                        path);
    ATT_TRY(att_ode_allocate(ode, s->variables));
    ATT_TRY(name_variables(s));
    ATT_TRY(read_lines(s, 1u << CONSTANT | 1u << INITIAL | 1u << INTERVAL, use_value));
    ATT_TRY(check_initial(s));
    return read_lines(s, 1u << EQUATION, set_equation);
}
