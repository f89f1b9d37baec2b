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

#include "lockstep_hostjit/abi.h"
#include "lockstep_hostjit/types.h"
// The order matters: each uses what is above it.
#include "lockstep_hostjit/atomics.h"
#include "lockstep_hostjit/execution.h"
#include "lockstep_hostjit/maths.h"
#include "lockstep_hostjit/refused.h"
