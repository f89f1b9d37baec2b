// SPDX-License-Identifier: Apache-2.0
// What may be called while a stream captures: the rules of CUDA's driver, as measured, for every
// mode. Each row is a call, and for each mode whether it is legal.
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "framework/case.h"

namespace conformance {
namespace {

/// What a row's call may use. Everything is made before the capture begins.
struct Scene {
  const Environment& env;
  ls::Stream stream;
  ls::Stream other;
  ls::Event before;     ///< recorded outside, done
  ls::Event on_itself;  ///< the same, on the stream that captures then
  ls::Event captured;   ///< recorded in the capture
  ls::Buffer<int> value;
  ls::Graph graph;
  ls::GraphExec exec;
};

struct Row {
  const char* name;
  std::function<void(Scene&)> call;
  bool legal[3];  ///< global, thread-local, relaxed
  bool non_blocking = true;
  bool other_thread = false;
};

const char* const kModeNames[] = {"global", "thread_local", "relaxed"};

void launch(const Scene& scene, const ls::StreamRef& stream) {
  stream.launch(scene.env.kernel("add_constant<int>"), {.grid = 1, .block = 1}, scene.value, 1, 1);
}

Scene make_scene(const Environment& env, bool non_blocking) {
  Scene scene{env,
              env.device().create_stream({.non_blocking = non_blocking}),
              env.device().create_stream(),
              env.device().create_event(),
              env.device().create_event(),
              env.device().create_event(),
              env.device().allocate<int>(16),
              env.device().create_graph(),
              {}};
  scene.other.record(scene.before);
  scene.other.synchronize();
  scene.stream.record(scene.on_itself);
  scene.stream.synchronize();
  scene.graph.add_kernel({}, env.kernel("add_constant<int>"), {.grid = 1, .block = 1}, scene.value,
                         1, 1);
  scene.exec = scene.graph.instantiate();
  return scene;
}

void run_row(const Environment& env, const Row& row, int mode) {
  Scene scene = make_scene(env, row.non_blocking);
  ls::CaptureOptions options;
  options.mode = static_cast<ls::CaptureMode>(mode);
  scene.stream.begin_capture(options);
  launch(scene, scene.stream);
  std::string refused;
  const auto call = [&] {
    try {
      row.call(scene);
    } catch (const ls::Error& error) {
      refused = std::string(ls::to_string(error.code())) + ": " + error.what();
      if (error.code() != ls::ErrorCode::kIllegalDuringCapture) refused = "WRONG CODE " + refused;
    }
  };
  if (row.other_thread) {
    std::thread(call).join();
  } else {
    call();
  }
  const ls::CaptureStatus status = scene.stream.capture_status();
  std::string end;
  try {
    (void)scene.stream.end_capture();
  } catch (const ls::Error& error) {
    end = std::string(ls::to_string(error.code()));
  }
  // Whatever happened, the stream takes plain work again.
  launch(scene, scene.stream);
  scene.stream.synchronize();

  expect(refused.find("WRONG CODE") == std::string::npos, refused);
  if (row.legal[mode]) {
    expect(refused.empty(), "is legal, but was refused: " + refused);
    expect(status == ls::CaptureStatus::kActive, "the capture goes on");
    expect_equal(end, std::string(), "end of the capture");
  } else {
    expect(!refused.empty(), "is illegal, but was accepted");
    expect(status == ls::CaptureStatus::kInvalidated, "an illegal call invalidates the capture");
    expect_equal(end, std::string(ls::to_string(ls::ErrorCode::kCaptureInvalidated)),
                 "end of the capture");
  }
}

std::vector<Row> rows() {
  constexpr bool yes = true, no = false;
  return {
      {"stream_synchronize", [](Scene& s) { s.stream.synchronize(); }, {no, no, no}},
      {"stream_query", [](Scene& s) { (void)s.stream.query(); }, {no, no, no}},
      {"device_synchronize", [](Scene& s) { s.env.device().synchronize(); }, {no, no, no}},
      {"other_stream_synchronize", [](Scene& s) { s.other.synchronize(); }, {no, no, yes}},
      {"allocate", [](Scene& s) { (void)s.env.device().allocate<int>(64); }, {no, no, yes}},
      {"allocate_pinned",
       [](Scene& s) { (void)s.env.device().allocate_pinned<int>(64); },
       {no, no, yes}},
      {"memory_info", [](Scene& s) { (void)s.env.device().memory_info(); }, {yes, yes, yes}},
      {"pointer_info",
       [](Scene& s) { (void)s.env.device().pointer_info(s.value.data()); },
       {yes, yes, yes}},
      {"event_query_before", [](Scene& s) { (void)s.before.query(); }, {no, no, yes}},
      {"event_synchronize_before", [](Scene& s) { s.before.synchronize(); }, {no, no, yes}},
      {"event_query_before_on_the_stream",
       [](Scene& s) { expect(s.on_itself.query(), "was reached before the capture"); },
       {no, no, yes}},
      {"event_synchronize_before_on_the_stream",
       [](Scene& s) { s.on_itself.synchronize(); },
       {no, no, yes}},
      {"other_stream_waits_for_event_before_on_the_stream",
       [](Scene& s) {
         s.other.wait(s.on_itself);
         launch(s, s.other);
       },
       {yes, yes, yes}},
      {"event_query_captured",
       [](Scene& s) {
         s.stream.record(s.captured);
         (void)s.captured.query();
       },
       {no, no, no}},
      {"event_synchronize_captured",
       [](Scene& s) {
         s.stream.record(s.captured);
         s.captured.synchronize();
       },
       {no, no, no}},
      {"wait_for_event_before", [](Scene& s) { s.stream.wait(s.before); }, {no, no, no}},
      {"wait_for_event_never_recorded",
       [](Scene& s) { s.stream.wait(s.env.device().create_event()); },
       {yes, yes, yes}},
      {"create_stream_and_event",
       [](Scene& s) {
         (void)s.env.device().create_stream();
         (void)s.env.device().create_event();
       },
       {yes, yes, yes}},
      {"launch_on_other_stream", [](Scene& s) { launch(s, s.other); }, {yes, yes, yes}},
      {"launch_on_legacy_stream",
       [](Scene& s) { launch(s, s.env.device().legacy_stream()); },
       {yes, yes, yes}},
      {"launch_on_per_thread_stream",
       [](Scene& s) { launch(s, s.env.device().per_thread_stream()); },
       {yes, yes, yes}},
      {"graph_launch", [](Scene& s) { s.exec.launch(s.stream); }, {no, no, no}},
      {"graph_instantiate", [](Scene& s) { (void)s.graph.instantiate(); }, {no, no, yes}},
      {"load_module",
       [](Scene& s) {
         (void)s.env.device().compile("__global__ void in_capture() {}",
                                      {.kernels = {"in_capture"}});
       },
       {yes, yes, yes}},
      {"blocking_stream_launch_on_legacy",
       [](Scene& s) { launch(s, s.env.device().legacy_stream()); },
       {no, no, no},
       false},
      {"blocking_stream_set_on_legacy",
       [](Scene& s) { s.env.device().legacy_stream().fill(s.value, 1); },
       {no, no, no},
       false},
      {"blocking_stream_launch_on_per_thread",
       [](Scene& s) { launch(s, s.env.device().per_thread_stream()); },
       {yes, yes, yes},
       false},
      {"blocking_stream_allocate",
       [](Scene& s) { (void)s.env.device().allocate<int>(4); },
       {no, no, yes},
       false},
      {"other_thread_allocate",
       [](Scene& s) { (void)s.env.device().allocate<int>(64); },
       {no, yes, yes},
       true,
       true},
      {"other_thread_stream_synchronize",
       [](Scene& s) { s.other.synchronize(); },
       {no, yes, yes},
       true,
       true},
      {"other_thread_event_query",
       [](Scene& s) { (void)s.before.query(); },
       {no, yes, yes},
       true,
       true},
      {"other_thread_event_query_before_on_the_stream",
       [](Scene& s) { expect(s.on_itself.query(), "was reached before the capture"); },
       {no, yes, yes},
       true,
       true},
      {"other_thread_event_synchronize_before_on_the_stream",
       [](Scene& s) { s.on_itself.synchronize(); },
       {no, yes, yes},
       true,
       true},
      {"other_thread_device_synchronize",
       [](Scene& s) { s.env.device().synchronize(); },
       {no, no, no},
       true,
       true},
      {"other_thread_launch", [](Scene& s) { launch(s, s.stream); }, {yes, yes, yes}, true, true},
  };
}

}  // namespace

void add_capture_rule_cases() {
  for (const Row& row : rows()) {
    for (int mode = 0; mode < 3; ++mode) {
      add_rule_case(std::string("capture_rule.") + row.name + "." + kModeNames[mode],
                    [row, mode](const Environment& env) { run_row(env, row, mode); });
    }
  }

  add_rule_case("capture_rule.begin_twice", [](const Environment& env) {
    const ls::Stream stream = env.device().create_stream();
    stream.begin_capture();
    expect_error(ls::ErrorCode::kInvalidArgument, "a second begin",
                 [&] { stream.begin_capture(); });
    expect(stream.capture_status() == ls::CaptureStatus::kActive, "the capture goes on");
    expect_equal(stream.end_capture().node_count(), 0u, "nodes");
  });
  add_rule_case("capture_rule.end_without_begin", [](const Environment& env) {
    const ls::Stream stream = env.device().create_stream();
    expect_error(ls::ErrorCode::kInvalidArgument, "an end without a begin",
                 [&] { (void)stream.end_capture(); });
  });
  add_rule_case("capture_rule.legacy_stream_cannot_capture", [](const Environment& env) {
    expect_error(ls::ErrorCode::kIllegalDuringCapture, "a capture of the legacy stream",
                 [&] { env.device().legacy_stream().begin_capture(); });
  });
  add_rule_case("capture_rule.per_thread_stream_can_capture", [](const Environment& env) {
    const ls::StreamRef stream = env.device().per_thread_stream();
    const auto value = env.device().allocate<int>(1);
    const ls::Graph graph = stream.capture([&](const ls::StreamRef& s) { s.fill(value, 3); });
    expect_equal(graph.node_count(), 1u, "nodes");
  });
  add_rule_case("capture_rule.end_on_another_thread", [](const Environment& env) {
    for (const auto mode : {ls::CaptureMode::kThreadLocal, ls::CaptureMode::kRelaxed}) {
      const ls::Stream stream = env.device().create_stream();
      const auto value = env.device().allocate<int>(1);
      ls::CaptureOptions options;
      options.mode = mode;
      stream.begin_capture(options);
      stream.fill(value, 3);
      std::string refused;
      std::uint32_t nodes = 0;
      std::thread([&] {
        try {
          nodes = stream.end_capture().node_count();
        } catch (const ls::Error& error) {
          refused = error.what();
        }
      }).join();
      if (mode == ls::CaptureMode::kRelaxed) {
        expect_equal(refused, std::string(), "a relaxed capture ends on any thread");
        expect_equal(nodes, 1u, "nodes");
      } else {
        expect(!refused.empty(), "a thread-local capture ends on its own thread only");
      }
      expect(stream.capture_status() == ls::CaptureStatus::kNone, "the capture is over either way");
      stream.fill(value, 4);
      stream.synchronize();
    }
  });
  add_rule_case("capture_rule.invalidation_names_the_call", [](const Environment& env) {
    ls::Stream stream = env.device().create_stream();
    const ls::Stream other = env.device().create_stream();
    stream.begin_capture();
    expect_error(ls::ErrorCode::kIllegalDuringCapture, "synchronise", [&] { other.synchronize(); });
    const ls::Error error = expect_error(ls::ErrorCode::kCaptureInvalidated, "the end",
                                         [&] { (void)stream.end_capture(); });
    expect(std::string(error.what()).find("synchronize") != std::string::npos ||
               std::string(error.what()).find("Synchronize") != std::string::npos,
           std::string("the message names the call that did it: ") + error.what());
  });
}

}  // namespace conformance
