// SPDX-License-Identifier: Apache-2.0
#include <lockstep/trace_file.h>

#include <cstdlib>
#include <fcntl.h>
#include <string>
#include <unistd.h>

#include "exit_code.h"
#include "fuzz/fuzz_target.h"
#include "support/trace_entries.h"
#include "verbs.h"

namespace lockstep::fuzz {
namespace {

using namespace testing_support;
using namespace cli;

/// The only files that verbs get to see, whatever the arguments name.
struct Files {
  TemporaryFolder folder;
  std::string left = folder / "left.jsonl", right = folder / "right.jsonl";
  std::string rules = folder / "rules", renames = folder / "renames";

  Files() {
    Trace trace = trace_of({kernel("a"), copy(MemcpyKind::kHtoD, 64, 1), kernel("b<int>", 1),
                            of_kind(OperationKind::kMark, "step"), kernel("c")});
    write_trace(left, trace);
    trace.entries.erase(trace.entries.begin() + 2);
    trace.entries.push_back(copy(MemcpyKind::kDtoH, 4));
    trace.footer.entries = trace.entries.size();
    write_trace(right, trace);
    write_bytes(rules, "no DtoH\nmax 3 launches\n");
    write_bytes(renames, "a => c\n");
  }
  /// Stands for a name that the arguments hold: now the one, now the other.
  void replace(std::string& name) const { name = name.size() % 2 == 0 ? left : right; }
};

/// What verbs print meanwhile is not seen; what a sanitizer says is.
class Silence {
 public:
  Silence() : out_(dup(STDOUT_FILENO)) {
    const int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    dup2(null, STDOUT_FILENO);
    close(null);
  }
  ~Silence() {
    dup2(out_, STDOUT_FILENO);
    close(out_);
  }
  Silence(const Silence&) = delete;
  Silence& operator=(const Silence&) = delete;

 private:
  int out_;
};

struct Verbs {
  const Files& files;
  const CommonOptions& common;

  template <typename Options>
  void run(const Options& options) const {
    Console console(common.color);
    const Silence silence;
    const int code = run_verb(console, common, options);
    console.flush();
    if (code != kDone && code != kDifferent) std::abort();  // all these files are sound
  }
  void operator()(const HelpOptions& options) const { run(options); }
  void operator()(const VersionOptions& options) const { run(options); }
  void operator()(ShowOptions options) const {
    files.replace(options.file);
    run(options);
  }
  void operator()(DiffCommandOptions options) const {
    files.replace(options.left);
    files.replace(options.right);
    if (!options.rename_file.empty()) options.rename_file = files.renames;
    run(options);
  }
  void operator()(VerifyCommandOptions options) const {
    files.replace(options.file);
    run(options);
  }
  void operator()(RulesOptions options) const {
    options.rules = files.rules;
    files.replace(options.file);
    run(options);
  }
  // These start programs, or write where the arguments say: taken apart and left alone.
  void operator()(const DevicesOptions&) const {}
  void operator()(const RecordOptions&) const {}
  void operator()(const MergeOptions&) const {}
};

}  // namespace

/// Any arguments, one a line: a usage error in words, or a verb that does its work.
void command_line(const std::uint8_t* data, std::size_t size) {
  static const Files files;
  std::vector<std::string> words = {"lockstep"};
  if (size > 0) words.emplace_back();
  for (std::size_t i = 0; i < size; ++i) {
    if (data[i] == '\n') {
      words.emplace_back();
    } else if (data[i] != 0) {
      words.back() += static_cast<char>(data[i]);
    }
  }
  std::vector<const char*> arguments;
  for (const std::string& word : words) arguments.push_back(word.c_str());
  try {
    const Invocation invocation =
        parse_command_line(static_cast<int>(arguments.size()), arguments.data());
    std::visit(Verbs{files, invocation.common}, invocation.verb);
  } catch (const Failure& failure) {
    if (failure.code() != kUsage || std::string(failure.what()).empty()) throw;
  }
}

}  // namespace lockstep::fuzz

LOCKSTEP_FUZZ_TARGET(lockstep::fuzz::command_line)
