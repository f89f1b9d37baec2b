// SPDX-License-Identifier: Apache-2.0
// lockstep-conformance: does a backend plugin keep the interface's promises?
#include <CLI/CLI.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "framework/case.h"
#include "framework/report.h"
#include "framework/runner.h"

namespace {

namespace ls = lockstep;

enum ExitCode : int {
  kConforms = 0,
  kDiffers = 1,
  kUsage = 2,
  kBadInput = 3,
  kUnavailable = 4,
  kInternal = 5
};

struct Options {
  std::string backend;
  std::filesystem::path waivers, report;
  std::string filter = "*", exclude;
  bool list = false, verbose = false, json = false;
  int limit_seconds = 120;
  std::filesystem::path left, right;
  bool full = false;
  std::vector<std::size_t> shard = {1, 1};
};

/// Every device of the backend, or the one device that was asked for and those after it.
std::vector<ls::Device> open_devices(const std::string& backend) {
  std::string which = backend;
  if (backend.find('/') != std::string::npos || backend.find('.') != std::string::npos) {
    if (!std::filesystem::is_regular_file(backend)) {
      throw ls::Error(ls::ErrorCode::kUnavailable,
                      backend +
                          ": there is no such plugin file; name one, or a backend that "
                          "`lockstep devices` lists");
    }
    // A plugin file: it is searched first, and its name is what it says of itself.
    const std::string file_name = std::filesystem::path(backend).filename().string();
    if (!file_name.starts_with("liblockstep_backend_") || !file_name.ends_with(".so")) {
      throw ls::Error(ls::ErrorCode::kUnavailable, backend +
                                                       ": is no plugin file; plugins are named "
                                                       "liblockstep_backend_<name>.so");
    }
    setenv("LOCKSTEP_BACKEND_PATH", backend.c_str(), 1);
    const auto file = std::filesystem::weakly_canonical(backend);
    which.clear();
    for (const ls::BackendReport& report : ls::list_backends()) {
      if (std::filesystem::weakly_canonical(report.path) != file) continue;
      if (report.status != ls::BackendStatus::kReady) {
        throw ls::Error(
            ls::ErrorCode::kUnavailable,
            backend + ": " + std::string(ls::to_string(report.status)) + ": " + report.reason);
      }
      which = report.name;
    }
    if (which.empty())
      throw ls::Error(ls::ErrorCode::kUnavailable, backend + ": was not found by the search");
  }
  std::vector<ls::Device> devices = {ls::Device::open(which)};
  const std::string name = devices[0].backend();
  if (which != name) return devices;
  std::size_t count = 1;
  for (const ls::BackendReport& report : ls::list_backends()) {
    if (report.name != name || report.status != ls::BackendStatus::kReady) continue;
    count = report.devices.size();
    break;
  }
  // One that is there and does not open is an error, not the end of the list.
  for (std::size_t ordinal = 0; ordinal < count; ++ordinal) {
    if (static_cast<std::int32_t>(ordinal) == devices[0].ordinal()) continue;
    devices.push_back(ls::Device::open(name + ":" + std::to_string(ordinal)));
  }
  return devices;
}

/// So that a report that cannot be written is refused before the suite has run for it.
void check_report_path(const std::filesystem::path& path) {
  const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
  if (std::filesystem::is_directory(path) || !std::filesystem::is_directory(folder)) {
    throw ls::Error(ls::ErrorCode::kInputOutput,
                    path.string() + ": " +
                        (std::filesystem::is_directory(path) ? "is a folder; name a file in it"
                                                             : "there is no such folder; make it"));
  }
}

/// The report where it was asked for.
void publish(const Options& options, const conformance::Report& report) {
  if (!options.report.empty()) {
    std::ofstream file(options.report);
    file << conformance::to_json(report);
    file.flush();
    if (!file)
      throw ls::Error(ls::ErrorCode::kInputOutput, options.report.string() + ": cannot be written");
  }
  std::cout << (options.json ? conformance::to_json(report) : conformance::to_text(report))
            << std::flush;
}

int run(const Options& options) {
  if (options.list) {
    for (const auto& item : conformance::all_cases()) {
      if (conformance::glob_match(options.filter, item.name) &&
          !conformance::glob_match(options.exclude, item.name)) {
        std::cout << item.name << '\n';
      }
    }
    return kConforms;
  }
  if (options.backend.empty()) {
    std::cerr << "lockstep-conformance: name a backend or a plugin file with --backend\n";
    return kUsage;
  }
  if (options.shard[0] < 1 || options.shard[0] > options.shard[1]) {
    std::cerr << "lockstep-conformance: --shard I/N: I is from 1 to N\n";
    return kUsage;
  }
  if (!options.report.empty()) check_report_path(options.report);
  conformance::Waivers waivers;
  if (!options.waivers.empty()) waivers = conformance::Waivers::load(options.waivers);
  conformance::RunOptions run_options;
  run_options.filter = options.filter;
  run_options.exclude = options.exclude;
  run_options.verbose = options.verbose;
  run_options.full = options.full;
  run_options.shard = options.shard[0] - 1;
  run_options.shards = options.shard[1];
  run_options.limit_seconds = options.limit_seconds;
  run_options.progress = &std::cerr;
  run_options.given_up = [&](const conformance::Report& report) {
    try {
      publish(options, report);
    } catch (const ls::Error& error) {
      std::cerr << "lockstep-conformance: " << error.what() << '\n';
    }
  };
  const conformance::Report report =
      conformance::run_suite(open_devices(options.backend), waivers, run_options);
  publish(options, report);
  return report.ok() ? kConforms : kDiffers;
}

int compare(const Options& options) {
  const auto comparison = conformance::compare(conformance::load_report(options.left),
                                               conformance::load_report(options.right));
  std::cout << comparison.text;
  return comparison.equal ? kConforms : kDiffers;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("Runs the conformance suite on a backend plugin.");
  app.add_option("--backend", options.backend, "name (host, cuda, hip:1) or path of a plugin file");
  app.add_option("--waivers", options.waivers, "TOML file of what the backend is known not to do");
  app.add_option("--report", options.report, "write the report as JSON");
  app.add_option("--filter", options.filter, "glob over case names, e.g. 'CAP_*'");
  app.add_option("--exclude", options.exclude, "glob over case names that are left out");
  app.add_option("--limit", options.limit_seconds, "seconds one run of a case may take (120)")
      ->check(CLI::Range(1, 86400));
  app.add_flag("--full", options.full, "cases at their full size and number of rounds");
  app.add_option("--shard", options.shard, "I/N: the I-th of N parts of the suite")
      ->delimiter('/')
      ->expected(2);
  app.add_flag("--list", options.list,
               "list the cases that --filter and --exclude leave, and stop");
  app.add_flag("--verbose", options.verbose, "a line for each run");
  app.add_flag("--json", options.json, "the report on standard output as JSON");
  CLI::App* comparison = app.add_subcommand("compare", "compare two reports case by case");
  comparison->add_option("LEFT", options.left, "a report")->required();
  comparison->add_option("RIGHT", options.right, "the other")->required();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kConforms : kUsage;
  }
  try {
    return comparison->parsed() ? compare(options) : run(options);
  } catch (const ls::Error& error) {
    std::cerr << "lockstep-conformance: " << error.what() << '\n';
    switch (error.code()) {
      case ls::ErrorCode::kUnavailable:
        return kUnavailable;
      case ls::ErrorCode::kInvalidFile:
      case ls::ErrorCode::kNotFound:
      case ls::ErrorCode::kInputOutput:
        return kBadInput;
      case ls::ErrorCode::kInvalidArgument:
        return kUsage;
      default:
        return kInternal;
    }
  }
}
