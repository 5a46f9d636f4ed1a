/* The memory of plans with several segments: kept values take over rows of others, weights are packed for one segment
 * at a time, and large samples are computed by all threads together. None of this changes a bit. */
#include "engine/fixture.h"
#include "engine/session/session.h"

enum { WIDTH = 64, BATCH = 3, LAYERS = 4 };

/* Linear layers, each with a batch norm and a sigmoid, over `rows` rows: values of 256 rows bytes. */
static att_graph *build(att_context *of, int64_t rows)
{
    att_graph *graph;
    assert_int_equal(att_graph_create(of, ATT_F32, &graph), ATT_OK);
    att_value x = att_graph_input(graph, "x", ATT_F32, att_shape_of(rows, WIDTH));
    att_value target = att_graph_input(graph, "target", ATT_I32, (att_shape){0});
    for (int i = 0; i < LAYERS; i++) {
        char linear[16], norm[16];
        snprintf(linear, sizeof linear, "linear%d", i);
        snprintf(norm, sizeof norm, "norm%d", i);
        x = att_sigmoid(graph, network_batch_norm(graph, norm, network_linear(graph, linear, x, WIDTH)));
    }
    att_value logits = network_linear(graph, "head", att_token_mean(graph, x, 0), NETWORK_CLASSES);
    att_graph_output(graph, "loss", att_cross_entropy(graph, logits, target, 0));
    assert_int_equal(att_graph_status(graph), ATT_OK);
    return graph;
}

static att_plan_options training(void)
{
    return (att_plan_options){.purpose = ATT_TRAIN, .backend = "cpu", .lanes = 2};
}

/* --- kept values -------------------------------------------------------------------------------------------------- */

/* A value that is kept for the batch: the steps (over all segments) and segments that write it and read it last. */
typedef struct life {
    int first, last, begin, end;
    int64_t offset, row, bytes;
} life;

enum { MOST = 256 };

static void end_at(life *lives, int count, const att_ref *ref, int step, int segment)
{
    int newest = count - 1;
    while (newest >= 0 && lives[newest].offset != ref->offset)
        newest--;
    assert_true(newest >= 0);
    lives[newest].last = step;
    lives[newest].end = segment;
}

static int follow(life *lives, int count, const att_step *step, int number, int segment)
{
    for (int i = 0; i < step->unit->problem.in_count; i++)
        if (step->in[i].place == ATT_AT_STORE)
            end_at(lives, count, &step->in[i], number, segment);
    for (int i = 0; i < step->unit->problem.out_count; i++)
        if (step->out[i].place == ATT_AT_STORE) {
            assert_true(count < MOST);
            lives[count++] = (life){.first = number,
                                    .last = number,
                                    .begin = segment,
                                    .end = segment,
                                    .offset = step->out[i].offset,
                                    .row = step->out[i].row_bytes,
                                    .bytes = (step->out[i].row_bytes + 63) / 64 * 64};
        }
    return count;
}

static int collect(const att_plan *plan, life *lives)
{
    int count = 0, number = 0;
    for (int i = 0; i < plan->segment_count; i++) {
        const att_segment *segment = &plan->segments[i];
        for (int j = 0; j < segment->programs[0].step_count; j++)
            count = follow(lives, count, &segment->programs[0].steps[j], number++, i);
        for (int j = 0; j < segment->reduction_count; j++)
            count = follow(lives, count, &segment->reductions[j], number++, i);
    }
    return count;
}

TEST(kept_values_follow_each_other_in_the_same_rows)
{
    enum { ROWS = 64 };
    const att_plan_options options = training();
    att_graph *graph = build(context, ROWS);
    att_plan *plan;
    life lives[MOST];
    CHECK(context, att_plan_compile(graph, &options, &plan));
    const int count = collect(plan, lives);
    int shared = 0;
    for (int i = 0; i < count; i++)
        for (int j = 0; j < i; j++) {
            const life *a = &lives[j], *b = &lives[i];
            const bool overlap = a->offset < b->offset + b->bytes && b->offset < a->offset + a->bytes;
            if (!overlap || a->end < b->begin)
                continue;
            assert_true(a->last < b->first); /* one row after the other, while other rows are in use */
            assert_true(a->offset == b->offset && a->row == b->row);
            shared++;
        }
    print_message("%d of %d kept values take over rows\n", shared, count);
    assert_true(shared >= LAYERS - 1);
    att_plan_destroy(&plan);
    att_graph_destroy(&graph);
}

/* --- packs -------------------------------------------------------------------------------------------------------- */

TEST(packs_of_segments_share_memory)
{
    enum { ROWS = 64 };
    const att_plan_options options = training();
    att_graph *graph = build(context, ROWS);
    att_plan *plan;
    CHECK(context, att_plan_compile(graph, &options, &plan));
    size_t all = 0;
    for (int i = 0; i < plan->packs.count; i++) {
        const att_pack *pack = &plan->packs.items[i];
        const att_segment *segment = &plan->segments[pack->segment];
        assert_true(i >= segment->first_pack && i < segment->first_pack + segment->pack_count);
        assert_true(segment->lane_bytes + pack->offset + pack->unit->prepared.packed_bytes <=
                    att_room_bytes(att_plan_room(plan)));
        all += pack->unit->prepared.packed_bytes;
    }
    if (plan->packs.count < 2)
        print_message("skipped: this processor packs no weight of these layers\n");
    else
        assert_true(att_plan_describe(plan).packed_bytes < all);
    att_plan_destroy(&plan);
    att_graph_destroy(&graph);
}

/* --- threads ------------------------------------------------------------------------------------------------------ */

/* Returns the gradient of three samples; the caller frees it. */
static float *train(int threads, int64_t rows, bool *together)
{
    att_settings settings = att_settings_defaults();
    settings.threads = threads;
    att_context *of;
    assert_int_equal(att_context_create(&settings, &of), ATT_OK);
    runner it = make_runner(build(of, rows), training(), BATCH);
    for (int i = 0; i < it.plan->segment_count; i++)
        *together |= it.plan->segments[i].parts > it.plan->parts;
    float *x = malloc((size_t)(BATCH * rows * WIDTH) * sizeof *x);
    for (int64_t i = 0; i < BATCH * rows * WIDTH; i++)
        x[i] = (float)((i * 7919 + 13) % 1009) / 504.5f - 1;
    const int32_t targets[BATCH] = {0, 3, 1};
    must(att_session_bind(it.session, "x", x));
    must(att_session_bind(it.session, "target", targets));
    enum { RUNS = 2 };
    att_gradient_begin(it.gradient);
    for (int run = 0; run < RUNS; run++)
        must(att_session_accumulate(it.session, it.gradient, BATCH, 1.0 / BATCH, 1, run, 0));
    const int64_t count = (int64_t)WIDTH * WIDTH;
    float *found = malloc((size_t)count * sizeof *found);
    must(att_gradient_get(it.gradient, att_weights_find(it.weights, "linear0.weight"), found, count));
    free(x);
    free_runner(&it);
    att_context_destroy(&of);
    return found;
}

TEST(all_threads_share_large_samples)
{
    enum { ROWS = 1 << 16 };
    bool alone = false, together = false;
    float *one = train(1, ROWS, &alone), *two = train(2, ROWS, &together);
    assert_false(alone);
    assert_true(together);
    assert_memory_equal(one, two, WIDTH * WIDTH * sizeof *one);
    free(one);
    free(two);
}
