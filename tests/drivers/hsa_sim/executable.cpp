// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <map>
#include <vector>

#include "kernels.h"
#include "memory.h"

#pragma GCC visibility push(default)
#include <hsa/hsa_ven_amd_loader.h>
#pragma GCC visibility pop

// Executables: code objects in a device's memory, and what is known of their symbols.
namespace hsa_sim {
namespace {

struct Reader {
  std::span<const std::byte> bytes;  // the caller's, until the reader is destroyed
};

struct Executable;
struct Symbol {
  const Executable* executable = nullptr;
  CodeSymbol of;
  std::byte* address = nullptr;
};

// Memory and kernels of one code object, given back with it.
class Loaded {
 public:
  Loaded(hsa_agent_t agent, std::span<const std::byte> file)
      : agent_(agent),
        object_(file, settings().architecture(device_of(agent))),
        bodies_(find_bodies(file, settings().architecture(device_of(agent)).wave_size)) {
    memory_ = static_cast<std::byte*>(
        memory().allocate({agent, PoolKind::kDevice}, object_.memory_bytes()));
    object_.load(memory_);
    const bool first_generation = is_first_generation();
    for (const CodeSymbol& symbol : object_.symbols()) {
      symbols_.push_back({nullptr, symbol, memory_ + symbol.offset});
      if (!symbol.is_kernel) continue;
      add_kernel(address_of(symbol),
                 std::make_shared<const LoadedKernel>(LoadedKernel{
                     symbol.name, descriptor(symbol), agent, bodies_, first_generation}));
    }
  }
  ~Loaded() {
    for (const CodeSymbol& symbol : object_.symbols()) {
      if (symbol.is_kernel) remove_kernel(address_of(symbol));
    }
    for (const std::uint64_t base : foreign_) memory().remove(base);
    memory().release(memory_);
  }
  Loaded(const Loaded&) = delete;
  Loaded& operator=(const Loaded&) = delete;

  std::vector<Symbol>& symbols() { return symbols_; }
  KernelDescriptor descriptor(const CodeSymbol& symbol) const {
    KernelDescriptor found;
    std::memcpy(&found, memory_ + symbol.offset, sizeof found);
    return found;
  }
  // Where a variable is: bodies have their own.
  std::uint64_t variable_address(const CodeSymbol& symbol) {
    const auto body = bodies_->variable(symbol.name);
    if (!body) return address_of(symbol);
    const auto address = reinterpret_cast<std::uint64_t>(body->address);
    memory().add({address, body->size, BlockKind::kForeign, agent_, false});
    foreign_.push_back(address);
    return address;
  }

 private:
  std::uint64_t address_of(const CodeSymbol& symbol) const {
    return reinterpret_cast<std::uint64_t>(memory_ + symbol.offset);
  }
  // ROCm 5 passes 64 bytes to its fill, later ones 36 or 40; compilers add 0, 56 or 256.
  bool is_first_generation() const {
    for (const CodeSymbol& symbol : object_.symbols()) {
      if (!symbol.is_kernel || symbol.name != "__amd_rocclr_fillBufferAligned") continue;
      const std::uint32_t bytes = descriptor(symbol).argument_bytes;
      return bytes == 64 || bytes == 64 + 56 || bytes == 64 + 256;
    }
    return false;
  }

  const hsa_agent_t agent_;
  const CodeObject object_;
  const std::shared_ptr<Bodies> bodies_;
  std::byte* memory_ = nullptr;
  std::vector<Symbol> symbols_;
  std::vector<std::uint64_t> foreign_;
};

struct Executable {
  bool frozen = false;
  std::vector<std::unique_ptr<Loaded>> objects;
};

template <typename T, typename Handle>
T& object_of(Handle handle, int otherwise) {
  require(handle.handle != 0, otherwise);
  return *reinterpret_cast<T*>(handle.handle);
}
Executable& executable_of(hsa_executable_t handle) {
  return object_of<Executable>(handle, HSA_STATUS_ERROR_INVALID_EXECUTABLE);
}

Loaded& loaded_of(const Symbol& symbol) {
  for (const auto& object : symbol.executable->objects) {
    for (const Symbol& candidate : object->symbols()) {
      if (&candidate == &symbol) return *object;
    }
  }
  refuse(HSA_STATUS_ERROR_INVALID_EXECUTABLE_SYMBOL);
}

// As the compilers name them: kernels with ".kd".
std::string full_name(const Symbol& symbol) {
  return symbol.of.is_kernel ? symbol.of.name + ".kd" : symbol.of.name;
}

void symbol_attribute(const Symbol& symbol, int attribute, void* value) {
  const auto kernel = [&] {
    require(symbol.of.is_kernel);
    return loaded_of(symbol).descriptor(symbol.of);
  };
  switch (attribute) {
    case HSA_EXECUTABLE_SYMBOL_INFO_TYPE:
      return put(value, symbol.of.is_kernel ? HSA_SYMBOL_KIND_KERNEL : HSA_SYMBOL_KIND_VARIABLE);
    case HSA_EXECUTABLE_SYMBOL_INFO_NAME_LENGTH:
      return put(value, static_cast<std::uint32_t>(full_name(symbol).size()));
    case HSA_EXECUTABLE_SYMBOL_INFO_NAME: {
      const std::string name = full_name(symbol);
      std::memcpy(value, name.data(), name.size());  // without an end, as is specified
      return;
    }
    case HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_ADDRESS:
      require(!symbol.of.is_kernel);
      return put(value, loaded_of(symbol).variable_address(symbol.of));
    case HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_SIZE:
      return put(value, static_cast<std::uint32_t>(symbol.of.bytes));
    case HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT:
      kernel();
      return put(value, reinterpret_cast<std::uint64_t>(symbol.address));
    case HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_KERNARG_SEGMENT_SIZE:
      return put(value, kernel().argument_bytes);
    case HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_KERNARG_SEGMENT_ALIGNMENT:
      return put(value, std::uint32_t{16});
    case HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_GROUP_SEGMENT_SIZE:
      return put(value, kernel().group_bytes);
    case HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_PRIVATE_SEGMENT_SIZE:
      return put(value, kernel().private_bytes);
    case HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_DYNAMIC_CALLSTACK:
      return put(value, false);
    default:
      refuse(HSA_STATUS_ERROR_INVALID_ARGUMENT);
  }
}

// The whole of a loader's table but what AMD's runtime uses: it is not called.
hsa_status_t query_host_address(const void* device, const void** host) {
  *host = device;  // one address space
  return HSA_STATUS_SUCCESS;
}

}  // namespace
}  // namespace hsa_sim

using namespace hsa_sim;

HSA_SIM_API hsa_system_get_major_extension_table(std::uint16_t extension, std::uint16_t,
                                                 std::size_t bytes, void* table) {
  return call("hsa_system_get_major_extension_table", [&] {
    require(table != nullptr && bytes >= sizeof(void*));
    std::memset(table, 0, bytes);
    require(extension == HSA_EXTENSION_AMD_LOADER);
    put(table, &query_host_address);
  });
}

HSA_SIM_API hsa_code_object_reader_create_from_memory(const void* object, std::size_t bytes,
                                                      hsa_code_object_reader_t* reader) {
  return call("hsa_code_object_reader_create_from_memory", [&] {
    require(object != nullptr && bytes > 0 && reader != nullptr);
    reader->handle =
        reinterpret_cast<std::uint64_t>(new Reader{{static_cast<const std::byte*>(object), bytes}});
  });
}
HSA_SIM_API hsa_code_object_reader_destroy(hsa_code_object_reader_t reader) {
  return call("hsa_code_object_reader_destroy", [&] {
    delete &object_of<Reader>(reader, HSA_STATUS_ERROR_INVALID_CODE_OBJECT_READER);
  });
}
HSA_SIM_API hsa_executable_create_alt(hsa_profile_t, hsa_default_float_rounding_mode_t, const char*,
                                      hsa_executable_t* executable) {
  return call("hsa_executable_create_alt", [&] {
    require(executable != nullptr);
    executable->handle = reinterpret_cast<std::uint64_t>(new Executable);
  });
}
HSA_SIM_API hsa_executable_destroy(hsa_executable_t executable) {
  return call("hsa_executable_destroy", [&] { delete &executable_of(executable); });
}
HSA_SIM_API hsa_executable_freeze(hsa_executable_t executable, const char*) {
  return call("hsa_executable_freeze", [&] { executable_of(executable).frozen = true; });
}
HSA_SIM_API hsa_executable_load_agent_code_object(hsa_executable_t handle, hsa_agent_t agent,
                                                  hsa_code_object_reader_t reader, const char*,
                                                  hsa_loaded_code_object_t* loaded) {
  return call("hsa_executable_load_agent_code_object", [&] {
    Executable& executable = executable_of(handle);
    require(!executable.frozen, HSA_STATUS_ERROR_FROZEN_EXECUTABLE);
    const std::span<const std::byte> bytes =
        object_of<Reader>(reader, HSA_STATUS_ERROR_INVALID_CODE_OBJECT_READER).bytes;
    auto object = std::make_unique<Loaded>(agent, bytes);
    for (Symbol& symbol : object->symbols()) symbol.executable = &executable;
    if (settings().logs()) {
      settings().log("code object of " + std::to_string(bytes.size()) + " bytes with " +
                     std::to_string(object->symbols().size()) + " symbols");
    }
    if (loaded != nullptr) loaded->handle = reinterpret_cast<std::uint64_t>(object.get());
    executable.objects.push_back(std::move(object));
  });
}
// Variables that the program would define: no code object of ours leaves any undefined.
HSA_SIM_API hsa_executable_agent_global_variable_define(hsa_executable_t executable, hsa_agent_t,
                                                        const char* name, void* address) {
  return call("hsa_executable_agent_global_variable_define", [&] {
    executable_of(executable);
    require(name != nullptr && address != nullptr);
  });
}
HSA_SIM_API hsa_executable_get_symbol_by_name(hsa_executable_t executable, const char* name,
                                              const hsa_agent_t*, hsa_executable_symbol_t* symbol) {
  return call("hsa_executable_get_symbol_by_name", [&] {
    require(name != nullptr && symbol != nullptr);
    for (const auto& object : executable_of(executable).objects) {
      for (Symbol& candidate : object->symbols()) {
        if (full_name(candidate) != name) continue;
        symbol->handle = reinterpret_cast<std::uint64_t>(&candidate);
        return;
      }
    }
    refuse(HSA_STATUS_ERROR_INVALID_SYMBOL_NAME);
  });
}
HSA_SIM_API hsa_executable_iterate_symbols(hsa_executable_t executable,
                                           hsa_status_t (*visit)(hsa_executable_t,
                                                                 hsa_executable_symbol_t, void*),
                                           void* data) {
  return call("hsa_executable_iterate_symbols", [&] {
    require(visit != nullptr);
    for (const auto& object : executable_of(executable).objects) {
      for (Symbol& symbol : object->symbols()) {
        const hsa_status_t status =
            visit(executable, {reinterpret_cast<std::uint64_t>(&symbol)}, data);
        if (status != HSA_STATUS_SUCCESS) refuse(status);
      }
    }
  });
}
HSA_SIM_API hsa_executable_symbol_get_info(hsa_executable_symbol_t symbol,
                                           hsa_executable_symbol_info_t attribute, void* value) {
  return call("hsa_executable_symbol_get_info", [&] {
    require(value != nullptr);
    symbol_attribute(object_of<Symbol>(symbol, HSA_STATUS_ERROR_INVALID_EXECUTABLE_SYMBOL),
                     static_cast<int>(attribute), value);
  });
}
