// SPDX-License-Identifier: Apache-2.0
#pragma once
#pragma GCC system_header

// Included before every kernel source: CUDA C++ as far as the host does it.

#include <assert.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define __LOCKSTEP_HOSTJIT__ 1

#include "abi.h"
#include "types.h"
// The order matters: each uses what is above it.
#include "atomics.h"
#include "execution.h"
#include "maths.h"
#include "refused.h"
