#include <math.h>
#include <stdlib.h>

#include "ode.h"

enum { ROWS = 9 };

static const char *const explanation =
    "Figures:\n"
    "  SI         max_i |Re lambda_i|, eigenvalues of the Jacobian J of f at the beginning\n"
    "             of the step (stiffness index)\n"
    "  h SI       stable on a negative eigenvalue: at most 2 for euler, 2.785 for rk4,\n"
    "             3.678 for rkf45; bdf has no limit\n"
    "  SAI        |(u_{i+1} - u_i) / h| / |u_i| (stiffness-aware index). It is also the NSI\n"
    "             of the states in the reading attention, which divides by the step\n"
    "  NSI        |u_{i+1} - u_i| / |u_i|, reading unit = h SAI\n"
    "  error      |u - reference| / |reference| at the end of the interval; if |reference| is\n"
    "             below 1e-6 of its largest norm on the way, / that norm instead\n"
    "  diverged   |u| exceeded 1e20 (1 + |u_0|), or steps of rkf45 and bdf vanished in the\n"
    "             rounding of t, as before a pole of the solution\n"
    "  rejected   steps computed again with a smaller h; f calls: evaluations of f\n"
    "Norms are Euclidean, eigenvalues those of LAPACK (up to 64 equations) or ARPACK.\n"
    "Source: Huang et al., \"Understanding Self-attention Mechanism via Dynamical System\n"
    "Perspective\", ICCV 2023, section 2.1.2 and theorem 2.\n";

void ode_explain(FILE *out)
{
    fputs(explanation, out);
}

/* --- tables ------------------------------------------------------------------------------------------------------- */

static void print_method(const ode_method *m)
{
    const att_ode_trajectory *t = &m->trajectory;
    if (m->failure[0]) {
        cli_print("  %-6s %s\n", m->info.name, m->failure);
        return;
    }
    cli_print("  %-6s %8lld %8lld %9lld %10.3g %10.3g %10.4g ", m->info.name, (long long)t->count,
              (long long)t->rejected, (long long)t->rate_calls, m->least_step, m->largest_step, m->largest_product);
    char over[48] = "no limit";
    if (!isinf(m->info.limit))
        snprintf(over, sizeof over, "%lld (limit %.4g)", (long long)t->above_limit, m->info.limit);
    cli_print("%19s ", over);
    if (t->diverged)
        cli_print("diverged at t = %.4g\n", t->t);
    else if (isnan(m->error))
        cli_print("%10s\n", "-");
    else
        cli_print("%10.2e\n", m->error);
}

/* Names the methods that choose their steps by the tolerances. */
static void print_tolerances(const ode_results *r)
{
    int named = 0;
    for (int i = 0; i < r->method_count; i++)
        if (r->methods[i].info.adaptive)
            cli_print("%s%s", named++ ? ", " : "  ", r->methods[i].info.name);
    if (named)
        cli_print(": rtol %g, atol %g. ", r->options.rtol, r->options.atol);
    else
        cli_print("  ");
}

static void print_summary(const ode_results *r)
{
    cli_print("%s: %d equation%s, t = %g .. %g%s\n  f: %s\n  source: %s\n\n", r->info.name, r->info.size,
              cli_plural(r->info.size), r->info.start, r->info.end, r->info.constant ? ", constant Jacobian" : "",
              r->info.formula, r->info.source);
    cli_print("  %-6s %8s %8s %9s %10s %10s %10s %19s %10s\n", "method", "steps", "rejected", "f calls", "least h",
              "largest h", "largest hSI", "steps over limit", "error");
    for (int i = 0; i < r->method_count; i++)
        print_method(&r->methods[i]);
    print_tolerances(r);
    cli_print("Reference: %s.\n", r->reference);
    if (r->error_unit > 0)
        cli_print("  Errors are |u - reference| / %.4g at the end.\n", r->error_unit);
}

static void print_steps(const ode_method *m)
{
    const att_ode_trajectory *t = &m->trajectory;
    int64_t rows = t->count < ROWS ? t->count : ROWS;
    if (t->count == 0)
        return;
    cli_print("\n%s, %s: %lld of %lld steps\n  %12s %11s %11s %9s %11s %11s\n", m->info.name, m->info.title,
              (long long)rows, (long long)t->count, "t", "h", "SI", "h SI", "SAI", "NSI");
    for (int64_t row = 0; row < rows; row++) {
        const att_ode_step *s = &t->steps[rows > 1 ? row * (t->count - 1) / (rows - 1) : 0];
        cli_print("  %12.5g %11.3e %11.3e %9.3g %11.3e %11.3e\n", s->t, s->h, s->stiffness_index,
                  s->h * s->stiffness_index, s->sai, s->nsi);
    }
}

static void print_theorem(const ode_results *r)
{
    const att_ode_theorem *t = &r->family[0].theorem;
    cli_print(
        "\nTheorem 2, at the initial value: SAI = c SI + Q(SI), where Q -> 0 for large SI\n"
        "  Hypotheses, as measured. J symmetric: |J - J'| / |J| = %.2g. Eigenvalues negative: largest %.4g",
        t->asymmetry, t->largest);
    if (!isnan(t->gap))
        cli_print(".\n  Eigenvalues distinct: least gap / SI = %.2g. f(u) = J u, for c: relative difference %.2g",
                  t->gap, t->nonlinear);
    cli_print(".\n");
    if (t->fails) {
        cli_print("  It does not apply here: %s.\n", t->fails);
        return;
    }
    cli_print("  %-16s %11s %11s %9s %11s %11s %9s %14s\n", "system", "SI", "SAI, h -> 0", "c", "c SI", "Q", "Q SI",
              "SAI at step h");
    for (int i = 0; i < r->family_count; i++) {
        t = &r->family[i].theorem;
        if (t->fails)
            cli_print("  %-16s does not apply: %s\n", r->family[i].name, t->fails);
        else
            cli_print("  %-16s %11.4e %11.4e %9.4f %11.4e %11.3e %9.4g %14.4e\n", r->family[i].name, t->stiffness_index,
                      t->sai, t->c, t->c * t->stiffness_index, t->rest, t->rest * t->stiffness_index, t->sai_at_step);
    }
    cli_print(
        "  c = |<u, v>| / |u| with the eigenvector v of the largest |lambda|. SAI at h = %g, of the exact solution, "
        "saturates at c / h.\n",
        r->theorem_step);
}

void ode_print(const ode_results *results)
{
    print_summary(results);
    for (int i = 0; i < results->method_count; i++)
        print_steps(&results->methods[i]);
    print_theorem(results);
    cli_print("\n%s", explanation);
}

/* --- files -------------------------------------------------------------------------------------------------------- */

static void write_step(att_json_writer *json, const att_ode_step *s, const double *u, int size)
{
    att_json_begin_object(json);
    att_json_put_number(json, "t", s->t);
    att_json_put_number(json, "h", s->h);
    att_json_put_number(json, "stiffness_index", s->stiffness_index);
    att_json_put_number(json, "sai", s->sai);
    att_json_put_number(json, "sai_simplified", s->sai_simplified);
    att_json_put_number(json, "nsi", s->nsi);
    cli_json_numbers(json, "state", u, size);
    att_json_end_object(json);
}

static void write_method(att_json_writer *json, const ode_method *m, int size)
{
    const att_ode_trajectory *t = &m->trajectory;
    att_json_begin_object(json);
    att_json_put_string(json, "method", m->info.name);
    att_json_put_string(json, "title", m->info.title);
    att_json_put_string(json, "source", m->info.source);
    att_json_put_number(json, "stability_limit", m->info.limit);
    att_json_put_string(json, "failure", m->failure[0] ? m->failure : NULL);
    att_json_put_integer(json, "count", t->count);
    att_json_put_integer(json, "rejected", t->rejected);
    att_json_put_integer(json, "rate_calls", t->rate_calls);
    att_json_put_integer(json, "above_limit", t->above_limit);
    att_json_put_bool(json, "diverged", t->diverged);
    att_json_put_number(json, "t", t->state ? t->t : NAN);
    cli_json_numbers(json, "state", t->state, t->state ? size : 0);
    att_json_put_number(json, "error", m->error);
    att_json_put_array(json, "steps");
    for (int64_t i = 0; i < t->count; i++)
        write_step(json, &t->steps[i], t->states + i * size, size);
    att_json_end_array(json);
    att_json_end_object(json);
}

static void write_member(att_json_writer *json, const ode_member *m)
{
    const att_ode_theorem *t = &m->theorem;
    att_json_begin_object(json);
    att_json_put_string(json, "system", m->name);
    att_json_put_string(json, "does_not_apply", t->fails);
    att_json_put_number(json, "asymmetry", t->asymmetry);
    att_json_put_number(json, "largest_eigenvalue", t->largest);
    att_json_put_number(json, "least_gap", t->gap);
    att_json_put_number(json, "nonlinear", t->nonlinear);
    att_json_put_number(json, "stiffness_index", t->stiffness_index);
    att_json_put_number(json, "sai", t->sai);
    att_json_put_number(json, "c", t->c);
    att_json_put_number(json, "rest", t->rest);
    att_json_put_number(json, "sai_at_step", t->sai_at_step);
    att_json_end_object(json);
}

static void write_results(att_json_writer *json, const void *from)
{
    const ode_results *r = from;
    att_json_put_string(json, "system", r->info.name);
    att_json_put_string(json, "formula", r->info.formula);
    att_json_put_string(json, "source", r->info.source);
    att_json_put_string(json, "figures", explanation);
    att_json_put_integer(json, "size", r->info.size);
    att_json_put_number(json, "start", r->info.start);
    att_json_put_number(json, "end", r->info.end);
    att_json_put_number(json, "rtol", r->options.rtol);
    att_json_put_number(json, "atol", r->options.atol);
    att_json_put_string(json, "reference", r->reference);
    att_json_put_number(json, "error_unit", r->error_unit);
    att_json_put_array(json, "components");
    for (int i = 0; i < r->info.size; i++)
        att_json_string(json, att_ode_component(r->ode, i));
    att_json_end_array(json);
    att_json_put_array(json, "methods");
    for (int i = 0; i < r->method_count; i++)
        write_method(json, &r->methods[i], r->info.size);
    att_json_end_array(json);
    att_json_put_number(json, "theorem_step", r->theorem_step);
    att_json_put_array(json, "theorem");
    for (int i = 0; i < r->family_count; i++)
        write_member(json, &r->family[i]);
    att_json_end_array(json);
}

int ode_write_json(cli_app *cli, const char *path, const ode_results *results)
{
    return cli_json_save(cli, path, write_results, results);
}

static void write_numbers(FILE *out, const double *u, int size)
{
    for (int i = 0; i < size; i++)
        fprintf(out, ",%.17g", u[i]);
    fputc('\n', out);
}

/* A row for each step, with the state at its beginning, then one with the state at the end, which has no step. */
static void write_rows_of(FILE *out, const ode_method *m, int size)
{
    const att_ode_trajectory *t = &m->trajectory;
    for (int64_t k = 0; k < t->count; k++) {
        const att_ode_step *s = &t->steps[k];
        fprintf(out, "%s,%.17g,%.17g,%.17g,%.17g,%.17g,%.17g", m->info.name, s->t, s->h, s->stiffness_index, s->sai,
                s->sai_simplified, s->nsi);
        write_numbers(out, t->states + k * size, size);
    }
    if (!t->state)
        return;
    fprintf(out, "%s,%.17g,,,,,", m->info.name, t->t);
    write_numbers(out, t->state, size);
}

static void write_rows(FILE *out, const ode_results *r)
{
    fputs("method,t,h,stiffness_index,sai,sai_simplified,nsi", out);
    for (int i = 0; i < r->info.size; i++)
        fprintf(out, ",state.%s", att_ode_component(r->ode, i));
    fputc('\n', out);
    for (int i = 0; i < r->method_count; i++)
        write_rows_of(out, &r->methods[i], r->info.size);
}

int ode_write_csv(cli_app *cli, const char *path, const ode_results *r)
{
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    if (!out)
        return cli_failure("out of memory for %s", path);
    write_rows(out, r);
    bool written = fclose(out) == 0;
    int code = written ? cli_file_write(cli, path, text, length) : cli_failure("out of memory for %s", path);
    free(text);
    return code;
}
