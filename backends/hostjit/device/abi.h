// SPDX-License-Identifier: Apache-2.0
#pragma once

// What an image and the library say to each other. Compiled into both; an image of another version
// is refused, and the cache key contains this text.

namespace lockstep_hostjit {

constexpr unsigned kAbiMagic = 0x4c534a54;  // "LSJT"
constexpr unsigned kAbiVersion = 1;

struct Size3 {
  unsigned x, y, z;
};

enum FailureKind : unsigned { kFailureAssert = 1, kFailureTrap = 2 };

struct Failure {
  unsigned kind;
  unsigned line;
  const char* expression;
  const char* file;
  const char* function;
  Size3 block, thread;
};

// Sums over the threads that took part in one barrier with a predicate.
struct BarrierVotes {
  unsigned voters;
  unsigned ayes;
};

struct Launch;

// What the library does for a running kernel.
struct Services {
  // Waits until every live thread of the block waits or has ended. `linear_thread` numbers the
  // caller within its block, x fastest.
  BarrierVotes (*barrier)(void* scheduler, unsigned linear_thread, bool votes, bool aye);
  // Called by the image when the threads it ran itself are done but others still wait.
  void (*finish_block)(void* scheduler);
  // Ends the launch.
  void (*fail)(void* scheduler, const Failure* failure);
};

// One call of run_blocks.
struct Launch {
  const Services* services;
  void* scheduler;
  void* dynamic_shared;
  void* const* arguments;
  unsigned long long first_block;
  unsigned long long block_count;
  Size3 grid, block;
};

struct ParameterEntry {
  unsigned size, alignment;
  bool is_pointer, may_have_padding;
};

struct KernelEntry {
  const char* expression;
  void (*function)();  // the kernel itself: names it through the symbol table
  // small: block.x <= 1024 and grid.x < 2^21, so that an index along x fits an int.
  void (*run)(const Launch*, bool small);
  void (*run_thread)(const Launch*, unsigned linear_thread);
  const void* const* code;  // the functions of this kernel alone, null at the end
  const ParameterEntry* (*parameters)();
  unsigned parameter_count;
};

struct ImageTable {
  unsigned magic, version;
  unsigned kernel_count;
  const KernelEntry* kernels;
};

}  // namespace lockstep_hostjit
