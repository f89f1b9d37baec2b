// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "console.h"

/// \file
/// What the command line asks for, and the functions that do it: one file a verb. Texts are as the
/// user gave them; a verb checks its own and throws Failure (kUsage).
namespace lockstep::cli {

/// Options that every verb takes.
struct CommonOptions {
  ColorMode color = ColorMode::kAuto;
  bool json = false;
};

/// Which entries of a trace a verb looks at.
struct SelectionOptions {
  std::string view;   ///< executed or enqueued; "" = executed, for slices enqueued
  std::string kinds;  ///< comma-separated, or "all"; "" = the core kinds
};

struct DevicesOptions {
  bool verbose = false;
  std::string backend;  ///< "" = all
};

struct RecordOptions {
  std::string output = "trace.jsonl";
  bool force = false;
  bool strict = false;
  bool compress = false;
  std::vector<std::string> command;
};

struct ShowOptions {
  std::string file;
  SelectionOptions selection;
  std::string range, streams, name;
  bool stat = false;
  bool jsonl = false;
  bool graphs = false;
  bool full_names = false;
};

struct DiffCommandOptions {
  std::string left, right;
  SelectionOptions selection;
  bool all = false;
  bool stat = false;
  bool per_stream = false;
  bool arguments = false;
  bool quiet = false;
  std::string normalisers, rename_file;
  std::uint32_t context = 1;
};

struct VerifyCommandOptions {
  std::string file;
  std::string level = "L3";
};

struct MergeOptions {
  std::vector<std::string> files;
  std::string output;
  bool force = false;
};

struct RulesOptions {
  std::string rules, file;
};

struct VersionOptions {};
/// `--help`: the text is made where the options are declared.
struct HelpOptions {
  std::string text;
};

struct Invocation {
  CommonOptions common;
  std::variant<HelpOptions, VersionOptions, DevicesOptions, RecordOptions, ShowOptions,
               DiffCommandOptions, VerifyCommandOptions, MergeOptions, RulesOptions>
      verb;
};

/// \throws Failure (kUsage) with a message that says what to write instead.
Invocation parse_command_line(int argc, const char* const* argv);

/// Each returns the exit code, prints data on `console`, and throws lockstep::Error or Failure.
int run_verb(Console& console, const CommonOptions& common, const HelpOptions& options);
int run_verb(Console& console, const CommonOptions& common, const VersionOptions& options);
int run_verb(Console& console, const CommonOptions& common, const DevicesOptions& options);
int run_verb(Console& console, const CommonOptions& common, const RecordOptions& options);
int run_verb(Console& console, const CommonOptions& common, const ShowOptions& options);
int run_verb(Console& console, const CommonOptions& common, const DiffCommandOptions& options);
int run_verb(Console& console, const CommonOptions& common, const VerifyCommandOptions& options);
int run_verb(Console& console, const CommonOptions& common, const MergeOptions& options);
int run_verb(Console& console, const CommonOptions& common, const RulesOptions& options);

}  // namespace lockstep::cli
