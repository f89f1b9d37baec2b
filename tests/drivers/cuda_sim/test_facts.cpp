// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "facts_fixture.h"

// Every row of facts.txt: the same call in the same situation gets the same answer.
namespace cuda_facts {
namespace {

struct Row {
  std::string call;
  std::vector<std::string> results, statuses, ends, nodes;  // by mode
};

std::string trimmed(const std::string& text) {
  const auto begin = text.find_first_not_of(' ');
  const auto end = text.find_last_not_of(' ');
  return begin == text.npos ? "" : text.substr(begin, end - begin + 1);
}

std::vector<std::string> split(const std::string& text, const std::string& by) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  for (std::size_t end = 0; end != text.npos; begin = end + by.size()) {
    end = text.find(by, begin);
    parts.push_back(trimmed(text.substr(begin, end - begin)));
  }
  return parts;
}

std::vector<Row> read_rows(const std::string& section) {
  // Named where the program runs on another machine than it was built on.
  const char* named = std::getenv("LOCKSTEP_CUDA_FACTS");
  const std::string path = named != nullptr ? named : CUDA_FACTS_FILE;
  std::ifstream file(path);
  EXPECT_TRUE(file) << path;
  std::vector<Row> rows;
  bool wanted = false;
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("## ", 0) == 0) wanted = line == "## " + section;
    if (!wanted || line.rfind("| ", 0) != 0) continue;
    const std::vector<std::string> cells = split(line, "|");
    EXPECT_EQ(cells.size(), 9U) << line;
    rows.push_back({cells.at(1),
                    {cells.at(2), cells.at(3), cells.at(4)},
                    split(cells.at(5), "/"),
                    split(cells.at(6), "/"),
                    split(cells.at(7), " / ")});
  }
  return rows;
}

// What a row does: gets the capturing stream and gives the result of the call in question.
using Action = std::function<int(Driver&, CUstream)>;

// Made inside of rows, destroyed after them.
std::vector<CUstream> g_streams;
CUstream another_stream() { return g_streams.emplace_back(make_stream()); }

void CUDA_CB count_one(void* counter) { ++*static_cast<int*>(counter); }
void CUDA_CB count_callback(CUstream, CUresult, void* counter) { ++*static_cast<int*>(counter); }
int g_counter = 0;

int in_thread(const std::function<int()>& body) {
  int result = -1;
  on_another_thread([&] { result = body(); });
  return result;
}

int allocate() {
  CUdeviceptr address = 0;
  const CUresult result = cuMemAlloc(&address, 4096);
  if (result == CUDA_SUCCESS) {
    // Freeing is as illegal as allocating; what is over is freed by the thread that may.
    auto relaxed = CU_STREAM_CAPTURE_MODE_RELAXED;
    cuThreadExchangeStreamCaptureMode(&relaxed);
    EXPECT_EQ(cuMemFree(address), CUDA_SUCCESS);
    cuThreadExchangeStreamCaptureMode(&relaxed);
  }
  return result;
}

int register_memory(Driver& d) {
  // A page of the big buffer, on a page boundary.
  auto address =
      (reinterpret_cast<std::uintptr_t>(d.pageable.data()) + 8191) & ~std::uintptr_t{4095};
  const CUresult result = cuMemHostRegister(reinterpret_cast<void*>(address), 8192, 0);
  if (result == CUDA_SUCCESS) {
    EXPECT_EQ(cuMemHostUnregister(reinterpret_cast<void*>(address)), CUDA_SUCCESS);
  }
  return result;
}

std::map<std::string, Action> memory_actions() {
  return {
      {"cuMemAlloc", [](Driver&, CUstream) { return allocate(); }},
      {"cuMemHostAlloc",
       [](Driver&, CUstream) {
         void* pointer = nullptr;
         const int result = cuMemHostAlloc(&pointer, 4096, 0);
         if (result == 0) {
           EXPECT_EQ(cuMemFreeHost(pointer), CUDA_SUCCESS);
         }
         return result;
       }},
      {"cuMemHostRegister", [](Driver& d, CUstream) { return register_memory(d); }},
      {"cuMemGetInfo",
       [](Driver&, CUstream) {
         std::size_t free = 0, total = 0;
         return int{cuMemGetInfo(&free, &total)};
       }},
      {"cuMemcpyHtoD (sync, pageable)",
       [](Driver& d, CUstream) { return int{cuMemcpyHtoD(d.x, d.pageable.data(), 64)}; }},
      {"cuMemcpyDtoH (sync)",
       [](Driver& d, CUstream) { return int{cuMemcpyDtoH(d.pageable.data(), d.x, 64)}; }},
      {"cuMemcpyDtoD (sync)", [](Driver& d, CUstream) { return int{cuMemcpyDtoD(d.x, d.y, 64)}; }},
      {"cuMemsetD8 (sync)", [](Driver& d, CUstream) { return int{cuMemsetD8(d.x, 0, 64)}; }},
      {"cuMemcpyHtoDAsync pageable on s",
       [](Driver& d, CUstream s) { return int{cuMemcpyHtoDAsync(d.x, d.pageable.data(), 64, s)}; }},
      {"cuMemcpyHtoDAsync pinned on s",
       [](Driver& d, CUstream s) { return int{cuMemcpyHtoDAsync(d.x, d.pinned, 64, s)}; }},
      {"cuMemcpyDtoHAsync pageable on s",
       [](Driver& d, CUstream s) { return int{cuMemcpyDtoHAsync(d.pageable.data(), d.x, 64, s)}; }},
      {"cuMemcpyHtoDAsync 0 bytes on s",
       [](Driver& d, CUstream s) { return int{cuMemcpyHtoDAsync(d.x, d.pinned, 0, s)}; }},
      {"cuMemsetD8Async 0 bytes on s",
       [](Driver& d, CUstream s) { return int{cuMemsetD8Async(d.x, 0, 0, s)}; }},
      {"cuMemAllocAsync(s) + FreeAsync(s)",
       [](Driver&, CUstream s) {
         CUdeviceptr address = 0;
         const CUresult result = cuMemAllocAsync(&address, 4096, s);
         return int{result != CUDA_SUCCESS ? result : cuMemFreeAsync(address, s)};
       }},
      {"cuMemAllocAsync(s) without free",
       [](Driver&, CUstream s) {
         CUdeviceptr address = 0;
         return int{cuMemAllocAsync(&address, 4096, s)};
       }},
      {"cuMemFreeAsync(s) of earlier allocation",
       [](Driver& d, CUstream s) { return int{cuMemFreeAsync(d.allocated_in_order, s)}; }},
      {"cuMemcpyPeerAsync same context",
       [](Driver& d, CUstream s) {
         return int{cuMemcpyPeerAsync(d.x, d.context, d.y, d.context, 64, s)};
       }},
      {"cuMemcpy2DAsync",
       [](Driver& d, CUstream s) {
         CUDA_MEMCPY2D copy{};
         copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
         copy.srcDevice = d.x;
         copy.dstDevice = d.y;
         copy.srcPitch = copy.dstPitch = 64;
         copy.WidthInBytes = 32;
         copy.Height = 4;
         return int{cuMemcpy2DAsync(&copy, s)};
       }},
      {"cuPointerGetAttribute",
       [](Driver& d, CUstream) {
         CUcontext context = nullptr;
         return int{cuPointerGetAttribute(&context, CU_POINTER_ATTRIBUTE_CONTEXT, d.x)};
       }},
      {"cuMemPoolTrimTo",
       [](Driver& d, CUstream) {
         CUmemoryPool pool = nullptr;
         cuDeviceGetDefaultMemPool(&pool, d.device);
         return int{cuMemPoolTrimTo(pool, 0)};
       }},
      {"cuStreamWriteValue32",
       [](Driver& d, CUstream s) { return int{cuStreamWriteValue32(s, d.x, 1, 0)}; }},
      {"other thread: cuMemAlloc", [](Driver&, CUstream) { return in_thread(allocate); }},
      {"other thread: cuMemcpyHtoD sync",
       [](Driver& d, CUstream) {
         return in_thread([&] { return int{cuMemcpyHtoD(d.y, d.pageable.data(), 64)}; });
       }},
      {"other thread, RELAXED exchange: cuMemAlloc",
       [](Driver&, CUstream) {
         return in_thread([] {
           auto mode = CU_STREAM_CAPTURE_MODE_RELAXED;
           cuThreadExchangeStreamCaptureMode(&mode);
           return allocate();
         });
       }},
  };
}

std::map<std::string, Action> stream_actions() {
  return {
      {"cuStreamSynchronize(s)", [](Driver&, CUstream s) { return int{cuStreamSynchronize(s)}; }},
      {"cuStreamQuery(s)", [](Driver&, CUstream s) { return int{cuStreamQuery(s)}; }},
      {"cuCtxSynchronize", [](Driver&, CUstream) { return int{cuCtxSynchronize()}; }},
      {"cuStreamSynchronize(other)",
       [](Driver&, CUstream) { return int{cuStreamSynchronize(another_stream())}; }},
      {"cuEventRecord+cuEventQuery(captured)",
       [](Driver& d, CUstream s) {
         cuEventRecord(d.captured, s);
         return int{cuEventQuery(d.captured)};
       }},
      {"cuEventRecord+cuEventSynchronize(captured)",
       [](Driver& d, CUstream s) {
         cuEventRecord(d.captured, s);
         return int{cuEventSynchronize(d.captured)};
       }},
      {"cuEventQuery(event recorded before)",
       [](Driver& d, CUstream) { return int{cuEventQuery(d.recorded)}; }},
      {"cuEventSynchronize(event recorded before)",
       [](Driver& d, CUstream) { return int{cuEventSynchronize(d.recorded)}; }},
      {"cuStreamWaitEvent(s, event recorded before)",
       [](Driver& d, CUstream s) { return int{cuStreamWaitEvent(s, d.recorded, 0)}; }},
      {"cuStreamWaitEvent(s, ..., EXTERNAL)",
       [](Driver& d, CUstream s) {
         return int{cuStreamWaitEvent(s, d.recorded, CU_EVENT_WAIT_EXTERNAL)};
       }},
      {"cuEventRecordWithFlags(EXTERNAL)",
       [](Driver& d, CUstream s) {
         return int{cuEventRecordWithFlags(d.captured, s, CU_EVENT_RECORD_EXTERNAL)};
       }},
      {"cuEventCreate",
       [](Driver&, CUstream) {
         CUevent event = nullptr;
         const int result = cuEventCreate(&event, 0);
         cuEventDestroy(event);
         return result;
       }},
      {"cuLaunchHostFunc",
       [](Driver&, CUstream s) { return int{cuLaunchHostFunc(s, count_one, &g_counter)}; }},
      {"cuStreamAddCallback",
       [](Driver&, CUstream s) {
         return int{cuStreamAddCallback(s, count_callback, &g_counter, 0)};
       }},
      {"cuStreamCreate",
       [](Driver&, CUstream) {
         return int{cuStreamCreate(&g_streams.emplace_back(), CU_STREAM_NON_BLOCKING)};
       }},
      {"cuStreamDestroy(other idle)",
       [](Driver&, CUstream) { return int{cuStreamDestroy(make_stream())}; }},
      {"cuMemsetD8Async on legacy stream",
       [](Driver& d, CUstream) { return int{cuMemsetD8Async(d.x, 0, 64, nullptr)}; }},
      {"cuStreamIsCapturing(legacy)",
       [](Driver&, CUstream) {
         CUstreamCaptureStatus status{};
         return int{cuStreamIsCapturing(nullptr, &status)};
       }},
      {"cuStreamBeginCapture again",
       [](Driver&, CUstream s) {
         return int{cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL)};
       }},
      {"cuStreamEndCapture(other stream)",
       [](Driver&, CUstream) {
         CUgraph graph = nullptr;
         return int{cuStreamEndCapture(another_stream(), &graph)};
       }},
      {"cuGraphLaunch(exec, s)",
       [](Driver& d, CUstream s) { return int{cuGraphLaunch(d.other_exec, s)}; }},
      {"cuGraphInstantiate(other graph)",
       [](Driver&, CUstream) {
         CUgraph graph = nullptr;
         CUgraphExec exec = nullptr;
         cuGraphCreate(&graph, 0);
         const int result = cuGraphInstantiateWithFlags(&exec, graph, 0);
         if (result == 0) {
           EXPECT_EQ(cuGraphExecDestroy(exec), CUDA_SUCCESS);
         }
         EXPECT_EQ(cuGraphDestroy(graph), CUDA_SUCCESS);
         return result;
       }},
      {"other thread: cuStreamSynchronize(other)",
       [](Driver&, CUstream) {
         return in_thread([] { return int{cuStreamSynchronize(another_stream())}; });
       }},
      {"other thread: cuEventQuery(before)",
       [](Driver& d, CUstream) {
         return in_thread([&] { return int{cuEventQuery(d.recorded)}; });
       }},
      {"other thread: cuCtxSynchronize",
       [](Driver&, CUstream) { return in_thread([] { return int{cuCtxSynchronize()}; }); }},
  };
}

std::map<std::string, Action> launch_actions() {
  return {
      {"cuModuleLoadData",
       [](Driver& d, CUstream) {
         CUmodule module = nullptr;
         return int{cuModuleLoadData(&module, d.image.data())};
       }},
      {"cuModuleLoadData + GetFunction + launch",
       [](Driver& d, CUstream s) {
         CUmodule module = nullptr;
         CUfunction function = nullptr;
         EXPECT_EQ(cuModuleLoadData(&module, d.image.data()), CUDA_SUCCESS);
         EXPECT_EQ(cuModuleGetFunction(&function, module, "nop"), CUDA_SUCCESS);
         return int{cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, s, nullptr, nullptr)};
       }},
      {"cuFuncSetAttribute(max dynamic smem)",
       [](Driver& d, CUstream) {
         return int{
             cuFuncSetAttribute(d.saxpy, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 65536)};
       }},
      {"launch on legacy stream", [](Driver& d, CUstream) { return int{d.launch(nullptr)}; }},
      {"launch on per-thread stream",
       [](Driver& d, CUstream) { return int{d.launch(CU_STREAM_PER_THREAD)}; }},
      {"launch on other non-blocking stream",
       [](Driver& d, CUstream) { return int{d.launch(another_stream())}; }},
      {"cuLaunchCooperativeKernel",
       [](Driver& d, CUstream s) {
         return int{cuLaunchCooperativeKernel(d.nop, 1, 1, 1, 32, 1, 1, 0, s, nullptr)};
       }},
      {"other thread: launch on s",
       [](Driver& d, CUstream s) { return in_thread([&] { return int{d.launch(s)}; }); }},
  };
}

std::map<std::string, Action> actions() {
  std::map<std::string, Action> all = memory_actions();
  all.merge(stream_actions());
  all.merge(launch_actions());
  return all;
}

void check_row(const Row& row, const Action& action, unsigned stream_flags) {
  Driver& driver = Driver::get();
  for (std::size_t m = 0; m < std::size(kModes); ++m) {
    SCOPED_TRACE(row.call + ", mode " + std::to_string(m));
    CUstream s = make_stream(stream_flags);
    ASSERT_EQ(cuStreamBeginCapture(s, kModes[m]), CUDA_SUCCESS);
    ASSERT_EQ(driver.launch(s), CUDA_SUCCESS);
    EXPECT_EQ(std::to_string(action(driver, s)), row.results.at(m)) << "the call";
    EXPECT_EQ(std::to_string(status_of(s)), row.statuses.at(m)) << "status after it";
    CUgraph graph = nullptr;
    EXPECT_EQ(std::to_string(cuStreamEndCapture(s, &graph)), row.ends.at(m)) << "EndCapture";
    EXPECT_EQ(nodes_text(graph), row.nodes.at(m)) << "nodes";
    expect_usable(s);
    EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    if (graph != nullptr) {
      EXPECT_EQ(cuGraphDestroy(graph), CUDA_SUCCESS);
    }
    EXPECT_EQ(cuStreamDestroy(s), CUDA_SUCCESS);
    for (CUstream other : g_streams) EXPECT_EQ(cuStreamDestroy(other), CUDA_SUCCESS);
    g_streams.clear();
  }
}

void check_table(const std::string& section, std::size_t expected_rows, unsigned stream_flags) {
  const auto all = actions();
  const std::vector<Row> rows = read_rows(section);
  EXPECT_EQ(rows.size(), expected_rows);
  for (const Row& row : rows) {
    const auto action = all.find(row.call);
    if (action == all.end()) {
      ADD_FAILURE() << "nothing is done for row " << row.call;
    } else {
      check_row(row, action->second, stream_flags);
    }
  }
}

TEST(CudaFacts, CallsWhileANonBlockingStreamCaptures) {
  check_table("non-blocking", 57, CU_STREAM_NON_BLOCKING);
}
TEST(CudaFacts, CallsWhileABlockingStreamCaptures) {
  check_table("blocking", 22, CU_STREAM_DEFAULT);
}
TEST(CudaFacts, EveryActionHasARow) {
  std::set<std::string> named;
  for (const char* section : {"non-blocking", "blocking"}) {
    for (const Row& row : read_rows(section)) named.insert(row.call);
  }
  for (const auto& [call, action] : actions()) EXPECT_TRUE(named.count(call)) << call;
}

}  // namespace
}  // namespace cuda_facts
