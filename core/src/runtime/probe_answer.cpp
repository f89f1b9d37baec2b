// SPDX-License-Identifier: Apache-2.0
#include "src/runtime/probe_answer.h"

#include <lockstep/error.h>

#include <limits>
#include <simdjson.h>

namespace lockstep::runtime {
namespace {

using simdjson::dom::element;

[[noreturn]] void refuse(const std::string& what) {
  throw Error(ErrorCode::kInvalidFile,
              "the probe's answer does not parse (does a text of the "
              "plugin hold bytes that are no UTF-8?): " +
                  what);
}

std::string string_of(const element& object, const char* key) {
  const std::string_view text = object[key];
  return std::string(text);
}

template <typename Integer>
Integer integer_of(const element& object, const char* key) {
  const std::int64_t value = object[key];
  if (value < std::int64_t{std::numeric_limits<Integer>::min()} ||
      value > std::int64_t{std::numeric_limits<Integer>::max()}) {
    refuse(std::string(key) + " is " + std::to_string(value));
  }
  return static_cast<Integer>(value);
}

BackendStatus status_of(const element& object) {
  const auto status = integer_of<std::int32_t>(object, "status");
  // The last two are not for a probe to say.
  if (status < 0 || status > static_cast<std::int32_t>(BackendStatus::kNoDevice)) {
    refuse("there is no status " + std::to_string(status));
  }
  return static_cast<BackendStatus>(status);
}

DeviceSummary device_of(const element& object) {
  DeviceSummary device;
  device.ordinal = integer_of<std::int32_t>(object, "ordinal");
  device.name = string_of(object, "name");
  device.arch = string_of(object, "arch");
  device.uuid = string_of(object, "uuid");
  device.bus_id = string_of(object, "bus_id");
  device.driver = string_of(object, "driver");
  device.memory_bytes = object["memory_bytes"];
  device.simulated = object["simulated"];
  device.capabilities = string_of(object, "capabilities");
  return device;
}

}  // namespace

void read_probe_answer(std::string_view answer, BackendReport& report) {
  try {
    simdjson::dom::parser parser;
    const element root = parser.parse(answer.data(), answer.size());
    BackendReport read;
    read.name = string_of(root, "name");
    read.status = status_of(root);
    read.reason = string_of(root, "reason");
    read.version = string_of(root, "version");
    read.vendor = string_of(root, "vendor");
    read.priority = integer_of<std::int32_t>(root, "priority");
    read.abi_version = integer_of<std::uint32_t>(root, "abi_version");
    const simdjson::dom::array devices = root["devices"];
    for (const element each : devices) read.devices.push_back(device_of(each));
    read.path = std::move(report.path);
    read.tried = std::move(report.tried);
    report = std::move(read);
  } catch (const simdjson::simdjson_error& error) {
    refuse(error.what());
  }
}

}  // namespace lockstep::runtime
