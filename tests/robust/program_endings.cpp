// SPDX-License-Identifier: Apache-2.0
#include <lockstep/lockstep.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <optional>
#include <stdexcept>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "robust/program.h"

namespace lockstep::robust {
namespace {

struct Everything {
  Device device;
  Stream stream, other;
  Event event;
  Buffer<int> buffer, pinned;
  Kernel kernel;
  Graph graph;
  GraphExec exec;
  std::optional<LaunchTrace> trace;

  void make() {
    // Any backend's: the same ends are made on the simulated driver and on a GPU.
    const char* named = std::getenv("LOCKSTEP_ROBUST_DEVICE");
    device = Device::open(named != nullptr ? named : "host");
    stream = device.create_stream();
    other = device.create_stream();
    event = device.create_event();
    buffer = device.allocate<int>(1 << 16);
    pinned = device.allocate_pinned<int>(16);
    kernel = device.compile(kSource, {.kernels = {"add"}}).kernel("add");
    trace.emplace();
    Tracer::begin();
    graph = stream.capture([&](StreamRef& s) { s.launch(kernel, {}, buffer, 1); });
    exec = graph.instantiate();
    stream.fill(buffer, 0);
    enqueue(50);
    stream.record(event);
    other.wait(event);
    other.host_function([] { std::this_thread::sleep_for(std::chrono::milliseconds(5)); });
    other.launch(kernel, {}, buffer, 1);
  }
  void enqueue(int count) const {
    for (int i = 0; i < count; ++i) exec.launch(stream);
  }
};

// Constructed before any backend is loaded, so destroyed after all that a backend has.
Everything g_everything;

/// One call in a process that was forked from one with an open backend.
std::string try_to_work() {
  try {
    g_everything.stream.launch(g_everything.kernel, {}, g_everything.buffer, 1);
    return "worked";
  } catch (const Error& error) {
    return "error " + std::to_string(static_cast<int>(error.code())) + ": " + error.what();
  }
}

/// Forks a child that does `what`, prints what it returns and ends by exit(7).
int run_child(const std::function<std::string()>& what) {
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    std::printf("child: %s\n", what().c_str());
    std::exit(7);
  }
  int status = 0;
  if (waitpid(child, &status, 0) != child) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/// The parent goes on as if nothing had been.
int finish_in_parent(int child_code) {
  const Everything& all = g_everything;
  all.enqueue(50);
  std::vector<int> first(all.buffer.size());
  all.device.synchronize();
  all.stream.copy_and_wait(first, all.buffer);
  std::printf("parent: child ended with %d, value %d\n", child_code, first[0]);
  return 0;
}

int fork_while_launching(bool child_marks) {
  g_everything.make();
  g_everything.device.synchronize();
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&stop] {
      const Stream own = g_everything.device.create_stream();
      const auto value = g_everything.device.allocate<int>(1);
      while (!stop) {
        for (int launch = 0; launch < 20; ++launch) {
          own.launch(g_everything.kernel, {}, value, 1);
        }
        own.synchronize();
      }
    });
  }
  int worst = 0;
  for (int round = 0; round < 20; ++round) {
    const int code = run_child([&] {
      if (child_marks) mark("from the child");
      return try_to_work();
    });
    if (code != 7) worst = code;
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  return finish_in_parent(worst == 0 ? 7 : worst);
}

}  // namespace

int end_with_everything(const Arguments& arguments) {
  g_everything.make();
  std::puts("done");
  std::fflush(stdout);
  const std::map<std::string, std::function<void()>> ends = {
      {"return", [] {}},
      {"exit", [] { std::exit(3); }},
      {"_exit", [] { _exit(4); }},
      {"quick_exit", [] { std::quick_exit(6); }},
      {"abort", [] { std::abort(); }},
      {"throw", [] { throw std::runtime_error("nobody catches this"); }},
      {"throw-in-thread",
       [] { std::thread([] { throw std::runtime_error("nobody catches this"); }).join(); }},
      {"exit-in-thread", [] { std::thread([] { std::exit(5); }).join(); }},
      {"exit-while-others-launch",
       [] {
         std::atomic<bool> begun{false};
         // Everything of its own: globals are destroyed while it runs.
         std::thread([&begun, device = g_everything.device, kernel = g_everything.kernel] {
           const Stream own = device.create_stream();
           const auto value = device.allocate<int>(1);
           try {
             for (int i = 0;; ++i) {
               own.launch(kernel, {}, value, 1);
               begun = true;
               if (i % 64 == 63) own.synchronize();
             }
           } catch (const Error& error) {
             // A driver that shuts down before the process is gone says so, and that is all.
             if (error.code() != ErrorCode::kUnavailable) throw;
             for (;;) pause();
           }
         }).detach();
         while (!begun) std::this_thread::yield();
         std::exit(8);
       }},
      {"exit-in-capture",
       [] {
         g_everything.stream.begin_capture();
         g_everything.stream.launch(g_everything.kernel, {}, g_everything.buffer, 1);
         std::exit(9);
       }},
  };
  ends.at(arguments.at(0))();
  return 0;
}

int fork_at(const Arguments& arguments) {
  const std::string& moment = arguments.at(0);
  if (moment == "before-use") {
    // Listing must leave the process as it was.
    if (list_backends().empty()) return 1;
    const int code = run_child([] {
      g_everything.make();
      g_everything.device.synchronize();
      return try_to_work();
    });
    g_everything.make();
    return finish_in_parent(code);
  }
  if (moment == "after-use") {
    g_everything.make();
    return finish_in_parent(run_child(try_to_work));
  }
  if (moment == "in-capture") {
    g_everything.make();
    g_everything.stream.begin_capture();
    g_everything.stream.launch(g_everything.kernel, {}, g_everything.buffer, 1);
    const int code = run_child(try_to_work);
    const Graph captured = g_everything.stream.end_capture();
    if (captured.node_count() != 1) return 1;
    return finish_in_parent(code);
  }
  return fork_while_launching(moment == "while-launching-marked");
}

}  // namespace lockstep::robust
