/* Dropout drops the same elements as the reference: at every rate, count and share, on each processor tier. */
#include "engine/kernels/case.h"
#include "engine/kernels/ref/list.h"
#include "engine/kernels/tiers.h"
#include "engine/ops/drop.h"

enum { MOST = 203, GROUP = 2, ROWS = 3 };

typedef struct drop_case {
    const char *op;
    double rate;
    int64_t count, position; /* count: channels of a row */
} drop_case;

enum { STREAM = 9 };
static const att_run update = {.seed = 0x123456789abcdef0, .step = 0x123456789};

static void run(const drop_case *c, const att_kernel *kernel, int parts, const float *x, float *y)
{
    const att_drop_attrs attrs = {.rate = c->rate, .stream = STREAM};
    att_desc desc = {ATT_F32, ATT_SAMPLE, {2, {ROWS, c->count}}};
    att_problem problem = {context, c->op, &attrs, &desc, &desc, 1, 1, GROUP, parts};
    for (int part = 0; part < parts; part++) {
        att_call call = {&problem, (const void *[]){x}, (void *[]){y}, NULL, NULL, NULL, part,
                         parts,    c->position,         &update,       GROUP};
        assert_int_equal(kernel->run(&call), ATT_OK);
    }
}

static void compare(const drop_case *c)
{
    /* Exactly as many bytes as needed, so that a sanitizer detects accesses beyond. */
    const int64_t elements = GROUP * ROWS * c->count;
    size_t bytes = (size_t)elements * sizeof(float);
    float *x = case_memory(bytes), *ours = case_memory(bytes), *truth = case_memory(bytes);
    for (int64_t i = 0; i < elements; i++)
        x[i] = 1;
    run(c, case_kernel(att_kernels_ref, c->op), 1, x, truth);
    for (int parts = 1; parts <= 4; parts += 3) {
        memset(ours, 0xff, bytes);
        run(c, tiers_kernel(context, c->op), parts, x, ours);
        for (int64_t i = 0; i < elements; i++)
            if (ours[i] != truth[i])
                fail_msg("%s at rate %g, position %lld, %d parts: element %lld of rows of %lld is %g instead of %g",
                         c->op, c->rate, (long long)c->position, parts, (long long)i, (long long)c->count,
                         (double)ours[i], (double)truth[i]);
    }
    free(x);
    free(ours);
    free(truth);
}

TEST(masks_are_the_references)
{
    static const char *const ops[] = {"dropout", "channel_dropout", "drop_path"};
    static const double rates[] = {0, 0.1, 0.5, 0.999, 1 - 0x1p-40};
    static const int64_t positions[] = {0, 7, 0x1fffffffe};
    for (int op = 0; op < 3; op++)
        for (int rate = 0; rate < 5; rate++)
            for (int position = 0; position < 3; position++)
                for (int64_t count = 1; count <= MOST; count++)
                    compare(&(drop_case){ops[op], rates[rate], count, positions[position]});
}

/* A draw equal to the rate keeps the element. */
TEST(the_rate_itself_keeps)
{
    uint64_t key = att_random_key(update.seed, (uint64_t)update.step, STREAM);
    for (uint64_t block = 0; block < 50; block++)
        for (int word = 0; word < 4; word++)
            compare(&(drop_case){"dropout", att_philox_block(key, 7, block).word[word] * 0x1p-32, MOST, 7});
}
