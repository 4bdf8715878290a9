// Random-weight models of real shapes, to try a size before downloading it.
#pragma once

#include "quantize/mix.h"
#include "quantize/synth.h"
#include "quantize/synth_shape.h"
