/* Maps and changes of a network for texts, whose padding is no key. */
#include <attscope/explore.h>

#include "context.h"
#include "golden_path.h"

SHARED_CONTEXT(threads, 1)

enum { LENGTH = 6, COUNT = 4, HEADS = 2, MAP = HEADS * LENGTH * LENGTH };

static const int32_t tokens[LENGTH] = {2, 5, 6, 3, 0, 0}, types[LENGTH] = {0}, count = COUNT;
static const att_field fields[] = {
    {"tokens", ATT_I32, {1, {LENGTH}}}, {"types", ATT_I32, {1, {LENGTH}}}, {"count", ATT_I32, {0, {0}}}};
static const void *const data[] = {tokens, types, &count};
static const att_batch text = {.count = 1, .field_count = 3, .fields = fields, .data = data};

static att_network *open_network(void)
{
    char path[4096];
    att_network_options how = att_network_options_defaults();
    att_option_values options = att_options_none();
    att_network *network;
    att_options_set(&options, "context_length", LENGTH);
    how.options = &options;
    golden_path("encoders/bert", path, sizeof path);
    must(att_network_open(context, path, &how, &network));
    return network;
}

TEST(rows_of_maps_leave_out_padding)
{
    att_network *network = open_network();
    att_explorer *explorer;
    att_batch answers;
    float map[MAP], rows[HEADS * LENGTH];
    must(att_network_select_outputs(network, "blocks.1.attn.map"));
    must(att_network_run(network, &text, &answers));
    memcpy(map, answers.data[0], sizeof map);
    must(att_explorer_create(network, &explorer));
    must(att_explorer_run(explorer, &text, &answers));
    assert_int_equal(att_explorer_layer_count(explorer), 2);
    for (int query = 0; query < COUNT; query++) {
        must(att_explorer_row(explorer, 1, query, NULL, rows));
        for (int i = 0; i < HEADS * LENGTH; i++) {
            const float expected = map[i / LENGTH * LENGTH * LENGTH + query * LENGTH + i % LENGTH];
            if (i % LENGTH >= COUNT)
                assert_true(isnan(rows[i]) && expected == 0);
            else
                assert_true(fabs(rows[i] - expected) < 1e-6); /* measured: 3.0e-8 */
        }
    }
    att_explorer_destroy(&explorer);
    att_network_close(&network);
}
