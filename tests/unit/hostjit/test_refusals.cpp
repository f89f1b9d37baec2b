// SPDX-License-Identifier: Apache-2.0
// What is refused, with the user's file, line and column, and compile options.
#include <chrono>
#include <gmock/gmock.h>

#include "jit_support.h"

namespace lockstep::hostjit::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(HostjitRefusals, WarpIntrinsicsNameThePosition) {
  const Error error = compile_error(
      "__global__ void k(int* p) {\n"
      "  p[0] = __shfl_down_sync(0xffffffffu, p[0], 1);\n"
      "  __syncwarp();\n"
      "  p[1] = __ballot_sync(~0u, p[1] > 0) + __activemask();\n"
      "}\n");
  EXPECT_EQ(error.code(), ErrorCode::kCompileFailed);
  // g++ points at the end of the call, clang++ at its begin.
  EXPECT_THAT(error.log(),
              ::testing::ContainsRegex("user\\.cu:2:(26|10): error: .*__shfl_down_sync"));
  EXPECT_THAT(error.log(), ::testing::ContainsRegex("user\\.cu:3:(13|3): error: .*__syncwarp"));
  EXPECT_THAT(error.log(), ::testing::ContainsRegex("user\\.cu:4:[0-9]+: error: .*__ballot_sync"));
  EXPECT_THAT(error.log(), ::testing::ContainsRegex("user\\.cu:4:[0-9]+: error: .*__activemask"));
  EXPECT_THAT(error.log(), HasSubstr("use shared memory and __syncthreads()"));
}

TEST(HostjitRefusals, LaunchesFromKernels) {
  const Error error = compile_error(
      "__global__ void child() {}\n"
      "__global__ void parent() {\n"
      "    child<<<1, 1>>>();\n"
      "}\n");
  EXPECT_EQ(error.code(), ErrorCode::kCompileFailed);
  EXPECT_THAT(error.log(),
              HasSubstr("user.cu:3:10: error: <<<...>>>: a kernel of the host backend"));
}

TEST(HostjitRefusals, VendorHeaders) {
  EXPECT_THAT(compile_error("\n#include <cooperative_groups.h>\n").log(),
              AllOf(HasSubstr("user.cu:2:1: error:"), HasSubstr("no cooperative groups")));
  EXPECT_THAT(compile_error("#include <mma.h>\n").log(), HasSubstr("no tensor cores"));
  EXPECT_THAT(compile_error("#include <cuda_fp16.h>\n").log(), HasSubstr("lockstep::half"));
  EXPECT_THAT(compile_error("__global__ void k(float* p, unsigned long long t) {\n"
                            "  p[0] = tex1Dfetch<float>(t, 1);\n}\n")
                  .log(),
              AllOf(HasSubstr("user.cu:2:"), HasSubstr("no textures")));
}

TEST(HostjitRefusals, OnlyWhatTheCompilerSees) {
  CompileRequest request;
  request.source =
      "#if defined(__CUDACC__)\n#include <cuda_fp16.h>\n#  include <cooperative_groups.h>\n"
      "#include <mma.h>\n#endif\n"
      "__global__ void k(int* p) { p[0] = 7; }\n"
      "#ifdef USE_X\n__global__ void kx(int* p) { p[0] = 8; }\n#endif\n"
      "#ifdef WITH_MAIN\nextern __shared__ float odd;\nint main() { k<<<1, 1>>>(nullptr); }\n"
      "#endif\n";
  request.source_name = "user.cu";
  request.discover_kernels = true;
  const auto module = Module::load_file(compile(request).path);
  ASSERT_EQ(module->kernels().size(), 1u);
  EXPECT_EQ(module->kernels()[0].name(), "_Z1kPi");

  request.options = {"-DUSE_X"};
  request.name_expressions = {"kx"};
  int out = 0;
  ASSERT_TRUE(
      run(Module::load_file(compile(request).path)->find_kernel("kx"), {}, {}, 0, &out).ok());
  EXPECT_EQ(out, 8);

  request.name_expressions = {};
  request.options = {"-DWITH_MAIN"};
  EXPECT_EQ(
      compile_error(request).log(),
      "user.cu:11:1: error: extern __shared__ needs the form `extern __shared__ type name[];` "
      "on the host\n"
      "user.cu:12:15: error: <<<...>>>: a kernel of the host backend cannot launch kernels; "
      "launch from the host\n");
  request.options = {"-D__CUDACC__"};
  EXPECT_THAT(compile_error(request).log(),
              AllOf(HasSubstr("user.cu:2:1: error: #include <cuda_fp16.h>: vendor 16-bit types"),
                    HasSubstr("user.cu:3:1: error: #  include <cooperative_groups.h>: "),
                    HasSubstr("user.cu:4:1: error: #include <mma.h>: ")));
}

TEST(HostjitRefusals, SharedVariablesWithConstructors) {
  const Error error = compile_error(
      "struct S { int v; __device__ S() : v(threadIdx.x) {} };\n"
      "__global__ void k(int* p) {\n"
      "  __shared__ S s;\n"
      "  p[0] = s.v;\n}\n");
  EXPECT_EQ(error.code(), ErrorCode::kCompileFailed);
  EXPECT_THAT(error.log(), HasSubstr("user.cu:3:"));
}

TEST(HostjitRefusals, ErrorsShowTheUsersLine) {
  const Error error = compile_error(
      "#include <cuda_runtime.h>\n__global__ void k(float* p) {\n  p[0] = undefined_thing;\n}\n");
  EXPECT_EQ(error.code(), ErrorCode::kCompileFailed);
  EXPECT_THAT(error.log(), HasSubstr("user.cu:3:10: error:"));
  EXPECT_THAT(error.log(), HasSubstr("undefined_thing"));
  EXPECT_THAT(std::string(error.what()), HasSubstr("undefined_thing"));
}

TEST(HostjitRefusals, RewrittenLinesKeepTheirNumbers) {
  const Error error = compile_error(
      "__global__ void k(float* p) {\n"
      "  extern __shared__\n"
      "      float s[];\n"
      "  s[0] = p[0];\n"
      "  oops();\n"
      "}\n");
  EXPECT_THAT(error.log(), HasSubstr("user.cu:5:3: error:"));
}

TEST(HostjitRefusals, NamesThatDoNotExist) {
  CompileRequest request;
  request.source = "__global__ void k() {}";
  request.name_expressions = {"absent<float>"};
  EXPECT_THAT(compile_error(request).log(), HasSubstr("name expression 'absent<float>'"));
  request.name_expressions = {"k; int injected"};
  EXPECT_EQ(compile_error(request).code(), ErrorCode::kInvalidOption);
  request.name_expressions = {""};
  EXPECT_EQ(compile_error(request).code(), ErrorCode::kInvalidOption);
  request.source = "__device__ int f() { return 1; }";
  request.options = {"-I/usr/include"};  // which might declare f: left to the compiler
  request.name_expressions = {"f"};
  EXPECT_THAT(compile_error(request).log(), HasSubstr("has to name a __global__ function"));
}

TEST(HostjitRefusals, FunctionsThatAreNoKernels) {
  CompileRequest request;
  request.source =
      "void plain(int*) {}\n"
      "namespace ns { __device__ void helper(int*) {} }\n"
      "template <class T> __device__ void generic(T*) {}\n"
      "template <class T> using Void = void;\n"
      "__global__ Void<int> typed(int*) {}\n"
      "namespace ns { template <class T> __global__ void scale(T*) {} }\n"
      "template <> __global__ void ns::scale<char>(char*) {}\n";
  for (const char* name : {"plain", "ns::helper", "&ns::helper", "generic<int>"}) {
    request.name_expressions = {name};
    const Error error = compile_error(request);
    EXPECT_EQ(error.code(), ErrorCode::kCompileFailed);
    EXPECT_THAT(error.what(), HasSubstr("is no kernel: it is not declared __global__")) << name;
  }
  request.name_expressions = {"typed", "ns::scale<float>", "ns::scale<char>"};
  EXPECT_EQ(Module::load_file(compile(request).path)->kernels().size(), 3u);
  request.source = "#define KERNEL __global__ void\nKERNEL by_macro(int*) {}\n";
  request.name_expressions = {"by_macro"};
  EXPECT_EQ(Module::load_file(compile(request).path)->kernels().size(), 1u);
}

TEST(HostjitRefusals, LocalMemoryBeyondThatOfAGpu) {
  CompileRequest request;
  request.source =
      "__global__ void greedy(int* p, int n) {\n"
      "  volatile int local[150000];\n"
      "  for (int i = 0; i < n; ++i) local[i] = i;\n"
      "  p[0] = local[n / 2];\n}\n";
  request.name_expressions = {"greedy"};
  const Error error = compile_error(request);
  EXPECT_EQ(error.code(), ErrorCode::kCompileFailed);
  EXPECT_THAT(error.what(), HasSubstr("greedy"));
  EXPECT_THAT(error.what(), HasSubstr("the limit is 524288"));
}

TEST(HostjitOptions, AreTranslatedOrRefused) {
  CompileRequest request;
  request.source =
      "#ifdef BAD\n#error bad\n#endif\n"
      "__global__ void k(int* p) { p[0] = VALUE; p[1] = __cplusplus >= 202002L; }";
  request.name_expressions = {"k"};
  request.options = {"-D",    "VALUE=7",   "--std=c++20", "-arch=sm_90", "--gpu-architecture",
                     "sm_80", "-lineinfo", "-DBAD",       "-UBAD",       "-O1"};
  int out[2] = {};
  const auto module = Module::load_file(compile(request).path);
  ASSERT_TRUE(run(module->find_kernel("k"), {}, {}, 0, &out[0]).ok());
  EXPECT_THAT(out, ::testing::ElementsAre(7, 1));

  const auto refused = [&](std::vector<std::string> options) {
    request.options = std::move(options);
    const Error error = compile_error(request);
    EXPECT_EQ(error.code(), ErrorCode::kInvalidOption);
    return std::string(error.what());
  };
  EXPECT_THAT(refused({"-fplugin=evil.so"}), HasSubstr("'-fplugin=evil.so'"));
  EXPECT_THAT(refused({"-std=c++98x"}), HasSubstr("c++98x"));
  EXPECT_THAT(refused({"-D"}), HasSubstr("lacks its value"));
  EXPECT_THAT(refused({"-fmad=perhaps"}), HasSubstr("true or false"));
}

// Names that the library's own texts use, too.
TEST(HostjitOptions, MacrosOfTheUserMayHaveAnyName) {
  CompileRequest request;
  request.source =
      "#define P 16\n#define block blockIdx.x\n#define position 3\n#define load(p) (*(p))\n"
      "#define entry 4\n#define run row\n#define kFunction 5\n#define Launch 6\n#define used 7\n"
      "template <typename U> __global__ void k(T* p) {\n"
      "  p[0] = load(&p[0]) + P + entry + value + TWICE(kFunction) + block + ONE;\n}\n";
  request.name_expressions = {"k<char>"};
  request.options = {"-DT=int",
                     "-DU2=T",
                     "-Dvalue=1000",
                     "-DTWICE(x)=((x) * 2)",
                     "-Dlinear=4\nbroken",
                     "-Da=\\",
                     "-DONE",
                     "-Dindex=x",
                     "-Uindex",
                     "-Dblock_small"};
  int out = 100000;
  const auto module = Module::load_file(compile(request).path);
  ASSERT_TRUE(run(module->find_kernel("k<char>"), {}, {}, 0, &out).ok());
  EXPECT_EQ(out, 101031);
  request.options = {"-D=3"};
  EXPECT_THAT(compile_error(request).what(), HasSubstr("option '-D=3'"));
}

TEST(HostjitOptions, ByteOrderMarksAreNoText) {
  CompileRequest request;
  request.source = "\xef\xbb\xbf#include \"h.h\"\n__global__ void k(int* p) { p[0] = value; }";
  request.headers = {{"h.h",
                      "\xef\xbb\xbf"
                      "constexpr int value = 5;"}};
  request.name_expressions = {"k"};
  int out = 0;
  const auto module = Module::load_file(compile(request).path);
  ASSERT_TRUE(run(module->find_kernel("k"), {}, {}, 0, &out).ok());
  EXPECT_EQ(out, 5);
}

TEST(HostjitOptions, HeadersInMemory) {
  CompileRequest request;
  request.source = "#include \"sub/more.h\"\n__global__ void k(int* p) { p[0] = more(); }";
  request.name_expressions = {"k"};
  request.headers = {
      {"sub/more.h", "#include <leaf.h>\n__device__ inline int more() { return leaf + 1; }"},
      {"leaf.h", "constexpr int leaf = 41;"}};
  int out = 0;
  const auto module = Module::load_file(compile(request).path);
  ASSERT_TRUE(run(module->find_kernel("k"), {}, {}, 0, &out).ok());
  EXPECT_EQ(out, 42);
  request.headers = {{"../escape.h", ""}};
  EXPECT_EQ(compile_error(request).code(), ErrorCode::kInvalidOption);
}

// Names that headers of hostjit itself have, too.
TEST(HostjitOptions, HeadersOfTheUserAreFoundFirst) {
  CompileRequest request;
  std::string sum = "0";
  for (const char* name :
       {"abi", "types", "execution", "atomics", "maths", "refused", "prelude", "tail"}) {
    request.headers.push_back(
        {std::string(name) + ".h", "constexpr int of_" + std::string(name) + " = 1;"});
    request.source += "#include \"" + std::string(name) + ".h\"\n";
    sum += " + of_" + std::string(name);
  }
  request.source += "__global__ void k(int* p) { p[0] = " + sum + "; atomicAdd(p, 1); }";
  request.name_expressions = {"k"};
  int out = 0;
  const auto module = Module::load_file(compile(request).path);
  ASSERT_TRUE(run(module->find_kernel("k"), {}, {}, 0, &out).ok());
  EXPECT_EQ(out, 9);
}

TEST(HostjitOptions, WarpSizeIsThatOfTheDevice) {
  CompileRequest request;
  request.source =
      "__global__ void k(int* p) { static_assert(warpSize > 0, \"a constant\"); p[0] = warpSize; }";
  request.name_expressions = {"k"};
  std::string path;
  for (const std::uint32_t size : {1u, 32u, 64u}) {
    if (size != 1) request.warp_size = size;
    const CompiledImage image = compile(request);
    EXPECT_NE(image.path, path);
    path = image.path;
    int out = 0;
    const auto module = Module::load_file(path);
    ASSERT_TRUE(run(module->find_kernel("k"), {}, {}, 0, &out).ok());
    EXPECT_EQ(out, static_cast<int>(size));
  }
}

TEST(HostjitOptions, KernelsAreDiscovered) {
  CompileRequest request;
  request.source = R"(
template <class T> __global__ void generic(T*) {}
namespace a::b { __global__ void inner() {} namespace { __global__ void hidden() {} } }
extern "C" { __global__ void c_kernel(int*) {} }
__device__ void helper() {}
__global__ void overloaded(int) {}
__global__ void overloaded(float) {}
__global__ void declared_only(int);
__global__ void __launch_bounds__(64) bounded(int x) { (void)x; }
)";
  request.discover_kernels = true;
  request.name_expressions = {"generic<int>", "::bounded"};
  std::vector<std::string> found;
  const auto module = Module::load_file(compile(request).path);
  for (const Kernel& kernel : module->kernels()) found.push_back(kernel.name_expression());
  EXPECT_THAT(found, ::testing::ElementsAre("generic<int>", "::bounded", "a::b::hidden",
                                            "a::b::inner", "c_kernel"));
}

}  // namespace
}  // namespace lockstep::hostjit::testing
