// SPDX-License-Identifier: Apache-2.0
#include <lockstep/device.h>
#include <lockstep/error.h>

#include <algorithm>
#include <charconv>
#include <fmt/format.h>

#include "src/runtime/environment.h"
#include "src/runtime/log.h"
#include "src/runtime/registry.h"
#include "src/runtime/states.h"

namespace lockstep {
namespace {

using runtime::LoadedBackend;
using runtime::LogLevel;

struct Choice {
  std::string backend;
  std::int32_t ordinal = 0;
};

[[noreturn]] void throw_bad_choice(std::string_view which, std::string_view source) {
  ErrorContext context;
  context.call = "Device::open";
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("{}'{}' is no device: write a backend (\"host\"), a backend and an "
                          "ordinal (\"cuda:0\"), or \"auto\". There are:{}",
                          source, which, runtime::describe_backends()),
              context);
}

Choice parse_choice(std::string_view which, std::string_view source) {
  Choice choice;
  const std::size_t colon = which.find(':');
  choice.backend = which.substr(0, colon);
  if (choice.backend.empty() || choice.backend.find('/') != std::string::npos) {
    throw_bad_choice(which, source);
  }
  if (colon != std::string_view::npos) {
    const std::string_view digits = which.substr(colon + 1);
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), choice.ordinal);
    if (error != std::errc() || end != digits.data() + digits.size() || choice.ordinal < 0) {
      throw_bad_choice(which, source);
    }
  }
  return choice;
}

Device open_on(LoadedBackend& backend, std::int32_t ordinal) {
  return Device(backend.open_device(ordinal));
}

Device open_named(std::string_view which, std::string_view source) {
  const Choice choice = parse_choice(which, source);
  std::vector<BackendReport> attempts;
  LoadedBackend* backend = runtime::find_backend(choice.backend, attempts);
  if (backend == nullptr) {
    const bool known =
        choice.backend == "host" || choice.backend == "cuda" || choice.backend == "hip" ||
        std::any_of(attempts.begin(), attempts.end(),
                    [&](const auto& report) { return report.name == choice.backend; });
    if (!known) throw_bad_choice(which, source);
    throw Error(ErrorCode::kUnavailable, fmt::format("{}device {} is not available:{}", source,
                                                     which, runtime::describe_backends()));
  }
  const BackendReport& report = backend->start();
  if (report.status != BackendStatus::kReady) {
    throw Error(ErrorCode::kUnavailable,
                fmt::format("{}device {} is not available: {}: {}. There are:{}", source, which,
                            to_string(report.status), report.reason, runtime::describe_backends()));
  }
  if (static_cast<std::size_t>(choice.ordinal) >= report.devices.size()) {
    throw Error(
        ErrorCode::kUnavailable,
        fmt::format("{}device {} is not available: {} has {} device(s):{}", source, which,
                    choice.backend, report.devices.size(), runtime::format_reports({report})));
  }
  return open_on(*backend, choice.ordinal);
}

std::vector<LoadedBackend*> backends_by_priority() {
  std::vector<LoadedBackend*> backends = runtime::load_backends();
  std::stable_sort(backends.begin(), backends.end(), [](const auto* left, const auto* right) {
    return left->priority() > right->priority();
  });
  return backends;
}

/// Says why `auto` passes over a backend: loudly when somebody would expect it to work.
void say_skipped(const LoadedBackend& backend, const BackendReport& report) {
  const bool expected = report.status == BackendStatus::kBroken ||
                        (report.status == BackendStatus::kNoDriver && !backend.driver_missing());
  runtime::log_once(expected ? LogLevel::kWarning : LogLevel::kInfo,
                    fmt::format("auto passes over {} ({}): {}", report.name,
                                to_string(report.status), report.reason));
}

Device open_auto() {
  for (LoadedBackend* backend : backends_by_priority()) {
    const BackendReport& report = backend->start();
    if (report.status != BackendStatus::kReady) {
      say_skipped(*backend, report);
      continue;
    }
    const auto real = std::find_if(report.devices.begin(), report.devices.end(),
                                   [](const DeviceSummary& device) { return !device.simulated; });
    if (real == report.devices.end()) {
      runtime::log_once(LogLevel::kInfo,
                        fmt::format("auto passes over {}: its devices are simulated (LOCKSTEP_"
                                    "DEVICE={} takes one all the same)",
                                    report.name, report.name));
      continue;
    }
    runtime::log_once(
        LogLevel::kInfo,
        fmt::format("auto chose {}:{} ({}, {}): the usable real device of the highest priority, {}",
                    report.name, real->ordinal, real->name, real->arch, report.priority));
    return open_on(*backend, real->ordinal);
  }
  throw Error(ErrorCode::kUnavailable,
              "auto found no usable real device:" + runtime::describe_backends());
}

}  // namespace

Device Device::open(std::string_view which) {
  runtime::check_required_backends();
  std::string text(which), source;
  if (text.empty()) {
    if (auto wanted = runtime::environment("LOCKSTEP_DEVICE")) {
      text = *wanted;
      source = "LOCKSTEP_DEVICE: ";
    }
  }
  if (text.empty() || text == "auto") return open_auto();
  return open_named(text, source);
}

std::vector<Device> Device::all() {
  runtime::check_required_backends();
  std::vector<Device> devices;
  for (const bool simulated : {false, true}) {
    for (LoadedBackend* backend : backends_by_priority()) {
      const BackendReport& report = backend->start();
      if (report.status != BackendStatus::kReady) continue;
      for (const DeviceSummary& device : report.devices) {
        if (device.simulated == simulated) devices.push_back(open_on(*backend, device.ordinal));
      }
    }
  }
  return devices;
}

}  // namespace lockstep
