/* attscope/lab.h - all that libattscope-lab adds to libattscope, for experiments: recipes, training runs in folders of
 * runs, sweeps, rank correlations, reports, benchmarks, published tasks, stiff differential equations, and the files
 * around them (JSON, YAML). */
#ifndef ATTSCOPE_LAB_H
#define ATTSCOPE_LAB_H

#include <attscope/lab/ablation.h>
#include <attscope/lab/advise.h>
#include <attscope/lab/bench.h>
#include <attscope/lab/collapse.h>
#include <attscope/lab/collection.h>
#include <attscope/lab/correlation.h>
#include <attscope/lab/experiments.h>
#include <attscope/lab/flags.h>
#include <attscope/lab/json.h>
#include <attscope/lab/measuring.h>
#include <attscope/lab/ode.h>
#include <attscope/lab/recipe.h>
#include <attscope/lab/report.h>
#include <attscope/lab/results.h>
#include <attscope/lab/runs.h>
#include <attscope/lab/serve.h>
#include <attscope/lab/sweep.h>
#include <attscope/lab/sweep_plan.h>
#include <attscope/lab/training.h>
#include <attscope/lab/yaml.h>

#endif
