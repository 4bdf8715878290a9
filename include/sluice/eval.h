// Measures of what a model knows: perplexity, question sets.
#pragma once

#include "eval/perplexity.h"
#include "eval/question_set.h"
