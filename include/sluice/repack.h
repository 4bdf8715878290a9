// Model files in another layout: ordered and aligned for streaming, in parts, whole again.
#pragma once

#include "gguf/repack.h"
#include "gguf/split.h"
#include "model/reading_order.h"
