// SPDX-License-Identifier: Apache-2.0
#include <lockstep/error.h>
#include <lockstep/trace_file.h>
#include <lockstep/tracer.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <pthread.h>
#include <stdexcept>
#include <string>
#include <sys/mman.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "recorder/layout.h"
#include "src/record/host_recorder.h"
#include "unit/record/fake_plugin.h"

/// \file
/// A program that records itself in various ways and ends in various ways: what the tests of
/// LOCKSTEP_TRACE and Recording run. Usage: probe <scenario> [number].
namespace {

using lockstep::testing::FakePlugin;

std::uint32_t g_count = 10;

void launch_some(const FakePlugin& plugin, std::uint32_t count, const char* name) {
  const std::uint64_t stream = plugin.stream();
  lockstep_record record = plugin.kernel(stream, name);
  for (std::uint32_t i = 1; i <= count; ++i) {
    record.of.kernel.grid.x = i;
    plugin.call(record);
  }
}

/// Launches before main's objects exist and after they are gone.
struct Global {
  bool wanted = false;
  std::uint64_t stream = 0;
  ~Global() {
    if (wanted) FakePlugin().launch(stream, "from a static destructor");
  }
};
Global g_global;

int plain() {
  launch_some(FakePlugin(), g_count, "plain");
  return 0;
}

int exit_from_thread() {
  launch_some(FakePlugin(), g_count, "plain");
  std::thread([] { std::exit(0); }).join();
  return 1;
}

int static_objects() {
  static lockstep::LaunchTrace never_taken;
  const FakePlugin plugin;
  launch_some(plugin, g_count, "plain");
  g_global.stream = plugin.stream();
  g_global.wanted = true;
  return 0;
}

int quick_end(const std::function<void()>& end) {
  launch_some(FakePlugin(), g_count, "plain");
  std::this_thread::sleep_for(std::chrono::milliseconds(300));  // what is older may not be lost
  end();
  return 1;
}

/// Prints how many launches were enqueued, then is killed.
int killed() {
  const FakePlugin plugin;
  const lockstep_record record = plugin.kernel(plugin.stream(), "plain");
  for (std::uint32_t i = 0; i < g_count; ++i) plugin.call(record);
  raise(SIGKILL);
  return 1;
}

int forks(const FakePlugin* used_before) {
  for (std::uint32_t worker = 1; worker <= 3; ++worker) {
    const pid_t child = fork();
    if (child == 0) {
      launch_some(FakePlugin(), worker, "worker");
      std::exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (status != 0) return 1;
  }
  launch_some(used_before != nullptr ? *used_before : FakePlugin(), 4, "parent");
  return 0;
}

int forks_before_use() { return forks(nullptr); }

int forks_after_use() {
  const FakePlugin plugin;
  lockstep::LaunchTrace open_across_the_fork;
  launch_some(plugin, 5, "parent");
  return forks(&plugin);
}

/// A child must not see its parent's traces, nor the parent its child's launches.
int fork_with_traces() {
  const FakePlugin plugin;
  const std::uint64_t stream = plugin.stream();
  lockstep::LaunchTrace trace;
  lockstep::Tracer::begin();
  plugin.launch(stream, "parent");
  const pid_t child = fork();
  if (child == 0) {
    const bool inherited = !trace.take().empty() || !lockstep::Tracer::take().empty();
    lockstep::LaunchTrace own;
    plugin.launch(stream, "child");
    const bool recorded = own.take().size() == 1;
    _exit(!inherited && recorded ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  const bool kept = trace.take().size() == 1 && lockstep::Tracer::take().size() == 1;
  return status == 0 && kept ? 0 : 1;
}

int g_may_go_on[2];

/// Forks, and lets a thread of the parent make a ring before the child's handlers run.
int fork_while_rings_come() {
  // Handlers run in this order: the recorder has not been used yet.
  if (pipe(g_may_go_on) != 0) return 1;
  pthread_atfork(nullptr, nullptr, [] {
    char byte = 0;
    if (read(g_may_go_on[0], &byte, 1) != 1) _exit(1);
  });
  const FakePlugin plugin;
  launch_some(plugin, 5, "parent");
  const pid_t child = fork();
  if (child == 0) {
    launch_some(plugin, 1, "worker");
    std::exit(0);
  }
  std::thread([&] { launch_some(plugin, 2, "parent"); }).join();
  if (write(g_may_go_on[1], "x", 1) != 1) return 1;
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) return 128 + WTERMSIG(status);
  return WEXITSTATUS(status);
}

/// A worker that becomes nobody, as those of servers do, before it launches.
int drops_privileges() {
  const FakePlugin plugin;
  launch_some(plugin, 2, "parent");
  const pid_t child = fork();
  if (child == 0) {
    constexpr uid_t kNobody = 65534;
    if (setresuid(kNobody, kNobody, kNobody) != 0) _exit(1);
    launch_some(plugin, 3, "worker");
    std::exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) return 128 + WTERMSIG(status);
  return WEXITSTATUS(status);
}

/// Starts a program that is to record itself into another file, while this one records too.
int starts_another() {
  launch_some(FakePlugin(), 2, "runner");
  setenv("LOCKSTEP_TRACE", std::getenv("PROBE_OTHER_TRACE"), 1);
  const pid_t child = fork();
  if (child == 0) {
    execl("/proc/self/exe", "probe", "plain", "3", nullptr);
    _exit(127);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return status == 0 ? 0 : 1;
}

int execs() {
  launch_some(FakePlugin(), 2, "before exec");
  execl("/proc/self/exe", "probe", "plain", "3", nullptr);
  return 1;
}

int pending() {
  const FakePlugin plugin;
  const std::uint64_t stream = plugin.stream();
  plugin.launch(stream, "done");
  plugin.begin(plugin.kernel(stream, "hangs"));
  raise(SIGKILL);
  return 1;
}

int many_threads() {
  const FakePlugin plugin;
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] { launch_some(plugin, g_count, "threaded"); });
  }
  for (std::thread& thread : threads) thread.join();
  return 0;
}

/// Threads that begin and end one trace after the other hold the recorder's lock nearly always.
int exit_while_tracing() {
  const FakePlugin plugin;
  std::atomic<int> begun{0};
  for (int i = 0; i < 4; ++i) {
    std::thread([&] {
      try {
        for (;; ++begun) {
          lockstep::LaunchTrace trace;
          launch_some(plugin, g_count, "traced");
        }
      } catch (const lockstep::Error&) {
        // No trace begins any more.
      }
      for (;;) pause();  // what is used here must not go
    }).detach();
  }
  while (begun < 8) std::this_thread::yield();
  std::exit(0);
}

int idle() { return 0; }

/// A trace in memory, whatever the environment says of rings.
int traced() {
  lockstep::LaunchTrace trace;
  launch_some(FakePlugin(), g_count, "plain");
  std::printf("%zu\n", trace.take().size());
  return 0;
}

std::string ring_path() {
  return std::string(std::getenv("LOCKSTEP_RECORD_DIR")) + "/" + std::to_string(getpid()) +
         ".0.0.ring";
}

/// Overwrites the last record that this thread made, as a wild pointer may.
bool damage_last_record() {
  namespace recorder = lockstep::recorder;
  const int file = open(ring_path().c_str(), O_RDWR);
  void* memory = mmap(nullptr, 1 << 20, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (memory == MAP_FAILED) return false;
  auto* ring = static_cast<recorder::Ring*>(memory);
  recorder::RecordHeader* last = nullptr;
  for (std::uint64_t at = 0; at < ring->head.load(); at += last->size) {
    last = reinterpret_cast<recorder::RecordHeader*>(ring->data() + at);
  }
  if (last == nullptr) return false;
  if (g_count % 2 == 0) {
    last->size = 3;
  } else {
    last->sequence += 1'000'000'000;
  }
  return true;
}

/// Fills a ring that nobody reads any more, several times over, and uses another one too.
void launch_into_a_lost_ring(const FakePlugin& plugin) {
  launch_some(plugin, g_count, "lost");
  std::thread([&] { launch_some(plugin, 10, "healthy"); }).join();
}

int damages_a_ring() {
  const FakePlugin plugin;
  lockstep::LaunchTrace trace;
  launch_some(plugin, 5, "plain");
  if (!damage_last_record()) return 1;
  std::printf("damaged\n");
  std::fflush(stdout);
  launch_into_a_lost_ring(plugin);
  const lockstep::Trace taken = trace.trace();
  std::printf("%zu entries, %d dropped\n", taken.entries.size(),
              static_cast<int>(taken.footer.dropped));
  return 0;
}

int loses_a_ring() {
  const FakePlugin plugin;
  launch_some(plugin, 5, "plain");
  if (unlink(ring_path().c_str()) != 0) return 1;
  std::printf("damaged\n");
  std::fflush(stdout);
  launch_into_a_lost_ring(plugin);
  return 0;
}

/// Until the trace file that is being written says `text`.
void wait_for_file(const char* text) {
  alarm(90);  // it may never say so
  for (;;) {
    std::ifstream file(std::getenv("PROBE_FILE"));
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    if (bytes.find(text) != std::string::npos) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

enum class Pause { kNone, kBeforeWork, kKilledThere };

/// Streams that have events before they have work, and one that never works. The same trace from
/// memory stands beside the file.
int events_first(Pause pause) {
  const FakePlugin plugin;
  const std::uint64_t first = plugin.stream(), idle = plugin.stream(1), second = plugin.stream(2);
  lockstep::LaunchTrace trace;
  const auto save = [&] {
    write_trace(std::string(std::getenv("PROBE_FILE")) + ".memory", trace.trace());
  };
  plugin.launch(first, "k1");
  plugin.event_record(idle);
  plugin.event_wait(second, plugin.event_record(first));
  std::uint64_t timing_start = 0;
  for (std::uint32_t i = 0; i < g_count; ++i) timing_start = plugin.event_record(second);
  plugin.event_wait(idle, timing_start);
  if (pause != Pause::kNone) {
    wait_for_file("\"provisional\":true");
    wait_for_file("\"fakeStreamWaitEvent\",\"event\":1");
  }
  if (pause == Pause::kKilledThere) {
    save();
    raise(SIGKILL);
  }
  plugin.launch(second, "k2");
  plugin.event_record(idle);
  plugin.launch(plugin.stream(), "k3");
  plugin.event_record(second);
  save();
  return 0;
}

/// Waits on a stream before anything runs there.
int waits_first() {
  const FakePlugin plugin;
  const std::uint64_t first = plugin.stream();
  const std::uint64_t second = plugin.stream();
  plugin.launch(first, "a");
  plugin.event_wait(second, plugin.event_record(first));
  plugin.launch(first, "b");
  plugin.launch(second, "c");
  return 0;
}

/// Is there until it is killed, and says when it has recorded.
int stays(const std::function<void()>& change) {
  launch_some(FakePlugin(), g_count, "plain");
  lockstep::record_coverage(R"({"hooks":7,"holes":2})");
  change();
  std::printf("ready\n");
  std::fflush(stdout);
  while (true) pause();
}

/// As daemons do with what they have inherited.
void close_all_files() {
  for (int file = 3; file < 1024; ++file) close(file);
}

int becomes_sleep() {
  launch_some(FakePlugin(), g_count, "plain");
  execlp("sh", "sh", "-c", "echo ready; exec sleep 1000", nullptr);
  return 4;
}

}  // namespace

int main(int argc, char** argv) {
  const std::map<std::string, std::function<int()>> scenarios = {
      {"plain", plain},
      {"exit_from_thread", exit_from_thread},
      {"static_objects", static_objects},
      {"_exit", [] { return quick_end([] { _exit(0); }); }},
      {"abort", [] { return quick_end([] { std::abort(); }); }},
      {"throw", [] { return quick_end([] { throw std::runtime_error("uncaught"); }); }},
      {"kill_late", [] { return quick_end([] { raise(SIGKILL); }); }},
      {"exit",
       [] {
         launch_some(FakePlugin(), g_count, "plain");
         std::exit(0);
         return 1;
       }},
      {"killed", killed},
      {"forks_before_use", forks_before_use},
      {"forks_after_use", forks_after_use},
      {"fork_with_traces", fork_with_traces},
      {"fork_while_rings_come", fork_while_rings_come},
      {"drops_privileges", drops_privileges},
      {"starts_another", starts_another},
      {"execs", execs},
      {"pending", pending},
      {"many_threads", many_threads},
      {"exit_while_tracing", exit_while_tracing},
      {"idle", idle},
      {"traced", traced},
      {"damages_a_ring", damages_a_ring},
      {"loses_a_ring", loses_a_ring},
      {"waits_first", waits_first},
      {"stays", [] { return stays([] {}); }},
      {"stays_without_files", [] { return stays(close_all_files); }},
      {"becomes_sleep", becomes_sleep},
      {"events_first", [] { return events_first(Pause::kNone); }},
      {"events_long_before", [] { return events_first(Pause::kBeforeWork); }},
      {"events_then_killed", [] { return events_first(Pause::kKilledThere); }},
  };
  const auto scenario = scenarios.find(argc > 1 ? argv[1] : "");
  if (scenario == scenarios.end()) {
    std::fprintf(stderr, "probe: no such scenario\n");
    return 2;
  }
  if (argc > 2) g_count = static_cast<std::uint32_t>(std::strtoul(argv[2], nullptr, 10));
  try {
    return scenario->second();
  } catch (const lockstep::Error& error) {
    std::printf("error %d: %s\n", static_cast<int>(error.code()), error.what());
    return 3;
  }
}
