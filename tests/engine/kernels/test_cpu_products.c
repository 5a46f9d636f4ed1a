/* Matrix products of real networks with oneDNN: no reference implementation is chosen, threads do not disturb each
 * other, and a lack of memory leaves nothing behind. */
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>

#include "engine/kernels/cpu/onednn.h"
#include "engine/kernels/tiers.h"
#include "engine/ops/list.h"

int omp_get_max_threads(void);
void omp_set_num_threads(int threads);

/* Inputs: the channels of ViT-Ti, -S and -B. Rows: one image, four images, a tiny image. Both directions of every
 * layer. */
TEST(no_product_of_a_vit_is_a_reference_one)
{
    static const int64_t widths[] = {192, 384, 768}, rows[] = {197, 4 * 197, 50};
    for (int w = 0; w < 3; w++)
        for (int r = 0; r < 3; r++) {
            int64_t c = widths[w];
            const int64_t layers[][2] = {{768, c}, {c, 3 * c}, {c, c}, {c, 4 * c}, {4 * c, c}};
            for (int layer = 0; layer < 5; layer++)
                for (int back = 0; back < 2; back++) {
                    att_product_spec spec = {.rows = rows[r],
                                             .inner = layers[layer][back],
                                             .columns = layers[layer][!back],
                                             .b_transposed = !back,
                                             .pack = true,
                                             .bias = !back};
                    att_product *product;
                    assert_int_equal(att_product_create(context, &spec, &product), ATT_OK);
                    const char *name = att_product_implementation(product);
                    if (!strstr(name, "brg") && !strstr(name, "jit"))
                        fail_msg("%lld x %lld x %lld is made by %s", (long long)spec.rows, (long long)spec.inner,
                                 (long long)spec.columns, name);
                    if (att_context_features(context) & ATT_AVX512)
                        assert_non_null(strstr(name, "avx512"));
                    att_product_destroy(context, product);
                }
        }
}

TEST(the_callers_openmp_is_left_alone)
{
    int before = omp_get_max_threads();
    omp_set_num_threads(5);
    att_product_spec spec = {.rows = 3, .inner = 16, .columns = 16, .pack = true};
    att_product *product;
    assert_int_equal(att_product_create(context, &spec, &product), ATT_OK);
    float a[48] = {1}, b[256] = {2}, to[48];
    void *packed = case_memory(att_product_packed_bytes(product));
    void *scratch = case_memory(att_product_scratch_bytes(product));
    assert_int_equal(att_product_pack(product, b, packed), ATT_OK);
    assert_int_equal(att_product_run(product, a, packed, NULL, to, scratch), ATT_OK);
    assert_true(to[0] == 2);
    assert_int_equal(omp_get_max_threads(), 5);
    omp_set_num_threads(before);
    free(packed);
    free(scratch);
    att_product_destroy(context, product);
}

/* Packed rows of b are spaced in the memory of some products. Sums of small whole numbers are exact. */
TEST(packed_products_are_exact)
{
    enum { FEW = 5, DEEP = 37 };
    static const int64_t columns[] = {1, 16, 33, 1024, 3072};
    for (int c = 0; c < 5; c++)
        for (int transposed = 0; transposed < 2; transposed++) {
            const int64_t n = columns[c], row = transposed ? 1 : n, column = transposed ? DEEP : 1;
            att_product_spec spec = {
                .rows = FEW, .inner = DEEP, .columns = n, .b_transposed = transposed, .pack = true};
            att_product *product;
            assert_int_equal(att_product_create(context, &spec, &product), ATT_OK);
            float *a = case_memory(FEW * DEEP * sizeof *a), *b = case_memory((size_t)(DEEP * n) * sizeof *b),
                  *to = case_memory((size_t)(FEW * n) * sizeof *to);
            void *packed = case_memory(att_product_packed_bytes(product));
            void *scratch = case_memory(att_product_scratch_bytes(product));
            for (int i = 0; i < FEW * DEEP; i++)
                a[i] = (float)(i % 5);
            for (int64_t i = 0; i < DEEP * n; i++)
                b[i] = (float)(i % 7) - 3;
            assert_int_equal(att_product_pack(product, b, packed), ATT_OK);
            assert_int_equal(att_product_run(product, a, packed, NULL, to, scratch), ATT_OK);
            for (int64_t i = 0; i < FEW * n; i++) {
                float sum = 0;
                for (int k = 0; k < DEEP; k++)
                    sum += a[i / n * DEEP + k] * b[k * row + i % n * column];
                assert_true(to[i] == sum);
            }
            free(a);
            free(b);
            free(to);
            free(packed);
            free(scratch);
            att_product_destroy(context, product);
        }
}

/* Products of few rows with rows of b that begin at the same place of pages. */
TEST(few_products_need_a_packed_b)
{
    const bool slow = !(att_context_features(context) & ATT_AVX512);
    const struct {
        int64_t rows, columns;
        bool b_transposed, needs;
    } all[] = {{197, 1024, false, slow},
               {287, 3072, false, slow},
               {288, 3072, false, false},
               {197, 1000, false, false},
               {197, 1024, true, false}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        const att_product_spec spec = {
            .rows = all[i].rows, .inner = 64, .columns = all[i].columns, .b_transposed = all[i].b_transposed};
        assert_int_equal(att_product_needs_packing(context, &spec), all[i].needs);
    }
}

enum { ROWS = 197, INNER = 192, COLUMNS = 576, THREADS = 4, ROUNDS = 20 };

typedef struct worker {
    const att_product *product;
    const void *packed;
    float *a, *to;
    bool same;
} worker;

static void *work(void *user)
{
    worker *w = user;
    float *first = case_memory(ROWS * COLUMNS * sizeof(float));
    void *scratch = case_memory(att_product_scratch_bytes(w->product));
    w->same = att_product_run(w->product, w->a, w->packed, NULL, first, scratch) == ATT_OK;
    for (int i = 0; i < ROUNDS; i++)
        w->same = att_product_run(w->product, w->a, w->packed, NULL, w->to, scratch) == ATT_OK &&
                  !memcmp(first, w->to, ROWS * COLUMNS * sizeof(float)) && w->same;
    free(first);
    free(scratch);
    return NULL;
}

/* Several threads use one product at the same time; another thread created it. */
TEST(threads_do_not_disturb_each_other)
{
    att_product_spec spec = {.rows = ROWS, .inner = INNER, .columns = COLUMNS, .b_transposed = true, .pack = true};
    att_product *product;
    assert_int_equal(att_product_create(context, &spec, &product), ATT_OK);
    float *b = case_memory(INNER * COLUMNS * sizeof(float));
    void *packed = case_memory(att_product_packed_bytes(product));
    for (int i = 0; i < INNER * COLUMNS; i++)
        b[i] = (float)(i % 7) - 3;
    assert_int_equal(att_product_pack(product, b, packed), ATT_OK);
    worker workers[THREADS];
    pthread_t threads[THREADS];
    for (int t = 0; t < THREADS; t++) {
        workers[t] = (worker){product, packed, case_memory(ROWS * INNER * sizeof(float)),
                              case_memory(ROWS * COLUMNS * sizeof(float)), false};
        for (int i = 0; i < ROWS * INNER; i++)
            workers[t].a[i] = (float)((i + t) % 5);
        assert_int_equal(pthread_create(&threads[t], NULL, work, &workers[t]), 0);
    }
    for (int t = 0; t < THREADS; t++) {
        pthread_join(threads[t], NULL);
        assert_true(workers[t].same);
        double exact = 0;
        for (int i = 0; i < INNER; i++)
            exact += workers[t].a[(ROWS - 1) * INNER + i] * b[(COLUMNS - 1) * INNER + i];
        assert_true(workers[t].to[ROWS * COLUMNS - 1] == (float)exact); /* small whole numbers: no rounding */
        free(workers[t].a);
        free(workers[t].to);
    }
    free(b);
    free(packed);
    att_product_destroy(context, product);
}

static uintptr_t stack_end;
static volatile sig_atomic_t signals, astray;

static void see_the_stack(int number)
{
    (void)number;
    char here;
    signals = signals + 1;
    astray = astray || stack_end - (uintptr_t)&here > 1 << 20;
}

/* A handler of a signal, such as that of Ctrl-C, runs on the stack of the thread. Kernels of oneDNN that use the stack
 * pointer for other things made it run, and write, on the heap. */
TEST(signals_wait_for_the_end_of_a_product)
{
    char here;
    stack_end = (uintptr_t)&here;
    struct sigaction handler = {.sa_handler = see_the_stack, .sa_flags = SA_RESTART}, former;
    assert_int_equal(sigaction(SIGALRM, &handler, &former), 0);
    const struct itimerval often = {{0, 500}, {0, 500}}, never = {{0, 0}, {0, 0}};
    for (int pack = 0; pack < 2; pack++) {
        att_product_spec spec = {.rows = ROWS, .inner = 768, .columns = COLUMNS, .pack = pack};
        att_product *product;
        assert_int_equal(att_product_create(context, &spec, &product), ATT_OK);
        float *a = case_memory((size_t)spec.rows * spec.inner * sizeof(float));
        float *b = case_memory((size_t)spec.inner * spec.columns * sizeof(float));
        float *to = case_memory((size_t)spec.rows * spec.columns * sizeof(float));
        void *packed = pack ? case_memory(att_product_packed_bytes(product)) : NULL;
        void *scratch = case_memory(att_product_scratch_bytes(product));
        setitimer(ITIMER_REAL, &often, NULL);
        for (signals = 0; signals < 50 && !astray;) {
            if (pack)
                assert_int_equal(att_product_pack(product, b, packed), ATT_OK);
            assert_int_equal(att_product_run(product, a, pack ? packed : b, NULL, to, scratch), ATT_OK);
        }
        setitimer(ITIMER_REAL, &never, NULL);
        assert_false(astray);
        free(a);
        free(b);
        free(to);
        free(packed);
        free(scratch);
        att_product_destroy(context, product);
    }
    sigaction(SIGALRM, &former, NULL);
}

/* Refuses the n-th call of the allocator (from 0) if it requests memory. */
typedef struct failing {
    long calls, refused;
} failing;

static void *allocate_or_refuse(void *user, void *old, size_t old_size, size_t size)
{
    failing *f = user;
    if (size == 0) {
        free(old);
        return NULL;
    }
    if (f->calls++ == f->refused)
        return NULL;
    void *block = case_memory(size);
    if (old) {
        memcpy(block, old, old_size < size ? old_size : size);
        free(old);
    }
    return block;
}

/* Prepares a kernel once for each of its allocations, with that allocation refused. */
static void refuse_each(failing *f, const att_kernel *kernel, const att_problem *problem)
{
    size_t bytes = att_context_allocations(problem->context).bytes_now;
    att_status status = ATT_ERR_MEMORY;
    for (long refused = 0; kernel->prepare && status != ATT_OK; refused++) {
        *f = (failing){0, refused};
        att_prepared prepared = {0};
        status = kernel->prepare(problem, &prepared);
        assert_true(status == ATT_OK || status == ATT_ERR_MEMORY);
        if (status == ATT_OK && kernel->release)
            kernel->release(problem->context, prepared.state);
        assert_int_equal(att_context_allocations(problem->context).bytes_now, bytes);
    }
}

/* Every kernel of the tier on each case it accepts, in f32 and with bf16 for all values that may be bf16. */
TEST(lack_of_memory_leaves_nothing_behind)
{
    failing f = {0, -1};
    att_settings settings = att_settings_defaults();
    settings.allocate = allocate_or_refuse;
    settings.allocate_user = &f;
    att_context *poor;
    assert_int_equal(att_context_create(&settings, &poor), ATT_OK);
    for (const att_op *const *op = att_ops; *op; op++)
        for (int i = 0; i < 2 * (*op)->case_count; i++) {
            const att_op_case *definition = &(*op)->cases[i / 2];
            if (definition->bench)
                continue;
            case_drawn drawn = case_draw((case_setup){poor, *op, definition, ATT_F32, 1, false,
                                                      i % 2 ? (*op)->autocast_in : 0, i % 2 ? (*op)->autocast_out : 0});
            att_problem problem = {poor,
                                   (*op)->name,
                                   att_op_case_attrs(*op, definition),
                                   drawn.in,
                                   drawn.out,
                                   drawn.in_count,
                                   drawn.out_count,
                                   1,
                                   3};
            for (const att_kernel *const *kernel = att_kernels_cpu; *kernel; kernel++)
                if (att_kernel_fits(*kernel, &problem))
                    refuse_each(&f, *kernel, &problem);
            case_free(&drawn);
        }
    att_context_destroy(&poor);
}
