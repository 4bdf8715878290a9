// Model files as they are: header, metadata, tensor directory; and where they are read from and written to.
#pragma once

#include "gguf/byte_sink.h"
#include "gguf/file_source.h"
#include "gguf/overrides.h"
#include "gguf/reader.h"
