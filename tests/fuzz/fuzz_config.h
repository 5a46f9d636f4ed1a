/* What the targets do with the options of a configuration file that could be read. */
#ifndef ATT_FUZZ_CONFIG_H
#define ATT_FUZZ_CONFIG_H

#include "fuzz.h"

#include "networks/models/config.h"
#include "networks/models/family.h"

/* Every family checks the options, and completes them with the options of its first variant. */
static inline void fuzz_complete(const att_option_values *said)
{
    for (int i = 0; i < att_family_count(); i++) {
        const att_family *family = att_family_at(i);
        att_option_values options = *said, own;
        att_preprocess preprocess;
        att_variant_defaults(&(att_variant){.family = family}, said, &own, &preprocess);
        att_options_fill(&options, &own);
        if (att_family_check(fuzz_context(), family, &options) == ATT_OK)
            (void)att_family_complete(fuzz_context(), family, &options);
    }
}

#endif
