/* Converts options of version 0.1. */
#include <stdio.h>
#include <string.h>

#include "models/family.h"

static const char *broadcast_names(int index)
{
    return att_module_name(NULL, ATT_ON_TOKENS, index);
}

static const char *attn_names(int index)
{
    return att_module_name(NULL, ATT_ON_MAPS, index);
}

static const char BROADCAST[] = "broadcast", ATTN[] = "attn", ATTN_BLOCKS[] = "attn_blocks", MODULES[] = "modules",
                  HOOK[] = "@after_branch:";

static const att_option old_options[] = {
    {BROADCAST, .kind = ATT_OPTION_TEXT, .value = "MODULE", .help = "modules MODULE", .choice = broadcast_names,
     .detailed = true, .not_compared = true, .size = ATT_OPTION_TEXT_BYTES},
    {ATTN, .kind = ATT_OPTION_TEXT, .value = "MODULE", .help = "modules MODULE", .choice = attn_names, .detailed = true,
     .not_compared = true, .size = ATT_OPTION_TEXT_BYTES},
    {ATTN_BLOCKS, .kind = ATT_OPTION_TEXT, .value = "WHERE", .help = "modules MODULE@after_branch:WHERE",
     .not_compared = true, .size = ATT_OPTION_TEXT_BYTES},
};
const att_option_table att_old_options = {old_options, sizeof old_options / sizeof *old_options, 0};

att_family_info att_model_old_options(void)
{
    return (att_family_info){.name = "0.1", .options = old_options, .option_count = att_old_options.count};
}

static bool is_none(const char *text)
{
    return !*text || strcmp(text, "none") == 0;
}

void att_model_upgrade_options(att_option_values *options)
{
    const char *broadcast = att_options_text(options, BROADCAST), *attn = att_options_text(options, ATTN),
               *places = att_options_text(options, ATTN_BLOCKS);
    char made[3 * ATT_OPTION_TEXT_BYTES];
    bool placed = *places && strcmp(attn, "none") != 0 && !(*attn && strcmp(places, "all") == 0);
    bool both = !is_none(broadcast) && (*attn || placed);
    if (!*broadcast && !*attn && !*places)
        return;
    snprintf(made, sizeof made, "%s%s%s%s%s", both || !*attn ? broadcast : "", both ? "+" : "", attn,
             placed ? HOOK : "", placed ? places : "");
    if (!att_options_find(options, MODULES) && *made)
        att_options_set_text(options, MODULES, made);
    att_options_unset(options, BROADCAST);
    att_options_unset(options, ATTN);
    att_options_unset(options, ATTN_BLOCKS);
}
