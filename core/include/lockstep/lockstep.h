// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// Everything a program needs. Each header can be included by itself as well.

#include <lockstep/backends.h>
#include <lockstep/buffer.h>
#include <lockstep/device.h>
#include <lockstep/error.h>
#include <lockstep/event.h>
#include <lockstep/graph.h>
#include <lockstep/launch.h>
#include <lockstep/module.h>
#include <lockstep/stream.h>
#include <lockstep/trace.h>
#include <lockstep/trace_diff.h>
#include <lockstep/trace_entry.h>
#include <lockstep/trace_file.h>
#include <lockstep/tracer.h>
#include <lockstep/verify.h>
