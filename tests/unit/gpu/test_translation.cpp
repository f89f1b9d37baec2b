// SPDX-License-Identifier: Apache-2.0
// Numbers and structures of the driver against ours.
#include <cstring>
#include <gtest/gtest.h>

#include "backends/cuda/driver.h"
#include "backends/gpu/error.h"
#include "backends/gpu/launch.h"

namespace {

using namespace lockstep;  // NOLINT: the two layers are what is tested

TEST(GpuErrors, CodesSayWhatAProgramCanDo) {
  const std::pair<int, lockstep_code> expected[] = {
      {CUDA_SUCCESS, LOCKSTEP_OK},
      {CUDA_ERROR_INVALID_VALUE, LOCKSTEP_E_INVALID_ARGUMENT},
      {CUDA_ERROR_OUT_OF_MEMORY, LOCKSTEP_E_OUT_OF_MEMORY},
      {CUDA_ERROR_DEINITIALIZED, LOCKSTEP_E_UNAVAILABLE},
      {CUDA_ERROR_NO_DEVICE, LOCKSTEP_E_UNAVAILABLE},
      {CUDA_ERROR_INVALID_IMAGE, LOCKSTEP_E_INVALID_ARGUMENT},
      {CUDA_ERROR_NO_BINARY_FOR_GPU, LOCKSTEP_E_INVALID_ARGUMENT},
      {CUDA_ERROR_INVALID_PTX, LOCKSTEP_E_COMPILATION_FAILED},
      {CUDA_ERROR_NVLINK_UNCORRECTABLE, LOCKSTEP_E_DEVICE_LOST},
      {CUDA_ERROR_ECC_UNCORRECTABLE, LOCKSTEP_E_DEVICE_LOST},
      {CUDA_ERROR_NOT_FOUND, LOCKSTEP_E_NOT_FOUND},
      {CUDA_ERROR_NOT_READY, LOCKSTEP_E_NOT_READY},
      {CUDA_ERROR_ILLEGAL_ADDRESS, LOCKSTEP_E_LAUNCH_FAILED},
      {CUDA_ERROR_ASSERT, LOCKSTEP_E_LAUNCH_FAILED},
      {CUDA_ERROR_LAUNCH_FAILED, LOCKSTEP_E_LAUNCH_FAILED},
      {CUDA_ERROR_LAUNCH_TIMEOUT, LOCKSTEP_E_TIMEOUT},
      {CUDA_ERROR_NOT_SUPPORTED, LOCKSTEP_E_NOT_SUPPORTED},
      {CUDA_ERROR_UNKNOWN, LOCKSTEP_E_INTERNAL},
  };
  for (const auto& [native, code] : expected) EXPECT_EQ(gpu::code_of(native), code) << native;
}

TEST(GpuErrors, EveryCaptureErrorHasItsRule) {
  const std::pair<int, lockstep_capture_rule> expected[] = {
      {CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, LOCKSTEP_CAPTURE_RULE_UNSUPPORTED},
      {CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, LOCKSTEP_CAPTURE_RULE_INVALIDATED},
      {CUDA_ERROR_STREAM_CAPTURE_MERGE, LOCKSTEP_CAPTURE_RULE_MERGE},
      {CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, LOCKSTEP_CAPTURE_RULE_UNMATCHED},
      {CUDA_ERROR_STREAM_CAPTURE_UNJOINED, LOCKSTEP_CAPTURE_RULE_UNJOINED},
      {CUDA_ERROR_STREAM_CAPTURE_ISOLATION, LOCKSTEP_CAPTURE_RULE_ISOLATION},
      {CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, LOCKSTEP_CAPTURE_RULE_IMPLICIT},
      {CUDA_ERROR_CAPTURED_EVENT, LOCKSTEP_CAPTURE_RULE_CAPTURED_EVENT},
      {CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, LOCKSTEP_CAPTURE_RULE_WRONG_THREAD},
  };
  for (const auto& [native, rule] : expected) {
    EXPECT_EQ(gpu::rule_of(native), rule) << native;
    EXPECT_STRNE(gpu::explain_rule(rule), "") << native;
    EXPECT_EQ(gpu::code_of(native), native == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
                                        ? LOCKSTEP_E_CAPTURE_INVALIDATED
                                        : LOCKSTEP_E_ILLEGAL_DURING_CAPTURE);
  }
  EXPECT_EQ(gpu::rule_of(CUDA_ERROR_TIMEOUT), LOCKSTEP_CAPTURE_RULE_NONE);
  EXPECT_EQ(gpu::rule_of(CUDA_SUCCESS), LOCKSTEP_CAPTURE_RULE_NONE);
}

TEST(GpuErrors, LongTextsAreCutBetweenCharacters) {
  lockstep_error error;
  std::memset(&error, 0, sizeof error);
  error.struct_size = sizeof error;
  std::string text(1022, 'x');
  text += "é and more";
  gpu::fail(&error, LOCKSTEP_E_INTERNAL, "call", text);
  EXPECT_EQ(std::string(error.message), std::string(1022, 'x'));
  char log[8];
  error.log = log;
  error.log_capacity = sizeof log;
  gpu::give_log(&error, "0123456789");
  EXPECT_STREQ(log, "0123456");
  EXPECT_EQ(error.log_size, 10U);
}

TEST(GpuErrors, AnOlderCallersShorterRecordIsLeftAlone) {
  lockstep_error error;
  std::memset(&error, 0, sizeof error);
  error.struct_size = 16;
  EXPECT_EQ(gpu::fail(&error, LOCKSTEP_E_INTERNAL, "call", "text"), LOCKSTEP_E_INTERNAL);
  EXPECT_EQ(error.message[0], '\0');
  EXPECT_EQ(gpu::fail(nullptr, LOCKSTEP_E_NOT_FOUND, "", ""), LOCKSTEP_E_NOT_FOUND);
}

TEST(CudaGraphs, NodeKinds) {
  EXPECT_EQ(cuda::node_kind(CU_GRAPH_NODE_TYPE_KERNEL), LOCKSTEP_NODE_KERNEL);
  EXPECT_EQ(cuda::node_kind(CU_GRAPH_NODE_TYPE_MEMCPY), LOCKSTEP_NODE_COPY);
  EXPECT_EQ(cuda::node_kind(CU_GRAPH_NODE_TYPE_MEMSET), LOCKSTEP_NODE_SET);
  EXPECT_EQ(cuda::node_kind(CU_GRAPH_NODE_TYPE_HOST), LOCKSTEP_NODE_HOST);
  EXPECT_EQ(cuda::node_kind(CU_GRAPH_NODE_TYPE_GRAPH), LOCKSTEP_NODE_CHILD_GRAPH);
  EXPECT_EQ(cuda::node_kind(CU_GRAPH_NODE_TYPE_EMPTY), LOCKSTEP_NODE_EMPTY);
  EXPECT_EQ(cuda::node_kind(CU_GRAPH_NODE_TYPE_WAIT_EVENT), LOCKSTEP_NODE_EVENT_WAIT);
  EXPECT_EQ(cuda::node_kind(CU_GRAPH_NODE_TYPE_EVENT_RECORD), LOCKSTEP_NODE_EVENT_RECORD);
  EXPECT_EQ(cuda::node_kind(CU_GRAPH_NODE_TYPE_MEM_ALLOC), LOCKSTEP_NODE_ALLOC);
  EXPECT_EQ(cuda::node_kind(CU_GRAPH_NODE_TYPE_MEM_FREE), LOCKSTEP_NODE_FREE);
  EXPECT_EQ(cuda::node_kind(CU_GRAPH_NODE_TYPE_BATCH_MEM_OP), LOCKSTEP_NODE_OTHER);
  EXPECT_STREQ(cuda::node_kind_name(CU_GRAPH_NODE_TYPE_BATCH_MEM_OP), "batch_mem_op");
}

TEST(CudaGraphs, UpdateOutcomes) {
  EXPECT_EQ(cuda::update_outcome(CU_GRAPH_EXEC_UPDATE_SUCCESS), LOCKSTEP_UPDATE_DONE);
  EXPECT_EQ(cuda::update_outcome(CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED),
            LOCKSTEP_UPDATE_TOPOLOGY_CHANGED);
  EXPECT_EQ(cuda::update_outcome(CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED),
            LOCKSTEP_UPDATE_NODE_TYPE_CHANGED);
  EXPECT_EQ(cuda::update_outcome(CU_GRAPH_EXEC_UPDATE_ERROR_FUNCTION_CHANGED),
            LOCKSTEP_UPDATE_FUNCTION_CHANGED);
  EXPECT_EQ(cuda::update_outcome(CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED),
            LOCKSTEP_UPDATE_PARAMETERS_CHANGED);
  EXPECT_EQ(cuda::update_outcome(CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED),
            LOCKSTEP_UPDATE_NOT_SUPPORTED);
}

TEST(CudaGraphs, CopiesSurviveTheDriversStructure) {
  gpu::Copy copy;
  copy.source = 0x7f0000001000;
  copy.destination = 0x7f1000002000;
  copy.source_side = gpu::Side::kHost;
  copy.destination_side = gpu::Side::kDevice;
  copy.width = 96;
  copy.height = 5;
  copy.depth = 3;
  copy.source_pitch = 128;
  copy.source_slice_pitch = 128 * 7;
  copy.destination_pitch = 512;
  copy.destination_slice_pitch = 512 * 5;
  const CUDA_MEMCPY3D native = cuda::to_memcpy3d(copy);
  EXPECT_EQ(native.srcHeight, 7U);
  EXPECT_EQ(native.dstHeight, 5U);
  const gpu::Copy back = cuda::from_memcpy3d(native);
  EXPECT_EQ(back.source, copy.source);
  EXPECT_EQ(back.destination, copy.destination);
  EXPECT_EQ(back.source_side, copy.source_side);
  EXPECT_EQ(back.destination_side, copy.destination_side);
  EXPECT_EQ(back.width, 96U);
  EXPECT_EQ(back.height, 5U);
  EXPECT_EQ(back.depth, 3U);
  EXPECT_EQ(back.source_slice_pitch, copy.source_slice_pitch);
  EXPECT_EQ(back.destination_slice_pitch, copy.destination_slice_pitch);
}

TEST(CudaGraphs, OffsetsOfACopyBecomeItsAddresses) {
  CUDA_MEMCPY3D native;
  std::memset(&native, 0, sizeof native);
  native.srcMemoryType = native.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  native.srcDevice = 1 << 20;
  native.dstDevice = 2 << 20;
  native.srcXInBytes = 8;
  native.srcY = 2;
  native.srcPitch = 256;
  native.srcHeight = 16;
  native.dstZ = 1;
  native.dstPitch = 512;
  native.dstHeight = 10;
  native.WidthInBytes = 64;
  native.Height = 4;
  native.Depth = 1;
  const gpu::Copy copy = cuda::from_memcpy3d(native);
  EXPECT_EQ(copy.source, (1U << 20) + 8 + 2 * 256);
  EXPECT_EQ(copy.destination, (2U << 20) + 512 * 10);
}

TEST(CudaGraphs, SetsAsTheDriverKeepsThem) {
  // Measured: a 7-byte set is width 7, height 1, pitch 0; a 2-D one keeps its pitch.
  gpu::Set set;
  set.destination = 4096;
  set.width = 7;
  set.value = 5;
  set.pitch = 7;
  CUDA_MEMSET_NODE_PARAMS native = cuda::to_memset(set);
  EXPECT_EQ(native.pitch, 0U);
  EXPECT_EQ(native.width, 7U);
  EXPECT_EQ(native.height, 1U);
  EXPECT_EQ(native.elementSize, 1U);
  EXPECT_EQ(cuda::from_memset(native).pitch, 7U);
  set.value_size = 4;
  set.width = 25;
  set.height = 4;
  set.pitch = 512;
  native = cuda::to_memset(set);
  EXPECT_EQ(native.pitch, 512U);
  const gpu::Set back = cuda::from_memset(native);
  EXPECT_EQ(back.width, 25U);
  EXPECT_EQ(back.height, 4U);
  EXPECT_EQ(back.pitch, 512U);
  EXPECT_EQ(back.value_size, 4U);
}

TEST(GpuCopies, DirectionIsThatOfTheMemory) {
  EXPECT_EQ(gpu::direction_of(false, true), LOCKSTEP_COPY_HTOD);
  EXPECT_EQ(gpu::direction_of(true, false), LOCKSTEP_COPY_DTOH);
  EXPECT_EQ(gpu::direction_of(true, true), LOCKSTEP_COPY_DTOD);
  EXPECT_EQ(gpu::direction_of(false, false), LOCKSTEP_COPY_HTOH);
}

TEST(GpuCopies, TheCallFollowsDirectionAndExtent) {
  EXPECT_EQ(gpu::call_for(LOCKSTEP_COPY_HTOD, 1, 1, false), gpu::Call::kCopyHostToDevice);
  EXPECT_EQ(gpu::call_for(LOCKSTEP_COPY_DTOH, 1, 1, false), gpu::Call::kCopyDeviceToHost);
  EXPECT_EQ(gpu::call_for(LOCKSTEP_COPY_DTOD, 1, 1, false), gpu::Call::kCopyDeviceToDevice);
  EXPECT_EQ(gpu::call_for(LOCKSTEP_COPY_HTOH, 1, 1, false), gpu::Call::kCopyAny);
  EXPECT_EQ(gpu::call_for(LOCKSTEP_COPY_HTOD, 4, 1, false), gpu::Call::kCopy2D);
  EXPECT_EQ(gpu::call_for(LOCKSTEP_COPY_DTOD, 4, 2, false), gpu::Call::kCopy3D);
  EXPECT_EQ(gpu::call_for(LOCKSTEP_COPY_DTOD, 1, 1, true), gpu::Call::kCopyPeer);
  EXPECT_EQ(gpu::call_for(LOCKSTEP_COPY_DTOD, 4, 1, true), gpu::Call::kCopy3DPeer);
}

gpu::PlannedSet planned(const lockstep_set_desc& desc) {
  gpu::PlannedSet plan;
  EXPECT_EQ(gpu::plan_set(&desc, &plan, nullptr), LOCKSTEP_OK);
  return plan;
}
lockstep_set_desc set_desc(std::uint64_t address, std::uint64_t width, std::uint32_t value,
                           std::uint32_t size) {
  lockstep_set_desc desc{};
  desc.struct_size = sizeof desc;
  desc.destination = reinterpret_cast<void*>(address);
  desc.width = width;
  desc.height = desc.depth = 1;
  desc.value = value;
  desc.value_size = size;
  return desc;
}

TEST(GpuSets, ValuesAreMaskedToTheirSize) {
  EXPECT_EQ(planned(set_desc(4096, 4, 0x1FF, 1)).plane.value, 0xFFU);
  EXPECT_EQ(planned(set_desc(4096, 4, 0x12345, 2)).plane.value, 0x2345U);
  EXPECT_EQ(planned(set_desc(4096, 4, 0xFFFFFFFF, 4)).plane.value, 0xFFFFFFFFU);
}

TEST(GpuSets, CallsAndPlanes) {
  lockstep_set_desc desc = set_desc(4096, 3, 0, 4);
  EXPECT_EQ(planned(desc).call, gpu::Call::kSet32);
  desc.height = 3;
  EXPECT_EQ(planned(desc).call, gpu::Call::kSet32);  // packed rows
  desc.pitch = 16;
  desc.depth = 4;
  desc.slice_pitch = 64;
  const gpu::PlannedSet plan = planned(desc);
  EXPECT_EQ(plan.call, gpu::Call::kSet2D32);
  EXPECT_EQ(plan.planes, 4U);
  EXPECT_EQ(plan.slice_pitch, 64U);
  EXPECT_EQ(plan.plane.width, 3U);
  EXPECT_TRUE(planned(set_desc(0, 0, 1, 1)).empty);
}

TEST(GpuSets, RefusesWhatTheDriverWould) {
  lockstep_error error;
  std::memset(&error, 0, sizeof error);
  error.struct_size = sizeof error;
  gpu::PlannedSet plan;
  lockstep_set_desc desc = set_desc(4098, 1, 1, 4);
  EXPECT_EQ(gpu::plan_set(&desc, &plan, &error), LOCKSTEP_E_INVALID_ARGUMENT);
  EXPECT_NE(std::string(error.message).find("multiples of 4"), std::string::npos);
  desc = set_desc(4096, 8, 1, 1);
  desc.height = 2;
  desc.pitch = 4;
  EXPECT_EQ(gpu::plan_set(&desc, &plan, &error), LOCKSTEP_E_INVALID_ARGUMENT);
  EXPECT_NE(std::string(error.message).find("pitch 4 is smaller"), std::string::npos);
  desc = set_desc(4096, 8, 1, 3);
  EXPECT_EQ(gpu::plan_set(&desc, &plan, &error), LOCKSTEP_E_INVALID_ARGUMENT);
}

}  // namespace
