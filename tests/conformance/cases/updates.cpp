// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include "framework/case.h"

namespace conformance {
namespace {

ls::Graph chain(const Environment& env, const ls::Buffer<int>& value,
                const std::vector<int>& constants) {
  ls::Graph graph = env.device().create_graph();
  std::vector<ls::GraphNode> last;
  for (const int constant : constants) {
    last = {graph.add_kernel(last, env.kernel("add_constant<int>"), {.grid = 1, .block = 1}, value,
                             constant, 1)};
  }
  return graph;
}

int run(const ls::GraphExec& exec, const ls::Stream& stream, const ls::Buffer<int>& value) {
  write(value, std::vector<int>{0});
  exec.launch(stream);
  stream.synchronize();
  return read(value)[0];
}

// Three nodes behind a first one, beside each other or one behind the other, that set 1, 2 and 3.
// The earlier ones take longer: beside each other 3 is not the last.
ls::Graph three_sets(const Environment& env, const ls::Buffer<int>& value, bool chained) {
  ls::Graph graph = env.device().create_graph();
  const auto add = [&](const std::vector<ls::GraphNode>& after, int number) {
    return graph.add_kernel(after, env.kernel("spin_then_set"), {.grid = 1, .block = 1}, value,
                            number, 200000 >> (2 * number));
  };
  const ls::GraphNode first = add({}, 0);
  ls::GraphNode last = first;
  for (int number = 1; number <= 3; ++number) last = add({chained ? last : first}, number);
  return graph;
}

void update_fan_to_chain(const Environment& env, bool in_child) {
  const auto value = make_buffer(env.device(), std::vector<int>{0});
  const ls::Stream stream = env.device().create_stream();
  const auto make = [&](bool chained) {
    ls::Graph graph = three_sets(env, *value, chained);
    if (!in_child) return graph;
    ls::Graph parent = env.device().create_graph();
    parent.add_child({}, graph);
    return parent;
  };
  ls::GraphExec exec = make(false).instantiate();
  (void)run(exec, stream, *value);
  const auto result = exec.update(make(true));
  expect(result.reinstantiated, "other edges mean instantiating anew");
  expect(!result.reason.empty(), "the reason is told");
  expect_equal(exec.reinstantiations(), std::uint64_t{1}, "instantiations");
  for (int round = 0; round < 5; ++round) {
    expect_equal(run(exec, stream, *value), 3, "value that the end of the chain sets");
  }
  expect(!exec.update(make(true)).reinstantiated, "the same shape again is updated in place");
  expect_equal(run(exec, stream, *value), 3, "value after it");
}

}  // namespace

void add_update_cases() {
  add_rule_case("update.parameters_in_place", [](const Environment& env) {
    const auto value = make_buffer(env.device(), std::vector<int>{0});
    const ls::Stream stream = env.device().create_stream();
    ls::GraphExec exec = chain(env, *value, {1, 2, 3}).instantiate();
    expect_equal(run(exec, stream, *value), 6, "value before");
    const std::uint32_t version = exec.version();
    exec.update(chain(env, *value, {10, 20, 30}));
    expect(exec.version() > version, "an update is a new version");
    expect_equal(run(exec, stream, *value), 60, "value after");
  });

  // REP-21: where the shape changed, instantiate anew once; no error is left behind.
  add_rule_case("REP_21.topology_changed", [](const Environment& env) {
    const auto value = make_buffer(env.device(), std::vector<int>{0});
    const ls::Stream stream = env.device().create_stream();
    ls::GraphExec exec = chain(env, *value, {1, 2, 3}).instantiate();
    const auto result = exec.update(chain(env, *value, {1, 2, 3, 4}));
    expect(result.reinstantiated, "a node more means instantiating anew");
    expect(!result.reason.empty(), "the reason is told");
    expect_equal(exec.reinstantiations(), std::uint64_t{1}, "instantiations");
    expect_equal(run(exec, stream, *value), 10, "value");
    ls::Graph other = env.device().create_graph();
    other.add_kernel({}, env.kernel("spin_then_set"), {.grid = 1, .block = 1}, *value, 77, 5);
    exec.update(other);
    expect_equal(run(exec, stream, *value), 77, "value with another function");
    stream.launch(env.kernel("add_constant<int>"), {.grid = 1, .block = 1}, *value, 1, 1);
    stream.synchronize();
    expect_equal(read(*value), std::vector<int>{78}, "a plain launch afterwards");
  });

  // The same nodes by number, kind and number of edges: only which depends on which differs.
  add_rule_case("REP_21.fan_to_chain",
                [](const Environment& env) { update_fan_to_chain(env, false); });
  add_rule_case("REP_21.fan_to_chain_in_a_child",
                [](const Environment& env) { update_fan_to_chain(env, true); });

  // The executable that the driver instantiates anew follows the launches of the one before.
  add_rule_case("graph.update_keeps_order", [](const Environment& env) {
    const auto value = make_buffer(env.device(), std::vector<int>{0});
    const auto slow = [&] {
      ls::Graph graph = env.device().create_graph();
      graph.add_kernel({}, env.kernel("spin_then_set"), {.grid = 1, .block = 1}, *value, 1,
                       10000000);
      return graph;
    };
    const ls::Stream second = env.device().create_stream(), third = env.device().create_stream();
    {
      ls::GraphExec exec;
      {
        const ls::Stream first = env.device().create_stream();
        exec = slow().instantiate();
        exec.launch(first);
        expect(exec.update(chain(env, *value, {10, 100})).reinstantiated, "instantiated anew");
      }
      exec.launch(second);  // the stream of the launch before is dropped
      exec.launch(third);
      third.synchronize();
      expect_equal(read(*value), std::vector<int>{221}, "value after launches behind an update");
      exec.update(slow());
      exec.launch(third);
      exec.update(chain(env, *value, {1, 2}));  // replaced again without a launch
      exec.update(chain(env, *value, {1, 2, 3}));
      expect_equal(exec.reinstantiations(), std::uint64_t{4}, "instantiations");
      exec.launch(second);
      exec.launch(second);
    }
    second.synchronize();
    expect_equal(read(*value), std::vector<int>{13}, "value after two updates");
  });

  // A stream that captures cannot be told from its launches before: only afterwards are they waited
  // for.
  add_rule_case("capture.update_of_what_its_stream_launched", [](const Environment& env) {
    const auto value = make_buffer(env.device(), std::vector<int>{0});
    ls::Graph slow = env.device().create_graph();
    slow.add_kernel({}, env.kernel("spin_then_set"), {.grid = 1, .block = 1}, *value, 1, 2000000);
    const ls::Graph next = chain(env, *value, {10, 100});
    ls::Stream first = env.device().create_stream();
    const ls::Stream second = env.device().create_stream();
    ls::GraphExec exec = slow.instantiate();
    exec.launch(first);
    ls::CaptureOptions options;
    options.mode = ls::CaptureMode::kRelaxed;
    const ls::Graph captured = first.capture(
        [&](ls::Stream& s) {
          s.launch(env.kernel("add_constant<int>"), {.grid = 1, .block = 1}, *value, 1000, 1);
          expect(exec.update(next).reinstantiated, "instantiated anew");
          expect_error(ls::ErrorCode::kIllegalDuringCapture, "a launch on another stream",
                       [&] { exec.launch(second); });
        },
        options);
    expect_equal(captured.node_count(), 1u, "nodes captured");
    exec.launch(second);
    second.synchronize();
    expect_equal(read(*value), std::vector<int>{111}, "value after the capture");
  });

  add_rule_case("update.other_function_in_place_or_anew", [](const Environment& env) {
    const auto value = make_buffer(env.device(), std::vector<int>{0});
    const ls::Stream stream = env.device().create_stream();
    ls::GraphExec exec = chain(env, *value, {5}).instantiate();
    ls::Graph scaled = env.device().create_graph();
    scaled.add_kernel({}, env.kernel("fill_index"), {.grid = 1, .block = 1}, *value, 1);
    exec.update(scaled);
    expect_equal(run(exec, stream, *value), 0, "value of fill_index");
  });

  // HIPG-07: a 2-D set into plain memory can be updated.
  add_rule_case("HIPG_07.two_dimensional_set", [](const Environment& env) {
    const auto buffer = make_buffer(env.device(), std::vector<std::uint8_t>(512 * 4, 0));
    ls::Stream stream = env.device().create_stream();
    const auto record = [&](std::uint32_t set_value) {
      return stream.capture([&](ls::Stream& s) {
        ls::FillRegion region;
        region.destination = buffer->data();
        region.extent = {100, 4, 1};
        region.pitch = 512;
        region.value = set_value;
        s.fill(region);
      });
    };
    ls::GraphExec exec = record(1).instantiate();
    exec.update(record(2));
    exec.launch(stream);
    stream.synchronize();
    const auto bytes = read(*buffer);
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      expect_equal(static_cast<int>(bytes[i]), i % 512 < 100 ? 2 : 0, "byte " + std::to_string(i));
    }
  });

  add_rule_case("update.original_graph_is_untouched", [](const Environment& env) {
    const auto value = make_buffer(env.device(), std::vector<int>{0});
    const ls::Stream stream = env.device().create_stream();
    const ls::Graph original = chain(env, *value, {1});
    ls::GraphExec first = original.instantiate(), second = original.instantiate();
    first.update(chain(env, *value, {50}));
    expect_equal(run(first, stream, *value), 50, "value of the updated executable");
    expect_equal(run(second, stream, *value), 1, "value of the other executable");
    expect_equal(run(original.instantiate(), stream, *value), 1, "value of a new executable");
  });
}

}  // namespace conformance
