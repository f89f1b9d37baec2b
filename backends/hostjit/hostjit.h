// SPDX-License-Identifier: Apache-2.0
#pragma once

// hostjit: CUDA C++ kernel source → host machine code → execution of thread blocks on the calling
// thread. The public interface of the static library lockstep_hostjit. It depends on neither
// lockstep_core nor backend.h: the host plugin and the test drivers use it alike.
//
//   CompiledImage image = compile({.source = text, .name_expressions = {"saxpy", "scale<float,
//   3>"}}); std::shared_ptr<Module> module = Module::load_file(image.path); const Kernel* saxpy =
//   module->find_kernel("saxpy"); RunStatus status = saxpy->run_blocks(0, 64, {64, 1, 1}, {256, 1,
//   1}, 0, args);
//
// Compiling and loading throw hostjit::Error; running never throws and returns a status.
//
// Environment:
//   LOCKSTEP_HOST_COMPILER   the compiler to use (name on PATH or absolute path); else g++,
//   clang++, c++ LOCKSTEP_CACHE_DIR       where images are kept; else $XDG_CACHE_HOME/lockstep,
//   else ~/.cache/lockstep LOCKSTEP_HOST_STACK_KB   stack of one CUDA thread that waits at a
//   barrier, in KiB, besides what the compiler says that large frames of its module need; default
//                            64, between 16 and 65536: recursion may need more. One guard page
//                            lies below each stack.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep_hostjit {
struct KernelEntry;
}

namespace lockstep::hostjit {

enum class ErrorCode {
  kInvalidOption,  // an option that hostjit does not know, or a malformed one
  kNoCompiler,     // no usable compiler; the text lists what was tried
  kCompileFailed,  // the source has errors, or uses what the host cannot do; log() has the
                   // diagnostics
  kTimeout,        // the compiler ran longer than CompileRequest::timeout and was killed
  kNoStorage,      // neither the cache folder nor a private temporary folder could be written
  kBadImage,       // the bytes are not an image made by this version of hostjit on such a machine
};

// What compile() and Module::load*() throw. what() is complete on its own: what, where, what to do.
class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message, std::string log = {})
      : std::runtime_error(message), code_(code), log_(std::move(log)) {}
  ErrorCode code() const noexcept { return code_; }
  // The compiler's whole output with the user's own file name and line numbers; empty when no
  // compiler ran.
  const std::string& log() const noexcept { return log_; }

 private:
  ErrorCode code_;
  std::string log_;
};

// A header that exists in memory only; `name` is what the source includes.
struct Header {
  std::string name;
  std::string text;
};

struct CompileRequest {
  std::string source;                         // CUDA C++
  std::string source_name = "kernel.cu";      // what diagnostics call the source
  std::vector<std::string> name_expressions;  // `saxpy`, `scale<float, 3>`, `&ns::k`
  // -D -U -I -std= -O0..-O3 -g -w -W… -march= -ffp-contract= -fmad= -use_fast_math -ffast-math, in
  // their nvcc and NVRTC long forms too. Options that only choose a GPU (-arch=…) are accepted and
  // ignored.
  std::vector<std::string> options;
  std::vector<Header> headers;
  // Adds the kernels of `source` that are no templates, besides those named (as NVRTC does), but
  // for those inside of `#if`: whether these exist is known only when it is compiled, so name them.
  bool discover_kernels = false;
  // What kernels see as warpSize: that of the device they are compiled for. Threads of a block run
  // one after the other whatever it is.
  std::uint32_t warp_size = 1;
  std::chrono::milliseconds timeout{120'000};
};

struct CompiledImage {
  std::string path;  // a shared object; valid as long as the cache is not emptied
  bool from_cache = false;
  std::string log;   // warnings of the compiler; empty from the cache
  std::string note;  // said once a process: why a private folder is used in place of the cache
  // The image's bytes, which are all that Module::load needs.
  std::vector<std::byte> read() const;
};

// Compiles, or finds the image in the cache that all processes of a user share. Thread safe.
CompiledImage compile(const CompileRequest& request);

// True when a compiler can be run; otherwise `why` (may be null) says what was tried.
bool compiler_available(std::string* why);

struct Dim3 {
  std::uint32_t x = 1, y = 1, z = 1;
};

// One kernel parameter as it lies in CUDA's parameter buffer.
struct Parameter {
  std::uint32_t offset = 0;  // natural alignment
  std::uint32_t size = 0;
  std::uint32_t alignment = 1;
  bool is_pointer = false;
  bool may_have_padding = false;  // a by-value struct whose bytes may not all be value
};

enum class RunCode {
  kOk,
  kAssert,       // assert() failed; message as CUDA prints it
  kTrap,         // __trap()
  kOutOfMemory,  // stacks or shared memory could not be had
};

struct RunStatus {
  RunCode code = RunCode::kOk;
  std::string message;
  bool ok() const noexcept { return code == RunCode::kOk; }
};

struct ModuleState;

// A kernel of a loaded module; a view that is valid while its Module lives. All functions may be
// called from any thread, also at the same time.
class Kernel {
 public:
  // As given to compile(), without a leading '&'.
  const std::string& name_expression() const noexcept { return name_expression_; }
  // The name a CUDA driver would report: mangled (`_Z5saxpyfPKfPfi`), plain for extern "C".
  const std::string& name() const noexcept { return name_; }
  std::span<const Parameter> parameters() const noexcept { return parameters_; }
  // Bytes of the parameter buffer: end of the last parameter, not rounded up.
  std::uint32_t parameter_bytes() const noexcept { return parameter_bytes_; }
  // Bytes of __shared__ variables: the kernel's own plus those of the module's device functions.
  std::uint32_t static_shared_bytes() const noexcept { return static_shared_bytes_; }
  // The same without what may belong to other kernels of the module only.
  std::uint32_t own_shared_bytes() const noexcept { return own_shared_bytes_; }
  // Bytes that large frames take on the stack of a thread, unless the kernel recurses.
  std::uint64_t stack_bytes() const noexcept { return stack_bytes_; }
  // False: certainly not. True: something in this module uses a barrier.
  bool can_reach_barrier() const noexcept { return can_reach_barrier_; }
  // First argument of __launch_bounds__, else 1024.
  std::uint32_t max_threads_per_block() const noexcept { return max_threads_per_block_; }

  // Executes the blocks [first, first + count) of the grid, numbered x fastest, on the calling
  // thread, one after the other; returns when they are done or at the first failure. `args` points
  // to one pointer a parameter (as cuLaunchKernel's kernelParams). Checks no limits: that is the
  // caller's part. A null or wild access in the kernel, or an overflow of a stack, ends the
  // process. Not reentrant: a kernel cannot launch.
  RunStatus run_blocks(std::uint64_t first, std::uint64_t count, Dim3 grid, Dim3 block,
                       std::size_t dynamic_shared_bytes, void* const* args) const noexcept;

 private:
  friend class Module;
  std::string name_expression_;
  std::string name_;
  std::vector<Parameter> parameters_;
  std::uint32_t parameter_bytes_ = 0;
  std::uint32_t static_shared_bytes_ = 0;
  std::uint32_t own_shared_bytes_ = 0;
  std::uint64_t stack_bytes_ = 0;
  std::uint32_t max_threads_per_block_ = 1024;
  bool can_reach_barrier_ = false;
  const lockstep_hostjit::KernelEntry* entry_ = nullptr;
};

// A __device__ or __constant__ variable.
struct Global {
  void* address = nullptr;
  std::size_t size = 0;
};

// A loaded image. Every load has its own copy of the variables, also of the same image. Unloaded
// with the last reference, which must not be dropped while a kernel of it runs.
class Module {
 public:
  static std::shared_ptr<Module> load(std::span<const std::byte> image);
  static std::shared_ptr<Module> load_file(const std::string& path);
  // Cheap test of the first bytes: is this an image of ours (and not PTX, a cubin, a code object)?
  static bool is_image(std::span<const std::byte> image) noexcept;

  ~Module();
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  // In the order of CompileRequest::name_expressions; discovered ones after them.
  std::span<const Kernel> kernels() const noexcept { return kernels_; }
  // By mangled name or by name expression (blanks do not matter); null when there is none.
  const Kernel* find_kernel(std::string_view name) const noexcept;
  // By the name nvcc gives it: plain at global scope, mangled inside a namespace.
  std::optional<Global> find_global(std::string_view name) const;

 private:
  Module();
  std::unique_ptr<ModuleState> state_;
  std::vector<Kernel> kernels_;
};

}  // namespace lockstep::hostjit
