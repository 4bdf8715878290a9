// Files that are there whole or not at all.
#pragma once

#include "platform/atomic_writer.h"
