// SPDX-License-Identifier: Apache-2.0
#pragma once
#pragma GCC system_header

// From a kernel's function type: its parameter table, and the loops that run blocks of it. Stands
// before the user's text, whose macros may be named like anything here; the generated list of
// entries behind that text uses the names at the end of this file.

namespace lockstep_hostjit {

template <int... kIndex>
struct Sequence {};
template <int kCount, int... kIndex>
struct SequenceOf : SequenceOf<kCount - 1, kCount - 1, kIndex...> {};
template <int... kIndex>
struct SequenceOf<0, kIndex...> {
  using Type = Sequence<kIndex...>;
};
template <int kCount>
using MakeSequence = typename SequenceOf<kCount>::Type;

template <class T>
T load(const void* source) {
  struct alignas(T) Bytes {
    unsigned char value[sizeof(T)];
  } bytes;
  __builtin_memcpy(&bytes, source, sizeof(T));
  return __builtin_bit_cast(T, bytes);
}

template <class T>
struct IsPointer {
  static constexpr bool value = false;
};
template <class T>
struct IsPointer<T*> {
  static constexpr bool value = true;
};
template <class R, class... P>
struct IsPointer<R (*)(P...)> {
  static constexpr bool value = false;
};

// A struct of which every byte is 0xff but the padding, which is cleared: no zero, no padding.
template <class T>
bool may_have_padding() {
  if constexpr (!__is_class(T) && !__is_union(T)) {
    return false;
  } else if constexpr (__has_unique_object_representations(T)) {
    return false;
  } else {
#if defined(__GNUC__) && !defined(__clang__)
    alignas(T) unsigned char bytes[sizeof(T)];
    __builtin_memset(bytes, 0xff, sizeof(T));
    __builtin_clear_padding(reinterpret_cast<T*>(bytes));
    __asm__ volatile("" ::"r"(bytes) : "memory");
    for (unsigned char byte : bytes)
      if (byte == 0) return true;
    return false;
#else
    return true;
#endif
  }
}

template <class T>
ParameterEntry parameter() {
  static_assert(__is_trivially_copyable(T),
                "a kernel parameter must be trivially copyable (a struct is passed byte by byte)");
  return {sizeof(T), alignof(T), IsPointer<T>::value, may_have_padding<T>()};
}

static inline void enter(const Launch* launch) {
  current_launch = launch;
  dynamic_shared_memory = launch->dynamic_shared;
  gridDim = {launch->grid.x, launch->grid.y, launch->grid.z};
  for (SharedPointer* pointer = SharedPointer::first(); pointer; pointer = pointer->next)
    pointer->set(launch->dynamic_shared);
}

// The threads of one block, one after the other. A function of its own for each kernel, so that
// the compiler has all registers for the innermost loop.
template <auto kFunction, bool kSmall, class... P>
inline __attribute__((always_inline)) void run_block(const Launch* launch, Size3 position,
                                                     P... arguments) {
  const Size3 block = launch->block;
  if constexpr (kSmall) {
    // Lets the compiler see that an index of 32 bits cannot wrap, so that it can vectorise.
    if (block.x > 1024 || block.x == 0) __builtin_unreachable();
    if (position.x > 0x7fffffffu / 1024) __builtin_unreachable();
  }
  // Set again for each block: the compiler has to see that both are one value.
  blockDim = {block.x, block.y, block.z};
  blockIdx = {position.x, position.y, position.z};
  barrier_reached = false;
  const unsigned base = position.x * block.x;
  if constexpr (kSmall) {
    if (base > 0x7fffffffu - 1024) __builtin_unreachable();
  }
  for (unsigned z = 0; z < block.z; ++z) {
    for (unsigned y = 0; y < block.y; ++y) {
      if constexpr (kSmall) {
        // Counts blockIdx.x * blockDim.x + threadIdx.x itself: a kernel's `if (index < n)` then is
        // a test of the loop's own variable, on which the compiler splits the loop in two.
        const int end = static_cast<int>(base + block.x);
        for (int index = static_cast<int>(base); index < end; ++index) {
          threadIdx = {static_cast<unsigned>(index) - base, y, z};
          kFunction(arguments...);
          // Never true where the kernel has no barrier: the compiler drops the test.
          if (barrier_reached) goto others;
        }
      } else {
        for (unsigned x = 0; x < block.x; ++x) {
          threadIdx = {x, y, z};
          kFunction(arguments...);
          if (barrier_reached) goto others;
        }
      }
    }
  }
  return;
others:
  launch->services->finish_block(launch->scheduler);
}

// Calls run(position) for each block of the launch.
template <class Run>
inline __attribute__((always_inline)) void for_each_block(const Launch* launch, Run run) {
  const Size3 grid = launch->grid;
  const unsigned long long row = launch->first_block / grid.x;
  Size3 position = {static_cast<unsigned>(launch->first_block % grid.x),
                    static_cast<unsigned>(row % grid.y), static_cast<unsigned>(row / grid.y)};
  for (unsigned long long left = launch->block_count; left > 0; --left) {
    run(position);
    if (++position.x == grid.x) {
      position.x = 0;
      if (++position.y == grid.y) {
        position.y = 0;
        ++position.z;
      }
    }
  }
}

template <auto kFunction>
struct Instance {
  static_assert(kFunction == nullptr,
                "a name expression has to name a __global__ function (which returns void)");
  static KernelEntry entry(const char*);
};

template <class... P, void (*kFunction)(P...)>
struct Instance<kFunction> {
  static __attribute__((flatten, noinline)) void block_small(const Launch* launch, Size3 position,
                                                             P... arguments) {
    run_block<kFunction, true, P...>(launch, position, arguments...);
  }
  static __attribute__((noinline)) void block_large(const Launch* launch, Size3 position,
                                                    P... arguments) {
    run_block<kFunction, false, P...>(launch, position, arguments...);
  }
  template <int... kIndex>
  static void blocks(const Launch* launch, bool small, Sequence<kIndex...>) {
    enter(launch);
    const auto run = [&](auto block, P... arguments) {
      for_each_block(launch, [&](Size3 position) { block(launch, position, arguments...); });
    };
    run(small ? &block_small : &block_large, load<P>(launch->arguments[kIndex])...);
  }
  static void run(const Launch* launch, bool small) {
    blocks(launch, small, MakeSequence<sizeof...(P)>{});
  }

  template <int... kIndex>
  static void call(const Launch* launch, Sequence<kIndex...>) {
    kFunction(load<P>(launch->arguments[kIndex])...);
  }
  static void run_thread(const Launch* launch, unsigned linear) {
    const unsigned row = linear / launch->block.x;
    threadIdx = {linear % launch->block.x, row % launch->block.y, row / launch->block.y};
    call(launch, MakeSequence<sizeof...(P)>{});
  }

  static const ParameterEntry* parameters() {
    static const ParameterEntry entries[sizeof...(P) + 1] = {parameter<P>()..., ParameterEntry{}};
    return entries;
  }

  // The functions into which the kernel may be inlined.
  static const void* const* code() {
    static const void* const functions[] = {
        reinterpret_cast<const void*>(&block_small), reinterpret_cast<const void*>(&block_large),
        reinterpret_cast<const void*>(&run), reinterpret_cast<const void*>(&run_thread), nullptr};
    return functions;
  }

  static KernelEntry entry(const char* expression) {
    return {expression,  reinterpret_cast<void (*)()>(kFunction), &run, &run_thread, code(),
            &parameters, static_cast<unsigned>(sizeof...(P))};
  }
};

}  // namespace lockstep_hostjit

using lockstep_hostjit_kernel_entry = lockstep_hostjit::KernelEntry;
using lockstep_hostjit_image_table = lockstep_hostjit::ImageTable;
static constexpr auto lockstep_hostjit_abi_magic = lockstep_hostjit::kAbiMagic;
static constexpr auto lockstep_hostjit_abi_version = lockstep_hostjit::kAbiVersion;

template <auto kFunction>
lockstep_hostjit::KernelEntry lockstep_hostjit_entry_of(const char* expression) {
  return lockstep_hostjit::Instance<kFunction>::entry(expression);
}
