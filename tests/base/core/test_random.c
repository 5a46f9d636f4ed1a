#include "base/core/random.h"
#include "test.h"

/* Philox4x32-10 gives the known answers of Random123's kat_vectors. */
TEST(philox_gives_its_known_answers)
{
    att_philox zero = att_philox_block(0, 0, 0);
    const uint32_t zero_words[] = {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8};
    att_philox ones = att_philox_block(UINT64_MAX, UINT64_MAX, UINT64_MAX);
    const uint32_t ones_words[] = {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd};
    assert_memory_equal(zero.word, zero_words, sizeof zero_words);
    assert_memory_equal(ones.word, ones_words, sizeof ones_words);
}

TEST(permutation_holds_every_index_once)
{
    enum { COUNT = 1000 };
    int64_t order[COUNT];
    char seen[COUNT] = {0};
    att_random random = att_random_from(7);
    att_random_permutation(&random, order, COUNT);
    int moved = 0;
    for (int i = 0; i < COUNT; i++) {
        assert_in_range(order[i], 0, COUNT - 1);
        assert_int_equal(seen[order[i]]++, 0);
        moved += order[i] != i;
    }
    assert_true(moved > COUNT / 2);
}

/* 6000 permutations of three elements: each of the six occurs 1000 times, within five standard deviations. */
TEST(permutations_are_equally_likely)
{
    int seen[27] = {0};
    for (uint64_t key = 0; key < 6000; key++) {
        int64_t order[3];
        att_random random = att_random_from(key);
        att_random_permutation(&random, order, 3);
        seen[order[0] * 9 + order[1] * 3 + order[2]]++;
    }
    static const int orders[] = {5, 7, 11, 15, 19, 21};
    for (int i = 0; i < 6; i++)
        assert_in_range(seen[orders[i]], 1000 - 145, 1000 + 145);
}

/* 100,000 draws: mean and variance of U(0,1) and N(0,1) within five standard errors. */
TEST(draws_have_their_mean_and_variance)
{
    enum { COUNT = 100000 };
    double uniform = 0, normal = 0, square = 0;
    att_random random = att_random_from(3);
    for (int i = 0; i < COUNT; i++) {
        uniform += att_random_uniform(&random);
        double draw = att_random_normal(&random);
        normal += draw;
        square += draw * draw;
    }
    double n = COUNT;
    assert_true(fabs(uniform / n - 0.5) < 5 * sqrt(1 / 12.0 / n));
    assert_true(fabs(normal / n) < 5 / sqrt(n));
    assert_true(fabs(square / n - 1) < 5 * sqrt(2 / n));
}

TEST(keys_depend_on_every_argument)
{
    uint64_t key = att_random_key(1, 2, 3);
    assert_true(key == att_random_key(1, 2, 3));
    assert_true(key != att_random_key(2, 2, 3));
    assert_true(key != att_random_key(1, 3, 3));
    assert_true(key != att_random_key(1, 2, 4));
    assert_true(key != att_random_key(1, 3, 2));
}
