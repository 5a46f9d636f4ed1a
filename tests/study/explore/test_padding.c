/* Maps and changes of a network for texts, whose padding is no key. */
#include <attscope/encoder.h>
#include <attscope/explore.h>

#include "context.h"
#include "golden_path.h"

SHARED_CONTEXT(threads, 1)

enum { LENGTH = 6, COUNT = 4, WIDTH = 8, HEADS = 2, MAP = HEADS * LENGTH * LENGTH };

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

/* The mean over the tokens of the padded text, by the network itself. */
static void find_mean(att_network *network, float mean[WIDTH])
{
    att_batch answers;
    must(att_network_select_outputs(network, "mean"));
    must(att_network_run(network, &text, &answers));
    assert_int_equal(answers.fields[0].shape.dims[0], WIDTH);
    memcpy(mean, answers.data[0], WIDTH * sizeof *mean);
}

TEST(an_explorer_of_a_text_has_its_tokens_and_the_outputs_that_are_named)
{
    const att_token_ids ids = {.tokens = tokens, .types = types, .count = COUNT};
    att_network *network = open_network();
    att_explorer *explorer = NULL, *padded;
    att_text_inputs room;
    att_batch answers;
    float mean[WIDTH], whole[HEADS * LENGTH], rows[HEADS * COUNT];
    const att_batch inputs = att_network_text_inputs(network, &ids, &room);
    find_mean(network, mean);
    must(att_explorer_create(network, &padded));
    must(att_explorer_run(padded, &text, &answers));
    must(att_explorer_row(padded, 1, 2, NULL, whole));
    assert_fails(context, att_explorer_run(padded, &inputs, &answers), ATT_ERR_MISMATCH, "tokens");
    must(att_explorer_create_for(network, &inputs, "mean", &explorer));
    must(att_explorer_run(explorer, &inputs, &answers));
    assert_null(att_batch_field(&answers, "features"));
    const float *found = att_batch_field(&answers, "mean");
    assert_non_null(found);
    for (int c = 0; c < WIDTH; c++)
        assert_true(fabs(found[c] - mean[c]) < 1e-6); /* measured: 1.2e-7 */
    assert_int_equal(att_explorer_layer_at(explorer, 1).tokens, COUNT);
    must(att_explorer_row(explorer, 1, 2, NULL, rows));
    for (int i = 0; i < HEADS * COUNT; i++)
        assert_true(fabs(rows[i] - whole[i / COUNT * LENGTH + i % COUNT]) < 1e-6); /* measured: 3.0e-8 */
    must(att_explorer_change_head(explorer, 0, 1, ATT_HEAD_REMOVED));
    must(att_explorer_remove_token(explorer, 1, true));
    must(att_explorer_run(explorer, &inputs, &answers));
    found = att_batch_field(&answers, "mean");
    assert_true(fabs(found[0] - mean[0]) > 1e-4);
    must(att_explorer_row(explorer, 1, 2, NULL, rows));
    assert_true(isnan(rows[1]) && !isnan(rows[0]));
    att_explorer_destroy(&explorer);
    assert_fails(context, att_explorer_create_for(network, &inputs, "means", &explorer), ATT_ERR_NOT_FOUND,
                 "\"means\"");
    assert_null(explorer);
    att_explorer_destroy(&padded);
    att_network_close(&network);
}
