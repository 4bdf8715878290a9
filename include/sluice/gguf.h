// Model files as they are: header, metadata, tensor directory.
#pragma once

#include "gguf/overrides.h"
#include "gguf/reader.h"
