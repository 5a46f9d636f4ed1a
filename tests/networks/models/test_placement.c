/* The grammar of module placements: parsing and writing. */
#include "networks/models/fixture.h"
#include "networks/models/placement.h"

static const att_stages stages = {.count = 3, .blocks = {3, 4, 5}};

static void chooses(att_context *context, const char *text, const char *expected)
{
    bool chosen[ATT_BLOCKS];
    char found[13] = "";
    CHECK(context, att_placement_parse(context, text, &stages, chosen));
    for (int b = 0; b < 12; b++)
        found[b] = chosen[b] ? 'x' : '.';
    assert_string_equal(found, expected);
}

static void every_form_is_read(void **state)
{
    chooses(*state, "all", "xxxxxxxxxxxx");
    chooses(*state, "none", "............");
    chooses(*state, "every:1", "xxxxxxxxxxxx");
    chooses(*state, "every:5", "x....x....x.");
    chooses(*state, "every:12", "x...........");
    chooses(*state, "0", "x...........");
    chooses(*state, "11,0,2,5-7", "x.x..xxx...x");
    chooses(*state, "layer3:all", ".......xxxxx");
    chooses(*state, "2:all", "...xxxx.....");
    chooses(*state, "1:all,3:every:2", "xxx....x.x.x");
    chooses(*state, "layer2:0,2-3,layer3:4", "...x.xx....x");
    chooses(*state, "11,layer1:1", ".x.........x");
    chooses(*state, "layer1:all,layer2:none", "xxx.........");
    chooses(*state, " 0, 2 ,5-7 ", "x.x..xxx....");
}

static void refuses(att_context *context, const char *text, const char *words)
{
    bool chosen[ATT_BLOCKS];
    assert_int_equal(att_placement_parse(context, text, &stages, chosen), ATT_ERR_ARGUMENT);
    if (!strstr(att_context_message(context), words))
        fail_msg("\"%s\" does not say \"%s\"", att_context_message(context), words);
}

static void wrong_block_lists_are_refused(void **state)
{
    refuses(*state, "", "expected all, none, every:K");
    refuses(*state, "al", "not \"al\"");
    refuses(*state, "0,", "not \"\"");
    refuses(*state, "every:0", "not \"every:0\"");
    refuses(*state, "every:", "not \"every:\"");
    refuses(*state, "-1", "not \"-1\"");
    refuses(*state, "1-", "not \"1-\"");
    refuses(*state, "1 2", "not \"1 2\"");
    refuses(*state, "every:13", "every:13, but the network has 12 blocks");
    refuses(*state, "layer2:every:5", "every:5, but the stage has 4 blocks");
    refuses(*state, "stage1:all", "expected all, none");
    refuses(*state, "layer1:", "not \"\"");
    refuses(*state, "00000000000000000000000000000000000000000001", "expected all, none");
    refuses(*state, "7-5", "7-5 runs backwards");
    refuses(*state, "12", "there is no block 12; the network has blocks 0 to 11");
    refuses(*state, "0-99", "there is no block 99");
    refuses(*state, "layer2:4", "there is no block 4; layer2 has blocks 0 to 3");
    refuses(*state, "layer4:all", "there is no stage 4; the network has layer1 to layer3");
    refuses(*state, "0:all", "there is no stage 0");
    refuses(*state, "0,0,0", "block 0 is named twice");
    refuses(*state, "0-3,2", "block 2 is named twice");
    refuses(*state, "all,7", "block 7 is named twice");
    refuses(*state, "all,none", "block 0 is named twice");
    refuses(*state, "none,layer2:1", "block 1 of layer2 is named twice");
    refuses(*state, "5,layer2:2", "block 2 of layer2 is named twice");
}

static void writes(att_context *context, const char *text, const char *expected)
{
    bool chosen[ATT_BLOCKS];
    char found[32];
    CHECK(context, att_placement_parse(context, text, &stages, chosen));
    assert_true(att_placement_format(chosen, &stages, found, sizeof found));
    assert_string_equal(found, expected);
}

static void block_lists_are_written_short(void **state)
{
    writes(*state, "1:all,2:all,3:all", "all");
    writes(*state, "none", "none");
    writes(*state, "0,5,10", "every:5");
    writes(*state, "0", "0");
    writes(*state, "3,2,1,7", "1-3,7");
    writes(*state, "layer3:all", "7-11");
    bool chosen[ATT_BLOCKS];
    char narrow[4];
    CHECK(*state, att_placement_parse(*state, "1,3", &stages, chosen));
    assert_true(att_placement_format(chosen, &stages, narrow, sizeof narrow));
    CHECK(*state, att_placement_parse(*state, "1,3,7", &stages, chosen));
    assert_false(att_placement_format(chosen, &stages, narrow, sizeof narrow));
}

static int setup(void **state)
{
    return att_context_create(NULL, (att_context **)state) != ATT_OK;
}

static int teardown(void **state)
{
    att_context_destroy((att_context **)state);
    return 0;
}

static void widths_are(att_context *context, const char *text, const char *written)
{
    static const bool chosen[6] = {true, false, true, true, false, true};
    int widths[ATT_BLOCKS];
    char found[128];
    CHECK(context, att_widths_parse(context, text, chosen, 6, widths));
    assert_true(widths[1] == 0 && widths[4] == 0);
    const int in_order[] = {widths[0], widths[2], widths[3], widths[5]};
    assert_true(att_widths_format(in_order, 4, found, sizeof found));
    assert_string_equal(found, written);
    assert_false(att_widths_format(in_order, 4, found, strlen(written)));
}

static void refuses_widths(att_context *context, const char *text, const char *words)
{
    static const bool chosen[6] = {true, false, true, true, false, true};
    int widths[ATT_BLOCKS];
    assert_int_equal(att_widths_parse(context, text, chosen, 6, widths), ATT_ERR_ARGUMENT);
    if (!strstr(att_context_message(context), words))
        fail_msg("\"%s\" does not say \"%s\"", att_context_message(context), words);
}

static void widths_are_runs(void **state)
{
    widths_are(*state, "3x4", "3x4");
    widths_are(*state, "3,3,5,5", "3x2,5x2");
    widths_are(*state, "3x2,5,65536", "3x2,5,65536");
    refuses_widths(*state, "3x3", "fewer widths than blocks with a module");
    refuses_widths(*state, "3x5", "more widths than blocks with a module");
    refuses_widths(*state, "3x4,1", "more widths than blocks with a module");
    static const char *const wrong[] = {"0x4", "3x0", "-3x4", "3x", "x4", ",3x4", "three", "3x2 5x2", "16777217x4"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        refuses_widths(*state, wrong[i], "widths of blocks were expected, as in \"3x2,5x2,10\"");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(widths_are_runs),
        cmocka_unit_test(every_form_is_read),
        cmocka_unit_test(wrong_block_lists_are_refused),
        cmocka_unit_test(block_lists_are_written_short),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
