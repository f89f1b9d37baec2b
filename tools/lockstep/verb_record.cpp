// SPDX-License-Identifier: Apache-2.0
#include <lockstep/error.h>
#include <lockstep/recording.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <fmt/format.h>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "child_process.h"
#include "exit_code.h"
#include "json.h"
#include "text.h"
#include "trace_input.h"
#include "verbs.h"

namespace lockstep::cli {
namespace {

constexpr std::chrono::milliseconds kPollWait{2};

std::string output_name(const RecordOptions& options) {
  std::string name = options.output;
  constexpr std::string_view kSuffix = ".zst";
  const bool compressed = name.size() > kSuffix.size() &&
                          name.compare(name.size() - kSuffix.size(), kSuffix.size(), kSuffix) == 0;
  if (options.compress && !compressed) name += kSuffix;
  return name;
}

/// What --strict is about.
bool is_incomplete(const RecordedFile& file) {
  return file.dropped != 0 || has_holes(file.coverage);
}

std::string file_json(const RecordedFile& file) {
  JsonObject object;
  object.text("path", file.path.native())
      .number("pid", file.pid)
      .number("image", file.image)
      .json("rank", file.rank ? std::to_string(*file.rank) : std::string())
      .number("entries", file.entries)
      .number("dropped", file.dropped)
      .number("stalls", file.stalls)
      .number("racing", file.racing)
      .json("coverage", file.coverage);
  return object.str();
}

bool is_empty(const std::vector<RecordedFile>& files) {
  return std::all_of(files.begin(), files.end(),
                     [](const RecordedFile& file) { return file.entries == 0; });
}

/// What that may come from, and what to do about it.
constexpr std::string_view kEmptyText =
    "the program enqueued nothing through Lockstep: the trace has no entries. Either it does not "
    "use Lockstep (only programs that are linked to it are recorded), or it ended before its first "
    "launch, copy, set, allocation or mark, or it ran without the environment that it was given "
    "(sudo, env -i, a container, a server that was already running): put `lockstep record` "
    "directly before the program itself, and see what it does without";

void tell(Console& console, const std::vector<RecordedFile>& files) {
  for (const RecordedFile& file : files) {
    std::string text =
        fmt::format("{}: {}", file.path.native(), counted(file.entries, "entry", "entries"));
    if (file.pid != 0) text += fmt::format(", pid {}", file.pid);
    if (file.rank) text += fmt::format(", rank {}", *file.rank);
    if (file.stalls != 0) text += fmt::format(", the program waited {} times", file.stalls);
    console.note(text);
    if (file.dropped != 0) {
      const std::string lost = counted(file.dropped, "entry was", "entries were");
      console.warning(file.problem.empty() ? fmt::format("{}: {} lost", file.path.native(), lost)
                                           : fmt::format("{}: at least {} lost: {}",
                                                         file.path.native(), lost, file.problem));
    }
  }
}

void tell_running(Console& console, const std::vector<RunningProcess>& running) {
  for (const RunningProcess& process : running) {
    std::string name;
    for (const std::string& word : process.command) name += (name.empty() ? "" : " ") + word;
    console.warning(fmt::format(
        "pid {}{} still runs though the program has ended: {}; let the program wait for it (a "
        "script: `wait`), or stop it before that",
        process.pid, name.empty() ? "" : fmt::format(" ({})", printable(name)),
        process.path.empty() ? std::string("nothing of it is recorded")
                             : fmt::format("what it enqueues from now on is missing from {}",
                                           process.path.native())));
  }
}

/// A recording, and what went wrong with it so far. The program runs on whatever that is.
struct Recorded {
  std::unique_ptr<Recording> recording;
  std::string failure;

  void tell_failure(Console& console, const Error& error) {
    if (failure != error.what()) console.error(error.what());
    failure = error.what();
  }
};

/// Refused before anything runs, as a usage error when it is for a file that exists.
std::unique_ptr<Recording> begin_recording(const RecordingOptions& options) {
  try {
    return std::make_unique<Recording>(options);
  } catch (const Error& error) {
    if (error.context().native_code != EEXIST) throw;
    throw Failure(kUsage, fmt::format("{} exists; --force replaces it", error.context().where));
  }
}

int run_to_end(Console& console, ChildProcess& child, Recorded& recorded) {
  while (true) {
    if (const auto code = child.poll()) return *code;
    try {
      recorded.recording->poll(kPollWait);
    } catch (const Error& error) {
      recorded.tell_failure(console, error);
    }
  }
}

std::vector<RecordedFile> finish(Console& console, Recorded& recorded) {
  try {
    return recorded.recording->finish();
  } catch (const Error& error) {
    recorded.tell_failure(console, error);
  }
  return recorded.recording->finish();  // those that are complete
}

}  // namespace

int run_verb(Console& console, const CommonOptions& common, const RecordOptions& options) {
  if (options.command.empty()) {
    throw Failure(kUsage, "no program given: lockstep record [OPTIONS] -- PROGRAM [ARGUMENT...]");
  }
  check_output(options.output, true);
  const std::string output = output_name(options);
  check_output(output, options.force);
  const std::string program = find_program(options.command.front());

  RecordingOptions recording_options;
  recording_options.output = output;
  recording_options.force = options.force;
  recording_options.command = options.command;
  Recorded recorded{begin_recording(recording_options), {}};
  int code = kDone;
  {
    ChildProcess child(program, options.command, recorded.recording->environment());
    code = run_to_end(console, child, recorded);
  }
  const std::vector<RecordedFile> files = finish(console, recorded);
  const bool failed = !recorded.failure.empty();
  tell(console, files);
  const std::vector<RunningProcess>& running = recorded.recording->running();
  tell_running(console, running);
  const bool holes = !running.empty() || std::any_of(files.begin(), files.end(), is_incomplete);
  if (holes && options.strict) console.error("the trace has holes (--strict)");
  const bool empty = !failed && is_empty(files);
  if (empty && options.strict) {
    console.error(fmt::format("{} (--strict)", kEmptyText));
  } else if (empty) {
    console.warning(kEmptyText);
  }
  if (common.json) {
    std::vector<std::string> rows;
    for (const RecordedFile& file : files) rows.push_back(file_json(file));
    console.print(JsonObject()
                      .text("schema", "lockstep/record/1")
                      .texts("command", options.command)
                      .number("exit_code", code)
                      .boolean("complete", !failed)
                      .boolean("holes", holes)
                      .array("files", rows)
                      .str() +
                  "\n");
  }
  if (code != kDone) return code;
  if (failed) return kInternal;
  return (holes || empty) && options.strict ? kHoles : kDone;
}

}  // namespace lockstep::cli
