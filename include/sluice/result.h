// Result and Error: how every call of the library says that something outside went wrong.
#pragma once

#include "base/parse_number.h"
#include "base/result.h"
#include "base/units.h"
