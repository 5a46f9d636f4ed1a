/* The memory planner: values are aligned, values that live at the same time do not overlap, and the arena is no larger
 * than the values of one step; also the values of a layer that training keeps. */
#include "engine/fixture.h"
#include "engine/plan/plan.h"

enum { SIZE = 16 };

/* Takes ownership of the graph. */
static att_plan *compile(att_graph *graph, att_purpose purpose, int group)
{
    att_plan_options options = {.purpose = purpose, .backend = "cpu", .group = group};
    att_plan *plan;
    CHECK(context, att_plan_compile(graph, &options, &plan));
    att_graph_destroy(&graph);
    return plan;
}

/* A value in the arena, from the step that writes it to the last step that reads it. */
typedef struct life {
    int first, last;
    int64_t offset, bytes;
} life;

static int64_t rounded_bytes(const att_step *step, int out)
{
    const att_problem *problem = &step->unit->problem;
    int64_t bytes = att_problem_count(problem, &problem->out[out]) * (int64_t)att_dtype_size(problem->out[out].dtype);
    return (bytes + 63) / 64 * 64;
}

static int last_reader(const att_program *program, int writer, int64_t offset)
{
    int last = writer;
    for (int i = writer + 1; i < program->step_count; i++) {
        const att_step *step = &program->steps[i];
        for (int j = 0; j < step->unit->problem.in_count; j++)
            if (step->in[j].place == ATT_AT_ARENA && step->in[j].offset == offset)
                last = i;
        for (int j = 0; j < step->unit->problem.out_count; j++)
            if (step->out[j].place == ATT_AT_ARENA && step->out[j].offset == offset)
                return last;
    }
    return last;
}

static int collect(const att_program *program, life *lives)
{
    int count = 0;
    for (int i = 0; i < program->step_count; i++)
        for (int j = 0; j < program->steps[i].unit->problem.out_count; j++) {
            att_ref ref = program->steps[i].out[j];
            if (ref.place == ATT_AT_ARENA)
                lives[count++] = (life){.first = i,
                                        .last = last_reader(program, i, ref.offset),
                                        .offset = ref.offset,
                                        .bytes = rounded_bytes(&program->steps[i], j)};
        }
    return count;
}

/* Returns the largest number of bytes that live at one step, its scratch included. */
static int64_t most_at_once(const life *lives, int count, const att_program *program)
{
    int64_t most = 0;
    for (int step = 0; step < program->step_count; step++) {
        int64_t now = (int64_t)att_unit_scratch(program->steps[step].unit) * program->parts;
        for (int i = 0; i < count; i++)
            if (lives[i].first <= step && step <= lives[i].last)
                now += lives[i].bytes;
        most = now > most ? now : most;
    }
    return most;
}

static void check_program(const att_program *program)
{
    life *lives = malloc((size_t)program->step_count * ATT_CASE_OUTPUTS * sizeof *lives);
    int count = collect(program, lives);
    assert_true(count > 5);
    for (int i = 0; i < count; i++) {
        assert_int_equal(lives[i].offset % 64, 0);
        assert_true(lives[i].offset >= 0 && lives[i].offset + lives[i].bytes <= (int64_t)program->arena_bytes);
        for (int j = 0; j < i; j++) {
            bool meet = lives[i].first <= lives[j].last && lives[j].first <= lives[i].last;
            bool overlap = lives[i].offset < lives[j].offset + lives[j].bytes &&
                           lives[j].offset < lives[i].offset + lives[i].bytes;
            if (meet && overlap)
                fail_msg("steps %d and %d write over each other", lives[j].first, lives[i].first);
        }
    }
    /* For these networks, placing the largest values first leaves no gaps. */
    assert_int_equal(program->arena_bytes, most_at_once(lives, count, program));
    free(lives);
}

TEST(values_are_aligned_and_apart)
{
    for (int purpose = 0; purpose < 2; purpose++) {
        att_graph *graph = make_graph();
        network_build(graph, SIZE);
        att_plan *plan = compile(graph, purpose ? ATT_TRAIN : ATT_INFER, 4);
        assert_true(plan->segments[0].program_count >= 3); /* groups of 4, 2 and 1 */
        for (int i = 0; i < plan->segments[0].program_count; i++)
            check_program(&plan->segments[0].programs[i]);
        att_plan_destroy(&plan);
    }
}

/* [TOKENS, WIDTH] through `depth` times norm, linear, GELU, linear; returns the bytes of the arena in training. */
enum { TOKENS = 64, HIDDEN = 4 * NETWORK_WIDTH };
static size_t arena_of(int depth)
{
    att_graph *graph = make_graph();
    att_value x = att_graph_input(graph, "x", ATT_F32, att_shape_of(TOKENS, NETWORK_WIDTH));
    att_value target = att_graph_input(graph, "target", ATT_I32, (att_shape){0});
    x = network_linear(graph, "first", x, NETWORK_WIDTH);
    for (int i = 0; i < depth; i++) {
        char norm[16], up[16], down[16];
        snprintf(norm, sizeof norm, "norm%d", i);
        snprintf(up, sizeof up, "up%d", i);
        snprintf(down, sizeof down, "down%d", i);
        x = att_gelu(graph, network_linear(graph, up, network_norm(graph, norm, x), HIDDEN));
        x = network_linear(graph, down, x, NETWORK_WIDTH);
    }
    att_graph_output(graph, "loss", att_cross_entropy(graph, att_token_mean(graph, x, 0), target, 0));
    att_plan *plan = compile(graph, ATT_TRAIN, 1);
    size_t bytes = plan->segments[0].programs[0].arena_bytes;
    check_program(&plan->segments[0].programs[0]);
    att_plan_destroy(&plan);
    return bytes;
}

/* The inputs of norm and GELU are kept, not their outputs. */
TEST(training_keeps_inputs_only)
{
    size_t kept = sizeof(float) * TOKENS * (NETWORK_WIDTH + HIDDEN);
    for (int depth = 4; depth < 8; depth++)
        assert_int_equal(arena_of(depth + 1) - arena_of(depth), kept);
}
