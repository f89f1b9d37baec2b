// SPDX-License-Identifier: Apache-2.0
#include <cerrno>
#include <cfenv>
#include <cstring>
#include <dlfcn.h>
#include <limits>
#include <sys/mman.h>
#include <unistd.h>

#include "block_runner.h"
#include "cache.h"
#include "device/abi.h"
#include "elf_symbols.h"
#include "hostjit.h"
#include "symbol_names.h"
#include "tail_generator.h"

namespace lockstep::hostjit {

using lockstep_hostjit::ImageTable;

struct ModuleState {
  std::vector<std::byte> image;
  std::optional<ElfSymbols> symbols;
  void* handle = nullptr;
  int descriptor = -1;
  std::uintptr_t base = 0;

  ModuleState() = default;
  ModuleState(const ModuleState&) = delete;
  ModuleState& operator=(const ModuleState&) = delete;
  ~ModuleState() {
    if (handle != nullptr) dlclose(handle);
    if (descriptor >= 0) close(descriptor);
  }
};

namespace {

[[noreturn]] void refuse(const std::string& why) {
  throw Error(ErrorCode::kBadImage, "not a usable host kernel image: " + why);
}

// The control and status words of this thread, which are restored at the end.
class KeptFloatingPoint {
 public:
  KeptFloatingPoint() { std::fegetenv(&environment_); }
  ~KeptFloatingPoint() { std::fesetenv(&environment_); }
  KeptFloatingPoint(const KeptFloatingPoint&) = delete;
  KeptFloatingPoint& operator=(const KeptFloatingPoint&) = delete;

 private:
  std::fenv_t environment_;
};

// A file of its own for each load: dlopen gives one mapping for one file, and with it one set of
// variables. The name stays unique because the descriptor stays open as long as the mapping.
void open_image(ModuleState& state) {
  state.descriptor = memfd_create("lockstep-hostjit", MFD_CLOEXEC);
  if (state.descriptor < 0) refuse(std::string("memfd_create: ") + std::strerror(errno));
  std::size_t written = 0;
  while (written < state.image.size()) {
    const ssize_t count =
        write(state.descriptor, state.image.data() + written, state.image.size() - written);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) refuse(std::string("write: ") + std::strerror(errno));
    written += static_cast<std::size_t>(count);
  }
  const std::string path = "/proc/self/fd/" + std::to_string(state.descriptor);
  {
    // An image compiled with -ffast-math has a constructor of the compiler's that makes the calling
    // thread flush denormal numbers to zero, for good. How the program computes is its own
    // business.
    const KeptFloatingPoint kept;
    state.handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  }
  if (state.handle == nullptr) {
    const char* reason = dlerror();
    refuse(reason != nullptr ? reason : "dlopen failed");
  }
}

const ImageTable& table_of(ModuleState& state) {
  const auto* table = static_cast<const ImageTable*>(dlsym(state.handle, "lockstep_hostjit_table"));
  if (table == nullptr) refuse("it has no kernel table");
  if (table->magic != lockstep_hostjit::kAbiMagic ||
      table->version != lockstep_hostjit::kAbiVersion) {
    refuse("it was made by another version (its interface is " + std::to_string(table->version) +
           ", ours is " + std::to_string(lockstep_hostjit::kAbiVersion) + "); compile again");
  }
  const ElfSymbol* symbol = state.symbols->find("lockstep_hostjit_table");
  if (symbol == nullptr) refuse("its symbol table lacks the kernel table");
  state.base = reinterpret_cast<std::uintptr_t>(table) - symbol->value;
  return *table;
}

// For each marker that a barrier left: the function it is in.
std::vector<const ElfSymbol*> functions_with_barrier(const ElfSymbols& symbols) {
  std::vector<const ElfSymbol*> functions;
  const auto section = symbols.section("lockstep_barriers");
  if (!section) return functions;
  for (std::size_t offset = 0; offset + 4 <= section->bytes.size(); offset += 4) {
    std::int32_t distance = 0;
    std::memcpy(&distance, section->bytes.data() + offset, sizeof distance);
    functions.push_back(symbols.function_at(section->address + offset +
                                            static_cast<std::uint64_t>(std::int64_t{distance})));
  }
  return functions;
}

// A function that belongs to one kernel alone.
struct KernelCode {
  std::uint64_t address;
  unsigned kernel;
};

// Whether a barrier in `function` (null: unknown) has to be counted for a kernel: yes, unless the
// function certainly is part of others only.
bool may_be_called_by(const ElfSymbol* function, unsigned kernel,
                      const std::vector<KernelCode>& code) {
  bool of_others = false;
  for (const KernelCode& part : code) {
    if (function == nullptr || part.address != function->value) continue;
    if (part.kernel == kernel) return true;
    of_others = true;
  }
  return !of_others;
}

}  // namespace

Module::Module() : state_(std::make_unique<ModuleState>()) {}
Module::~Module() = default;

bool Module::is_image(std::span<const std::byte> image) noexcept { return has_seal_magic(image); }

std::shared_ptr<Module> Module::load_file(const std::string& path) {
  const auto bytes = read_file(path);
  if (!bytes) refuse(path + " cannot be read");
  return load(*bytes);
}

std::shared_ptr<Module> Module::load(std::span<const std::byte> image) {
  if (!has_seal_magic(image))
    refuse(
        "it lacks the mark of one (PTX, a cubin and code objects are "
        "not for the host backend)");
  if (!has_valid_seal(image)) refuse("it is damaged");
  std::shared_ptr<Module> module(new Module);
  ModuleState& state = *module->state_;
  state.image.assign(image.begin(), image.end());
  state.symbols = ElfSymbols::parse(state.image);
  if (!state.symbols) refuse("it has no symbol table");
  open_image(state);
  const ImageTable& table = table_of(state);

  const std::vector<const ElfSymbol*> with_barrier = functions_with_barrier(*state.symbols);
  std::vector<std::string_view> kernel_symbols;
  std::vector<KernelCode> code;
  for (unsigned i = 0; i < table.kernel_count; ++i) {
    const auto address = reinterpret_cast<std::uintptr_t>(table.kernels[i].function) - state.base;
    const ElfSymbol* symbol = state.symbols->function_at(address);
    if (symbol == nullptr || symbol->value != address)
      refuse(std::string("no symbol for the kernel ") + table.kernels[i].expression);
    kernel_symbols.push_back(symbol->name);
    for (const void* const* part = table.kernels[i].code; *part != nullptr; ++part)
      code.push_back({reinterpret_cast<std::uintptr_t>(*part) - state.base, i});
    code.push_back({address, i});
  }
  module->kernels_.resize(table.kernel_count);
  for (unsigned i = 0; i < table.kernel_count; ++i) {
    const lockstep_hostjit::KernelEntry& entry = table.kernels[i];
    Kernel& kernel = module->kernels_[i];
    kernel.entry_ = &entry;
    kernel.name_expression_ = entry.expression;
    kernel.name_ = name_as_nvcc(kernel_symbols[i]);
    std::uint64_t end = 0;
    const lockstep_hostjit::ParameterEntry* parameters = entry.parameters();
    for (unsigned p = 0; p < entry.parameter_count; ++p) {
      const std::uint64_t alignment = parameters[p].alignment;
      const std::uint64_t offset = (end + alignment - 1) / alignment * alignment;
      kernel.parameters_.push_back({static_cast<std::uint32_t>(offset), parameters[p].size,
                                    parameters[p].alignment, parameters[p].is_pointer,
                                    parameters[p].may_have_padding});
      end = offset + parameters[p].size;
    }
    kernel.parameter_bytes_ = static_cast<std::uint32_t>(end);
    const SharedBytes shared = shared_bytes_of(*state.symbols, kernel_symbols[i], kernel_symbols);
    kernel.static_shared_bytes_ = shared.most;
    kernel.own_shared_bytes_ = shared.own;
    kernel.stack_bytes_ = sealed_stack_bytes(image);
    if (const ElfSymbol* bound = state.symbols->find(launch_bounds_symbol(kernel_symbols[i]))) {
      std::uint32_t value = 0;
      std::memcpy(&value, reinterpret_cast<const void*>(state.base + bound->value), sizeof value);
      if (value > 0) kernel.max_threads_per_block_ = value;
    }
    for (const ElfSymbol* function : with_barrier) {
      if (may_be_called_by(function, i, code)) kernel.can_reach_barrier_ = true;
    }
  }
  return module;
}

const Kernel* Module::find_kernel(std::string_view name) const noexcept {
  for (const Kernel& kernel : kernels_) {
    if (kernel.name() == name || kernel.name_expression() == name) return &kernel;
  }
  const std::string wanted = normalized_expression(name);
  for (const Kernel& kernel : kernels_) {
    if (normalized_expression(kernel.name_expression()) == wanted) return &kernel;
  }
  return nullptr;
}

std::optional<Global> Module::find_global(std::string_view name) const {
  if (name.starts_with("lockstep_hostjit")) return std::nullopt;
  for (const ElfSymbol& symbol : state_->symbols->symbols()) {
    if (symbol.kind == ElfSymbol::Kind::kObject && symbol.size > 0 &&
        (symbol.name == name || name_as_nvcc(symbol.name) == name)) {
      return Global{reinterpret_cast<void*>(state_->base + symbol.value),
                    static_cast<std::size_t>(symbol.size)};
    }
  }
  return std::nullopt;
}

RunStatus Kernel::run_blocks(std::uint64_t first, std::uint64_t count, Dim3 grid, Dim3 block,
                             std::size_t dynamic_shared_bytes, void* const* args) const noexcept {
  const bool empty = count == 0 || grid.x == 0 || grid.y == 0 || grid.z == 0 || block.x == 0 ||
                     block.y == 0 || block.z == 0;
  if (empty) return {};
  // Bounds under which an index of the form blockIdx.x * blockDim.x + threadIdx.x fits an int.
  constexpr std::uint32_t kSmallBlock = 1024;
  constexpr std::uint32_t kSmallGrid = std::numeric_limits<std::int32_t>::max() / kSmallBlock;
  lockstep_hostjit::Launch launch = {};
  launch.arguments = args;
  launch.first_block = first;
  launch.block_count = count;
  launch.grid = {grid.x, grid.y, grid.z};
  launch.block = {block.x, block.y, block.z};
  const bool small = block.x <= kSmallBlock && grid.x <= kSmallGrid;
  return BlockRunner::current().run(*entry_, launch, small, dynamic_shared_bytes,
                                    can_reach_barrier_ ? stack_bytes_ : 0);
}

}  // namespace lockstep::hostjit
