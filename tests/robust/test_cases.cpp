// SPDX-License-Identifier: Apache-2.0
#include <lockstep/lockstep.h>
#include <lockstep/trace_rules.h>

#include <algorithm>
#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>
#include <random>
#include <set>

#include "robust/robust_test.h"

namespace lockstep::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr char kSource[] = R"(
#include <lockstep/kernel.h>
extern "C" __global__ void add(int* p, int value) { *p += value; }
extern "C" __global__ void twice(int* p, int) { *p *= 2; }
)";

struct Host {
  Device device = Device::open("host");
  Stream stream = device.create_stream();
  Module module = device.compile(kSource, {.kernels = {"add", "twice"}});
  Kernel add = module.kernel("add"), twice = module.kernel("twice");
  Buffer<int> value = device.allocate<int>(1), copy = device.allocate<int>(1);

  int read() {
    std::vector<int> result(1);
    stream.copy_and_wait(result, value);
    return result[0];
  }
};

/// 24 kernels and 7 copies with random edges from earlier nodes to later ones.
struct RandomGraph {
  Graph graph;
  std::vector<std::vector<std::uint32_t>> before;  ///< of each node

  RandomGraph(Host& host, std::mt19937& random) : graph(host.device.create_graph()) {
    for (std::uint32_t i = 0; i < 31; ++i) {
      std::vector<GraphNode> dependencies;
      before.emplace_back();
      for (int edge = 0; i > 0 && edge < 2; ++edge) {
        const std::uint32_t from = static_cast<std::uint32_t>(random() % (2 * i));
        if (from >= i || std::count(before[i].begin(), before[i].end(), from) != 0) continue;
        before[i].push_back(from);
        dependencies.push_back({from});
      }
      if (i % 4 == 3) {
        CopyRegion region;
        region.destination = host.copy.data();
        region.source = host.value.data();
        region.extent = {4, 1, 1};
        graph.add_copy(dependencies, region);
      } else {
        graph.add_kernel(std::span<const GraphNode>(dependencies), host.add,
                         {.grid = {1 + i, 1, 1}}, host.value, 0);
      }
    }
  }

  /// Always the lowest node of those that may run.
  std::vector<std::uint32_t> expected_order() const {
    std::vector<std::uint32_t> order;
    std::set<std::uint32_t> done;
    while (order.size() < before.size()) {
      for (std::uint32_t i = 0; i < before.size(); ++i) {
        const bool ready = std::all_of(before[i].begin(), before[i].end(),
                                       [&](std::uint32_t node) { return done.count(node) != 0; });
        if (done.count(i) != 0 || !ready) continue;
        done.insert(i);
        order.push_back(i);
        break;
      }
    }
    return order;
  }
};

TEST(Cases, TRC_02_NodesOfAGraphAreEntries) {
  Host host;
  std::mt19937 random(2);
  for (int round = 0; round < 5; ++round) {
    const RandomGraph built(host, random);
    const GraphExec exec = built.graph.instantiate();
    LaunchTrace trace;
    exec.launch(host.stream);
    exec.launch(host.stream);
    host.stream.synchronize();
    const std::vector<LaunchTraceEntry> entries = trace.take();
    ASSERT_EQ(entries.size(), 62u);
    const std::vector<std::uint32_t> order = built.expected_order();
    for (std::size_t i = 0; i < entries.size(); ++i) {
      const LaunchTraceEntry& entry = entries[i];
      const std::uint32_t node = order[i % 31];
      EXPECT_EQ(entry.node, static_cast<std::int32_t>(node)) << i;
      EXPECT_EQ(entry.launch, i / 31) << i;
      EXPECT_EQ(entry.graph, 0) << i;
      EXPECT_TRUE(entry.has(EntryFlag::kReplayed));
      EXPECT_EQ(entry.kind, node % 4 == 3 ? OperationKind::kMemcpy : OperationKind::kKernelLaunch);
      if (node % 4 != 3) {
        EXPECT_EQ(entry.grid_x, 1 + node);
      }
    }
  }
}

TEST(Cases, TRC_15_EveryWorkerHasAFileOfItsOwn) {
  for (const bool by_record : {false, true}) {
    const TempFolder folder;
    const std::string output = folder / "t.trace.jsonl";
    ProcessOptions options;
    if (!by_record) options.environment["LOCKSTEP_TRACE"] = output;
    const ProcessResult result = by_record ? lockstep_cli(recorded(output, {"workers"}), options)
                                           : robust_program({"workers"}, options);
    EXPECT_EQ(result.exit_code, 0) << all_of(result);
    if (!by_record) {
      EXPECT_EQ(result.err, "");
    }
    std::vector<std::size_t> counts;
    for (const auto& file : fs::directory_iterator(folder.path())) {
      const Trace trace = read_trace(file.path());
      EXPECT_TRUE(trace.footer.present) << file.path();
      const std::string number = std::to_string(trace.info.pid);
      if (file.path() != output) {
        EXPECT_EQ(file.path().filename(), "t.trace." + number + ".0.jsonl");
      }
      counts.push_back(view(trace).size());
    }
    EXPECT_THAT(counts, ::testing::UnorderedElementsAre(1, 2, 3, 4));
    EXPECT_EQ(view(read_trace(output)).size(), 1u) << "the first process that recorded";
  }
}

TEST(Recordings, SayOnceWhatTheDevicesAre) {
  const TempFolder folder;
  const std::string recorded_by_parent = folder / "parent.jsonl", own = folder / "own.jsonl";
  EXPECT_EQ(lockstep_cli(recorded(recorded_by_parent, {"launch", "5"}), {}).exit_code, 0);
  ProcessOptions options;
  options.environment["LOCKSTEP_TRACE"] = own;
  EXPECT_EQ(robust_program({"launch", "5"}, options).exit_code, 0);
  for (const std::string& file : {recorded_by_parent, own}) {
    const std::string text = read_file(file);
    const std::size_t first = text.find("{\"meta\":");
    ASSERT_NE(first, std::string::npos) << text;
    EXPECT_EQ(text.find("{\"meta\":", first + 1), std::string::npos) << text;
  }
}

TEST(Cases, GOLD_02_CopyToTheHostInTheLoopIsFound) {
  const TempFolder folder;
  write_file(folder / "rules", "no DtoH in range loop\nmax 1 DtoH\n");
  for (const bool each_round : {true, false}) {
    const std::string output = folder / (each_round ? "each.jsonl" : "once.jsonl");
    const ProcessResult recording =
        lockstep_cli(recorded(output, {"read-back", each_round ? "each-round" : "at-end"}));
    ASSERT_EQ(recording.exit_code, 0) << all_of(recording);
    std::size_t copies = 0;
    for (const LaunchTraceEntry& entry : view(read_trace(output))) {
      if (entry.memcpy_kind != MemcpyKind::kDtoH) continue;
      EXPECT_EQ(entry.memcpy_byte_size, 4u);
      ++copies;
    }
    EXPECT_EQ(copies, each_round ? 10u : 1u);
    const ProcessResult checked = lockstep_cli({"rules", folder / "rules", output});
    EXPECT_EQ(checked.exit_code, each_round ? 1 : 0) << all_of(checked);
    if (!each_round) continue;
    // The fill is entry 0, the first kernel 1.
    EXPECT_THAT(checked.out, HasSubstr("entry 2 on stream 0"));
    EXPECT_THAT(checked.out, HasSubstr("DtoH 4 B"));
  }
}

TEST(Cases, REP_21_UpdateInstantiatesAnewOnceAndIsRight) {
  Host host;
  const auto chain = [&](int kernels, const Kernel& kernel) {
    return host.stream.capture([&](StreamRef& s) {
      for (int i = 0; i < kernels; ++i) s.launch(kernel, {}, host.value, 3);
    });
  };
  host.stream.fill(host.value, 1);
  GraphExec exec = chain(3, host.add).instantiate();
  exec.launch(host.stream);
  EXPECT_EQ(host.read(), 10);

  const GraphExec::UpdateResult longer = exec.update(chain(4, host.add));
  EXPECT_TRUE(longer.reinstantiated);
  EXPECT_NE(longer.reason, "");
  EXPECT_EQ(exec.reinstantiations(), 1u);
  exec.launch(host.stream);
  EXPECT_EQ(host.read(), 22);

  const GraphExec::UpdateResult other = exec.update(chain(4, host.twice));
  EXPECT_EQ(exec.reinstantiations(), other.reinstantiated ? 2u : 1u);
  LaunchTrace trace;
  exec.launch(host.stream);
  EXPECT_EQ(trace.take().size(), 4u);
  EXPECT_EQ(host.read(), 352);
  // Nothing is left over for the next call.
  EXPECT_NO_THROW(host.device.synchronize());
  EXPECT_TRUE(host.stream.query());
}

TEST(Cases, NAME_03_NothingMindsPathsOutsideAscii) {
  const TempFolder unusual("Ünï 中文"), plain("plain");
  fs::create_directory(unusual.path() / "träces");
  const std::string program = unusual / "prögramm 程序";
  fs::copy_file(LOCKSTEP_ROBUST_PROGRAM, program);
  const std::string there = unusual / "träces/träce 追踪.jsonl", here = plain / "trace.jsonl";
  ProcessOptions options;
  options.environment["LANG"] = "C";
  options.environment["LC_ALL"] = "C";
  options.environment["LOCKSTEP_CACHE_DIR"] = unusual / "cäche";
  options.environment["LOCKSTEP_TRACE_FORCE"] = std::nullopt;
  // Recorded by the command line, by the program itself, and where everything is plain.
  const ProcessResult recording =
      lockstep_cli({"record", "-o", there, "--", program, "launch", "20"}, options);
  EXPECT_EQ(recording.exit_code, 0) << all_of(recording);
  EXPECT_EQ(recording.out, "done\n");
  EXPECT_EQ(read_trace(there).info.command.at(0), program);
  const std::string own = unusual / "själv.jsonl.zst";
  options.environment["LOCKSTEP_TRACE"] = own;
  EXPECT_EQ(run({program, "launch", "20"}, options).exit_code, 0);
  options.environment["LOCKSTEP_TRACE"] = std::nullopt;
  EXPECT_EQ(lockstep_cli(recorded(here, {"launch", "20"}), options).exit_code, 0);
  for (const std::string& file : {there, own}) {
    const ProcessResult compared = lockstep_cli({"diff", file, here}, options);
    EXPECT_EQ(compared.exit_code, 0) << all_of(compared);
  }
  write_file(unusual / "régles", "exactly 20 launches\n");
  EXPECT_EQ(lockstep_cli({"rules", unusual / "régles", there}, options).exit_code, 0);
}

TEST(Cases, NAME_03_KernelNamedOutsideAscii) {
  const Device device = Device::open("host");
  const Stream stream = device.create_stream();
  const auto value = device.allocate<int>(1);
  const Kernel kernel = device
                            .compile("extern \"C\" __global__ void größe_核(int* p) { *p = 7; }",
                                     {.kernels = {"größe_核"}, .source_name = "Ünï 中文.cu"})
                            .kernel("größe_核");
  EXPECT_EQ(kernel.name(), "größe_核");
  LaunchTrace trace;
  stream.launch(kernel, {}, value);
  const Trace recorded_trace = trace.trace();
  std::vector<int> result(1);
  stream.copy_and_wait(result, value);
  EXPECT_EQ(result[0], 7);
  const TempFolder folder("Ünï 中文");
  write_trace(folder / "golden.jsonl", recorded_trace);
  EXPECT_THAT(read_file(folder / "golden.jsonl"), HasSubstr("\"größe_核\""));
  const Trace again = read_trace(folder / "golden.jsonl");
  ASSERT_EQ(view(again).size(), 1u);
  EXPECT_EQ(view(again)[0].name, "größe_核");
  EXPECT_TRUE(diff(recorded_trace, again).equal);
}

}  // namespace
}  // namespace lockstep::testing
