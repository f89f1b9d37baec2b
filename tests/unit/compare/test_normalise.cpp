// SPDX-License-Identifier: Apache-2.0
#include <lockstep/error.h>
#include <lockstep/normalise.h>
#include <lockstep/trace_file.h>

#include <gmock/gmock.h>
#include <random>

#include "support/trace_entries.h"

namespace lockstep {
namespace {

using namespace testing_support;
using testing::HasSubstr;

std::string apply(const std::string& normaliser, const std::string& name) {
  LaunchTraceEntry entry = kernel(name);
  find_normaliser(normaliser).apply(entry);
  return entry.name;
}

TEST(Normalise, BuildIdsDisappear) {
  const char* const kStatic = "static_k(int*)";
  EXPECT_EQ(apply("build-ids", "_ZL8static_kPi"), kStatic);
  EXPECT_EQ(apply("build-ids", "_Z8static_kPi"), kStatic);
  EXPECT_EQ(apply("build-ids", "_ZL8static_kPi.intern.0123456789abcdef"), kStatic);
  EXPECT_EQ(apply("build-ids", "__nv_static_22__9c5ada8a_4_m_cu_ext_k__Z8static_kPi"), kStatic);
  EXPECT_EQ(apply("build-ids", "_Z8static_kPi.kd"), kStatic);
  const std::string one = apply(
      "build-ids", "_ZN43_GLOBAL__N__b6de9c8c_10_SoftMax_cu_9f978f6320softmax_warp_forwardEv");
  EXPECT_EQ(one, "(anonymous namespace)::softmax_warp_forward()");
  EXPECT_EQ(one, apply("build-ids", "_ZN12_GLOBAL__N_120softmax_warp_forwardEv"));
  EXPECT_EQ(apply("build-ids", "_INTERNAL_21739cd4_4_k_cu_9c5ada8a::k"), "k");
}

TEST(Normalise, VendorsSpellTypesAlike) {
  EXPECT_EQ(apply("vendor", "_Z4vec4P6float44int24dim3"),
            apply("vendor", "_Z4vec4P15HIP_vector_typeIfLj4EES_IiLj2EE4dim3"));
  EXPECT_EQ(apply("vendor", "_Z3bfkP13__nv_bfloat16"), apply("vendor", "_Z3bfkP12hip_bfloat16"));
  EXPECT_EQ(apply("vendor", "f<CUstream_st*>"), apply("vendor", "f<ihipStream_t*>"));
  EXPECT_EQ(apply("vendor", "my__nv_bfloat16x"), "my__nv_bfloat16x") << "whole words only";
  LaunchTraceEntry cuda = of_kind(OperationKind::kEventRecord, "cuEventRecord");
  find_normaliser("vendor").apply(cuda);
  EXPECT_EQ(cuda.name, "EventRecord");
}

// One source by nvcc and by clang for HIP: what either compiler calls it, facts of both.
TEST(Normalise, OneSourceHasOneNameOnEveryCompiler) {
  const std::pair<const char*, const char*> names[] = {
      {"_Z5plainPKfPfymlx", "_Z5plainPKfPfymlx"},
      {"_Z5scaleI6__halfLi2EEvPT_S1_N2ns3VecIS1_XT0_EEE",
       "_Z5scaleI6__halfLi2EEvPT_S1_N2ns3VecIS1_XT0_EEE"},
      {"_ZN2ns4innsIdLNS_4ModeE1EEEvPT_", "_ZN2ns4innsIdLNS_4ModeE1EEEvPT_.kd"},
      {"_Z3lamIZ8host_usePiiEUliE_EvT_S0_", "_Z3lamIZ8host_usePiiEUliE0_EvT_S0_"},
      {"_Z4vec4P6float44int24dim3", "_Z4vec4P15HIP_vector_typeIfLj4EES_IiLj2EE4dim3"},
      {"_Z3bfkP13__nv_bfloat16", "_Z3bfkP12hip_bfloat16"},
      {"_Z3bfkP13__nv_bfloat16", "_Z3bfkP14__hip_bfloat16"},
      {"_Z8static_kPi", "_ZL8static_kPi"},
      {"__nv_static_22__9c5ada8a_4_m_cu_ext_k__Z8static_kPi",
       "_ZL8static_kPi.intern.0123456789abcdef"},
      {"_ZN33_GLOBAL__N__9c5ada8a_4_m_cu_ext_k6anon_kEPi", "_ZN12_GLOBAL__N_16anon_kEPi"},
      {"_ZN33_GLOBAL__N__9c5ada8a_4_m_cu_ext_k6anon_kEPi",
       "_ZN12_GLOBAL__N_16anon_kEPi.intern.0123456789abcdef"},
      {"_Z2onIP11CUstream_stEvT_", "_Z2onIP12ihipStream_tEvT_"}};
  const std::vector<Normaliser> normalisers = all_normalisers();
  for (const auto& [nvcc, hip] : names) {
    LaunchTraceEntry one = kernel(nvcc), other = kernel(hip);
    for (const Normaliser& normaliser : normalisers) {
      normaliser.apply(one);
      normaliser.apply(other);
    }
    EXPECT_EQ(one.name, other.name) << nvcc << " and " << hip;
  }
}

TEST(Normalise, JitSuffixesDisappear) {
  EXPECT_EQ(apply("jit", "softmax_kernel_0d1d2de3"), "softmax_kernel");
  EXPECT_EQ(apply("jit", "triton_poi_fused_add_12"), "triton_poi_fused_add");
  EXPECT_EQ(apply("jit", "loop_add_fusion_3"), "loop_add_fusion");
  EXPECT_EQ(apply("jit", "kernel_5fc5bd52734b29ed"), "kernel");
  EXPECT_EQ(apply("jit", "gemm_128"), "gemm_128") << "a tile size is part of the name";
  EXPECT_EQ(apply("jit", "_Z6kernelIfEvPT_i"), "_Z6kernelIfEvPT_i");
}

TEST(Cases, GOLD_06_LambdaNumbersAreNoise) {
  const Trace one = kernels({"_Z3lamIZ8host_usePiiEUliE_EvT_S0_"});
  const Trace two = kernels({"_Z3lamIZ8host_usePiiEUliE2_EvT_S0_"});
  const DiffReport raw = diff(one, two);
  EXPECT_FALSE(raw.equal);
  EXPECT_EQ(raw.first_difference, 0u);
  EXPECT_THAT(to_text(raw, view(one), view(two)), HasSubstr("kernel  lam<"));
  DiffOptions options;
  options.normalisers = {find_normaliser("lambdas")};
  const DiffReport report = diff(one, two, options);
  EXPECT_TRUE(report.equal);
  EXPECT_THAT(report.normalisers, testing::ElementsAre("lambdas"));
  EXPECT_THAT(to_text(report, view(one), view(two)), HasSubstr("normalised: lambdas"));
}

TEST(Cases, GOLD_06_RawNamesStayInTheFile) {
  TemporaryFolder folder;
  write_trace(folder / "a.jsonl", kernels({"k_0d1d"}));
  write_trace(folder / "b.jsonl", kernels({"k_0d1d2d"}));
  DiffOptions options;
  options.normalisers = all_normalisers();
  EXPECT_TRUE(diff_files(folder / "a.jsonl", folder / "b.jsonl", options).equal);
  EXPECT_FALSE(diff_files(folder / "a.jsonl", folder / "b.jsonl").equal);
  EXPECT_EQ(read_trace(folder / "a.jsonl").entries[0].name, "k_0d1d");
}

TEST(Cases, GOLD_06_RenameMap) {
  const auto map = parse_rename_map("# ours\nold => new\nnew=>newest\r\n\n", "map.txt");
  LaunchTraceEntry entry = kernel("old");
  rename_normaliser(map).apply(entry);
  EXPECT_EQ(entry.name, "newest");
  entry = kernel("_Z3oldv");  // as displayed
  rename_normaliser(map).apply(entry);
  EXPECT_EQ(entry.name, "newest");
  EXPECT_THROW(rename_normaliser({{"a", "b"}, {"b", "a"}}), Error);
  for (const char* bad : {"a b\n", "=> b\n", "a =>\n", "x => y\nx => z\n"}) {
    try {
      parse_rename_map(bad, "map.txt");
      ADD_FAILURE() << bad;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidFile);
      EXPECT_THAT(error.what(), HasSubstr("map.txt:"));
    }
  }
}

TEST(Normalise, UnknownNamesListWhatThereIs) {
  try {
    find_normaliser("bogus");
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("build-ids, lambdas, jit, vendor"));
  }
  EXPECT_EQ(all_normalisers().size(), builtin_normalisers().size());
}

/// Names glued together from what the tables look for, so that rules uncover each other.
std::string random_name(std::mt19937_64& random) {
  static const char* const kPieces[] = {"_Z",
                                        "_ZN",
                                        "_ZL8static_kPi",
                                        ".intern.",
                                        "0123456789abcdef",
                                        ".kd",
                                        "__nv_static_1__",
                                        "__Z",
                                        "_INTERNAL_ab_",
                                        "::",
                                        "_0d1d",
                                        "_12",
                                        "triton_",
                                        "fusion",
                                        "{lambda(int)#1}",
                                        "#2}",
                                        "HIP_vector_type<float, 4u>",
                                        "HIP_vector_type<",
                                        "__nv_bfloat16",
                                        "cu",
                                        "hip",
                                        "X",
                                        "_",
                                        " ",
                                        "<",
                                        ">",
                                        "_GLOBAL__N_1",
                                        "kernel",
                                        "\xff",
                                        "Ü"};
  std::string name;
  for (std::uint64_t count = random() % 8; count > 0; --count) {
    name += kPieces[random() % std::size(kPieces)];
  }
  return name;
}

TEST(Normalise, IsPureAndIdempotent) {
  std::mt19937_64 random(8);
  std::vector<Normaliser> normalisers = all_normalisers();
  normalisers.push_back(rename_normaliser({{"kernel", "_Z1kv"}, {"k", "other"}}));
  for (int round = 0; round < 20000; ++round) {
    const std::string name = random_name(random);
    for (const Normaliser& normaliser : normalisers) {
      LaunchTraceEntry once = kernel(name), again = kernel(name);
      normaliser.apply(once);
      normaliser.apply(again);
      ASSERT_EQ(once, again);
      normaliser.apply(again);
      ASSERT_EQ(once.name, again.name) << normaliser.name << " of " << name;
    }
  }
}

TEST(Normalise, IsIdempotentOnRecordedNames) {
  for (const auto& file : std::filesystem::directory_iterator(recording("x").parent_path())) {
    for (const LaunchTraceEntry& entry : read_trace(file.path()).entries) {
      for (const Normaliser& normaliser : all_normalisers()) {
        LaunchTraceEntry once = entry;
        normaliser.apply(once);
        LaunchTraceEntry twice = once;
        normaliser.apply(twice);
        ASSERT_EQ(once.name, twice.name) << normaliser.name << " of " << entry.name;
      }
    }
  }
}

}  // namespace
}  // namespace lockstep
