// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "facts_fixture.h"

// Scenarios of capture, each with what an NVIDIA driver answers.
namespace cuda_facts {
namespace {

class CudaCaptureScenario : public ::testing::Test {
 protected:
  void TearDown() override {
    EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    for (CUstream stream : {a, b, c}) {
      if (stream != nullptr) {
        EXPECT_EQ(cuStreamDestroy(stream), CUDA_SUCCESS);
      }
    }
    for (CUevent each : {event, second, third}) EXPECT_EQ(cuEventDestroy(each), CUDA_SUCCESS);
  }
  void begin(CUstream stream, CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL) {
    ASSERT_EQ(cuStreamBeginCapture(stream, mode), CUDA_SUCCESS);
    ASSERT_EQ(driver.launch(stream), CUDA_SUCCESS);
  }
  // `to` continues after what `from` has captured.
  void fork(CUstream from, CUstream to) {
    ASSERT_EQ(cuEventRecord(event, from), CUDA_SUCCESS);
    ASSERT_EQ(cuStreamWaitEvent(to, event, 0), CUDA_SUCCESS);
  }
  CUresult end(CUstream stream) {
    graph = nullptr;
    return cuStreamEndCapture(stream, &graph);
  }

  Driver& driver = Driver::get();
  CUstream a = make_stream(), b = make_stream(), c = make_stream();
  CUevent event = make_event(), second = make_event(), third = make_event();
  CUgraph graph = nullptr;
};

TEST_F(CudaCaptureScenario, UnjoinedWorkEndsWith904) {
  begin(a);
  fork(a, b);
  ASSERT_EQ(driver.launch(b), CUDA_SUCCESS);
  EXPECT_EQ(end(a), CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
  EXPECT_EQ(graph, nullptr);
  EXPECT_EQ(status_of(a), 0);
  EXPECT_EQ(status_of(b), 0);
  expect_usable(a);
  expect_usable(b);
}

TEST_F(CudaCaptureScenario, WaitingForAnotherCaptureInvalidatesBoth) {
  begin(a);
  begin(b);
  ASSERT_EQ(cuEventRecord(event, a), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamWaitEvent(b, event, 0), CUDA_ERROR_STREAM_CAPTURE_MERGE);
  EXPECT_EQ(status_of(a), 2);
  EXPECT_EQ(status_of(b), 2);
  EXPECT_EQ(end(a), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  EXPECT_EQ(end(b), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  expect_usable(a);
  expect_usable(b);
}

TEST_F(CudaCaptureScenario, DestroyedForkEndsWith904) {
  begin(a);
  fork(a, b);
  ASSERT_EQ(driver.launch(b), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamDestroy(b), CUDA_SUCCESS);
  b = nullptr;
  EXPECT_EQ(status_of(a), 1);
  EXPECT_EQ(end(a), CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
  expect_usable(a);
}

TEST_F(CudaCaptureScenario, DestroyedOriginEndsTheCapture) {
  begin(a);
  fork(a, b);
  EXPECT_EQ(status_of(b), 1);
  EXPECT_EQ(cuStreamDestroy(a), CUDA_SUCCESS);
  a = nullptr;
  EXPECT_EQ(status_of(b), 0);
  CUdeviceptr address = 0;
  EXPECT_EQ(cuMemAlloc(&address, 64), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFree(address), CUDA_SUCCESS);
  expect_usable(b);
}

TEST_F(CudaCaptureScenario, EndFromAnotherThread) {
  for (const CUstreamCaptureMode mode : kModes) {
    SCOPED_TRACE(mode);
    begin(a, mode);
    CUresult result = CUDA_SUCCESS;
    on_another_thread([&] { result = end(a); });
    const bool relaxed = mode == CU_STREAM_CAPTURE_MODE_RELAXED;
    EXPECT_EQ(result, relaxed ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
    EXPECT_EQ(nodes_text(graph), relaxed ? "1(0)" : "-1()");
    EXPECT_EQ(status_of(a), 0);
    expect_usable(a);
    if (graph != nullptr) {
      EXPECT_EQ(cuGraphDestroy(graph), CUDA_SUCCESS);
    }
  }
}

TEST_F(CudaCaptureScenario, LegacyStreamDoesNotCapture) {
  EXPECT_EQ(cuStreamBeginCapture(nullptr, kModes[0]), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT_EQ(cuStreamBeginCapture(CU_STREAM_LEGACY, kModes[0]),
            CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

TEST_F(CudaCaptureScenario, PerThreadStreamCaptures) {
  begin(CU_STREAM_PER_THREAD);
  EXPECT_EQ(end(CU_STREAM_PER_THREAD), CUDA_SUCCESS);
  EXPECT_EQ(nodes_text(graph), "1(0)");
  EXPECT_EQ(cuGraphDestroy(graph), CUDA_SUCCESS);
}

TEST_F(CudaCaptureScenario, EmptyCaptureIsAGraph) {
  ASSERT_EQ(cuStreamBeginCapture(a, kModes[0]), CUDA_SUCCESS);
  EXPECT_EQ(end(a), CUDA_SUCCESS);
  EXPECT_EQ(nodes_text(graph), "0()");
  CUgraphExec exec = nullptr;
  EXPECT_EQ(cuGraphInstantiateWithFlags(&exec, graph, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuGraphLaunch(exec, a), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamSynchronize(a), CUDA_SUCCESS);
  EXPECT_EQ(cuGraphExecDestroy(exec), CUDA_SUCCESS);
  EXPECT_EQ(cuGraphDestroy(graph), CUDA_SUCCESS);
}

TEST_F(CudaCaptureScenario, WaitJoinsWithoutOwingWork) {
  begin(a);
  fork(a, b);
  EXPECT_EQ(status_of(b), 1);
  EXPECT_EQ(end(a), CUDA_SUCCESS);
  EXPECT_EQ(nodes_text(graph), "1(0)");
  EXPECT_EQ(status_of(b), 0);
  EXPECT_EQ(cuGraphDestroy(graph), CUDA_SUCCESS);
}

TEST_F(CudaCaptureScenario, EventNeverRecordedIsNoWait) {
  EXPECT_EQ(cuStreamWaitEvent(a, event, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuEventQuery(event), CUDA_SUCCESS);
  begin(a);
  EXPECT_EQ(cuStreamWaitEvent(a, event, 0), CUDA_SUCCESS);
  EXPECT_EQ(status_of(a), 1);
  EXPECT_EQ(end(a), CUDA_SUCCESS);
  EXPECT_EQ(nodes_text(graph), "1(0)");
  EXPECT_EQ(cuGraphDestroy(graph), CUDA_SUCCESS);
}

TEST_F(CudaCaptureScenario, ForkOverThreeStreams) {
  begin(a);
  ASSERT_EQ(cuEventRecord(event, a), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamWaitEvent(b, event, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamWaitEvent(c, event, 0), CUDA_SUCCESS);
  unsigned grid = 2;
  for (CUstream stream : {b, c, b, c, a}) ASSERT_EQ(driver.launch(stream, grid++), CUDA_SUCCESS);
  ASSERT_EQ(cuEventRecord(second, b), CUDA_SUCCESS);
  ASSERT_EQ(cuEventRecord(third, c), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamWaitEvent(a, second, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamWaitEvent(a, third, 0), CUDA_SUCCESS);
  ASSERT_EQ(driver.launch(a, grid), CUDA_SUCCESS);
  ASSERT_EQ(end(a), CUDA_SUCCESS);
  unsigned expected = 1;
  for (CUgraphNode node : nodes_of(graph)) {
    CUDA_KERNEL_NODE_PARAMS params{};
    ASSERT_EQ(cuGraphKernelNodeGetParams(node, &params), CUDA_SUCCESS);
    EXPECT_EQ(params.gridDimX, expected++);
    EXPECT_EQ(params.func, driver.saxpy);
    EXPECT_EQ(*static_cast<CUdeviceptr*>(params.kernelParams[1]), driver.x);
  }
  EXPECT_EQ(expected, 8U);
  std::size_t edges = 0;
  EXPECT_EQ(cuGraphGetEdges(graph, nullptr, nullptr, nullptr, &edges), CUDA_SUCCESS);
  EXPECT_EQ(edges, 8U);
  EXPECT_EQ(cuGraphDestroy(graph), CUDA_SUCCESS);
}

TEST_F(CudaCaptureScenario, JoinKeepsRedundantEdges) {
  begin(a);
  fork(a, b);
  ASSERT_EQ(cuStreamWaitEvent(c, event, 0), CUDA_SUCCESS);
  ASSERT_EQ(driver.launch(b), CUDA_SUCCESS);
  ASSERT_EQ(cuEventRecord(second, b), CUDA_SUCCESS);
  // c waits for the first node itself and for one behind it.
  ASSERT_EQ(cuStreamWaitEvent(c, second, 0), CUDA_SUCCESS);
  ASSERT_EQ(driver.launch(c), CUDA_SUCCESS);
  ASSERT_EQ(cuEventRecord(third, c), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamWaitEvent(a, third, 0), CUDA_SUCCESS);
  ASSERT_EQ(end(a), CUDA_SUCCESS);
  std::size_t edges = 0;
  EXPECT_EQ(cuGraphGetEdges(graph, nullptr, nullptr, nullptr, &edges), CUDA_SUCCESS);
  EXPECT_EQ(edges, 3U);
  EXPECT_EQ(cuGraphDestroy(graph), CUDA_SUCCESS);
}

TEST_F(CudaCaptureScenario, CaptureInfoNamesTheNodeJustCaptured) {
  ASSERT_EQ(cuStreamBeginCapture(a, kModes[0]), CUDA_SUCCESS);
  cuuint64_t first_id = 0;
  for (unsigned i = 1; i <= 3; ++i) {
    ASSERT_EQ(driver.launch(a, i), CUDA_SUCCESS);
    CUstreamCaptureStatus status{};
    cuuint64_t id = 0;
    CUgraph capturing = nullptr;
    const CUgraphNode* dependencies = nullptr;
    const CUgraphEdgeData* edges = nullptr;
    std::size_t count = 0;
    ASSERT_EQ(cuStreamGetCaptureInfo(a, &status, &id, &capturing, &dependencies, &edges, &count),
              CUDA_SUCCESS);
    if (i == 1) first_id = id;
    EXPECT_EQ(id, first_id);
    ASSERT_EQ(count, 1U);
    CUDA_KERNEL_NODE_PARAMS params{};
    ASSERT_EQ(cuGraphKernelNodeGetParams(dependencies[0], &params), CUDA_SUCCESS);
    EXPECT_EQ(params.gridDimX, i);
    EXPECT_EQ(nodes_of(capturing).size(), i);
  }
  EXPECT_EQ(end(a), CUDA_SUCCESS);
  EXPECT_EQ(cuGraphDestroy(graph), CUDA_SUCCESS);
}

TEST_F(CudaCaptureScenario, EndOnAStreamThatOnlyJoined) {
  begin(a);
  fork(a, b);
  EXPECT_EQ(end(b), CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
  EXPECT_EQ(status_of(a), 2);
  EXPECT_EQ(end(a), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  expect_usable(a);
  expect_usable(b);
}

TEST_F(CudaCaptureScenario, EventOfAnEndedCapture) {
  begin(a);
  ASSERT_EQ(cuEventRecord(event, a), CUDA_SUCCESS);
  ASSERT_EQ(end(a), CUDA_SUCCESS);
  EXPECT_EQ(cuEventQuery(event), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuEventSynchronize(event), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuStreamWaitEvent(b, event, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuGraphDestroy(graph), CUDA_SUCCESS);
}

TEST_F(CudaCaptureScenario, InvalidatedStream) {
  begin(a);
  ASSERT_EQ(cuEventRecord(event, a), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamQuery(a), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT_EQ(cuStreamBeginCapture(a, kModes[0]), CUDA_ERROR_ILLEGAL_STATE);
  EXPECT_EQ(driver.launch(a), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  EXPECT_EQ(cuLaunchHostFunc(
                a, [](void*) {}, nullptr),
            CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  EXPECT_EQ(cuEventRecord(second, a), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  EXPECT_EQ(cuStreamSynchronize(a), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT_EQ(cuStreamWaitEvent(b, event, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(end(a), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  expect_usable(a);
}

TEST_F(CudaCaptureScenario, ForbiddenLikeAnAllocation) {
  CUdeviceptr address = 0;
  ASSERT_EQ(cuMemAlloc(&address, 64), CUDA_SUCCESS);
  CUmodule module = nullptr;
  ASSERT_EQ(cuModuleLoadData(&module, driver.image.data()), CUDA_SUCCESS);
  const std::function<CUresult()> calls[] = {
      [&] { return cuStreamQuery(b); }, [&] { return cuEventQuery(third); },
      [&] { return cuMemFree(address); }, [&] { return cuModuleUnload(module); }};
  for (const auto& call : calls) {
    begin(a);
    EXPECT_EQ(call(), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    EXPECT_EQ(end(a), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  }
  EXPECT_EQ(cuMemFree(address), CUDA_SUCCESS);
  // A relaxed thread may, and the capture goes on.
  begin(a);
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  ASSERT_EQ(cuThreadExchangeStreamCaptureMode(&mode), CUDA_SUCCESS);
  EXPECT_EQ(cuModuleUnload(module), CUDA_SUCCESS);
  ASSERT_EQ(cuThreadExchangeStreamCaptureMode(&mode), CUDA_SUCCESS);
  EXPECT_EQ(end(a), CUDA_SUCCESS);
}

TEST_F(CudaCaptureScenario, LegacyStreamCannotJoin) {
  begin(a);
  ASSERT_EQ(cuEventRecord(event, a), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamWaitEvent(nullptr, event, 0), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  EXPECT_EQ(end(a), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

TEST_F(CudaCaptureScenario, LegacyStreamBesideABlockingCapture) {
  ASSERT_EQ(cuStreamDestroy(a), CUDA_SUCCESS);
  a = make_stream(CU_STREAM_DEFAULT);
  const std::function<CUresult()> calls[] = {
      [] { return cuStreamSynchronize(nullptr); }, [] { return cuStreamQuery(nullptr); },
      [&] { return cuEventRecord(second, nullptr); },
      [&] { return cuStreamWaitEvent(nullptr, driver.recorded, 0); }};
  for (const auto& call : calls) {
    begin(a);
    EXPECT_EQ(call(), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    EXPECT_EQ(end(a), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  }
}

TEST_F(CudaCaptureScenario, QuestionsAboutACapturingStream) {
  unsigned long long id = 0;
  unsigned flags = 0;
  CUcontext context = nullptr;
  int priority = 0;
  begin(a);
  EXPECT_EQ(cuStreamGetCtx(a, &context), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamGetPriority(a, &priority), CUDA_SUCCESS);
  EXPECT_EQ(status_of(a), 1);
  EXPECT_EQ(cuStreamGetId(a, &id), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT_EQ(status_of(a), 2);
  EXPECT_EQ(end(a), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  begin(a);
  EXPECT_EQ(cuStreamGetFlags(a, &flags), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT_EQ(end(a), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

}  // namespace
}  // namespace cuda_facts
