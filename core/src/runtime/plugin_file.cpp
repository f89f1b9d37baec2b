// SPDX-License-Identifier: Apache-2.0
#include "src/runtime/plugin_file.h"

#include <cstring>
#include <dlfcn.h>
#include <elf.h>
#include <exception>
#include <fstream>

namespace lockstep::runtime {
namespace {

constexpr std::string_view kPrefix = "liblockstep_backend_";
constexpr std::string_view kSuffix = ".so";

PluginFile failed(BackendStatus status, std::string reason) {
  return {status, std::move(reason), nullptr};
}

std::uint16_t machine_of(const std::filesystem::path& path) {
  Elf64_Ehdr header = {};
  std::ifstream file(path, std::ios::binary);
  file.read(reinterpret_cast<char*>(&header), sizeof(header));
  if (!file || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return EM_NONE;
  return header.e_machine;
}

/// The dynamic loader calls a library of another architecture "not found".
std::string architecture_note(const std::filesystem::path& path) {
  const std::uint16_t theirs = machine_of(path);
  const std::uint16_t ours = machine_of("/proc/self/exe");
  if (theirs == EM_NONE || ours == EM_NONE || theirs == ours) return {};
  return "; the file is built for another architecture (ELF machine " + std::to_string(theirs) +
         ", this program is " + std::to_string(ours) + ")";
}

std::string range(std::uint32_t from, std::uint32_t to) {
  return from == to ? std::to_string(from) : std::to_string(from) + " to " + std::to_string(to);
}

lockstep_error new_error() {
  lockstep_error error = {};
  error.struct_size = sizeof(error);
  return error;
}

PluginFile check_table(const lockstep_backend& table, std::string_view expected,
                       const lockstep_host& host) {
  if (table.struct_size < offsetof(lockstep_backend, initialize) || table.struct_size > 1u << 20) {
    return failed(BackendStatus::kBroken, "its table says it has " +
                                              std::to_string(table.struct_size) +
                                              " bytes, which no interface version has");
  }
  if (table.abi_version < host.abi_min || table.abi_version > host.abi_max) {
    return failed(BackendStatus::kIncompatible,
                  "it speaks interface version " + std::to_string(table.abi_version) +
                      ", this Lockstep (" + host.host_version + ") speaks " +
                      range(host.abi_min, host.abi_max) + ": install a plugin made for it");
  }
  if (table.name == nullptr || !is_backend_name(table.name)) {
    return failed(BackendStatus::kBroken,
                  std::string("its name '") + (table.name == nullptr ? "" : table.name) +
                      "' is not made of lower case letters, digits and underscores");
  }
  if (!expected.empty() && expected != table.name) {
    return failed(BackendStatus::kBroken, std::string("it is named '") + table.name +
                                              "', its file's name says '" + std::string(expected) +
                                              "'");
  }
  return {BackendStatus::kReady, {}, &table};
}

std::string words_of(const lockstep_error& error, std::string_view otherwise) {
  std::string words = error.message[0] == '\0' ? std::string(otherwise) : error.message;
  if (error.native_name[0] != '\0' && words.find(error.native_name) == std::string::npos) {
    words += std::string(" (") + error.native_name + ")";
  }
  return words;
}

void read_devices(const lockstep_backend& table, std::uint32_t count, BackendReport& report) {
  for (std::uint32_t ordinal = 0; ordinal < count; ++ordinal) {
    lockstep_device_info info = {};
    info.struct_size = sizeof(info);
    lockstep_error error = new_error();
    if (table.device_info(ordinal, &info, &error) != LOCKSTEP_OK) {
      report.status = BackendStatus::kBroken;
      report.reason = "device " + std::to_string(ordinal) +
                      " does not tell what it is: " + words_of(error, "no reason given");
      report.devices.clear();
      return;
    }
    DeviceSummary device;
    device.ordinal = static_cast<std::int32_t>(ordinal);
    device.name = info.name;
    device.arch = info.arch;
    device.uuid = info.uuid;
    device.bus_id = info.bus_id;
    device.driver = info.driver;
    device.memory_bytes = info.memory_bytes;
    device.simulated = info.simulated != 0;
    const char* capabilities = table.capabilities(ordinal);
    if (capabilities != nullptr) device.capabilities = capabilities;
    report.devices.push_back(std::move(device));
  }
}

void start(const lockstep_backend& table, BackendReport& report, bool* driver_missing) {
  lockstep_error error = new_error();
  lockstep_code code = table.initialize(&error);
  if (code != LOCKSTEP_OK) {
    report.status = code == LOCKSTEP_E_UNAVAILABLE ? BackendStatus::kNoDriver
                    : code == LOCKSTEP_E_NOT_FOUND ? BackendStatus::kNoDevice
                                                   : BackendStatus::kBroken;
    *driver_missing =
        code == LOCKSTEP_E_UNAVAILABLE && error.native_code == 0 && error.native_name[0] == '\0';
    report.reason = words_of(error, "its driver does not start and it gives no reason");
    return;
  }
  std::uint32_t count = 0;
  error = new_error();
  code = table.device_count(&count, &error);
  if (code != LOCKSTEP_OK && code != LOCKSTEP_E_NOT_FOUND) {
    report.status = BackendStatus::kBroken;
    report.reason = "it does not count its devices: " + words_of(error, "no reason given");
    return;
  }
  if (code == LOCKSTEP_E_NOT_FOUND || count == 0) {
    report.status = BackendStatus::kNoDevice;
    report.reason = words_of(error, "the driver is there but has no device");
    return;
  }
  report.status = BackendStatus::kReady;
  read_devices(table, count, report);
}

}  // namespace

std::string backend_name_of_file(const std::filesystem::path& path) {
  const std::string file = path.filename().string();
  if (file.size() <= kPrefix.size() + kSuffix.size() || file.rfind(kPrefix, 0) != 0 ||
      file.substr(file.size() - kSuffix.size()) != kSuffix) {
    return {};
  }
  return file.substr(kPrefix.size(), file.size() - kPrefix.size() - kSuffix.size());
}

bool is_backend_name(std::string_view name) {
  return !name.empty() &&
         name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == std::string_view::npos;
}

PluginFile open_plugin(const std::filesystem::path& path, std::string_view expected,
                       const lockstep_host& host) {
  if (!expected.empty() && !is_backend_name(expected)) {
    return failed(BackendStatus::kBroken,
                  "a backend's name is made of lower case letters, digits and underscores, not '" +
                      std::string(expected) + "'");
  }
  // An absolute path keeps the loader from searching its own folders for a bare file name.
  std::error_code ignored;
  const std::filesystem::path absolute = std::filesystem::absolute(path, ignored);
  void* library = dlopen(absolute.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* words = dlerror();
    return failed(BackendStatus::kBroken, std::string("it does not load: ") +
                                              (words == nullptr ? "no reason given" : words) +
                                              architecture_note(absolute));
  }
  auto query =
      reinterpret_cast<lockstep_backend_query_function>(dlsym(library, "lockstep_backend_query"));
  if (query == nullptr) {
    return failed(BackendStatus::kBroken,
                  "it is a library but exports no lockstep_backend_query: not a Lockstep plugin");
  }
  lockstep_error error = new_error();
  const lockstep_backend* table = nullptr;
  try {
    table = query(&host, &error);
  } catch (const std::exception& exception) {
    return failed(BackendStatus::kBroken,
                  std::string("lockstep_backend_query threw: ") + exception.what());
  } catch (...) {
    return failed(BackendStatus::kBroken,
                  "lockstep_backend_query threw something that is no std::exception");
  }
  if (table == nullptr) {
    const bool versions = error.code == LOCKSTEP_E_INCOMPATIBLE_PLUGIN;
    return failed(versions ? BackendStatus::kIncompatible : BackendStatus::kBroken,
                  words_of(error, versions ? "no interface version in common"
                                           : "it gave no table and no reason"));
  }
  return check_table(*table, expected, host);
}

void start_plugin(const lockstep_backend& table, BackendReport& report, bool* driver_missing) {
  *driver_missing = false;
  try {
    start(table, report, driver_missing);
  } catch (const std::exception& exception) {
    report.status = BackendStatus::kBroken;
    report.reason = std::string("it threw while its driver was started: ") + exception.what();
  } catch (...) {
    report.status = BackendStatus::kBroken;
    report.reason = "it threw while its driver was started, and no std::exception";
  }
}

}  // namespace lockstep::runtime
