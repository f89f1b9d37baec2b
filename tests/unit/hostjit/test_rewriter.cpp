// SPDX-License-Identifier: Apache-2.0
// The source rewriter on text alone.
#include <algorithm>
#include <gmock/gmock.h>
#include <hostjit/source_rewriter.h>

namespace lockstep::hostjit {
namespace {

using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

RewrittenSource rewrite(const std::string& source) {
  RewrittenSource result = rewrite_source(source, "a.cu", 0);
  EXPECT_EQ(std::count(result.text.begin(), result.text.end(), '\n'),
            std::count(source.begin(), source.end(), '\n'))
      << result.text;
  return result;
}

TEST(SourceRewriter, LeavesLiteralsAndCommentsAlone) {
  const std::string source =
      "// extern __shared__ float a[];\n"
      "/* extern __shared__ float b[]; <<< */\n"
      "const char* s = \"extern __shared__ float c[]; <<<\";\n"
      "const char* r = R\"x(extern __shared__ float d[]; )\" <<< )x\";\n"
      "#define M extern __shared__ \\\n  float e[]\n"
      "char q = '\"'; int n = 1'000; int shifted = 1 << 2;\n";
  const RewrittenSource result = rewrite(source);
  EXPECT_EQ(result.text, source);
  EXPECT_THAT(result.refusals, IsEmpty());
}

TEST(SourceRewriter, DynamicSharedKeepsLines) {
  const RewrittenSource result = rewrite(
      "void f() { extern\n __shared__ int\n a[], b[][3]; }\n"
      "extern __shared__ std::pair<int, float> c[];\n");
  EXPECT_THAT(result.text, HasSubstr("int (* const a) = reinterpret_cast<int (*)>"));
  EXPECT_THAT(result.text, HasSubstr("int (* const b)[3] = reinterpret_cast<int (*)[3]>"));
  EXPECT_THAT(result.text, HasSubstr("static __thread std::pair<int, float> (*c) __asm__"));
  EXPECT_THAT(result.text, Not(HasSubstr("extern")));
}

TEST(SourceRewriter, RefusesLaunchesButNotOperators) {
  EXPECT_THAT(rewrite("void f() {\n  k <<< 1, 2 >>> ();\n}").refusals,
              ElementsAre(Field(&Refusal::message, HasSubstr("a.cu:2:5: error: <<<...>>>"))));
  EXPECT_THAT(rewrite("template <> void operator<<<int>(int);").refusals, IsEmpty());
}

TEST(SourceRewriter, ReportsWhatItCannotRewrite) {
  EXPECT_THAT(rewrite("\n extern __shared__ float x;\n").refusals,
              ElementsAre(Field(&Refusal::message,
                                HasSubstr("a.cu:2:2: error: extern __shared__ needs the form"))));
}

TEST(SourceRewriter, SurvivesBrokenText) {
  for (const char* text : {"extern __shared__",
                           "\"",
                           "'",
                           "R\"(",
                           "/*",
                           "#",
                           "{",
                           "}",
                           "}}}",
                           "__launch_bounds__",
                           "__launch_bounds__(",
                           "__global__",
                           "__global__ void",
                           "__global__ void k(",
                           "__device__",
                           "namespace",
                           "<<<",
                           "extern __shared__ float a[",
                           "template",
                           "\\",
                           "#include",
                           "#if",
                           "#ifndef",
                           "#else",
                           "#endif",
                           "a\\\n"}) {
    rewrite_source(text, "a.cu", 0);
  }
  SUCCEED();
}

TEST(SourceRewriter, KernelsTheCompilerMayNotSeeAreNotListed) {
  const RewrittenSource result = rewrite(
      "#ifndef GUARD  // of a file\n#define GUARD\n"
      "__global__ void sure() {}\n"
      "#ifdef USE_X\n__global__ void kx() {}\n#if A\n#endif\n__global__ void ky() {}\n#endif\n"
      "#ifndef ONE\n#define TWO\n__global__ void kz() {}\n#endif\n"
      "__global__ void both(int) {}\n#if B\n__global__ void both(float) {}\n#endif\n"
      "__global__ void also() {}\n"
      "#else\n__global__ void other() {}\n#endif\n"
      "#endif\n__global__ void last() {}\n");
  EXPECT_THAT(result.kernels, ElementsAre("also", "last", "sure"));
  EXPECT_TRUE(result.global_names.contains("kx"));
}

TEST(SourceRewriter, DeviceVariablesAreKept) {
  const RewrittenSource result = rewrite(
      "static __device__ int v;\n__device__ float f(int);\n__device__ alignas(8) int w[2];\n");
  EXPECT_THAT(result.text, HasSubstr("static __lockstep_variable__ int v;"));
  EXPECT_THAT(result.text, HasSubstr("\n__device__ float f(int);"));
  EXPECT_THAT(result.text, HasSubstr("__lockstep_variable__ alignas(8) int w[2];"));
}

}  // namespace
}  // namespace lockstep::hostjit
