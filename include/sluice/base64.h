// Bytes that travel as text.
#pragma once

#include "base/base64.h"
