/* sweep_same.h - whether two settings of a sweep are one. */
#ifndef CLI_SWEEP_SAME_H
#define CLI_SWEEP_SAME_H

#include "train_flags.h"

/* Whether runs with these options are the same to the bit because the options are, seed and folders aside: modules in
 * the same places, with the same values of their options, whatever words say so; without a module, its places aside. */
bool sweep_same_settings(cli_app *cli, const train_settings *a, const train_settings *b);

#endif
