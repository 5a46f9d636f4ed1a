/* experiments/fixture.h - a context for the tests of experiments, and numbers that tools/goldens/experiments.py draws,
 * too. */
#ifndef TESTS_EXPERIMENTS_FIXTURE_H
#define TESTS_EXPERIMENTS_FIXTURE_H

#include <attscope/context.h>

#include "context.h"
#include "formula.h"

SHARED_CONTEXT(threads, 2)

#endif
