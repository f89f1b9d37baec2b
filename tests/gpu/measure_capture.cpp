// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <chrono>

#include "measure.h"

// Captures and graphs.
namespace measure {
namespace {

using namespace cuda_facts;  // NOLINT: the vocabulary of these programs

constexpr CUstreamCaptureMode kGlobal = CU_STREAM_CAPTURE_MODE_GLOBAL;

std::size_t edges_of(CUgraph graph) {
  std::size_t count = 0;
  cuGraphGetEdges(graph, nullptr, nullptr, nullptr, &count);
  return count;
}

std::string usable(CUstream stream) {
  const CUresult launched = Driver::get().launch(stream);
  return list(launched, cuStreamSynchronize(stream));
}

std::string unjoined_and_joined() {
  const Driver& driver = Driver::get();
  CUstream a = make_stream(), b = make_stream();
  CUevent forked = make_event(), joined = make_event();
  std::string text;
  for (const bool join : {false, true}) {
    CUgraph graph = nullptr;
    cuStreamBeginCapture(a, kGlobal);
    driver.launch(a);
    cuEventRecord(forked, a);
    cuStreamWaitEvent(b, forked, 0);
    driver.launch(b);
    if (join) {
      cuEventRecord(joined, b);
      cuStreamWaitEvent(a, joined, 0);
    }
    const CUresult ended = cuStreamEndCapture(a, &graph);
    text += join ? "; joined: end " : "unjoined: end ";
    text += list(ended) + ", nodes " + nodes_text(graph);
    if (graph != nullptr) text += ", edges " + list(edges_of(graph));
    text += ", launch and wait after: " + usable(a) + " and " + usable(b);
  }
  return text;
}

std::string merged() {
  const Driver& driver = Driver::get();
  CUstream a = make_stream(), b = make_stream();
  CUevent event = make_event();
  CUgraph graph = nullptr;
  cuStreamBeginCapture(a, kGlobal);
  cuStreamBeginCapture(b, kGlobal);
  driver.launch(a);
  cuEventRecord(event, a);
  const CUresult waited = cuStreamWaitEvent(b, event, 0);
  const CUresult begun = cuStreamBeginCapture(a, kGlobal);
  const CUresult first = cuStreamEndCapture(a, &graph), second = cuStreamEndCapture(b, &graph);
  return "wait " + list(waited) + ", begin on the invalidated stream " + list(begun) + ", ends " +
         list(first, second) + ", usable after: " + usable(a) + " and " + usable(b);
}

std::string legacy_stream() {
  const Driver& driver = Driver::get();
  std::string text;
  for (const unsigned flags : {0U, 1U}) {
    for (const bool launch : {true, false}) {
      CUstream s = make_stream(flags);
      CUgraph graph = nullptr;
      cuStreamBeginCapture(s, kGlobal);
      driver.launch(s);
      const CUresult used = launch ? driver.launch(nullptr) : cuMemsetD8Async(driver.y, 1, 64, 0);
      const CUresult ended = cuStreamEndCapture(s, &graph);
      text += std::string(text.empty() ? "" : "; ") + (flags == 0 ? "blocking" : "non-blocking") +
              (launch ? ", launch " : ", set ") + list(used) + ", end " + list(ended) + ", nodes " +
              nodes_text(graph);
    }
  }
  return text;
}

std::string polling_thread() {
  const Driver& driver = Driver::get();
  CUstream s = make_stream();
  std::atomic<bool> stop{false};
  std::atomic<long> done{0}, pending{0}, refused{0};
  std::thread poller([&] {
    cuCtxSetCurrent(driver.context);
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
    cuThreadExchangeStreamCaptureMode(&mode);
    while (!stop) {
      const CUresult result = cuEventQuery(driver.recorded);
      ++(result == CUDA_SUCCESS ? done : result == CUDA_ERROR_NOT_READY ? pending : refused);
    }
  });
  while (done + pending + refused == 0) std::this_thread::yield();
  int valid = 0;
  for (int round = 0; round < 100; ++round) {
    CUgraph graph = nullptr;
    cuStreamBeginCapture(s, kGlobal);
    for (int i = 0; i < 10; ++i) driver.launch(s);
    if (cuStreamEndCapture(s, &graph) == CUDA_SUCCESS && nodes_of(graph).size() == 10) ++valid;
    if (graph != nullptr) cuGraphDestroy(graph);
  }
  stop = true;
  poller.join();
  return list(valid) + " of 100 captures valid with 10 nodes; queries refused " +
         list(refused.load()) + (done + pending > 0 ? ", answered otherwise" : ", none answered");
}

std::string first_use_in_a_capture() {
  const Driver& driver = Driver::get();
  std::string text;
  for (const CUstreamCaptureMode mode : kModes) {
    CUstream s = make_stream();
    CUmodule module = nullptr;
    CUfunction function = nullptr;
    CUgraph graph = nullptr;
    cuStreamBeginCapture(s, mode);
    const CUresult loaded = cuModuleLoadData(&module, driver.image.data());
    const CUresult found = cuModuleGetFunction(&function, module, "nop");
    const CUresult launched = cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, s, nullptr, nullptr);
    const CUresult ended = cuStreamEndCapture(s, &graph);
    text += std::string(text.empty() ? "" : "; ") + "mode " + list(mode) +
            ": load, find, launch, end " + list(loaded, found, launched, ended) + ", nodes " +
            nodes_text(graph);
  }
  return text;
}

// By the thread that captures or by another one, as it is or relaxed by exchange.
std::string unload_in_a_capture() {
  const Driver& driver = Driver::get();
  std::string text;
  for (const bool elsewhere : {false, true}) {
    for (const bool relaxed : {false, true}) {
      text += std::string(text.empty() ? "" : "; ") +
              (elsewhere ? "another thread" : "its thread") + (relaxed ? ", relaxed" : "");
      for (const CUstreamCaptureMode mode : kModes) {
        CUstream s = make_stream();
        CUmodule module = nullptr;
        CUgraph graph = nullptr;
        cuModuleLoadData(&module, driver.image.data());
        cuStreamBeginCapture(s, mode);
        driver.launch(s);
        CUresult unloaded = CUDA_ERROR_UNKNOWN;
        const auto unload = [&] {
          cuCtxSetCurrent(driver.context);
          CUstreamCaptureMode exchanged = CU_STREAM_CAPTURE_MODE_RELAXED;
          if (relaxed) cuThreadExchangeStreamCaptureMode(&exchanged);
          unloaded = cuModuleUnload(module);
          if (relaxed) cuThreadExchangeStreamCaptureMode(&exchanged);
        };
        if (elsewhere) {
          std::thread(unload).join();
        } else {
          unload();
        }
        text += ", " + list(unloaded) + "/" + list(cuStreamEndCapture(s, &graph));
      }
    }
  }
  return text;
}

std::string host_function_calls() {
  const Driver& driver = Driver::get();
  CUstream s = make_stream();
  std::atomic<int> calls{0};
  CUgraph graph = capture(s, [&] {
    driver.launch(s);
    cuLaunchHostFunc(
        s, [](void* seen) { ++*static_cast<std::atomic<int>*>(seen); }, &calls);
    driver.launch(s);
  });
  const int at_capture = calls;
  CUgraphExec exec = nullptr;
  cuGraphInstantiateWithFlags(&exec, graph, 0);
  for (int i = 0; i < 5; ++i) cuGraphLaunch(exec, s);
  cuStreamSynchronize(s);
  return list(at_capture) + " after the capture, " + list(calls.load()) + " after 5 replays";
}

std::string update_codes() {
  const Driver& driver = Driver::get();
  CUstream s = make_stream();
  const auto chain = [&](int count, CUfunction function) {
    CUgraph graph = nullptr;
    cuGraphCreate(&graph, 0);
    CUgraphNode last = nullptr;
    for (int i = 0; i < count; ++i) last = driver.add_nop(graph, last, function);
    return graph;
  };
  CUgraphExec exec = nullptr;
  cuGraphInstantiateWithFlags(&exec, chain(3, driver.saxpy), 0);
  std::string text;
  for (const auto& [name, graph] :
       {std::pair{"same", chain(3, driver.saxpy)}, std::pair{"a node more", chain(4, driver.saxpy)},
        std::pair{"another function", chain(3, driver.nop)}}) {
    CUgraphExecUpdateResultInfo info{};
    const CUresult updated = cuGraphExecUpdate(exec, graph, &info);
    const CUresult launched = cuGraphLaunch(exec, s);
    text += std::string(text.empty() ? "" : "; ") + name + ": " + list(updated) + " (result " +
            list(info.result) + "), launch after it " + list(launched);
  }
  cuStreamSynchronize(s);
  return text;
}

std::string hanging_graph() {
  Driver::get();
  CUstream s = make_stream();
  static std::atomic<bool> never{false};
  CUgraph graph = capture(s, [&] {
    cuLaunchHostFunc(
        s,
        [](void*) {
          while (!never) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        },
        nullptr);
  });
  CUgraphExec exec = nullptr;
  cuGraphInstantiateWithFlags(&exec, graph, 0);
  const CUresult launched = cuGraphLaunch(exec, s);
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  return "launch " + list(launched) + ", query after 200 ms " + list(cuStreamQuery(s)) +
         ", the process ends by _exit";
}

std::string memory_of_captures() {
  Driver::get();
  CUstream s = make_stream();
  std::size_t after_two = 0, after_twenty = 0, total = 0;
  std::string nodes;
  for (int round = 1; round <= 20; ++round) {
    CUgraph graph = capture(s, [&] {
      CUdeviceptr scratch = 0;
      cuMemAllocAsync(&scratch, 32U << 20, s);
      cuMemsetD8Async(scratch, 0, 32U << 20, s);
      cuMemFreeAsync(scratch, s);
    });
    CUgraphExec exec = nullptr;
    cuGraphInstantiateWithFlags(&exec, graph, 0);
    cuGraphLaunch(exec, s);
    cuStreamSynchronize(s);
    nodes = nodes_text(graph);
    cuGraphExecDestroy(exec);
    cuGraphDestroy(graph);
    if (round == 2) cuMemGetInfo(&after_two, &total);
    if (round == 20) cuMemGetInfo(&after_twenty, &total);
  }
  const auto grown = static_cast<long long>(after_two) - static_cast<long long>(after_twenty);
  return "nodes " + nodes + "; bytes taken between capture 2 and 20: " + list(grown);
}

}  // namespace

std::vector<Question> capture_questions() {
  return {
      {"CAP-01", "work forked, not joined; then joined", unjoined_and_joined},
      {"CAP-05", "one capture waits for another's event", merged},
      {"CAP-07", "the legacy stream used while another captures", legacy_stream},
      {"CAP-10", "an event polled by a thread that exchanged its mode", polling_thread},
      {"CAP-14", "module loaded and first used inside a capture", first_use_in_a_capture},
      {"CAP-14", "a module unloaded while a stream captures, its code and that of the end, by mode",
       unload_in_a_capture},
      {"CAP-17", "calls of a captured host function", host_function_calls},
      {"REP-06", "a capture that allocates and frees 32 MiB, 20 times", memory_of_captures},
      {"REP-21", "update of an executable of 3 kernels", update_codes},
      {"REP-23", "a graph that never ends", hanging_graph},
  };
}

}  // namespace measure
