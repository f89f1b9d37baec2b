// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/lockstep.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

/// \file
/// What a conformance case is. Cases are written once against the public API and know nothing of
/// vendors; what a backend cannot do is said by a waiver, never inside a case.
namespace conformance {

namespace ls = lockstep;

/// A check that did not hold.
class CheckFailure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A case that there is nothing to test for: the device lacks what it needs (two devices where
/// there is one), or the plugin leaves a slot null, as the interface allows. Reported as "not
/// applicable" with the text. What a slot does answer has to be right.
class NotApplicable : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// What a case works with. One a run of a case: nothing is shared between runs.
class Environment {
 public:
  explicit Environment(std::vector<ls::Device> devices, bool full = false)
      : devices_(std::move(devices)), full_(full) {}

  const ls::Device& device() const { return devices_.front(); }
  /// The backend's other devices. \throws NotApplicable when there is none.
  const ls::Device& second_device() const {
    if (devices_.size() < 2) throw NotApplicable("needs two devices");
    return devices_[1];
  }
  /// \throws NotApplicable when the device compiles no source: no kernel can be had.
  void require_kernels() const { require_kernels(device()); }
  static void require_kernels(const ls::Device& device);
  /// A kernel of kernels.cu, compiled once a device and process. \throws as require_kernels().
  ls::Kernel kernel(std::string_view expression) const { return kernel(expression, device()); }
  ls::Kernel kernel(std::string_view expression, const ls::Device& device) const;
  /// How often a case repeats itself: what its source in the field asks for when the suite runs in
  /// full, what a busy machine without a GPU can bear otherwise.
  std::uint32_t rounds(std::uint32_t quick, std::uint32_t full) const {
    return full_ ? full : quick;
  }

 private:
  std::vector<ls::Device> devices_;
  bool full_ = false;
};

/// Work of a case that can be enqueued eagerly or captured, with the memory it writes.
struct Work {
  std::function<void(ls::Stream&)> enqueue;
  /// Looks at the results after the work is done. \throws CheckFailure.
  std::function<void()> check;
  /// Makes the memory as it was before the work. Null = the work does not read what it writes.
  std::function<void()> reset = {};
};

/// A case that runs as work: eagerly, as a graph (with nothing executed at capture, replayed
/// twice, its trace equal to the eager one), and from a fresh thread.
void add_work_case(std::string name, std::function<Work(const Environment&)> make);
/// A case about rules and errors: runs on the main thread and from a fresh one.
void add_rule_case(std::string name, std::function<void(const Environment&)> run);

struct Case {
  std::string name;
  std::function<Work(const Environment&)> make_work;  // one of the two
  std::function<void(const Environment&)> run_rule;
};
/// All cases in order of name.
const std::vector<Case>& all_cases();

/// Every file of cases has one of these.
void add_memory_cases();
void add_copy_cases();
void add_set_cases();
void add_stream_cases();
void add_event_cases();
void add_kernel_cases();
void add_launch_limit_cases();
void add_capture_cases();
void add_capture_rule_cases();
void add_graph_cases();
void add_update_cases();
void add_trace_cases();
void add_device_cases();
void add_verify_cases();
void add_field_cases();

/// Whose bytes are 0, 8 or past the last address where 64 bits are all that is counted with.
inline constexpr ls::Extent kPastTheAddressSpace[] = {
    {std::uint64_t{1} << 32, std::uint64_t{1} << 32, 1},
    {8, (std::uint64_t{1} << 61) + 1, 1},
    {8, 1, (std::uint64_t{1} << 61) + 1},
    {UINT64_MAX, 1, 1}};

// --- checks ---

[[noreturn]] inline void fail(const std::string& message) { throw CheckFailure(message); }

inline void expect(bool condition, std::string_view what) {
  if (!condition) fail(std::string(what));
}

template <typename A, typename B>
void expect_equal(const A& actual, const B& expected, std::string_view what) {
  if (actual == expected) return;
  std::ostringstream text;
  text << what << ": " << actual << ", expected " << expected;
  fail(text.str());
}

/// Names the first element that differs.
template <typename T>
void expect_equal(const std::vector<T>& actual, const std::vector<T>& expected,
                  std::string_view what) {
  expect_equal(actual.size(), expected.size(), std::string(what) + " count");
  for (std::size_t i = 0; i < actual.size(); ++i) {
    if (actual[i] == expected[i]) continue;
    std::ostringstream text;
    text << what << "[" << i << "]: " << +actual[i] << ", expected " << +expected[i];
    fail(text.str());
  }
}

/// Whether the library answered, for a slot that the plugin leaves null.
inline bool is_of_absent_slot(const ls::Error& error) {
  return error.code() == ls::ErrorCode::kNotSupported && !error.context().call.empty() &&
         std::string_view(error.what())
                 .find("the backend does not offer " + error.context().call) !=
             std::string_view::npos;
}

/// `call` has to throw an Error of that code; returns it for a look at its words.
inline ls::Error expect_error(ls::ErrorCode code, std::string_view what,
                              const std::function<void()>& call) {
  try {
    call();
  } catch (const ls::Error& error) {
    if (error.code() == code) return error;
    if (is_of_absent_slot(error)) throw;
    fail(std::string(what) + ": expected " + std::string(ls::to_string(code)) + ", got " +
         std::string(ls::to_string(error.code())) + ": " + error.what());
  }
  fail(std::string(what) + ": expected " + std::string(ls::to_string(code)) + ", got success");
}

/// What a buffer holds, by a stream of its own.
template <typename T>
std::vector<T> read(const ls::BufferView<T>& buffer) {
  std::vector<T> values(buffer.size());
  if (values.empty()) return values;
  const ls::Stream stream = ls::detail::allocation_device(*buffer.allocation()).create_stream();
  stream.copy_and_wait(values, ls::BufferView<const T>(buffer));
  return values;
}
template <typename T>
std::vector<T> read(const ls::Buffer<T>& buffer) {
  return read(buffer.view());
}

template <typename T>
void write(const ls::Buffer<T>& buffer, const std::vector<T>& values) {
  if (values.empty()) return;
  const ls::Stream stream = ls::detail::allocation_device(*buffer.allocation()).create_stream();
  stream.copy_and_wait(buffer, values);
}

/// A buffer of these values on that device.
template <typename T>
std::shared_ptr<ls::Buffer<T>> make_buffer(const ls::Device& device, const std::vector<T>& values) {
  auto buffer = std::make_shared<ls::Buffer<T>>(device.allocate<T>(values.size()));
  write(*buffer, values);
  return buffer;
}

}  // namespace conformance
