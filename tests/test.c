#include "test.h"

enum { MOST = 100 };

static struct CMUnitTest tests[MOST];
static size_t count;
static CMFixtureFunction group_setup, group_teardown;

void test_add(const char *name, CMUnitTestFunction run, CMFixtureFunction setup, CMFixtureFunction teardown)
{
    if (count == MOST)
        abort();
    tests[count++] = (struct CMUnitTest){name, run, setup, teardown, NULL};
}

void test_group(CMFixtureFunction setup, CMFixtureFunction teardown)
{
    group_setup = setup;
    group_teardown = teardown;
}

int test_run(const char *group)
{
    return _cmocka_run_group_tests(group, tests, count, group_setup, group_teardown);
}

__attribute__((weak)) int main(void)
{
    return test_run("tests");
}
