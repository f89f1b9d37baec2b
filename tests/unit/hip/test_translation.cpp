// SPDX-License-Identifier: Apache-2.0
// Numbers and structures that differ between the releases of HIP, and options of the compilers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backends/gpu/object_source.h"
#include "backends/hip/hiprtc.h"
#include "backends/hip/types.h"
#include "support/temp_folder.h"

namespace {

using namespace lockstep::hip;
using lockstep::gpu::Copy;
using lockstep::gpu::Set;
using lockstep::gpu::Side;
using lockstep::testing::TempFolder;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const Version k52{5, 2, 21153}, k57{5, 7, 31921}, k64{6, 4, 43484}, k72{7, 2, 53211};

TEST(HipVersion, IsMajorMinorPatch) {
  EXPECT_EQ(Version::from(50221153).text(), "5.2.21153");
  EXPECT_EQ(Version::from(70253211).text(), "7.2.53211");
  EXPECT_TRUE(k52.before(5, 3));
  EXPECT_FALSE(k57.before(5, 3));
  EXPECT_TRUE(k57.before(6, 0));
}

// The same soname, other numbers.
TEST(HipNodes, KindsMovedByOneAfter52) {
  EXPECT_EQ(node_kind(1, k52), LOCKSTEP_NODE_KERNEL);
  EXPECT_EQ(node_kind(0, k57), LOCKSTEP_NODE_KERNEL);
  EXPECT_EQ(node_kind(1, k57), LOCKSTEP_NODE_COPY);
  EXPECT_EQ(node_kind(9, k52), LOCKSTEP_NODE_COPY);  // a number of its own for 1-D copies
  EXPECT_EQ(node_kind(3, k52), LOCKSTEP_NODE_SET);
  EXPECT_EQ(node_kind(2, k72), LOCKSTEP_NODE_SET);
  EXPECT_EQ(node_kind(7, k52), LOCKSTEP_NODE_EVENT_WAIT);
  EXPECT_EQ(node_kind(7, k57), LOCKSTEP_NODE_EVENT_RECORD);
  EXPECT_EQ(node_kind(10, k64), LOCKSTEP_NODE_ALLOC);
  EXPECT_EQ(node_kind(14, k64), LOCKSTEP_NODE_OTHER);
  EXPECT_STREQ(node_kind_name(14, k64), "batch_mem_op");
  EXPECT_EQ(node_kind(0, k52), LOCKSTEP_NODE_OTHER);
}

TEST(HipMemory, KindsChangedIn6) {
  PointerAttributes attributes;
  const auto kind = [&](int type, const Version& version) {
    attributes.type = type;
    return memory_kind(attributes, version);
  };
  EXPECT_EQ(kind(0, k57), LOCKSTEP_MEMORY_PINNED);
  EXPECT_EQ(kind(1, k57), LOCKSTEP_MEMORY_DEVICE);
  EXPECT_EQ(kind(4, k52), LOCKSTEP_MEMORY_MANAGED);
  EXPECT_EQ(kind(0, k64), LOCKSTEP_MEMORY_UNKNOWN);
  EXPECT_EQ(kind(1, k64), LOCKSTEP_MEMORY_PINNED);
  EXPECT_EQ(kind(2, k72), LOCKSTEP_MEMORY_DEVICE);
  EXPECT_EQ(kind(3, k72), LOCKSTEP_MEMORY_MANAGED);
  attributes.is_managed = 1;
  EXPECT_EQ(kind(1, k57), LOCKSTEP_MEMORY_MANAGED);
}

TEST(HipErrors, MeanWhatHipMeans) {
  EXPECT_EQ(translate_error(9), LOCKSTEP_E_INVALID_ARGUMENT);
  EXPECT_EQ(translate_error(53), LOCKSTEP_E_LAUNCH_FAILED);
  EXPECT_EQ(translate_error(98), LOCKSTEP_E_INVALID_ARGUMENT);
  // In CUDA a lost device and a wrong cluster.
  EXPECT_EQ(translate_error(911), LOCKSTEP_E_INVALID_ARGUMENT);
  EXPECT_EQ(translate_error(912), LOCKSTEP_E_INVALID_ARGUMENT);
  // The four answers to a bad image are one.
  for (const int code : {218, 303}) EXPECT_EQ(translate_error(code), LOCKSTEP_E_INVALID_ARGUMENT);
  EXPECT_EQ(translate_error(2), -1);
  EXPECT_EQ(translate_error(719), -1);
}

TEST(HipCopies, RoundTripWithPitches) {
  Copy copy;
  copy.source = 0x1000;
  copy.destination = 0x2000;
  copy.source_side = Side::kHost;
  copy.destination_side = Side::kDevice;
  copy.width = 10;
  copy.height = 3;
  copy.depth = 2;
  copy.source_pitch = 16;
  copy.source_slice_pitch = 64;
  copy.destination_pitch = 32;
  copy.destination_slice_pitch = 96;
  const hipMemcpy3DParms native = to_memcpy3d(copy);
  EXPECT_EQ(native.kind, hipMemcpyHostToDevice);
  EXPECT_EQ(native.srcPtr.pitch, 16U);
  EXPECT_EQ(native.srcPtr.ysize, 4U);
  EXPECT_EQ(native.dstPtr.ysize, 3U);
  EXPECT_EQ(native.extent.width, 10U);
  EXPECT_EQ(native.extent.depth, 2U);
  const Copy back = from_memcpy3d(native);
  EXPECT_EQ(back.source, copy.source);
  EXPECT_EQ(back.destination_slice_pitch, copy.destination_slice_pitch);
  EXPECT_EQ(back.source_slice_pitch, copy.source_slice_pitch);
  EXPECT_EQ(back.source_side, Side::kHost);
  EXPECT_EQ(back.destination_side, Side::kDevice);
  hipMemcpy3DParms moved = native;
  moved.srcPos.x = 4;
  moved.srcPos.y = 1;
  EXPECT_EQ(from_memcpy3d(moved).source, copy.source + 4 + 16);
}

TEST(HipSets, RoundTripAndBytePatterns) {
  Set set;
  set.destination = 0x3000;
  set.width = 5;
  set.height = 2;
  set.pitch = 64;
  set.value = 0x01020304;
  set.value_size = 4;
  const Set back = from_memset(to_memset(set));
  EXPECT_EQ(back.width, 5U);
  EXPECT_EQ(back.pitch, 64U);
  EXPECT_EQ(back.value, 0x01020304U);
  EXPECT_FALSE(is_byte_pattern(set));
  set.value = 0xABABABAB;
  EXPECT_TRUE(is_byte_pattern(set));
  set.value_size = 2;
  set.value = 0xABAC;
  EXPECT_FALSE(is_byte_pattern(set));
}

TEST(HipUpdates, OutcomesAreNamed) {
  EXPECT_EQ(update_outcome(0), LOCKSTEP_UPDATE_DONE);
  EXPECT_EQ(update_outcome(2), LOCKSTEP_UPDATE_TOPOLOGY_CHANGED);
  EXPECT_EQ(update_outcome(7), LOCKSTEP_UPDATE_FUNCTION_CHANGED);
  EXPECT_EQ(update_outcome(99), LOCKSTEP_UPDATE_NOT_SUPPORTED);
}

std::vector<std::string> options_of(std::vector<const char*> given, const std::string& architecture,
                                    std::string* why) {
  lockstep_module_desc desc{};
  desc.options = given.data();
  desc.option_count = static_cast<std::uint32_t>(given.size());
  std::vector<std::string> options;
  return compiler_options(desc, architecture, &options, why) ? options : std::vector<std::string>{};
}

TEST(HiprtcOptions, OneArchitectureAndOurDefaults) {
  std::string why;
  EXPECT_THAT(options_of({}, "gfx90a", &why),
              ElementsAre("--offload-arch=gfx90a", "-std=c++17", "-ffp-contract=off"));
  EXPECT_THAT(
      options_of({"-DX=1", "--std=c++20", "--fmad=true", "--use_fast_math"}, "gfx90a", &why),
      ElementsAre("-DX=1", "-std=c++20", "-ffp-contract=fast", "-ffast-math",
                  "--offload-arch=gfx90a"));
  EXPECT_THAT(options_of({"--offload-arch=gfx90a"}, "gfx90a", &why),
              ElementsAre("--offload-arch=gfx90a", "-std=c++17", "-ffp-contract=off"));
  EXPECT_THAT(options_of({}, "sm_90", &why),
              ElementsAre("--offload-arch=sm_90", "-std=c++17", "--fmad=false"));
}

TEST(HiprtcOptions, OptionsThatMakeOtherCodeAreRefused) {
  for (const char* option : {"--offload-arch=gfx1030", "--gpu-architecture=gfx90a", "-fgpu-rdc"}) {
    std::string why;
    EXPECT_TRUE(options_of({option}, "gfx90a", &why).empty()) << option;
    EXPECT_THAT(why, HasSubstr(option));
  }
}

TEST(ObjectSource, IsFoundByTheBytesOfTheObject) {
  const TempFolder folder;
  lockstep::gpu::ObjectSource source;
  source.source_name = "k.cu";
  source.source = std::string("a\0b", 3);
  source.options = {"-DX", "--offload-arch=gfx90a"};
  source.kernels = {"scale<float, 3>"};
  source.headers = {{"lockstep/kernel.h", "text"}};
  source.lowered_names = {{"scale<float, 3>", "_Z5scale"}};
  std::string problem;
  const std::string where = folder / "hip";
  ASSERT_TRUE(lockstep::gpu::write_object_source(where, "object", source, &problem)) << problem;
  const auto found = lockstep::gpu::find_object_source(where, "object");
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->source, source.source);
  EXPECT_EQ(found->options, source.options);
  EXPECT_EQ(found->kernels, source.kernels);
  EXPECT_EQ(found->headers, source.headers);
  EXPECT_EQ(found->lowered_names, source.lowered_names);
  EXPECT_FALSE(lockstep::gpu::find_object_source(where, "other").has_value());
  // Cut at every byte: never believed.
  const std::string file = where + "/" + lockstep::gpu::object_file_name("object");
  const std::string whole = lockstep::testing::read_file(file);
  for (std::size_t length = 0; length < whole.size(); ++length) {
    lockstep::testing::write_file(file, whole.substr(0, length));
    EXPECT_FALSE(lockstep::gpu::find_object_source(where, "object").has_value()) << length;
  }
}

}  // namespace
