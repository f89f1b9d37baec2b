// SPDX-License-Identifier: Apache-2.0
// The reader of code objects and bundles, on what clang makes for each architecture
// (tests/data/code_objects), cut and damaged at every byte.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>

#include "backends/hip/code_object.h"
#include "support/temp_folder.h"

namespace {

using namespace lockstep::hip;
using ::testing::HasSubstr;

const Version k52{5, 2, 21153}, k57{5, 7, 31921}, k64{6, 4, 43484}, k72{7, 2, 53211};

std::string fixture(const std::string& name) {
  return lockstep::testing::read_file(LOCKSTEP_TEST_DATA_DIR "/code_objects/" + name + ".co");
}

struct Expected {
  const char* file;
  const char* target;
  int version;
  std::uint32_t wavefront;
};
void PrintTo(const Expected& expected, std::ostream* out) { *out << expected.file; }
class CodeObjects : public ::testing::TestWithParam<Expected> {};

TEST_P(CodeObjects, TellHowKernelsTakeTheirArguments) {
  CodeObject object;
  std::string why;
  ASSERT_TRUE(read_code_object(fixture(GetParam().file), &object, &why)) << why;
  EXPECT_EQ(object.target.text(), GetParam().target);
  EXPECT_EQ(object.version, GetParam().version);
  ASSERT_EQ(object.kernels.size(), 3U);
  const KernelMetadata* saxpy = object.find("saxpy");
  ASSERT_NE(saxpy, nullptr);
  EXPECT_EQ(saxpy->symbol, "saxpy.kd");
  EXPECT_EQ(saxpy->wavefront_size, GetParam().wavefront);
  EXPECT_EQ(saxpy->max_threads_per_block, 1024U);
  EXPECT_GE(saxpy->kernarg_bytes, 24U);
  // What the compiler adds behind them (in version 5 and later) is not the program's.
  ASSERT_EQ(saxpy->arguments.size(), 4U);
  const auto layout = layout_of(*saxpy);
  ASSERT_TRUE(layout.known);
  const std::uint32_t offsets[] = {0, 4, 8, 16}, sizes[] = {4, 4, 8, 8}, tags[] = {0, 0, 1, 1};
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(layout.parameters[i].offset, offsets[i]) << i;
    EXPECT_EQ(layout.parameters[i].size, sizes[i]) << i;
    EXPECT_EQ(layout.parameters[i].tag, tags[i]) << i;
  }
  const KernelMetadata* scale = object.find("_Z5scaleIfLi3EEvPT_S0_y");
  ASSERT_NE(scale, nullptr);
  EXPECT_EQ(scale->arguments.size(), 3U);
  EXPECT_EQ(layout_of(*scale).parameters[2].tag, 255);  // 8 bytes: a number or a struct
  const KernelMetadata* mixed = object.find("mixed");
  ASSERT_NE(mixed, nullptr);
  EXPECT_EQ(mixed->static_shared_bytes, 256U);
  ASSERT_EQ(mixed->arguments.size(), 6U);
  const std::uint32_t mixed_offsets[] = {0, 2, 4, 16, 24, 40};
  for (std::size_t i = 0; i < 6; ++i) EXPECT_EQ(mixed->arguments[i].offset, mixed_offsets[i]) << i;
  EXPECT_TRUE(mixed->arguments[5].pointer);
  EXPECT_EQ(object.find("absent"), nullptr);
}

INSTANTIATE_TEST_SUITE_P(Fixtures, CodeObjects,
                         ::testing::Values(Expected{"gfx906-v4", "gfx906", 4, 64},
                                           Expected{"gfx908-v4", "gfx908", 4, 64},
                                           Expected{"gfx90a-v4", "gfx90a", 4, 64},
                                           Expected{"gfx90a-xnack-v4", "gfx90a:xnack-", 4, 64},
                                           Expected{"gfx90a-v5", "gfx90a", 5, 64},
                                           Expected{"gfx90a-v6", "gfx90a", 6, 64},
                                           Expected{"gfx942-v5", "gfx942", 5, 64},
                                           Expected{"gfx1030-v4", "gfx1030", 4, 32},
                                           Expected{"gfx1100-v4", "gfx1100", 4, 32}));

// A copy of exactly that many bytes: reading past them is found by AddressSanitizer.
bool read_exactly(const std::string& bytes, std::size_t length, CodeObject* object,
                  std::string* why) {
  const std::unique_ptr<char[]> copy(new char[length]);
  std::copy_n(bytes.begin(), length, copy.get());
  return read_code_object({copy.get(), length}, object, why);
}

TEST(CodeObjectDamage, CutAtEveryByteIsRefused) {
  for (const char* name : {"gfx90a-v4", "gfx1100-v4", "gfx942-v5"}) {
    const std::string whole = fixture(name);
    for (std::size_t length = 0; length < whole.size(); ++length) {
      CodeObject object;
      std::string why;
      ASSERT_FALSE(read_exactly(whole, length, &object, &why)) << name << " at " << length;
      ASSERT_FALSE(why.empty());
    }
  }
}

// Whatever is in it: an answer, and nothing read beyond the end.
TEST(CodeObjectDamage, EveryByteChangedIsSurvived) {
  const std::string whole = fixture("gfx90a-v4");
  std::size_t refused = 0;
  for (std::size_t at = 0; at < whole.size(); ++at) {
    for (const unsigned flip : {0x01U, 0x80U, 0xFFU}) {
      std::string bytes = whole;
      bytes[at] = static_cast<char>(static_cast<unsigned char>(bytes[at]) ^ flip);
      CodeObject object;
      std::string why;
      if (!read_exactly(bytes, bytes.size(), &object, &why)) ++refused;
    }
  }
  EXPECT_GT(refused, 100U);
}

TEST(CodeObjectChecks, OtherArchitecturesAreRefusedInWords) {
  CodeObject object;
  std::string why;
  const std::string image = fixture("gfx90a-v4");
  EXPECT_TRUE(check_image(image, "gfx90a:sramecc+:xnack-", k52, &object, &why)) << why;
  EXPECT_EQ(object.kernels.size(), 3U);
  EXPECT_FALSE(check_image(image, "gfx1030", k64, &object, &why));
  EXPECT_THAT(why, HasSubstr("is for gfx90a, this device is gfx1030"));
  const std::string off = fixture("gfx90a-xnack-v4");
  EXPECT_TRUE(check_image(off, "gfx90a:sramecc+:xnack-", k72, &object, &why)) << why;
  EXPECT_FALSE(check_image(off, "gfx90a:sramecc+:xnack+", k72, &object, &why));
}

TEST(CodeObjectChecks, NewerFormatsAreRefusedWhereTheRuntimeDoesNotLoadThem) {
  CodeObject object;
  std::string why;
  const std::string image = fixture("gfx90a-v6");
  EXPECT_TRUE(check_image(image, "gfx90a", k64, &object, &why)) << why;
  EXPECT_TRUE(check_image(image, "gfx90a", k72, &object, &why)) << why;
  EXPECT_FALSE(check_image(image, "gfx90a", k57, &object, &why));
  EXPECT_THAT(why, HasSubstr("-mcode-object-version=4"));
  EXPECT_FALSE(check_image(fixture("gfx90a-v5"), "gfx90a", k52, &object, &why));
  EXPECT_TRUE(check_image(fixture("gfx90a-v5"), "gfx90a", k57, &object, &why)) << why;
}

TEST(CodeObjectChecks, BundlesAreOpened) {
  CodeObject object;
  std::string why;
  const std::string bundle = fixture("bundle");
  EXPECT_TRUE(check_image(bundle, "gfx90a:sramecc+:xnack-", k52, &object, &why)) << why;
  EXPECT_EQ(object.target.base, "gfx90a");
  EXPECT_TRUE(check_image(bundle, "gfx1030", k52, &object, &why)) << why;
  EXPECT_EQ(object.find("saxpy")->wavefront_size, 32U);
  EXPECT_FALSE(check_image(bundle, "gfx1100", k52, &object, &why));
  EXPECT_THAT(why, HasSubstr("has code for gfx90a, gfx1030, this device is gfx1100"));
  for (std::size_t length = 0; length < bundle.size(); ++length) {
    const std::unique_ptr<char[]> copy(new char[length]);
    std::copy_n(bundle.begin(), length, copy.get());
    ASSERT_FALSE(check_image({copy.get(), length}, "gfx1030", k52, &object, &why)) << length;
  }
}

TEST(CodeObjectChecks, CompressedBundlesAreMeasuredByTheirHeader) {
  CodeObject object;
  std::string why;
  std::string image("CCOB\2\0\1\0", 8);
  image += std::string("\x20\0\0\0", 4) + std::string(20, 'x');
  EXPECT_TRUE(check_image(image, "gfx90a", k64, &object, &why)) << why;
  EXPECT_TRUE(object.kernels.empty());
  EXPECT_FALSE(check_image(image, "gfx90a", k57, &object, &why));
  EXPECT_THAT(why, HasSubstr("--no-offload-compress"));
  EXPECT_FALSE(check_image(image.substr(0, 31), "gfx90a", k64, &object, &why));
  EXPECT_THAT(why, HasSubstr("cut short"));
  image[4] = 1;
  EXPECT_FALSE(check_image(image, "gfx90a", k64, &object, &why));
}

TEST(CodeObjectChecks, AnythingElseIsRefused) {
  CodeObject object;
  std::string why;
  EXPECT_FALSE(check_image("some text", "gfx90a", k72, &object, &why));
  EXPECT_THAT(why, HasSubstr("neither an AMDGPU code object nor an offload bundle"));
  EXPECT_FALSE(check_image("", "gfx90a", k72, &object, &why));
  const std::string own = lockstep::testing::read_file("/proc/self/exe");
  EXPECT_FALSE(check_image(own, "gfx90a", k72, &object, &why));
  EXPECT_THAT(why, HasSubstr("not a code object for AMD's HSA"));
  EXPECT_FALSE(check_image(fixture("gfx90a-v4"), "sm_90", k72, &object, &why));
  EXPECT_TRUE(check_cuda_image(".version 8.0\n.target sm_90\n", &why));
  EXPECT_FALSE(check_cuda_image("ab", &why));
}

TEST(Architectures, NamesAreParsedOrRefused) {
  Target target;
  ASSERT_TRUE(parse_target("gfx90a:sramecc+:xnack-", &target));
  EXPECT_EQ(target.base, "gfx90a");
  EXPECT_EQ(target.sramecc, Feature::kOn);
  EXPECT_EQ(target.xnack, Feature::kOff);
  EXPECT_EQ(target.text(), "gfx90a:sramecc+:xnack-");
  for (const char* bad : {"", "bogus", "sm_90", "gfx", "gfx90a:", "gfx90a:xnack", "gfx90a:other+",
                          "gfx90a:xnack+:xnack-", "gfx90a xnack", "gfx90a;rm"}) {
    EXPECT_FALSE(parse_target(bad, &target)) << bad;
  }
}

// hipRTC ends the process on what it does not know, until 7.
TEST(Architectures, TheCompilerIsOnlyAskedForWhatItKnows) {
  for (const char* name : {"gfx906", "gfx908", "gfx90a", "gfx1030"}) {
    EXPECT_TRUE(compiler_knows(name, k52)) << name;
  }
  for (const char* name : {"gfx940", "gfx942", "gfx1100", "gfx950", "gfx1201", "gfx9-generic"}) {
    EXPECT_FALSE(compiler_knows(name, k52)) << name;
  }
  EXPECT_TRUE(compiler_knows("gfx942", k57));
  EXPECT_TRUE(compiler_knows("gfx1100", k57));
  EXPECT_FALSE(compiler_knows("gfx950", k57));
  EXPECT_TRUE(compiler_knows("gfx950", k64));
  EXPECT_FALSE(compiler_knows("gfx1250", k64));
  EXPECT_TRUE(compiler_knows("gfx1250", k72));
  EXPECT_THAT(known_architectures(k52), HasSubstr("gfx90a"));
  EXPECT_EQ(known_architectures(k72), "");
}

}  // namespace
