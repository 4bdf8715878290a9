// A model's folder as it was published → one GGUF file.
#pragma once

#include "convert/convert.h"
