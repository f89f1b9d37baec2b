// SPDX-License-Identifier: Apache-2.0
#include <lockstep/backends.h>

#include <algorithm>
#include <fmt/format.h>

#include "exit_code.h"
#include "json.h"
#include "text.h"
#include "verbs.h"

namespace lockstep::cli {
namespace {

constexpr std::size_t kNameWidth = 10;
constexpr std::size_t kStatusWidth = 13;
constexpr std::size_t kDetailWidth = 40;

std::string device_text(const DeviceSummary& device) {
  std::string text = fmt::format("{}: {}", device.ordinal, device.name);
  if (!device.arch.empty()) text += ", " + device.arch;
  if (device.memory_bytes != 0) text += ", " + bytes_text(device.memory_bytes);
  if (device.simulated && device.name.find("SIMULATED") == std::string::npos) text += ", simulated";
  return printable(text);
}

void print_row(Console& console, const std::string& name, const std::string& status,
               BackendStatus code, const std::string& detail, const std::string& source) {
  const Color color = code == BackendStatus::kReady ? Color::kGreen
                      : code == BackendStatus::kBroken || code == BackendStatus::kIncompatible ||
                              code == BackendStatus::kProbeFailed
                          ? Color::kRed
                          : Color::kYellow;
  std::string line = padded(name, kNameWidth) + console.paint(color, padded(status, kStatusWidth));
  line += source.empty() ? detail : padded(detail, kDetailWidth) + "  " + source;
  line.erase(line.find_last_not_of(' ') + 1);
  console.print(line + "\n");
}

void print_backend(Console& console, const BackendReport& report, bool verbose) {
  const std::string name = printable(report.name);
  const std::string status(to_string(report.status));
  if (report.devices.empty()) {
    print_row(console, name, status, report.status, printable(report.reason), "");
  }
  for (std::size_t i = 0; i < report.devices.size(); ++i) {
    const DeviceSummary& device = report.devices[i];
    const std::string source =
        device.driver.empty() ? report.path.native() : "driver " + device.driver;
    print_row(console, i == 0 ? name : "", i == 0 ? status : "", report.status, device_text(device),
              printable(source));
  }
  if (!verbose) return;
  const auto line = [&](std::string_view label, const std::string& text) {
    if (text.empty()) return;
    console.print(
        console.paint(Color::kDim, fmt::format("{:<{}}{} {}", "", kNameWidth,
                                               padded(label, kStatusWidth - 1), printable(text))) +
        "\n");
  };
  line("plugin", report.path.native());
  line("version", report.version);
  line("vendor", report.vendor);
  if (report.abi_version != 0) line("interface", std::to_string(report.abi_version));
  if (report.status == BackendStatus::kReady) line("priority", std::to_string(report.priority));
  if (!report.devices.empty()) line("note", report.reason);
  for (const std::string& tried : report.tried) line("tried", tried);
  for (const DeviceSummary& device : report.devices) {
    const std::string label = fmt::format("device {}", device.ordinal);
    line(label, device.uuid.empty() ? "" : "uuid " + device.uuid);
    line(label, device.bus_id.empty() ? "" : "bus " + device.bus_id);
    line(label, device.capabilities);
  }
}

std::string backend_json(const BackendReport& report) {
  std::vector<std::string> devices;
  for (const DeviceSummary& device : report.devices) {
    devices.push_back(JsonObject()
                          .number("ordinal", device.ordinal)
                          .text("name", device.name)
                          .text("arch", device.arch)
                          .text("uuid", device.uuid)
                          .text("bus_id", device.bus_id)
                          .text("driver", device.driver)
                          .number("memory_bytes", device.memory_bytes)
                          .boolean("simulated", device.simulated)
                          .json("capabilities", device.capabilities)
                          .str());
  }
  return JsonObject()
      .text("name", report.name)
      .text("status", to_string(report.status))
      .text("path", report.path.native())
      .text("reason", report.reason)
      .texts("tried", report.tried)
      .text("version", report.version)
      .text("vendor", report.vendor)
      .number("priority", report.priority)
      .number("abi_version", report.abi_version)
      .array("devices", devices)
      .str();
}

}  // namespace

int run_verb(Console& console, const CommonOptions& common, const DevicesOptions& options) {
  std::vector<BackendReport> reports = list_backends();
  int code = kDone;
  if (!options.backend.empty()) {
    std::vector<std::string> names;
    for (const BackendReport& report : reports) names.push_back(report.name);
    std::erase_if(reports,
                  [&](const BackendReport& report) { return report.name != options.backend; });
    if (reports.empty()) {
      throw Failure(kNotAvailable, fmt::format("there is no backend '{}'{}", options.backend,
                                               did_you_mean(options.backend, names)));
    }
    const bool ready = std::any_of(reports.begin(), reports.end(), [](const auto& report) {
      return report.status == BackendStatus::kReady;
    });
    if (!ready) code = kNotAvailable;
  }
  if (common.json) {
    std::vector<std::string> backends;
    for (const BackendReport& report : reports) backends.push_back(backend_json(report));
    console.print(
        JsonObject().text("schema", "lockstep/devices/1").array("backends", backends).str() + "\n");
    return code;
  }
  for (const BackendReport& report : reports) print_backend(console, report, options.verbose);
  return code;
}

}  // namespace lockstep::cli
