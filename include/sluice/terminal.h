// What a command-line program needs of the terminal and of Ctrl-C.
#pragma once

#include "platform/interrupt.h"
#include "platform/terminal.h"
