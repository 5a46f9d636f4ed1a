/* Systems from files: syntax, values, and wrong files. */
#include "lab/papers/ode/system.h"
#include "lab/papers/ode/systems.h"

SCRATCH_TEST(a_file_has_constants_equations_and_an_interval)
{
    if (!has_files(self))
        skip();
    att_ode *ode = open_system(self,
                               write_system(self,
                                            "# reaction\nk = 0.5\n  twice = 2 * k # 1\nt = 1 .. 1 + k\n"
                                            "x' = -k * x + y^2\n\ny' = sin(t) - twice * y\r\nx(0) = 3*k\ny(0)=-1e-1"),
                               NULL);
    att_ode_info info = att_ode_info_of(ode);
    const double *u = ode->initial, at[] = {2, 3};
    double du[2], j[4];
    assert_int_equal(info.size, 2);
    assert_true(info.start == 1 && info.end == 1.5 && u[0] == 1.5 && u[1] == -0.1);
    assert_int_equal(att_ode_rate(ode, 0.25, at, du), ATT_OK);
    assert_true(fabs(du[0] - 8) < 1e-15 && fabs(du[1] - (sin(0.25) - 3)) < 1e-15);
    assert_int_equal(att_ode_jacobian(ode, 0.25, at, j), ATT_OK);
    const double expected[] = {-0.5, 6, 0, -1};
    for (int i = 0; i < 4; i++)
        assert_true(fabs(j[i] - expected[i]) < 1e-8); /* measured: 2e-11 */
    att_ode_close(&ode);
}

/* The same system from a file and by its name. */
SCRATCH_TEST(robertson_from_a_file_is_robertson)
{
    if (!has_files(self))
        skip();
    att_ode *file = open_system(self,
                                write_system(self,
                                             "y1' = -0.04 * y1 + 1e4 * y2 * y3\n"
                                             "y2' = 0.04 * y1 - 1e4 * y2 * y3 - 3e7 * y2^2\ny3' = 3e7 * y2^2\n"
                                             "y1(0) = 1\ny2(0) = 0\ny3(0) = 0\nt = 0 .. 40\n"),
                                NULL);
    att_ode *named = open_system(self, "robertson", NULL);
    const double u[] = {0.9, 3e-5, 0.1};
    att_spectrum_ends a, b;
    assert_int_equal(att_ode_spectrum(file, 0, u, &a), ATT_OK);
    assert_int_equal(att_ode_spectrum(named, 0, u, &b), ATT_OK);
    assert_true(fabs(a.stiffness_index / b.stiffness_index - 1) < 1e-9); /* measured: 4e-11 */
    att_ode_close(&file);
    att_ode_close(&named);
}

/* Hairer and Wanner's form of Van der Pol's equation with eps = 1e-6. Reference at t = 2: Mazzia and Magherini, Test
 * Set for Initial Value Problem Solvers, release 2.4, problem VDPOL. */
SCRATCH_TEST(a_stiff_file_agrees_with_its_published_solution)
{
    if (!has_files(self) || !has_method("bdf"))
        skip();
    att_ode *ode = open_system(self,
                               write_system(self,
                                            "eps = 1e-6\nx' = y\ny' = ((1 - x^2) * y - x) / eps\n"
                                            "x(0) = 2\ny(0) = -0.66\nt = 0 .. 2\n"),
                               NULL);
    att_ode_options options = att_ode_options_defaults();
    options.rtol = 1e-9;
    options.atol = 1e-12;
    att_ode_trajectory t = run_method(ode, "bdf", &options);
    assert_true(fabs(t.state[0] / 1.706167732170483 - 1) < 1e-6);
    assert_true(fabs(t.state[1] / -0.8928097010247975 - 1) < 1e-6);
    att_ode_trajectory_free(&t);
    att_ode_close(&ode);
}

typedef struct wrong {
    const char *text;
    att_status status;
    const char *message;
} wrong;

static void refuse(scratch *s, const wrong *w)
{
    att_ode *ode = NULL;
    assert_fails(s->context, att_ode_open(s->context, write_system(s, w->text), NULL, &ode), w->status, w->message);
    assert_null(ode);
}

SCRATCH_TEST(wrong_files_are_refused_with_their_place)
{
    if (!has_files(self))
        skip();
    static const wrong cases[] = {
        {"", ATT_ERR_FORMAT, "has no equation"},
        {"x' = 1\n", ATT_ERR_FORMAT, "line 1: x has no initial value; add a line such as x(0) = 1"},
        {"rate = 2\nx' = -rat * x\nx(0) = 1\n", ATT_ERR_FORMAT,
         "line 2, column 7: there is no name \"rat\"; did you mean rate?"},
        {"x' = y\nx(0) = 1\n", ATT_ERR_FORMAT, "line 1, column 6: there is no name \"y\""},
        {"x' = -x +\nx(0) = 1\n", ATT_ERR_FORMAT, "line 1, column 10: the expression is not complete"},
        {"x' = (1\nx(0) = 1\n", ATT_ERR_FORMAT, "line 1, column"},
        {"x' = 1, 2\nx(0) = 1\n", ATT_ERR_FORMAT, "line 1, column 6: 2 expressions, expected one"},
        {"x' = x = 3\nx(0) = 1\n", ATT_ERR_FORMAT, "line 1, column 8: \"=\" in an expression"},
        {"x' =\nx(0) = 1\n", ATT_ERR_FORMAT, "line 1, column 5: expected an expression after \"=\""},
        {"x' = \"a\"\nx(0) = 1\n", ATT_ERR_FORMAT, "line 1, column"},
        {"x'' = 1\n", ATT_ERR_FORMAT, "line 1, column 3: expected \"=\" after NAME"},
        {"2x = 1\n", ATT_ERR_FORMAT, "line 1, column 1: expected the name of a variable"},
        {"x' = 1\nx(1) = 0\n", ATT_ERR_FORMAT, "line 2, column 2: expected \"=\""},
        {"x' = 1\nx' = 2\nx(0) = 0\n", ATT_ERR_FORMAT, "line 2, column 1: the name \"x\" is already in use"},
        {"x' = 1\nx = 2\nx(0) = 0\n", ATT_ERR_FORMAT, "line 2, column 1: the name \"x\" is already in use"},
        {"sin' = 1\nsin(0) = 0\n", ATT_ERR_FORMAT, "the name \"sin\" is already in use"},
        {"t' = 1\nt(0) = 0\n", ATT_ERR_FORMAT, "t is the time"},
        {"x' = 1\nx(0) = 0\nx(0) = 1\n", ATT_ERR_FORMAT, "line 3, column 1: x has a second initial value"},
        {"x' = 1\nx(0) = 0\ny(0) = 1\n", ATT_ERR_FORMAT, "line 3, column 1: y has an initial value, but no equation"},
        {"x' = 1\nx(0) = x\n", ATT_ERR_FORMAT, "line 2, column 8: there is no name \"x\""},
        {"x' = 1\nx(0) = 1 / 0\n", ATT_ERR_NONFINITE, "line 2, column 8: the value is inf"},
        {"x' = 1\nx(0) = 1\nt = 0\n", ATT_ERR_FORMAT, "line 3, column 5: expected an interval such as 0 .. 40"},
        {"x' = 1\nx(0) = 1\nt = 2 .. 1\n", ATT_ERR_ARGUMENT, "the interval ends at 1, expected a finite time after 2"},
        {"x' = 1 / (x - 1)\nx(0) = 1\n", ATT_ERR_NONFINITE, "the derivative of x is inf at t = 0"},
        {"x' = ln(x)\nx(0) = -1\n", ATT_ERR_NONFINITE, "the derivative of x is"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        refuse(self, &cases[i]);
}

/* `count` lines "PREFIX<i>SUFFIX". */
static char *repeat(const char *format, int count)
{
    char *text = calloc((size_t)count + 1, 64);
    for (int i = 0; i < count; i++)
        sprintf(text + strlen(text), format, i, i);
    return text;
}

SCRATCH_TEST(large_files_are_refused)
{
    if (!has_files(self))
        skip();
    char *equations = repeat("x%d' = 1\nx%d(0) = 0\n", 65), *constants = repeat("k%d = %d\n", 65);
    char *long_line = calloc(1, 2000), *nested = calloc(1, 2000);
    sprintf(long_line, "x' = 1%01200d\n", 0);
    strcpy(nested, "x' = ");
    memset(nested + 5, '(', 900);
    strcat(constants, "x' = 1\nx(0) = 0\n");
    const wrong cases[] = {{equations, ATT_ERR_FORMAT, "line 129: more than 64 equations"},
                           {constants, ATT_ERR_FORMAT, "line 65: more than 64 constants"},
                           {long_line, ATT_ERR_FORMAT, "line 1, column 1: expected a line of at most 1000 bytes"},
                           {nested, ATT_ERR_FORMAT, "has no"}};
    for (size_t i = 0; i < 3; i++)
        refuse(self, &cases[i]);
    att_ode *ode = NULL;
    strcat(nested, "\nx(0) = 1\n");
    assert_int_equal(att_ode_open(self->context, write_system(self, nested), NULL, &ode), ATT_ERR_FORMAT);
    free(equations);
    free(constants);
    free(long_line);
    free(nested);
    char *big = calloc(1, 70000);
    memset(big, '\n', 69999);
    assert_int_equal(att_ode_open(self->context, write_system(self, big), NULL, &ode), ATT_ERR_FORMAT);
    free(big);
    assert_int_equal(att_ode_open(self->context, "no/such/file.ode", NULL, &ode), ATT_ERR_NOT_FOUND);
}

/* The adaptive methods try ever smaller steps in front of t = 0.5. */
SCRATCH_TEST(a_rate_that_stops_being_finite_ends_the_run)
{
    if (!has_files(self))
        skip();
    att_ode *ode = open_system(self, write_system(self, "x' = sqrt(0.5 - t)\nx(0) = 0\n"), NULL);
    att_ode_trajectory t = {0};
    static const char *const methods[] = {"euler", "rk4", "rkf45", "bdf"};
    att_ode_options options = att_ode_options_defaults();
    options.most_steps = 2000;
    for (int m = 0; m < 4; m++) {
        if (!has_method(methods[m]))
            continue;
        att_status status = att_ode_run(ode, methods[m], &options, &t);
        printf("%s: %s\n", methods[m], att_context_message(self->context));
        assert_true(status == ATT_ERR_NONFINITE || (m > 1 && status == ATT_ERR_ARGUMENT));
        assert_message_has(self, status == ATT_ERR_NONFINITE ? "the derivative of x is" : "t = 0.5 of 1 was reached");
    }
    att_ode_close(&ode);
}

/* J of a file has errors of about 1e-10, which are neither asymmetry nor a distance of eigenvalues. */
SCRATCH_TEST(theorem_2_allows_for_the_error_of_differences)
{
    if (!has_files(self))
        skip();
    static const struct {
        const char *equations, *fails;
    } cases[] = {
        {"x' = 1 + x^2 * y - 4 * x\ny' = 3 * x - x^2 * y\n",
         "f(u) is not J u, so that the formula of c does not apply"},
        {"x' = -3 * x + y / 3\ny' = x / 3 - 7 * y\n", NULL},
        {"x' = -3 * x + y / 3\ny' = x / 3 * 1.000001 - 7 * y\n", "J is not symmetric"},
        {"x' = -0.7 * x + 0.3 * y\ny' = 0.3 * x - 0.7 * y * 9 / 49\n", "an eigenvalue of J is not negative"},
        {"x' = -exp(x) / exp(1)\ny' = -y\n", "eigenvalues of J are not distinct"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[256];
        att_ode_theorem t;
        snprintf(text, sizeof text, "%sx(0) = 1\ny(0) = 1\n", cases[i].equations);
        att_ode *ode = open_system(self, write_system(self, text), NULL);
        assert_int_equal(att_ode_theorem_check(ode, 1e-3, &t), ATT_OK);
        printf("asymmetry %g, largest %g, gap %g, nonlinear %g\n", t.asymmetry, t.largest, t.gap, t.nonlinear);
        if (cases[i].fails)
            assert_string_equal(t.fails, cases[i].fails);
        else
            assert_null(t.fails);
        att_ode_close(&ode);
    }
}

/* sin t ends at 0, so that errors are divided by its largest value. */
SCRATCH_TEST(errors_of_a_solution_that_ends_near_0_have_a_unit)
{
    if (!has_files(self))
        skip();
    att_ode *ode = open_system(self, write_system(self, "x' = cos(t)\nx(0) = 0\nt = 0 .. 6.283185307179586\n"), NULL);
    double u, unit = 0;
    const char *how = NULL;
    assert_int_equal(att_ode_reference(ode, &u, &unit, &how), ATT_OK);
    assert_true(fabs(u) < 1e-8 && unit > 0.99 && unit < 1.01);
    att_ode_close(&ode);
}

/* 1 / (1 - t) */
SCRATCH_TEST(adaptive_methods_end_before_a_pole)
{
    if (!has_files(self))
        skip();
    att_ode *ode = open_system(self, write_system(self, "x' = x^2\nx(0) = 1\nt = 0 .. 2\n"), NULL);
    for (int m = 0; m < 2; m++) {
        const char *method = m == 0 ? "rkf45" : "bdf";
        if (!has_method(method))
            continue;
        att_ode_trajectory t = run_method(ode, method, NULL);
        assert_true(t.diverged && fabs(t.t - 1) < 1e-3);
        for (int64_t i = 0; i < t.count; i++)
            assert_true(t.steps[i].h > 0 && isfinite(t.steps[i].sai));
        att_ode_trajectory_free(&t);
    }
    att_ode_close(&ode);
}

static att_status open_file(scratch *s)
{
    att_ode *ode = NULL;
    att_status status = att_ode_open(s->context, s->path, NULL, &ode);
    att_ode_close(&ode);
    return status;
}

SCRATCH_TEST(lack_of_memory_leaves_nothing)
{
    if (!has_files(self))
        skip();
    write_system(self, "k = 2\nx' = -k * x\nx(0) = 1\n");
    assert_survives_lack_of_memory(self, open_file);
}
