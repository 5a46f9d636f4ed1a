/* The rules of alerts, on figures that instruments measured: each rule is raised by a case built for it, once, and none
 * by an ordinary one. test_alerts.sh has whole training runs. */
#include <attscope/attscope.h>

#include "context.h"
#include "study/train/alerts.h"

SHARED_CONTEXT(threads, 0)

/* A stream with STEPS additions x + attention(q, q, v), all of whose inputs the test sets. */
enum { STEPS = 4, TOKENS = 6, WIDTH = 8, MOST_RAISED = 32 };
typedef struct stream {
    att_graph *graph;
    att_measure *measure;
    att_plan *plan;
    att_weights *weights;
    att_session *session;
    att_alerts *alerts;
    float x[TOKENS][WIDTH], q[TOKENS][WIDTH], v[STEPS][TOKENS][WIDTH];
    char raised[MOST_RAISED][96]; /* "dead head add0 1" */
    int count;
} stream;

static void stream_open(stream *s)
{
    memset(s, 0, sizeof *s);
    must(att_graph_create(context, ATT_F32, &s->graph));
    att_value x = att_graph_input(s->graph, "x", ATT_F32, att_shape_of(TOKENS, WIDTH));
    att_value q = att_graph_input(s->graph, "q", ATT_F32, att_shape_of(TOKENS, WIDTH));
    for (int i = 0; i < STEPS; i++) {
        char name[16];
        const att_attention_options options = {.heads = 2, .scale = 1};
        snprintf(name, sizeof name, "v%d", i);
        att_value v = att_graph_input(s->graph, name, ATT_F32, att_shape_of(TOKENS, WIDTH));
        snprintf(name, sizeof name, "attn%d", i);
        att_graph_scope(s->graph, name);
        att_value branch = att_attention(s->graph, q, q, v, &options);
        snprintf(name, sizeof name, "add%d", i);
        att_graph_scope(s->graph, name);
        x = att_add(s->graph, x, branch);
    }
    att_graph_output(s->graph, "y", x);
    must(att_measure_create(s->graph, att_alerts_instruments(), "*", &s->measure));
    att_plan_options plan = att_plan_options_defaults();
    must(att_plan_compile(s->graph, &plan, &s->plan));
    must(att_weights_create(s->graph, "cpu", &s->weights));
    must(att_session_create(s->plan, s->weights, 1, &s->session));
    must(att_session_bind(s->session, "x", s->x));
    must(att_session_bind(s->session, "q", s->q));
    for (int i = 0; i < STEPS; i++) {
        char name[16];
        snprintf(name, sizeof name, "v%d", i);
        must(att_session_bind(s->session, name, s->v[i]));
    }
    must(att_alerts_create(context, &s->alerts));
    /* Tokens, scores and values of about the same size, all different. */
    for (int t = 0; t < TOKENS; t++)
        for (int c = 0; c < WIDTH; c++) {
            s->x[t][c] = (float)sin(1 + t * WIDTH + c);
            s->q[t][c] = (float)cos(3 * t + 2 * c);
            for (int i = 0; i < STEPS; i++)
                s->v[i][t][c] = (float)(0.3 * sin(2 + 5 * t + 3 * c + i));
        }
}

static void stream_close(stream *s)
{
    att_alerts_destroy(&s->alerts);
    att_session_destroy(&s->session);
    att_weights_destroy(&s->weights);
    att_plan_destroy(&s->plan);
    att_measure_destroy(&s->measure);
    att_graph_destroy(&s->graph);
}

static att_status raise_alert(void *user, const att_alert *alert)
{
    stream *s = user;
    assert_true(s->count < MOST_RAISED);
    snprintf(s->raised[s->count++], sizeof s->raised[0], "%s %s %d", alert->rule, alert->node, alert->head);
    assert_true(isfinite(alert->value) && isfinite(alert->threshold));
    assert_true(strlen(alert->found) > 20 && strlen(alert->advice) > 20);
    return ATT_OK;
}

/* Measures the stream as it is. Returns how many alerts were raised. */
static int measure(stream *s)
{
    int count;
    s->count = 0;
    att_measure_clear(s->measure);
    must(att_session_run(s->session, 1));
    must(att_measure_observe(s->measure, s->session, 1, NULL));
    const att_measurement *figures = att_measure_observed(s->measure, &count);
    must(att_alerts_check(s->alerts, figures, count, raise_alert, s));
    return s->count;
}

static bool was_raised(const stream *s, const char *alert)
{
    for (int i = 0; i < s->count; i++)
        if (strcmp(s->raised[i], alert) == 0)
            return true;
    return false;
}

TEST(an_ordinary_stream_raises_nothing)
{
    static stream s;
    stream_open(&s);
    for (int i = 0; i < 12; i++) {
        for (int c = 0; c < WIDTH; c++)
            s.x[0][c] *= 1.1F; /* a slow change */
        assert_int_equal(measure(&s), 0);
    }
    stream_close(&s);
}

/* What a checkpoint says of the alerts of one training run is read by those of the next. */
TEST(alerts_that_hold_are_not_raised_again_after_a_resume)
{
    static stream s;
    att_text text = {.context = context};
    bool valid = false;
    stream_open(&s);
    att_alerts_write(s.alerts, &text);
    assert_null(text.data); /* nothing holds */
    for (int t = 0; t < TOKENS; t++)
        for (int c = 0; c < WIDTH; c++)
            s.q[t][c] *= 100;
    const int raised = measure(&s);
    assert_true(raised > 0);
    att_alerts_write(s.alerts, &text);
    assert_non_null(strstr(text.data, "entropy collapse\t-1\tattn0\n"));
    assert_non_null(strstr(text.data, "dead head\t1\tattn3\n"));
    att_alerts_destroy(&s.alerts);
    must(att_alerts_create(context, &s.alerts));
    must(att_alerts_read(s.alerts, text.data, &valid));
    assert_true(valid);
    assert_int_equal(measure(&s), 0);
    for (int t = 0; t < TOKENS; t++)
        for (int c = 0; c < WIDTH; c++)
            s.q[t][c] /= 100;
    assert_int_equal(measure(&s), 0);
    for (int t = 0; t < TOKENS; t++)
        for (int c = 0; c < WIDTH; c++)
            s.q[t][c] *= 100;
    assert_int_equal(measure(&s), raised); /* it began to hold again */
    att_text_free(&text);
    stream_close(&s);
}

TEST(damaged_texts_of_alerts_are_refused)
{
    static const char *const damaged[] = {"dead head",
                                          "dead head\t0",
                                          "dead head\t0\t\n",
                                          "dead head\t-2\tattn\n",
                                          "dead head\tx\tattn\n",
                                          "dead\t0\tattn\n",
                                          "dead head\t0\ta\tb\n",
                                          "\n",
                                          "dead head\t9999999999\ta\n"};
    for (size_t i = 0; i < sizeof damaged / sizeof *damaged; i++) {
        att_alerts *alerts = NULL;
        bool valid = true;
        must(att_alerts_create(context, &alerts));
        must(att_alerts_read(alerts, damaged[i], &valid));
        if (valid)
            fail_msg("\"%s\" is accepted", damaged[i]);
        att_alerts_destroy(&alerts);
    }
}

TEST(sharp_scores_are_an_entropy_collapse_of_dead_heads)
{
    static stream s;
    stream_open(&s);
    assert_int_equal(measure(&s), 0);
    for (int t = 0; t < TOKENS; t++)
        for (int c = 0; c < WIDTH; c++)
            s.q[t][c] = c % (WIDTH / 2) == t % 4 ? 30.0F + (float)t : 0; /* each query attends to one key */
    assert_int_equal(measure(&s), STEPS * 3);
    assert_true(was_raised(&s, "entropy collapse attn0 -1"));
    assert_true(was_raised(&s, "dead head attn0 0"));
    assert_true(was_raised(&s, "dead head attn3 1"));
    assert_int_equal(measure(&s), 0); /* it still holds, and is not raised again */
    stream_close(&s);
}

TEST(equal_tokens_are_a_rank_collapse)
{
    static stream s;
    stream_open(&s);
    assert_int_equal(measure(&s), 0);
    for (int t = 0; t < TOKENS; t++)
        for (int c = 0; c < WIDTH; c++) {
            s.x[t][c] = (float)(c + 1);
            for (int i = 0; i < STEPS; i++)
                s.v[i][t][c] = 0.01F * (float)t;
        }
    assert_int_equal(measure(&s), STEPS);
    assert_true(was_raised(&s, "rank collapse add0 -1") && was_raised(&s, "rank collapse add3 -1"));
    stream_close(&s);
}

TEST(a_sudden_large_step_is_a_spike)
{
    static stream s;
    stream_open(&s);
    float usual[TOKENS][WIDTH];
    memcpy(usual, s.v[2], sizeof usual);
    for (int time = 0; time < 5; time++) {
        for (int t = 0; t < TOKENS; t++)
            for (int c = 0; c < WIDTH; c++)
                s.v[2][t][c] = usual[t][c] * (time == 2 || time == 4 ? 100 : 1);
        const int raised = measure(&s);
        /* The third measurement is as large, but two earlier ones are no history. */
        if (raised != (time == 4) || (time == 4 && !was_raised(&s, "stiffness spike add2 -1")))
            fail_msg("measurement %d: %d alerts, %s", time, raised, raised ? s.raised[0] : "");
    }
    stream_close(&s);
}

TEST(an_alert_that_ended_is_raised_again)
{
    static stream s;
    stream_open(&s);
    float usual[TOKENS][WIDTH];
    memcpy(usual, s.x, sizeof usual);
    for (int time = 0; time < 4; time++) {
        for (int t = 0; t < TOKENS; t++)
            for (int c = 0; c < WIDTH; c++)
                s.x[t][c] = time % 2 ? 1000 : usual[t][c];
        assert_int_equal(measure(&s), time % 2 ? STEPS : 0);
    }
    stream_close(&s);
}

TEST(figures_that_are_not_finite_raise_nothing)
{
    static stream s;
    stream_open(&s);
    for (int t = 0; t < TOKENS; t++)
        for (int c = 0; c < WIDTH; c++)
            s.x[t][c] = NAN;
    assert_int_equal(measure(&s), 0);
    stream_close(&s);
}
