// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <thread>

#include "unit/host/host_fixture.h"

namespace lockstep::host_test {
namespace {

class Launch : public HostTest {};

TEST_F(Cases, BIG_01_LimitsAreTheSameFromAStreamAndFromANode) {
  const Stream s = make_stream();
  lockstep_graph* raw = nullptr;
  ASSERT_TRUE(succeeded(call(b.graph_create, device, &raw)));
  const Graph graph(raw);
  struct Row {
    LaunchConfig config;
    bool allowed;
    bool execute;
  };
  const Row rows[] = {
      {{{1, 65535, 1}, {1, 1, 1}, 0}, true, true},
      {{{1, 65536, 1}, {1, 1, 1}, 0}, false, false},
      {{{1, 1, 65535}, {1, 1, 1}, 0}, true, true},
      {{{1, 1, 65536}, {1, 1, 1}, 0}, false, false},
      {{{2147483647, 1, 1}, {1, 1, 1}, 0}, true, false},  // takes too long here
      {{{2147483648U, 1, 1}, {1, 1, 1}, 0}, false, false},
      {{{0, 1, 1}, {1, 1, 1}, 0}, false, false},
      {{{1, 0, 1}, {1, 1, 1}, 0}, false, false},
      {{{1, 1, 0}, {1, 1, 1}, 0}, false, false},
      {{{1, 1, 1}, {0, 1, 1}, 0}, false, false},
      {{{1, 1, 1}, {1, 1, 0}, 0}, false, false},
      {{{1, 1, 1}, {1024, 1, 1}, 0}, true, true},
      {{{1, 1, 1}, {1025, 1, 1}, 0}, false, false},
      {{{1, 1, 1}, {32, 33, 1}, 0}, false, false},
      {{{1, 1, 1}, {1, 1, 64}, 0}, true, true},
      {{{1, 1, 1}, {1, 1, 65}, 0}, false, false},
      {{{1, 1, 1}, {1, 1, 1}, 49152}, true, true},
      {{{1, 1, 1}, {1, 1, 1}, 49153}, false, false},
  };
  for (const Row& row : rows) {
    lockstep_launch_desc desc{};
    desc.struct_size = sizeof(desc);
    desc.kernel = kernel("nop");
    desc.grid = row.config.grid;
    desc.block = row.config.block;
    desc.shared_bytes = row.config.shared;
    lockstep_node_desc node{};
    node.struct_size = sizeof(node);
    node.kind = LOCKSTEP_NODE_KERNEL;
    node.launch = &desc;
    std::uint32_t ordinal = 0;
    const Result added = call(b.graph_add_node, graph.get(), &node,
                              static_cast<const std::uint32_t*>(nullptr), 0U, &ordinal);
    const std::string what = std::to_string(desc.grid.x) + "," + std::to_string(desc.grid.y) + "," +
                             std::to_string(desc.grid.z) + " / " + std::to_string(desc.block.x);
    EXPECT_EQ(added.native, row.allowed ? 0 : 1) << what << ": " << added.message;
    if (row.allowed && !row.execute) continue;
    const Result launched = call(b.launch, s.get(), &desc);
    EXPECT_EQ(launched.native, added.native) << what;
    EXPECT_EQ(launched.message, added.message);
  }
  EXPECT_TRUE(succeeded(synchronize(s)));
}

TEST_F(Cases, TRC_18_ShapeOfALaunchIsRecorded) {
  const Stream s = make_stream();
  auto* const out = allocate<std::uint32_t>(6);
  start_recording();
  ASSERT_TRUE(succeeded(launch(s, kernel("shape"), {{2, 3, 4}, {8, 4, 2}, 1024}, out)));
  const std::vector<Recorded> records = stop_recording();
  ASSERT_EQ(records.size(), 1U);
  const auto& k = records[0].record.of.kernel;
  EXPECT_EQ(records[0].record.kind, std::uint32_t{LOCKSTEP_RECORD_KERNEL});
  EXPECT_EQ(records[0].record.stream, b.stream_identity(s.get()));
  EXPECT_EQ(records[0].name, "shape");
  const auto list = [](lockstep_dim3 d) { return std::vector<std::uint32_t>{d.x, d.y, d.z}; };
  EXPECT_EQ(list(k.grid), (std::vector<std::uint32_t>{2, 3, 4}));
  EXPECT_EQ(list(k.block), (std::vector<std::uint32_t>{8, 4, 2}));
  EXPECT_EQ(k.shared_bytes, 1024U);
  EXPECT_EQ(k.parameter_count, 1U);
  EXPECT_EQ(k.parameters[0].tag, 1);
  EXPECT_EQ(read(s, out, 6), (std::vector<std::uint32_t>{2, 3, 4, 8, 4, 2}));
}

TEST_F(Cases, REP_19_ArgumentsKeepTheirSizes) {
  struct Pair {
    char c;
    int i;
  };
  const Stream s = make_stream();
  auto* const p = allocate<float>(5);
  const std::uint32_t n = 0xFFFFFF;
  const std::uint8_t flag = 200;
  const double x = 0.25;
  const Pair pair{'\x07', -9};
  const void* arguments[] = {&p, &n, &flag, &x, &pair};
  start_recording();
  ASSERT_TRUE(succeeded(begin(s)));
  ASSERT_TRUE(succeeded(launch_raw(s.get(), kernel("mixed"), {}, arguments, 5)));
  Graph captured;
  ASSERT_TRUE(succeeded(end(s, &captured)));
  const std::vector<Recorded> records = stop_recording();
  std::vector<std::size_t> sizes;
  for (const auto& bytes : records.at(0).arguments) sizes.push_back(bytes.size());
  EXPECT_EQ(sizes, (std::vector<std::size_t>{8, 4, 1, 8, 8}));

  // Built by hand from what the captured node lists.
  lockstep_node_info info{};
  info.struct_size = sizeof(info);
  ASSERT_TRUE(succeeded(call(b.graph_node, captured.get(), 0U, &info)));
  const auto& k = info.record->of.kernel;
  EXPECT_EQ(k.parameters[4].tag, 2);  // may have padding
  lockstep_launch_desc desc{};
  desc.struct_size = sizeof(desc);
  desc.kernel = kernel("mixed");
  desc.grid = k.grid;
  desc.block = k.block;
  desc.arguments = k.arguments;
  desc.argument_count = k.parameter_count;
  lockstep_node_desc node{};
  node.struct_size = sizeof(node);
  node.kind = LOCKSTEP_NODE_KERNEL;
  node.launch = &desc;
  lockstep_graph* raw = nullptr;
  ASSERT_TRUE(succeeded(call(b.graph_create, device, &raw)));
  const Graph built(raw);
  std::uint32_t ordinal = 99;
  ASSERT_TRUE(succeeded(call(b.graph_add_node, built.get(), &node,
                             static_cast<const std::uint32_t*>(nullptr), 0U, &ordinal)));
  EXPECT_EQ(ordinal, 0U);
  captured.reset();
  const std::vector<float> expected = {16777215.0F, 200.0F, 0.25F, 7.0F, -9.0F};
  const Exec exec = instantiate(built);
  ASSERT_TRUE(succeeded(launch_graph(exec, s)));
  EXPECT_EQ(read(s, p, 5), expected);
  ASSERT_TRUE(succeeded(set(s, p, 0, 4, 5)));
  ASSERT_TRUE(succeeded(launch_raw(s.get(), kernel("mixed"), {}, arguments, 5)));
  EXPECT_EQ(read(s, p, 5), expected);
}

TEST_F(Launch, WrongArgumentsAreRefused) {
  const Stream s = make_stream();
  int* const p = allocate<int>(1);
  EXPECT_EQ(launch(s, kernel("store"), {}, p).native, 1);
  EXPECT_EQ(launch(s, kernel("nop"), {}, p).native, 1);
  const void* const missing[] = {&p, nullptr};
  EXPECT_EQ(launch_raw(s.get(), kernel("store"), {}, missing, 2).native, 1);
  EXPECT_EQ(launch_raw(nullptr, kernel("nop"), {}, nullptr, 0).native, 1);
  EXPECT_EQ(launch_raw(s.get(), nullptr, {}, nullptr, 0).native, 1);
}

TEST_F(Launch, DynamicSharedMemoryHasToBeAskedFor) {
  const Stream s = make_stream();
  int* const out = allocate<int>(1);
  lockstep_kernel* const sum = kernel("shared_sum");
  ASSERT_TRUE(succeeded(launch(s, sum, {{1, 1, 1}, {64, 1, 1}, 256}, out)));
  EXPECT_EQ(read(s, out, 1)[0], 64 * 63 / 2);
  EXPECT_EQ(launch(s, sum, {{1, 1, 1}, {64, 1, 1}, 100'000}, out).native, 1);
  EXPECT_EQ(call(b.kernel_set_max_dynamic_shared, sum, 227U * 1024 + 1).native, 1);
  ASSERT_TRUE(succeeded(call(b.kernel_set_max_dynamic_shared, sum, 100'000U)));
  lockstep_kernel_info info{};
  info.struct_size = sizeof(info);
  ASSERT_TRUE(succeeded(call(b.kernel_info, sum, &info)));
  EXPECT_STREQ(info.name, "shared_sum");
  EXPECT_EQ(info.max_dynamic_shared_bytes, 100'000U);
  EXPECT_EQ(info.max_threads_per_block, 1024U);
  EXPECT_EQ(info.parameter_count, 1U);
  ASSERT_TRUE(succeeded(launch(s, sum, {{1, 1, 1}, {64, 1, 1}, 100'000}, out)));
  ASSERT_TRUE(succeeded(synchronize(s)));
  ASSERT_TRUE(succeeded(call(b.kernel_set_max_dynamic_shared, sum, 49152U)));
}

TEST_F(Launch, AttributesAreHonouredOrRefused) {
  const Stream s = make_stream();
  const auto with = [&](std::uint32_t id, const void* value, std::uint32_t size) {
    const lockstep_attribute attribute{id, size, value};
    lockstep_launch_desc desc{};
    desc.struct_size = sizeof(desc);
    desc.kernel = kernel("nop");
    desc.grid = desc.block = {1, 1, 1};
    desc.attributes = &attribute;
    desc.attribute_count = 1;
    return call(b.launch, s.get(), &desc).code;
  };
  const lockstep_dim3 one{1, 1, 1};
  const lockstep_dim3 two{2, 1, 1};
  const std::uint32_t yes = 1;
  const std::uint32_t no = 0;
  const std::int32_t priority = -3;
  EXPECT_EQ(with(LOCKSTEP_LAUNCH_CLUSTER, &one, sizeof(one)), LOCKSTEP_OK);
  EXPECT_EQ(with(LOCKSTEP_LAUNCH_CLUSTER, &two, sizeof(two)), LOCKSTEP_E_NOT_SUPPORTED);
  EXPECT_EQ(with(LOCKSTEP_LAUNCH_COOPERATIVE, &no, sizeof(no)), LOCKSTEP_OK);
  EXPECT_EQ(with(LOCKSTEP_LAUNCH_COOPERATIVE, &yes, sizeof(yes)), LOCKSTEP_E_NOT_SUPPORTED);
  EXPECT_EQ(with(LOCKSTEP_LAUNCH_COOPERATIVE, &no, 3), LOCKSTEP_E_INVALID_ARGUMENT);
  EXPECT_EQ(with(77, &no, sizeof(no)), LOCKSTEP_E_NOT_SUPPORTED);
  start_recording();
  EXPECT_EQ(with(LOCKSTEP_LAUNCH_PRIORITY, &priority, sizeof(priority)), LOCKSTEP_OK);
  const std::vector<Recorded> records = stop_recording();
  EXPECT_EQ(text_of(records.at(0).record.of.kernel.attributes), "{\"priority\":-3}");
}

TEST_F(Launch, BlocksOfALargeGridRunOnceEach) {
  const Stream s = make_stream();
  auto* const total = allocate<unsigned long long>(1);
  ASSERT_TRUE(succeeded(set(s, total, 0, 4, 2)));
  ASSERT_TRUE(succeeded(launch(s, kernel("count_threads"), {{37, 41, 5}, {64, 2, 1}, 0}, total)));
  EXPECT_EQ(read(s, total, 1)[0], 37ULL * 41 * 5 * 128);
}

TEST_F(Launch, ModulesTellWhatIsWrong) {
  Module module;
  const Result broken =
      compile("extern \"C\" __global__ void k() { this_is_wrong; }", {"k"}, &module);
  EXPECT_EQ(broken.code, LOCKSTEP_E_COMPILATION_FAILED);
  EXPECT_NE(broken.log.find("this_is_wrong"), std::string::npos) << broken.log;
  ASSERT_TRUE(succeeded(compile("extern \"C\" __global__ void k() {}", {"k"}, &module)));
  lockstep_kernel* k = nullptr;
  const Result missing = call(b.module_kernel, module.get(), "other", &k);
  EXPECT_EQ(missing.code, LOCKSTEP_E_NOT_FOUND);
  EXPECT_NE(missing.message.find("it has: k"), std::string::npos) << missing.message;
  lockstep_module_desc desc{};
  desc.struct_size = sizeof(desc);
  desc.data = "//";
  desc.bytes = 2;
  lockstep_module* raw = nullptr;
  desc.format = LOCKSTEP_MODULE_PTX;
  EXPECT_EQ(call(b.module_create, device, &desc, &raw).code, LOCKSTEP_E_NOT_SUPPORTED);
  desc.format = LOCKSTEP_MODULE_BINARY;
  EXPECT_EQ(call(b.module_create, device, &desc, &raw).code, LOCKSTEP_E_INVALID_ARGUMENT);
  desc.format = 9;
  EXPECT_EQ(call(b.module_create, device, &desc, &raw).code, LOCKSTEP_E_INVALID_ARGUMENT);
}

TEST_F(Launch, TemplatesAreFoundByTheirExpressionAndTheirMangledName) {
  const Stream s = make_stream();
  int* const p = allocate<int>(1);
  lockstep_kernel_info info{};
  info.struct_size = sizeof(info);
  lockstep_kernel* const scale = kernel("scale<int, 3>");
  ASSERT_TRUE(succeeded(call(b.kernel_info, scale, &info)));
  EXPECT_STREQ(info.name, "_Z5scaleIiLi3EEvPT_");
  EXPECT_EQ(kernel(info.name), scale);
  ASSERT_TRUE(succeeded(set(s, p, 14, 4, 1)));
  ASSERT_TRUE(succeeded(launch(s, scale, {}, p)));
  EXPECT_EQ(read(s, p, 1)[0], 42);
}

TEST_F(Launch, DevicesTellWhatTheyAre) {
  std::uint32_t count = 0;
  ASSERT_TRUE(succeeded(call(b.device_count, &count)));
  EXPECT_EQ(count, 1U);
  lockstep_device_info info{};
  info.struct_size = sizeof(info);
  ASSERT_TRUE(succeeded(call(b.device_info, 0U, &info)));
  EXPECT_GT(std::strlen(info.name), 3U);
  EXPECT_GT(std::strlen(info.arch), 2U);
  EXPECT_EQ(info.simulated, 0U);
  EXPECT_GT(info.memory_bytes, 1U << 20);
  const Result none = call(b.device_info, 1U, &info);
  EXPECT_EQ(none.code, LOCKSTEP_E_INVALID_ARGUMENT);
  EXPECT_NE(none.message.find("LOCKSTEP_HOST_DEVICES"), std::string::npos) << none.message;
  const std::pair<std::uint32_t, std::int64_t> attributes[] = {
      {LOCKSTEP_ATTR_MAX_THREADS_PER_BLOCK, 1024},
      {LOCKSTEP_ATTR_MAX_BLOCK_Z, 64},
      {LOCKSTEP_ATTR_MAX_GRID_X, 2147483647},
      {LOCKSTEP_ATTR_MAX_GRID_Y, 65535},
      {LOCKSTEP_ATTR_MAX_SHARED_PER_BLOCK, 49152},
      {LOCKSTEP_ATTR_MAX_SHARED_PER_BLOCK_OPTIN, 227 * 1024},
      {LOCKSTEP_ATTR_WARP_SIZE, 1},
      {LOCKSTEP_ATTR_GRAPH_MEMORY_NODES, 1},
      {LOCKSTEP_ATTR_COOPERATIVE_LAUNCH, 0},
  };
  for (const auto& [attribute, expected] : attributes) {
    std::int64_t value = -1;
    ASSERT_TRUE(succeeded(call(b.device_attribute, 0U, attribute, &value)));
    EXPECT_EQ(value, expected) << attribute;
  }
  std::int64_t value = 0;
  EXPECT_EQ(
      call(b.device_attribute, 0U, std::uint32_t{LOCKSTEP_ATTR_COMPUTE_CAPABILITY_MAJOR}, &value)
          .code,
      LOCKSTEP_E_NOT_SUPPORTED);
  EXPECT_NE(std::string(b.capabilities(0)).find("\"warp_intrinsics\":false"), std::string::npos);
}

// Structures of callers that know less, and of none.
TEST_F(Launch, SizedStructuresAreRespected) {
  lockstep_device_info info{};
  std::memset(&info, 0x5A, sizeof(info));
  info.struct_size = offsetof(lockstep_device_info, uuid);
  ASSERT_TRUE(succeeded(call(b.device_info, 0U, &info)));
  EXPECT_EQ(info.struct_size, offsetof(lockstep_device_info, uuid));
  EXPECT_GT(std::strlen(info.arch), 2U);
  EXPECT_EQ(static_cast<unsigned char>(info.uuid[0]), 0x5A);
  info.struct_size = 0;
  EXPECT_EQ(call(b.device_info, 0U, &info).code, LOCKSTEP_E_INVALID_ARGUMENT);
  EXPECT_EQ(b.device_info(7, &info, nullptr), LOCKSTEP_E_INVALID_ARGUMENT);
  lockstep_error error{};
  error.struct_size = sizeof(error);
  EXPECT_EQ(query(LOCKSTEP_BACKEND_ABI_MAX + 1, LOCKSTEP_BACKEND_ABI_MAX + 5, &error), nullptr);
  EXPECT_EQ(error.code, LOCKSTEP_E_INCOMPATIBLE_PLUGIN);
  EXPECT_EQ(query(0, LOCKSTEP_BACKEND_ABI_MAX + 5, &error), &b);
}

// Declared at file scope it takes no shared memory by itself.
TEST_F(Launch, AllTheDynamicSharedMemoryIsThere) {
  Module module;
  ASSERT_TRUE(
      succeeded(compile("extern __shared__ float s[];\n"
                        "extern \"C\" __global__ void k(float* out) {\n"
                        "  s[12287] = 5.0f; __syncthreads(); *out = s[12287]; }\n",
                        {"k"}, &module)));
  lockstep_kernel* k = nullptr;
  ASSERT_TRUE(succeeded(call(b.module_kernel, module.get(), "k", &k)));
  const Stream s = make_stream();
  float* const out = allocate<float>(1);
  ASSERT_TRUE(succeeded(launch(s, k, {{1, 1, 1}, {1, 1, 1}, 49152}, out)));
  EXPECT_EQ(read(s, out, 1)[0], 5.0f);
  EXPECT_EQ(launch(s, k, {{1, 1, 1}, {1, 1, 1}, 49153}, out).native, 1);
}

}  // namespace
}  // namespace lockstep::host_test
