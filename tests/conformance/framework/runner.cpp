// SPDX-License-Identifier: Apache-2.0
#include "framework/runner.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <ostream>
#include <stop_token>
#include <thread>
#include <utility>

namespace conformance {
namespace {

const char* name_of(Variant variant) {
  switch (variant) {
    case Variant::kEager:
      return "eager";
    case Variant::kGraph:
      return "graph";
    case Variant::kThread:
      return "thread";
  }
  return "";
}

std::vector<std::uint64_t> hashes(const std::vector<ls::LaunchTraceEntry>& entries) {
  std::vector<std::uint64_t> result;
  for (const auto& entry : entries) result.push_back(entry.semantic_hash);
  std::sort(result.begin(), result.end());
  return result;
}

std::string list(const std::vector<ls::LaunchTraceEntry>& entries) {
  std::string text;
  for (const auto& entry : entries) text += "\n      " + ls::to_string(entry);
  return text;
}

void run_eager(const Environment& environment, const Case& item) {
  const Work work = item.make_work(environment);
  ls::Stream stream = environment.device().create_stream();
  work.enqueue(stream);
  stream.synchronize();
  work.check();
}

/// Eager and graph side by side: the capture executes nothing, replay gives the eager result twice,
/// and the two traces hold the same operations.
void run_graph(const Environment& environment, const Case& item) {
  const Work work = item.make_work(environment);
  ls::Stream stream = environment.device().create_stream();
  ls::LaunchTrace eager_trace;
  work.enqueue(stream);
  stream.synchronize();
  const auto eager = eager_trace.take();
  work.check();
  if (work.reset) work.reset();

  ls::LaunchTrace capture_trace;
  const ls::Graph graph = stream.capture(work.enqueue);
  const auto executed = capture_trace.take();
  if (!executed.empty()) fail("the capture executed:" + list(executed));
  // Work without nodes (empty copies, say) makes an empty graph, and that is what it should make.
  const ls::GraphExec exec = graph.instantiate({.allow_empty = eager.empty()});
  for (int launch = 0; launch < 2; ++launch) {
    if (launch > 0 && work.reset) work.reset();
    ls::LaunchTrace replay_trace;
    exec.launch(stream);
    stream.synchronize();
    const auto replay = replay_trace.take();
    work.check();
    if (hashes(replay) != hashes(eager)) {
      fail("replay and eager traces differ\n    eager:" + list(eager) +
           "\n    replay:" + list(replay));
    }
  }
}

/// Runs on a thread that has never met the device, and brings its error back.
void run_on_fresh_thread(const std::function<void()>& body) {
  std::exception_ptr error;
  std::thread thread([&] {
    try {
      body();
    } catch (...) {
      error = std::current_exception();
    }
  });
  thread.join();
  if (error) std::rethrow_exception(error);
}

void run_variant(const Environment& environment, const Case& item, Variant variant) {
  const auto body = [&] {
    if (item.run_rule) {
      item.run_rule(environment);
    } else if (variant == Variant::kGraph) {
      run_graph(environment, item);
    } else {
      run_eager(environment, item);
    }
  };
  if (variant == Variant::kThread) {
    run_on_fresh_thread(body);
  } else {
    body();
  }
}

/// Ends the program when a case hangs.
class Watchdog {
 public:
  Watchdog(int seconds, std::function<void()> given_up)
      : thread_([given_up = std::move(given_up), seconds](const std::stop_token& token) {
          std::mutex mutex;
          std::condition_variable_any ended;
          std::unique_lock lock(mutex);
          if (ended.wait_for(lock, token, std::chrono::seconds(seconds),
                             [&] { return token.stop_requested(); })) {
            return;
          }
          if (token.stop_requested()) return;
          given_up();
          std::_Exit(1);
        }) {}

 private:
  std::jthread thread_;
};

CaseResult run_one(const Environment& environment, const Case& item, Variant variant,
                   Waivers& waivers, const WaiverTarget& target) {
  CaseResult result{item.name, name_of(variant), Outcome::kPassed, "", 0.0};
  const auto begin = std::chrono::steady_clock::now();
  bool unsupported = false, absent = false;
  try {
    run_variant(environment, item, variant);
  } catch (const NotApplicable& reason) {
    result.outcome = Outcome::kNotApplicable;
    result.message = reason.what();
  } catch (const ls::Error& error) {
    absent = is_of_absent_slot(error);
    result.outcome = absent ? Outcome::kNotApplicable : Outcome::kFailed;
    unsupported = error.code() == ls::ErrorCode::kNotSupported;
    result.message = absent ? "the backend does not offer " + error.context().call : error.what();
  } catch (const std::exception& error) {
    result.outcome = Outcome::kFailed;
    result.message = error.what();
  }
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();

  const Waiver* waiver = waivers.find(target, item.name, result.variant);
  if (waiver == nullptr) return result;
  if (result.outcome == Outcome::kPassed) {
    result.outcome = Outcome::kUnexpectedPass;
    result.message =
        "waived as " + waiver->kind + " (" + waiver->reason + ") but it passed: remove the waiver";
  } else if ((result.outcome == Outcome::kFailed || absent) &&
             (waiver->kind == "expected_failure" || unsupported)) {
    result.outcome = Outcome::kWaived;
    result.message = waiver->kind + ": " + waiver->reason + " [" + result.message + "]";
  }
  return result;
}

}  // namespace

std::size_t Report::count(Outcome outcome) const {
  return static_cast<std::size_t>(std::count_if(
      results.begin(), results.end(), [&](const CaseResult& r) { return r.outcome == outcome; }));
}

bool Report::ok() const {
  return not_run == 0 && waiver_problems.empty() && count(Outcome::kFailed) == 0 &&
         count(Outcome::kUnexpectedPass) == 0 && count(Outcome::kPassed) > 0;
}

std::string to_string(Outcome outcome) {
  switch (outcome) {
    case Outcome::kPassed:
      return "passed";
    case Outcome::kFailed:
      return "failed";
    case Outcome::kWaived:
      return "waived";
    case Outcome::kNotApplicable:
      return "not_applicable";
    case Outcome::kUnexpectedPass:
      return "unexpected_pass";
  }
  return "";
}

bool glob_match(std::string_view pattern, std::string_view text) {
  std::size_t p = 0, t = 0, star = std::string_view::npos, retry = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      retry = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p, ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++retry;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

Report run_suite(const std::vector<ls::Device>& devices, Waivers& waivers,
                 const RunOptions& options) {
  const ls::Device& device = devices.front();
  Report report;
  report.backend = device.backend();
  report.device = device.name();
  report.arch = device.arch();
  report.driver = device.driver();
  report.simulated = device.simulated();
  const WaiverTarget target{report.backend, report.driver, report.simulated};
  const Environment environment(devices, options.full);
  std::size_t matched = 0;
  std::vector<std::pair<const Case*, Variant>> runs;
  for (const Case& item : all_cases()) {
    if (!glob_match(options.filter, item.name)) continue;
    if (glob_match(options.exclude, item.name)) continue;
    if (matched++ % options.shards != options.shard) continue;
    runs.emplace_back(&item, Variant::kEager);
    if (item.make_work) runs.emplace_back(&item, Variant::kGraph);
    runs.emplace_back(&item, Variant::kThread);
  }
  for (const auto& [item, variant] : runs) {
    const CaseResult hung{
        item->name, name_of(variant), Outcome::kFailed,
        "still running after " + std::to_string(options.limit_seconds) + " s; given up",
        static_cast<double>(options.limit_seconds)};
    const auto give_up = [&report, &hung, &runs, &options] {
      Report so_far = report;
      so_far.results.push_back(hung);
      so_far.not_run = runs.size() - so_far.results.size();
      if (options.given_up) options.given_up(so_far);
    };
    CaseResult result;
    {
      // Gone before the report changes, which it reads.
      const Watchdog watchdog(options.limit_seconds, give_up);
      result = run_one(environment, *item, variant, waivers, target);
    }
    if (options.progress != nullptr && options.verbose) {
      *options.progress << to_string(result.outcome) << "  " << result.name << " ("
                        << result.variant << ")" << (result.message.empty() ? "" : ": ")
                        << result.message << '\n'
                        << std::flush;
    }
    report.results.push_back(std::move(result));
  }
  const bool all = options.filter == "*" && options.exclude.empty() && options.shards == 1;
  if (all) report.waiver_problems = waivers.problems(target);
  return report;
}

}  // namespace conformance
