// SPDX-License-Identifier: Apache-2.0
// Parts of backends/gpu that need no driver.
#include <cstring>
#include <filesystem>
#include <gtest/gtest.h>

#include "backends/gpu/capture.h"
#include "backends/gpu/compile_cache.h"
#include "backends/gpu/memory_map.h"
#include "backends/gpu/module.h"
#include "support/temp_folder.h"

namespace {

using namespace lockstep::gpu;  // NOLINT: the layer that is tested
using lockstep::testing::TempFolder;

Allocation at(std::uint64_t base, std::uint64_t bytes, std::uint64_t identity) {
  return {base, bytes, identity, LOCKSTEP_MEMORY_DEVICE, 0, false};
}

TEST(MemoryMap, FindsTheAllocationAnAddressLiesIn) {
  MemoryMap map;
  map.insert(at(1000, 100, 1));
  map.insert(at(2000, 50, 2));
  EXPECT_EQ(map.find(1000)->identity, 1U);
  EXPECT_EQ(map.find(1099)->identity, 1U);
  EXPECT_FALSE(map.find(1100).has_value());
  EXPECT_FALSE(map.find(999).has_value());
  EXPECT_EQ(map.find(2049)->identity, 2U);
  EXPECT_FALSE(map.remove(1001).has_value());
  EXPECT_EQ(map.remove(1000)->identity, 1U);
  EXPECT_FALSE(map.find(1000).has_value());
}

TEST(MemoryMap, ANewAllocationTakesThePlaceOfForgottenOnes) {
  MemoryMap map;
  map.insert(at(1000, 100, 1));
  map.insert(at(1100, 100, 2));
  map.insert(at(1300, 100, 3));
  map.insert(at(1050, 200, 4));  // over the ends of the first two
  EXPECT_FALSE(map.find(1000).has_value());
  EXPECT_EQ(map.find(1100)->identity, 4U);
  EXPECT_EQ(map.find(1300)->identity, 3U);
}

TEST(CaptureClocks, MergingKeepsTheLater) {
  CaptureClock clock = {{1, 3}};
  merge_clock(clock, {{1, 2}, {2, 5}});
  EXPECT_EQ(clock_of(clock, 1), 3U);
  EXPECT_EQ(clock_of(clock, 2), 5U);
  EXPECT_EQ(clock_of(clock, 3), 0U);
  merge_clock(clock, {{1, 7}});
  EXPECT_EQ(clock_of(clock, 1), 7U);
}

TEST(NameExpressions, BlanksDoNotMatterButWordsStaySeparate) {
  EXPECT_EQ(normalised_expression("scale<float, 3>"), "scale<float,3>");
  EXPECT_EQ(normalised_expression(" & ns::k < unsigned int > "), "ns::k<unsigned int>");
  EXPECT_EQ(normalised_expression("k<unsigned  char>"), "k<unsigned char>");
  EXPECT_NE(normalised_expression("k<unsigned char>"), normalised_expression("k<unsignedchar>"));
}

lockstep_module_desc source_of(const char* text) {
  lockstep_module_desc desc{};
  desc.struct_size = sizeof desc;
  desc.format = LOCKSTEP_MODULE_SOURCE;
  desc.data = text;
  desc.bytes = std::strlen(text);
  return desc;
}

class CompileCacheTest : public ::testing::Test {
 protected:
  void SetUp() override { setenv("LOCKSTEP_CACHE_DIR", folder_.path().c_str(), 1); }
  void TearDown() override { unsetenv("LOCKSTEP_CACHE_DIR"); }
  TempFolder folder_{"compile-cache"};
  CompileCache cache_{"cuda"};
};

TEST_F(CompileCacheTest, GivesBackWhatWasKept) {
  const std::string key = CompileCache::key(source_of("text"), "nvrtc 13.0", {"--std=c++17"});
  ASSERT_EQ(key.size(), 32U);
  EXPECT_FALSE(cache_.find(key).has_value());
  CompiledCode code;
  code.code = {'\x7f', 'E', 'L', 'F', '\0', 'x'};
  code.lowered_names = {{"scale<float, 3>", "_Z5scaleIfLi3EEvPT_S0_y"}};
  std::string problem;
  ASSERT_TRUE(cache_.store(key, code, "text", &problem)) << problem;
  const auto kept = cache_.find(key);
  ASSERT_TRUE(kept.has_value());
  EXPECT_EQ(kept->code, code.code);
  EXPECT_EQ(kept->lowered_names, code.lowered_names);
  EXPECT_EQ(lockstep::testing::read_file(folder_ / ("cuda/" + key + ".source")), "text");
}

TEST_F(CompileCacheTest, DamagedFilesAreNotLoaded) {
  const std::string key = CompileCache::key(source_of("text"), "nvrtc 13.0", {});
  CompiledCode code;
  code.code.assign(100, 'c');
  std::string problem;
  ASSERT_TRUE(cache_.store(key, code, "text", &problem)) << problem;
  const std::string file = folder_ / ("cuda/" + key + ".code");
  const std::string whole = lockstep::testing::read_file(file);
  for (const std::size_t length : {std::size_t{0}, std::size_t{10}, whole.size() - 1}) {
    lockstep::testing::write_file(file, whole.substr(0, length));
    EXPECT_FALSE(cache_.find(key).has_value()) << length;
  }
  std::string flipped = whole;
  flipped[flipped.size() - 5] ^= 1;
  lockstep::testing::write_file(file, flipped);
  EXPECT_FALSE(cache_.find(key).has_value());
  lockstep::testing::write_file(file, whole);
  EXPECT_TRUE(cache_.find(key).has_value());
  // A folder in its place opens, and cannot be read.
  std::filesystem::remove(file);
  std::filesystem::create_directory(file);
  EXPECT_FALSE(cache_.find(key).has_value());
  EXPECT_FALSE(cache_.store(key, code, "text", &problem));
  EXPECT_NE(problem.find(key + ".code"), std::string::npos) << problem;
}

TEST_F(CompileCacheTest, TheKeyHoldsEverythingTheCodeDependsOn) {
  const lockstep_module_desc plain = source_of("text");
  const std::string key = CompileCache::key(plain, "nvrtc 13.0", {"-DA"});
  EXPECT_EQ(CompileCache::key(plain, "nvrtc 13.0", {"-DA"}), key);
  EXPECT_NE(CompileCache::key(source_of("texT"), "nvrtc 13.0", {"-DA"}), key);
  EXPECT_NE(CompileCache::key(plain, "nvrtc 12.9", {"-DA"}), key);
  EXPECT_NE(CompileCache::key(plain, "nvrtc 13.0", {"-DB"}), key);
  lockstep_module_desc changed = plain;
  const char* const names[] = {"k"};
  changed.kernels = names;
  changed.kernel_count = 1;
  EXPECT_NE(CompileCache::key(changed, "nvrtc 13.0", {"-DA"}), key);
  changed = plain;
  const lockstep_header header{"a.h", "int a;"};
  changed.headers = &header;
  changed.header_count = 1;
  EXPECT_NE(CompileCache::key(changed, "nvrtc 13.0", {"-DA"}), key);
}

// Files may change without our seeing it.
TEST_F(CompileCacheTest, CodeThatOptionsMakeReadFilesIsNotKept) {
  using Options = std::vector<std::string>;
  const auto kept = [&](const Options& options, const char* compiler = "nvrtc 13.0") {
    return !CompileCache::key(source_of("text"), compiler, options).empty();
  };
  for (const char* option : {"-I",
                             "-Ifolder",
                             "--include-path",
                             "--include-path=f",
                             "--include-directory",
                             "--include-directory=f",
                             "-include",
                             "-include=f",
                             "--pre-include",
                             "--pre-include=f",
                             "-isystem",
                             "-isystemf",
                             "-iquote",
                             "-iquotef",
                             "-idirafter",
                             "-idirafterf",
                             "-imacros",
                             "-imacrosf",
                             "-cxx-isystem",
                             "-iwithprefixbefore",
                             "-include-pch",
                             "-ivfsoverlay",
                             "@file",
                             "--config=f",
                             "-Wp,-include,f",
                             "-Wp,@f",
                             "-Xclang",
                             "-Xpreprocessor",
                             "-mllvm",
                             "-fplugin=f",
                             "-fprofile-use=f",
                             "-fmodule-file=f",
                             "--use-pch=f",
                             "-pch",
                             "--options-file",
                             "-optf",
                             "f.h",
                             "--sysroot=f",
                             "-working-directory=f",
                             "-B",
                             "-nostdinc",
                             "--new-option"}) {
    for (const char* compiler : {"nvrtc 13.0", "hiprtc 7.2"}) {
      EXPECT_FALSE(kept({option}, compiler)) << option;
      EXPECT_FALSE(kept({"-DA", option, "f.h", "-O3"}, compiler)) << option;
    }
  }
  EXPECT_FALSE(kept({"-std", "-include"}));
  EXPECT_FALSE(kept({"--std", "@file"}));
  for (const Options& options :
       {Options{"-DA=1", "-UB", "-D", "-weird", "--define-macro=C", "--undefine-macro", "D"},
        Options{"--std=c++17", "--gpu-architecture=sm_90", "--fmad=false", "-lineinfo"},
        Options{"-std", "c++17", "-arch", "sm_90", "-maxrregcount", "64", "-default-device"},
        Options{"-std=c++20", "--offload-arch=gfx90a", "-ffp-contract=off", "-O3", "-Wno-unused"},
        Options{"-fno-unroll-loops", "-mcode-object-version=4", "-ffast-math", "-w", "-Werror"}}) {
    EXPECT_TRUE(kept(options)) << options.front();
    EXPECT_TRUE(kept(options, "hiprtc 7.2")) << options.front();
  }
}

TEST_F(CompileCacheTest, CodeThatIncludesFilesIsNotKept) {
  const lockstep_header headers[] = {{"a.h", "#include \"sub/b.h\""}, {"sub/b.h", "int b;"}};
  const auto kept = [&](std::string_view text, std::uint32_t header_count = 2) {
    lockstep_module_desc desc = source_of("");
    desc.data = text.data();
    desc.bytes = text.size();
    desc.headers = headers;
    desc.header_count = header_count;
    return !CompileCache::key(desc, "hiprtc 7.2", {}).empty();
  };
  for (const char* text : {"#include \"/abs/x.h\"",
                           "#include \"x.h\"",
                           "#include </abs/x.h>",
                           "#include <../x.h>",
                           "#include X",
                           "  #  include \"x.h\"",
                           "%:include \"x.h\"",
                           "\?\?=include \"x.h\"",
                           "#/* */include/**/\"x.h\"",
                           "#inc\\\nlude \"x.h\"",
                           "#include \\ \n\"x.h\"",
                           "int a;\n#include_next \"a.h.x\"\n",
                           "#import \"x.h\"",
                           "#embed \"x\"",
                           "#embed <x>",
                           "#if __has_include(\"x.h\")",
                           "#if __has_include ( X )",
                           "#if __has_embed(<x>)",
                           "asm(\".incbin \\\"x\\\"\");",
                           "asm(\".include \\\"x\\\"\");",
                           "#include",
                           "#define S \"/*\"\n#include \"x.h\"\n",
                           "const int n = 1'000;\n#include \"x.h\" // '"}) {
    EXPECT_FALSE(kept(text)) << text;
  }
  for (const char* text :
       {"#include <cuda_fp16.h>", "#include \"a.h\"", "#include <a.h>", "#include \"sub/b.h\"",
        "#include <lockstep/kernel.h>", "#include \"lockstep/kernel.h\"", "// include all of it",
        "#pragma once", "int include, embed;", "#if defined(__has_include)\n#endif",
        "#if __has_include(<hip/hip_fp16.h>)", "#define include_x"}) {
    EXPECT_TRUE(kept(text)) << text;
  }
  // What a given header includes counts as much.
  EXPECT_FALSE(kept("#include <a.h>", 1));
}

TEST_F(CompileCacheTest, TheEnvironmentOfHiprtcCountsAsOptions) {
  const auto kept = [&](const char* text, const char* compiler) {
    return !CompileCache::key(source_of(text), compiler, {}).empty();
  };
  setenv("CPATH", "/somewhere", 1);
  EXPECT_TRUE(kept("int a;", "hiprtc 7.2"));
  EXPECT_FALSE(kept("#include <a.h>", "hiprtc 7.2"));
  EXPECT_TRUE(kept("#include <a.h>", "nvrtc 13.0"));
  unsetenv("CPATH");
  setenv("HIPRTC_COMPILE_OPTIONS_APPEND", "-include x.h", 1);
  EXPECT_FALSE(kept("int a;", "hiprtc 7.2"));
  EXPECT_TRUE(kept("int a;", "nvrtc 13.0"));
  unsetenv("HIPRTC_COMPILE_OPTIONS_APPEND");
  EXPECT_TRUE(kept("#include <a.h>", "hiprtc 7.2"));
}

TEST_F(CompileCacheTest, SaysWhyItCannotKeepCode) {
  lockstep::testing::write_file(folder_ / "file", "");
  setenv("LOCKSTEP_CACHE_DIR", (folder_ / "file").c_str(), 1);
  CompiledCode code;
  std::string problem;
  EXPECT_FALSE(cache_.store("0123", code, "", &problem));
  EXPECT_NE(problem.find("file/cuda"), std::string::npos) << problem;
}

}  // namespace
