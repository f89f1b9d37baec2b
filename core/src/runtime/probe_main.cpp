// SPDX-License-Identifier: Apache-2.0

// lockstep-probe FILE [FD]: loads one plugin, starts its driver and prints what it has as one JSON
// object on file descriptor FD (standard output when none is given). A process of its own, so that
// the program that asks initialises nothing and survives a plugin that crashes or hangs.

#include <lockstep/backend.h>
#include <lockstep/backends.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <unistd.h>

#include "src/runtime/backend_slots.h"
#include "src/runtime/plugin_file.h"

namespace {

using lockstep::BackendReport;

// A recorder that wants nothing: a probe enqueues no work.
const volatile uint32_t inactive = 0;
uint64_t next_id() {
  static uint64_t id = 0;
  return ++id;
}
uint32_t intern(const char*, size_t) { return 0; }
void* begin(const lockstep_record*) { return nullptr; }
void end(void*, uint32_t, uint64_t, int32_t) {}
void define_stream(uint64_t, int32_t, uint64_t, int) {}
void define_graph(uint64_t, uint32_t, const lockstep_record*, uint32_t, const lockstep_graph_edge*,
                  uint32_t) {}
void memory(const lockstep_record*) {}
void log_nothing(uint32_t, const char*) {}

const lockstep_recorder recorder = {sizeof(lockstep_recorder),
                                    &inactive,
                                    next_id,
                                    intern,
                                    begin,
                                    end,
                                    define_stream,
                                    define_graph,
                                    memory};
const lockstep_host host = {sizeof(lockstep_host),
                            LOCKSTEP_BACKEND_ABI_MIN,
                            LOCKSTEP_BACKEND_ABI_MAX,
                            "lockstep-probe",
                            log_nothing,
                            &recorder};

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char escaped[8];
      std::snprintf(escaped, sizeof(escaped), "\\u%04x", static_cast<unsigned>(c));
      out += escaped;
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string to_json(const BackendReport& report, bool driver_missing) {
  std::string json =
      "{\"name\":" + quoted(report.name) +
      ",\"status\":" + std::to_string(static_cast<int>(report.status)) +
      ",\"reason\":" + quoted(report.reason) + ",\"version\":" + quoted(report.version) +
      ",\"vendor\":" + quoted(report.vendor) + ",\"priority\":" + std::to_string(report.priority) +
      ",\"abi_version\":" + std::to_string(report.abi_version) +
      ",\"driver_missing\":" + (driver_missing ? "true" : "false") + ",\"devices\":[";
  const char* separator = "";
  for (const lockstep::DeviceSummary& device : report.devices) {
    json += separator;
    json += "{\"ordinal\":" + std::to_string(device.ordinal) + ",\"name\":" + quoted(device.name) +
            ",\"arch\":" + quoted(device.arch) + ",\"uuid\":" + quoted(device.uuid) +
            ",\"bus_id\":" + quoted(device.bus_id) + ",\"driver\":" + quoted(device.driver) +
            ",\"memory_bytes\":" + std::to_string(device.memory_bytes) +
            ",\"simulated\":" + (device.simulated ? "true" : "false") +
            ",\"capabilities\":" + quoted(device.capabilities) + "}";
    separator = ",";
  }
  return json + "]}\n";
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2 && argc != 3) {
    std::fputs("usage: lockstep-probe FILE [FD]\n", stderr);
    return 2;
  }
  const int descriptor = argc == 3 ? std::atoi(argv[2]) : STDOUT_FILENO;
  BackendReport report;
  report.path = argv[1];
  report.name = lockstep::runtime::backend_name_of_file(report.path);
  bool driver_missing = false;
  const lockstep::runtime::PluginFile file =
      lockstep::runtime::open_plugin(report.path, report.name, host);
  report.status = file.status;
  report.reason = file.reason;
  if (file.table != nullptr) {
    const lockstep_backend table = lockstep::runtime::complete_table(*file.table);
    report.name = table.name;
    report.version = table.version == nullptr ? "" : table.version;
    report.vendor = table.vendor == nullptr ? "" : table.vendor;
    report.priority = table.priority;
    report.abi_version = table.abi_version;
    lockstep::runtime::start_plugin(table, report, &driver_missing);
  }
  const std::string json = to_json(report, driver_missing);
  for (std::size_t done = 0; done < json.size();) {
    const ssize_t written = write(descriptor, json.data() + done, json.size() - done);
    if (written <= 0) return 1;
    done += static_cast<std::size_t>(written);
  }
  // Drivers may keep threads and exit handlers; there is nothing of ours left to run.
  _exit(0);
}
