// SPDX-License-Identifier: Apache-2.0
#include "src/runtime/registry.h"

#include <lockstep/error.h>

#include <algorithm>
#include <fmt/format.h>
#include <set>

#include "src/record/host_recorder.h"
#include "src/runtime/environment.h"
#include "src/runtime/log.h"
#include "src/runtime/plugin_file.h"
#include "src/runtime/probe_client.h"
#include "src/runtime/process_state.h"

namespace lockstep::runtime {
namespace {

const lockstep_host& host_table() {
  static const auto* table = [] {
    const lockstep_recorder* recorder = host_recorder();
    process.active = recorder->active;
    return new lockstep_host{sizeof(lockstep_host),    LOCKSTEP_BACKEND_ABI_MIN,
                             LOCKSTEP_BACKEND_ABI_MAX, LOCKSTEP_VERSION_TEXT,
                             log_from_plugin,          recorder};
  }();
  return *table;
}

struct Loaded {
  std::mutex mutex;
  std::map<std::filesystem::path, LoadAttempt> by_path;
};

Loaded& loaded() {
  static auto* instance = new Loaded;
  return *instance;
}

/// Whether a later plugin of the same name is shadowed by this one.
bool occupies_name(BackendStatus status) {
  return status != BackendStatus::kBroken && status != BackendStatus::kIncompatible &&
         status != BackendStatus::kShadowed && status != BackendStatus::kNotBuilt;
}

}  // namespace

LoadAttempt load_candidate(const Candidate& candidate) {
  const lockstep_host& host = host_table();
  Loaded& all = loaded();
  const std::lock_guard lock(all.mutex);
  const auto known = all.by_path.find(candidate.path);
  if (known != all.by_path.end()) return known->second;

  LoadAttempt attempt;
  attempt.report.name = candidate.name.empty() ? candidate.path.stem().string() : candidate.name;
  attempt.report.path = candidate.path;
  attempt.report.tried = {candidate.path.string()};
  const PluginFile file = open_plugin(candidate.path, candidate.name, host);
  attempt.report.status = file.status;
  attempt.report.reason = file.reason;
  if (file.table != nullptr) {
    attempt.backend = new LoadedBackend(candidate.path, *file.table);
    attempt.report.name = attempt.backend->name();
  }
  all.by_path.emplace(candidate.path, attempt);
  return attempt;
}

namespace {

std::string missing_reason(const std::filesystem::path& missing) {
  return fmt::format("LOCKSTEP_BACKEND_PATH names {}, which does not exist", missing.string());
}

/// What the environment asks for must not be passed over in silence.
std::vector<Candidate> candidates() {
  PluginSearch search = search_plugins();
  for (const auto& missing : search.missing) {
    log_once(LogLevel::kWarning, missing_reason(missing));
  }
  return std::move(search.candidates);
}

void warn_of(const BackendReport& report) {
  log_once(LogLevel::kWarning,
           fmt::format("backend {} is {}: {} ({})", report.name, to_string(report.status),
                       report.reason, report.path.string()));
}

}  // namespace

std::vector<LoadedBackend*> load_backends() {
  std::vector<LoadedBackend*> backends;
  for (const Candidate& candidate : candidates()) {
    const LoadAttempt attempt = load_candidate(candidate);
    if (attempt.backend == nullptr) {
      warn_of(attempt.report);
      continue;
    }
    const bool shadowed = std::any_of(
        backends.begin(), backends.end(),
        [&](const LoadedBackend* other) { return other->name() == attempt.backend->name(); });
    if (!shadowed) backends.push_back(attempt.backend);
  }
  return backends;
}

LoadedBackend* find_backend(std::string_view name, std::vector<BackendReport>& attempts) {
  for (const Candidate& candidate : candidates()) {
    if (!candidate.name.empty() && candidate.name != name) continue;
    const LoadAttempt attempt = load_candidate(candidate);
    if (attempt.backend != nullptr && attempt.backend->name() == name) {
      for (const BackendReport& failed : attempts) warn_of(failed);
      return attempt.backend;
    }
    if (attempt.backend == nullptr) attempts.push_back(attempt.report);
  }
  return nullptr;
}

BackendReport not_built_report(const PluginSearch& search, const std::string& name) {
  BackendReport report;
  report.name = name;
  report.status = BackendStatus::kNotBuilt;
  for (const auto& folder : search.folders) {
    report.tried.push_back((folder / ("liblockstep_backend_" + name + ".so")).string());
  }
  report.reason =
      "no plugin file: " + fmt::format("{}", fmt::join(report.tried, ", ")) + " not found";
  for (const auto& missing : search.missing) report.reason += "; " + missing_reason(missing);
  return report;
}

std::string format_reports(const std::vector<BackendReport>& reports) {
  std::string text;
  for (const BackendReport& report : reports) {
    text += fmt::format("\n  {:<9} {:<13}", report.name, to_string(report.status));
    if (report.status == BackendStatus::kReady) {
      std::vector<std::string> devices;
      for (const DeviceSummary& device : report.devices) {
        devices.push_back(fmt::format("{}: {}", device.ordinal, device.name));
      }
      text += fmt::format("{}", fmt::join(devices, "; "));
    } else {
      text += report.reason;
    }
    if (!report.path.empty()) text += fmt::format("  ({})", report.path.string());
  }
  return text;
}

void check_required_backends(const std::vector<BackendReport>& reports) {
  const auto required = environment("LOCKSTEP_REQUIRE_BACKENDS");
  if (!required) return;
  for (const std::string& name : split(*required, ',')) {
    const bool ready =
        std::any_of(reports.begin(), reports.end(), [&](const BackendReport& report) {
          return report.name == name && report.status == BackendStatus::kReady;
        });
    if (!ready) {
      throw Error(ErrorCode::kUnavailable,
                  fmt::format("LOCKSTEP_REQUIRE_BACKENDS={} asks for {}, which is not ready:{}",
                              *required, name, format_reports(reports)));
    }
  }
}

void check_required_backends() {
  const auto required = environment("LOCKSTEP_REQUIRE_BACKENDS");
  if (!required) return;
  static std::mutex mutex;
  static auto* satisfied = new std::string;  // the value that was checked
  const std::lock_guard lock(mutex);
  if (*satisfied == *required) return;
  static_cast<void>(list_backends());  // makes the check
  *satisfied = *required;
}

namespace {

std::vector<BackendReport> all_reports() {
  const PluginSearch search = search_plugins();
  std::vector<BackendReport> reports = probe_plugins(search.candidates);
  for (const auto& missing : search.missing) {
    BackendReport& report = reports.emplace_back();
    const std::string name = backend_name_of_file(missing);
    report.name = name.empty() ? missing.filename().string() : name;
    report.path = missing;
    report.status = BackendStatus::kBroken;
    report.reason = missing_reason(missing);
    report.tried = {missing.string()};
  }
  std::map<std::string, std::filesystem::path> taken;
  for (BackendReport& report : reports) {
    if (!occupies_name(report.status)) continue;
    const auto [first, is_first] = taken.emplace(report.name, report.path);
    if (is_first) continue;
    report.status = BackendStatus::kShadowed;
    report.reason = "another plugin of this name was found first: " + first->second.string();
    report.devices.clear();
  }
  for (const char* known : {"host", "cuda", "hip"}) {
    const bool listed =
        std::any_of(reports.begin(), reports.end(),
                    [&](const BackendReport& report) { return report.name == known; });
    if (!listed) reports.push_back(not_built_report(search, known));
  }
  return reports;
}

}  // namespace

std::string describe_backends() {
  try {
    return format_reports(all_reports());
  } catch (const Error& error) {
    return std::string("\n  ") + error.what();
  }
}

}  // namespace lockstep::runtime

namespace lockstep {

std::vector<BackendReport> list_backends() {
  std::vector<BackendReport> reports = runtime::all_reports();
  runtime::check_required_backends(reports);
  return reports;
}

}  // namespace lockstep
