// Measures of what a model knows: perplexity, divergence from a base, question sets.
#pragma once

#include "eval/base_run.h"
#include "eval/divergence.h"
#include "eval/perplexity.h"
#include "eval/question_set.h"
#include "eval/text_windows.h"
