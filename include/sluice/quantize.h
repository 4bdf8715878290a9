// A model file in other weight types, with the error of every tensor.
#pragma once

#include "quantize/feedback.h"
#include "quantize/fit.h"
#include "quantize/importance_file.h"
#include "quantize/importance_gatherer.h"
#include "quantize/mix.h"
#include "quantize/quantizer.h"
