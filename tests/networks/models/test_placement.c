/* The grammar of module placements: parsing and writing. */
#include "context.h"
#include "networks/models/fixture.h"
#include "networks/models/placement.h"

SHARED_CONTEXT(threads, 0)

static const att_stages stages = {.count = 3, .blocks = {3, 4, 5}};

static void chooses(const char *text, const char *expected)
{
    bool chosen[ATT_BLOCKS];
    char found[13] = "";
    must(att_placement_parse(context, text, &stages, chosen));
    for (int b = 0; b < 12; b++)
        found[b] = chosen[b] ? 'x' : '.';
    assert_string_equal(found, expected);
}

TEST(every_form_is_read)
{
    chooses("all", "xxxxxxxxxxxx");
    chooses("none", "............");
    chooses("every:1", "xxxxxxxxxxxx");
    chooses("every:5", "x....x....x.");
    chooses("every:12", "x...........");
    chooses("0", "x...........");
    chooses("11,0,2,5-7", "x.x..xxx...x");
    chooses("layer3:all", ".......xxxxx");
    chooses("2:all", "...xxxx.....");
    chooses("1:all,3:every:2", "xxx....x.x.x");
    chooses("layer2:0,2-3,layer3:4", "...x.xx....x");
    chooses("11,layer1:1", ".x.........x");
    chooses("layer1:all,layer2:none", "xxx.........");
    chooses(" 0, 2 ,5-7 ", "x.x..xxx....");
}

static void refuses(const char *text, const char *words)
{
    bool chosen[ATT_BLOCKS];
    assert_fails(context, att_placement_parse(context, text, &stages, chosen), ATT_ERR_ARGUMENT, words);
}

TEST(wrong_block_lists_are_refused)
{
    refuses("", "expected all, none, every:K");
    refuses("al", "not \"al\"");
    refuses("0,", "not \"\"");
    refuses("every:0", "not \"every:0\"");
    refuses("every:", "not \"every:\"");
    refuses("-1", "not \"-1\"");
    refuses("1-", "not \"1-\"");
    refuses("1 2", "not \"1 2\"");
    refuses("every:13", "every:13, but the network has 12 blocks");
    refuses("layer2:every:5", "every:5, but the stage has 4 blocks");
    refuses("stage1:all", "expected all, none");
    refuses("layer1:", "not \"\"");
    refuses("00000000000000000000000000000000000000000001", "expected all, none");
    refuses("7-5", "7-5 runs backwards");
    refuses("12", "there is no block 12; the network has blocks 0 to 11");
    refuses("0-99", "there is no block 99");
    refuses("layer2:4", "there is no block 4; layer2 has blocks 0 to 3");
    refuses("layer4:all", "there is no stage 4; the network has layer1 to layer3");
    refuses("0:all", "there is no stage 0");
    refuses("0,0,0", "block 0 is named twice");
    refuses("0-3,2", "block 2 is named twice");
    refuses("all,7", "block 7 is named twice");
    refuses("all,none", "block 0 is named twice");
    refuses("none,layer2:1", "block 1 of layer2 is named twice");
    refuses("5,layer2:2", "block 2 of layer2 is named twice");
}

static void writes(const char *text, const char *expected)
{
    bool chosen[ATT_BLOCKS];
    char found[32];
    must(att_placement_parse(context, text, &stages, chosen));
    assert_true(att_placement_format(chosen, &stages, found, sizeof found));
    assert_string_equal(found, expected);
}

TEST(block_lists_are_written_short)
{
    writes("1:all,2:all,3:all", "all");
    writes("none", "none");
    writes("0,5,10", "every:5");
    writes("0", "0");
    writes("3,2,1,7", "1-3,7");
    writes("layer3:all", "7-11");
    bool chosen[ATT_BLOCKS];
    char narrow[4];
    must(att_placement_parse(context, "1,3", &stages, chosen));
    assert_true(att_placement_format(chosen, &stages, narrow, sizeof narrow));
    must(att_placement_parse(context, "1,3,7", &stages, chosen));
    assert_false(att_placement_format(chosen, &stages, narrow, sizeof narrow));
}

static void widths_are(const char *text, const char *written)
{
    static const bool chosen[6] = {true, false, true, true, false, true};
    int widths[ATT_BLOCKS];
    char found[128];
    must(att_widths_parse(context, text, chosen, 6, widths));
    assert_true(widths[1] == 0 && widths[4] == 0);
    const int in_order[] = {widths[0], widths[2], widths[3], widths[5]};
    assert_true(att_widths_format(in_order, 4, found, sizeof found));
    assert_string_equal(found, written);
    assert_false(att_widths_format(in_order, 4, found, strlen(written)));
}

static void refuses_widths(const char *text, const char *words)
{
    static const bool chosen[6] = {true, false, true, true, false, true};
    int widths[ATT_BLOCKS];
    assert_fails(context, att_widths_parse(context, text, chosen, 6, widths), ATT_ERR_ARGUMENT, words);
}

TEST(widths_are_runs)
{
    widths_are("3x4", "3x4");
    widths_are("3,3,5,5", "3x2,5x2");
    widths_are("3x2,5,65536", "3x2,5,65536");
    refuses_widths("3x3", "fewer widths than blocks with a module");
    refuses_widths("3x5", "more widths than blocks with a module");
    refuses_widths("3x4,1", "more widths than blocks with a module");
    static const char *const wrong[] = {"0x4", "3x0", "-3x4", "3x", "x4", ",3x4", "three", "3x2 5x2", "16777217x4"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        refuses_widths(wrong[i], "widths of blocks were expected, as in \"3x2,5x2,10\"");
}
