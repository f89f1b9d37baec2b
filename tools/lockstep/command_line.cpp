// SPDX-License-Identifier: Apache-2.0
// Every option of every verb. The only file that includes CLI11: it compiles slowly.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <fmt/format.h>
#include <functional>
#include <utility>

#include "exit_code.h"
#include "text.h"
#include "verbs.h"

namespace lockstep::cli {
namespace {

constexpr const char* kExitCodes =
    "Exit codes: 0 equal or done, 1 different or not verified, 2 usage, 3 unreadable or truncated\n"
    "input, 4 backend or device not available, 5 internal, 6 recorded with holes (--strict).";

class Parser {
 public:
  Parser()
      : app_("Records, shows, compares and verifies what a program launched on its devices.",
             "lockstep") {
    app_.footer(kExitCodes);
    app_.require_subcommand(0, 1);
    app_.add_flag("--version", version_, "Print the version and end");
    add_common(app_);
    declare_devices();
    declare_record();
    declare_show();
    declare_diff();
    declare_verify();
    declare_merge();
    declare_rules();
  }

  Invocation parse(std::vector<std::string> arguments) {
    split_off_program(arguments);
    try {
      // CLI11 takes the arguments from the back.
      std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
      app_.parse(std::move(reversed));
    } catch (const CLI::CallForHelp&) {
      return {common_, HelpOptions{app_.help()}};
    } catch (const CLI::ParseError& error) {
      throw Failure(kUsage, explain(error, arguments));
    }
    common_.color = color_text_ == "always"  ? ColorMode::kAlways
                    : color_text_ == "never" ? ColorMode::kNever
                                             : ColorMode::kAuto;
    if (version_) return {common_, VersionOptions{}};
    for (const auto& [app, take] : verbs_) {
      if (app->parsed()) return {common_, take()};
    }
    throw Failure(kUsage, "no verb given; lockstep --help lists them");
  }

 private:
  void add_common(CLI::App& app) {
    app.add_flag("--json", common_.json, "One JSON object on standard output (schemas/)");
    app.add_option("--color", color_text_, "Colours: auto, always or never")
        ->check(CLI::IsMember({"auto", "always", "never"}))
        ->type_name("WHEN");
  }

  template <typename Options>
  CLI::App* add_verb(const char* name, const char* description, Options& options) {
    CLI::App* app = app_.add_subcommand(name, description);
    app->footer(kExitCodes);
    add_common(*app);
    verbs_.emplace_back(app, [&options] { return decltype(Invocation::verb)(options); });
    return app;
  }

  static void add_selection(CLI::App& app, SelectionOptions& selection) {
    app.add_option("--view", selection.view,
                   "executed: what ran, graph launches as their nodes; enqueued: the file's order")
        ->check(CLI::IsMember({"executed", "enqueued"}))
        ->type_name("VIEW");
    app.add_option("--kinds", selection.kinds,
                   "Only these kinds, comma-separated, or all (else kernel,memcpy,memset)")
        ->type_name("LIST");
  }

  void declare_devices() {
    CLI::App* app =
        add_verb("devices", "Backends, their devices, and why one is not usable", devices_);
    app->add_option("backend", devices_.backend, "Only this one; exit code 4 when it is not ready");
    app->add_flag("-v,--verbose", devices_.verbose, "Paths, versions, identities, what was tried");
  }

  void declare_record() {
    CLI::App* app = add_verb("record",
                             "Run a program that uses Lockstep and record it:\n"
                             "lockstep record [OPTIONS] -- PROGRAM [ARGUMENT...]",
                             record_);
    app->add_option("-o,--output", record_.output, "The trace (trace.jsonl)")->type_name("FILE");
    app->add_flag("-f,--force", record_.force, "Replace a file that exists");
    app->add_flag("--strict", record_.strict,
                  "Exit code 6 when the program ended with 0 but the trace has holes");
    app->add_flag("--compress", record_.compress, "Compress with zstd (the name ends in .zst)");
  }

  void declare_show() {
    CLI::App* app = add_verb("show", "Entries and summary of a trace", show_);
    app->add_option("file", show_.file, "The trace")->required()->type_name("FILE");
    add_selection(*app, show_.selection);
    app->add_option("--range", show_.range, "Positions A to B of the view, B not included")
        ->type_name("A:B");
    app->add_option("--stream", show_.streams, "Only these streams, comma-separated")
        ->type_name("LIST");
    app->add_option("--name", show_.name, "Only names that the regular expression finds")
        ->type_name("REGEX");
    app->add_flag("--stat", show_.stat, "Counts by name instead of entries");
    app->add_flag("--graphs", show_.graphs, "Nodes and edges of the graphs too");
    app->add_flag("--full-names", show_.full_names, "Names are not cut");
    app->add_flag("--jsonl", show_.jsonl, "The selected entries as a trace file of their own");
  }

  void declare_diff() {
    CLI::App* app = add_verb("diff", "Compare two traces", diff_);
    app->add_option("left", diff_.left, "A trace")->required()->type_name("FILE");
    app->add_option("right", diff_.right, "Another one")->required()->type_name("FILE");
    add_selection(*app, diff_.selection);
    app->add_flag("--all", diff_.all, "Every change, not only the first");
    app->add_flag("--stat", diff_.stat, "Counts by name of what changed");
    app->add_flag("--per-stream", diff_.per_stream, "Compare each stream by itself");
    app->add_flag("--args", diff_.arguments, "Kernel arguments must agree too");
    app->add_option("--normalise,--normalize", diff_.normalisers,
                    "Strip noise from names first: a comma-separated list, or all")
        ->type_name("LIST");
    app->add_option("--rename", diff_.rename_file, "A file of names to take for one another")
        ->type_name("FILE");
    app->add_option("--context", diff_.context, "Equal entries around a change (1)")
        ->type_name("N");
    app->add_flag("-q,--quiet", diff_.quiet, "Print nothing: the exit code answers");
  }

  void declare_verify() {
    CLI::App* app = add_verb("verify", "Check that graphs do what eager execution did", verify_);
    app->add_option("file", verify_.file, "The trace")->required()->type_name("FILE");
    app->add_option("--level", verify_.level,
                    "L0 counts, L1 the same entries, L2 and their order, L3 and arguments (L3)")
        ->type_name("LEVEL");
  }

  void declare_merge() {
    CLI::App* app = add_verb("merge", "Put slices of one trace back together", merge_);
    app->add_option("files", merge_.files, "Slices in their order")->required()->type_name("FILE");
    app->add_option("-o,--output", merge_.output, "The trace to write")
        ->required()
        ->type_name("FILE");
    app->add_flag("-f,--force", merge_.force, "Replace a file that exists");
  }

  void declare_rules() {
    CLI::App* app = add_verb("rules", "Check a trace against a file of rules", rules_);
    app->add_option("rules", rules_.rules, "The rules")->required()->type_name("RULES");
    app->add_option("file", rules_.file, "The trace")->required()->type_name("FILE");
  }

  /// What stands behind `--` of record is not ours to read: a program's options may look like ours.
  void split_off_program(std::vector<std::string>& arguments) {
    bool is_value = false;  // of the option before it
    const auto verb =
        std::find_if(arguments.begin(), arguments.end(), [&](const std::string& text) {
          if (std::exchange(is_value, false)) return false;
          if (text.rfind('-', 0) != 0) return true;
          is_value = takes_value(find_option(app_, text));
          return false;
        });
    if (verb == arguments.end() || *verb != "record") return;
    const auto dashes = std::find(verb, arguments.end(), "--");
    if (dashes == arguments.end()) return;
    record_.command.assign(dashes + 1, arguments.end());
    arguments.erase(dashes, arguments.end());
  }

  /// CLI11's message, or a better one for a word that we do not know.
  std::string explain(const CLI::ParseError& error, const std::vector<std::string>& arguments) {
    const CLI::App* verb = nullptr;
    bool is_value = false;  // of the option before it
    for (const std::string& argument : arguments) {
      if (argument == "--") break;
      if (std::exchange(is_value, false)) continue;
      const bool option = argument.size() > 1 && argument.front() == '-';
      if (!option && verb == nullptr) {
        const auto found = std::find_if(verbs_.begin(), verbs_.end(), [&](const auto& candidate) {
          return candidate.first->get_name() == argument;
        });
        if (found == verbs_.end()) return unknown_verb(argument);
        verb = found->first;
      } else if (option) {
        const std::string name = argument.substr(0, argument.find('='));
        const CLI::Option* known = find_option(verb == nullptr ? app_ : *verb, name);
        if (known == nullptr) return unknown_option(verb, name);
        is_value = takes_value(known) && name == argument;
      } else if (verb->get_name() == "record" && record_.command.empty() &&
                 dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) {
        return "put two dashes before the program: lockstep record [OPTIONS] -- PROGRAM "
               "[ARGUMENT...]";
      }
    }
    const std::string whose = verb == nullptr ? "lockstep" : "lockstep " + verb->get_name();
    return fmt::format("{}; {} --help lists what it takes", error.what(), whose);
  }

  /// Of the next argument, when nothing stands behind a `=`.
  static bool takes_value(const CLI::Option* option) {
    return option != nullptr && option->get_items_expected_max() > 0;
  }

  static const CLI::Option* find_option(const CLI::App& app, const std::string& name) {
    return app.get_option_no_throw(name.rfind("--", 0) == 0 ? name : name.substr(0, 2));
  }

  std::string unknown_verb(const std::string& word) const {
    std::vector<std::string> names;
    for (const auto& [app, take] : verbs_) names.push_back(app->get_name());
    return fmt::format("there is no verb '{}'{}; lockstep --help lists them", word,
                       did_you_mean(word, names));
  }

  std::string unknown_option(const CLI::App* verb, const std::string& word) const {
    const CLI::App& app = verb == nullptr ? app_ : *verb;
    std::vector<std::string> names;
    for (const CLI::Option* option : app.get_options()) {
      for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    }
    const std::string whose = verb == nullptr ? "lockstep" : "lockstep " + verb->get_name();
    return fmt::format("{} has no option '{}'{}; {} --help lists them", whose, word,
                       did_you_mean(word, names), whose);
  }

  CLI::App app_;
  CommonOptions common_;
  std::string color_text_ = "auto";
  bool version_ = false;
  std::vector<std::pair<CLI::App*, std::function<decltype(Invocation::verb)()>>> verbs_;
  DevicesOptions devices_;
  RecordOptions record_;
  ShowOptions show_;
  DiffCommandOptions diff_;
  VerifyCommandOptions verify_;
  MergeOptions merge_;
  RulesOptions rules_;
};

}  // namespace

Invocation parse_command_line(int argc, const char* const* argv) {
  return Parser().parse({argv + std::min(argc, 1), argv + argc});
}

}  // namespace lockstep::cli
