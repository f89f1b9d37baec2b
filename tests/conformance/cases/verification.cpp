// SPDX-License-Identifier: Apache-2.0
#include <functional>
#include <string>
#include <vector>

#include "framework/case.h"

namespace conformance {
namespace {

struct Setup {
  std::shared_ptr<ls::Buffer<float>> x, y;
  std::function<void(ls::Stream&)> step;
};

Setup make_setup(const Environment& env) {
  Setup setup;
  setup.x = make_buffer(env.device(), std::vector<float>(256, 2.0f));
  setup.y = make_buffer(env.device(), std::vector<float>(256, 1.0f));
  const ls::Kernel saxpy = env.kernel("saxpy"), scale = env.kernel("scale<float, 3>");
  setup.step = [=](ls::Stream& stream) {
    stream.fill(*setup.y, 1.0f);
    stream.launch(saxpy, {.grid = 1, .block = 256}, 2.0f, *setup.x, *setup.y, 256);
    stream.launch(scale, {.grid = 1, .block = 256}, *setup.y, 256);
  };
  return setup;
}

}  // namespace

void add_verify_cases() {
  add_rule_case("verify.replay_equals_eager", [](const Environment& env) {
    const Setup setup = make_setup(env);
    ls::Stream stream = env.device().create_stream();
    const ls::GraphExec exec = stream.capture(setup.step).instantiate();
    ls::VerifyOptions options;
    options.level = ls::VerifyLevel::kValues;
    options.outputs = {ls::as_bytes(*setup.y)};
    const ls::VerifyReport report = ls::verify(exec, setup.step, options);
    expect(report.ok(), "verified: " + ls::to_text(report));
    expect(report.verified == ls::VerifyLevel::kValues, "up to the values");
  });

  add_rule_case("verify.missing_kernel_is_found", [](const Environment& env) {
    const Setup setup = make_setup(env);
    ls::Stream stream = env.device().create_stream();
    const ls::GraphExec exec =
        stream.capture([&](ls::Stream& s) { s.fill(*setup.y, 1.0f); }).instantiate();
    const ls::VerifyReport report = ls::verify(exec, setup.step);
    expect(!report.ok(), "a graph without the kernels is not verified");
    expect(ls::to_text(report).find("saxpy") != std::string::npos, "the report names the kernel");
  });

  add_rule_case("verify.wrong_buffer_is_found", [](const Environment& env) {
    const Setup setup = make_setup(env);
    const auto other = make_buffer(env.device(), std::vector<float>(256, 5.0f));
    ls::Stream stream = env.device().create_stream();
    const ls::GraphExec exec =
        stream
            .capture([&](ls::Stream& s) {
              s.fill(*setup.y, 1.0f);
              s.launch(env.kernel("saxpy"), {.grid = 1, .block = 256}, 2.0f, *setup.x, *setup.y,
                       256);
              s.launch(env.kernel("scale<float, 3>"), {.grid = 1, .block = 256}, *other, 256);
            })
            .instantiate();
    const ls::VerifyReport report = ls::verify(exec, setup.step);
    expect(!report.ok(), "a graph that scales another buffer is not verified");
  });

  add_rule_case("verify.wrong_values_are_found", [](const Environment& env) {
    const Setup setup = make_setup(env);
    ls::Stream stream = env.device().create_stream();
    // Equal launches, but the input is written over behind the capture's back.
    const auto stale = make_buffer(env.device(), std::vector<float>(256, 0.0f));
    const ls::GraphExec exec =
        stream
            .capture([&](ls::Stream& s) {
              s.fill(*setup.y, 1.0f);
              s.launch(env.kernel("saxpy"), {.grid = 1, .block = 256}, 2.0f, *stale, *setup.y, 256);
              s.launch(env.kernel("scale<float, 3>"), {.grid = 1, .block = 256}, *setup.y, 256);
            })
            .instantiate();
    ls::VerifyOptions options;
    options.level = ls::VerifyLevel::kValues;
    options.outputs = {ls::as_bytes(*setup.y)};
    const ls::VerifyReport report = ls::verify(exec, setup.step, options);
    expect(!report.ok(), "other values are not verified");
  });
}

}  // namespace conformance
