// What a command-line program needs of standard input, the terminal and Ctrl-C.
#pragma once

#include "platform/input.h"
#include "platform/interrupt.h"
#include "platform/terminal.h"
