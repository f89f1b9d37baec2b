// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cuda.h>
#include <functional>
#include <gtest/gtest.h>
#include <string>
#include <thread>
#include <vector>

// What the tests of facts share: one context with a module, memory and handles made before any
// capture. They call the driver that they are linked to, whichever the loader finds: the simulated
// one in the build tree, a real one where LD_LIBRARY_PATH says so.
namespace cuda_facts {

inline constexpr CUstreamCaptureMode kModes[] = {CU_STREAM_CAPTURE_MODE_GLOBAL,
                                                 CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
                                                 CU_STREAM_CAPTURE_MODE_RELAXED};

struct Driver {
  static Driver& get();

  CUdevice device = 0;
  CUcontext context = nullptr;
  std::vector<char> image;
  CUmodule module = nullptr;
  CUfunction saxpy = nullptr;
  CUfunction nop = nullptr;
  static constexpr std::size_t kBytes = 1 << 20;
  CUdeviceptr x = 0;
  CUdeviceptr y = 0;
  float* pinned = nullptr;
  std::vector<char> pageable;
  CUevent recorded = nullptr;  // before any capture
  CUevent captured = nullptr;  // for records inside of captures
  CUdeviceptr allocated_in_order = 0;
  CUgraph other_graph = nullptr;
  CUgraphExec other_exec = nullptr;

  CUresult launch(CUstream stream, unsigned grid = 1) const;
  CUgraphNode add_nop(CUgraph graph, CUgraphNode after, CUfunction function) const;

 private:
  Driver();
};

CUstream make_stream(unsigned flags = CU_STREAM_NON_BLOCKING);
CUevent make_event();
int status_of(CUstream stream);
// Runs `body` on a thread of its own with the context current.
void on_another_thread(const std::function<void()>& body);
// "2(0 1)", or "-1()" without a graph.
std::string nodes_text(CUgraph graph);
std::vector<CUgraphNode> nodes_of(CUgraph graph);
// A launch and a wait succeed.
void expect_usable(CUstream stream);
// Captures `body` on the stream; null when the capture fails.
CUgraph capture(CUstream stream, const std::function<void()>& body);

}  // namespace cuda_facts
