// SPDX-License-Identifier: Apache-2.0
#include "kernel_work.h"

#include <cstring>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "../hostjit/hostjit.h"
#include "block_pool.h"
#include "device.h"
#include "executor.h"
#include "record.h"

namespace lockstep::hostrt {
namespace {

std::string text(lockstep_dim3 d) {
  return "(" + std::to_string(d.x) + "," + std::to_string(d.y) + "," + std::to_string(d.z) + ")";
}

hostjit::Dim3 to_jit(lockstep_dim3 d) { return {d.x, d.y, d.z}; }

Native native_of(hostjit::RunCode code) {
  switch (code) {
    case hostjit::RunCode::kOk:
      return Native::kSuccess;
    case hostjit::RunCode::kAssert:
      return Native::kAssert;
    case hostjit::RunCode::kTrap:
      return Native::kLaunchFailed;
    case hostjit::RunCode::kOutOfMemory:
      return Native::kOutOfMemory;
  }
  return Native::kUnknown;
}

class KernelWork final : public Work {
 public:
  KernelWork(const Device& device, Kernel& kernel, const lockstep_launch_desc& desc,
             std::uint32_t attributes)
      : device_(device.signed_ordinal()),
        module_(kernel.module->shared_from_this()),
        kernel_(kernel),
        grid_(desc.grid),
        block_(desc.block),
        shared_(desc.shared_bytes),
        attributes_(attributes) {
    const auto parameters = kernel.code->parameters();
    // One stretch, each argument at its offset: keeps sizes and alignments as the kernel has them.
    buffer_.resize((kernel.code->parameter_bytes() + sizeof(Unit) - 1) / sizeof(Unit));
    auto* bytes = reinterpret_cast<std::byte*>(buffer_.data());
    arguments_.reserve(parameters.size());
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      if (desc.arguments[i] == nullptr) {
        throw Error(Native::kInvalidValue,
                    kernel.code->name() + ": argument " + std::to_string(i) + " is a null pointer");
      }
      std::memcpy(bytes + parameters[i].offset, desc.arguments[i], parameters[i].size);
      arguments_.push_back(bytes + parameters[i].offset);
    }
  }

  FailurePtr run() const noexcept override {
    const DefaultFloatingPoint floating_point;
    const std::uint64_t blocks = std::uint64_t{grid_.x} * grid_.y * grid_.z;
    std::mutex mutex;
    std::optional<hostjit::RunStatus> failed;
    run_in_parallel(blocks, [&](std::uint64_t first, std::uint64_t count) {
      hostjit::RunStatus status = kernel_.code->run_blocks(
          first, count, to_jit(grid_), to_jit(block_), shared_, arguments_.data());
      if (status.ok()) return true;
      const std::lock_guard lock(mutex);
      if (!failed) failed = std::move(status);
      return false;
    });
    if (!failed) return nullptr;
    return std::make_shared<const Failure>(Failure{
        native_of(failed->code), "kernel " + kernel_.code->name() + ", grid " + text(grid_) +
                                     ", block " + text(block_) + ": " + failed->message});
  }

  std::uint32_t node_kind() const noexcept override { return LOCKSTEP_NODE_KERNEL; }

  lockstep_record record() const override {
    lockstep_record r = blank_record(LOCKSTEP_RECORD_KERNEL, kernel_.record_name, device_, 0);
    r.of.kernel.grid = grid_;
    r.of.kernel.block = block_;
    r.of.kernel.shared_bytes = shared_;
    r.of.kernel.attributes = attributes_;
    r.of.kernel.parameter_count = static_cast<std::uint32_t>(kernel_.parameters.size());
    r.of.kernel.parameters = kernel_.parameters.data();
    r.of.kernel.arguments = arguments_.data();
    return r;
  }

 private:
  struct alignas(64) Unit {
    std::byte bytes[64];
  };

  const std::int32_t device_;
  const std::shared_ptr<Module> module_;
  Kernel& kernel_;
  const lockstep_dim3 grid_;
  const lockstep_dim3 block_;
  const std::uint64_t shared_;
  const std::uint32_t attributes_;
  std::vector<Unit> buffer_;
  std::vector<void*> arguments_;
};

template <typename T>
T attribute_value(const lockstep_attribute& attribute) {
  T value{};
  if (attribute.size != sizeof(T) || attribute.value == nullptr) {
    throw Error(Native::kInvalidValue, "launch attribute " + std::to_string(attribute.id) +
                                           ": its value has " + std::to_string(attribute.size) +
                                           " bytes, expected " + std::to_string(sizeof(T)));
  }
  std::memcpy(&value, attribute.value, sizeof(T));
  return value;
}

// Returns the interned JSON text of what was asked for beyond the ordinary.
std::uint32_t check_attributes(const lockstep_launch_desc& desc) {
  std::string json;
  for (std::uint32_t i = 0; i < desc.attribute_count; ++i) {
    const lockstep_attribute& attribute = desc.attributes[i];
    switch (attribute.id) {
      case LOCKSTEP_LAUNCH_CLUSTER: {
        const auto cluster = attribute_value<lockstep_dim3>(attribute);
        if (cluster.x > 1 || cluster.y > 1 || cluster.z > 1) {
          throw Error(Native::kNotSupported, "the host device has no clusters: " + text(cluster));
        }
        break;
      }
      case LOCKSTEP_LAUNCH_COOPERATIVE:
        if (attribute_value<std::uint32_t>(attribute) != 0) {
          throw Error(Native::kNotSupported,
                      "the host device has no cooperative launches: blocks are not all resident at "
                      "once");
        }
        break;
      case LOCKSTEP_LAUNCH_PRIORITY: {
        const auto priority = attribute_value<std::int32_t>(attribute);
        json += (json.empty() ? "{" : ",") + ("\"priority\":" + std::to_string(priority));
        break;
      }
      case LOCKSTEP_LAUNCH_PROGRAMMATIC_SERIALIZATION:
        // A permission to overlap, not an obligation: launches simply follow each other.
        if (attribute_value<std::uint32_t>(attribute) != 0) {
          json += (json.empty() ? "{" : ",") + std::string("\"programmatic_serialization\":1");
        }
        break;
      default:
        throw Error(Native::kNotSupported,
                    "launch attribute " + std::to_string(attribute.id) + " is not known here");
    }
  }
  return json.empty() ? 0 : intern(json + "}");
}

}  // namespace

void check_launch(const Kernel& kernel, lockstep_dim3 grid, lockstep_dim3 block,
                  std::uint64_t shared_bytes) {
  const auto refuse = [&](const std::string& why) {
    throw Error(Native::kInvalidValue, "kernel " + kernel.code->name() + ", grid " + text(grid) +
                                           ", block " + text(block) + ", " +
                                           std::to_string(shared_bytes) +
                                           " bytes of dynamic shared memory: " + why);
  };
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) refuse("the grid has no blocks");
  if (block.x == 0 || block.y == 0 || block.z == 0) refuse("the block has no threads");
  if (grid.x > kMaxGridX) refuse("grid x is above 2147483647");
  if (grid.y > kMaxGridYZ || grid.z > kMaxGridYZ) refuse("grid y and z end at 65535");
  if (block.x > kMaxThreadsPerBlock || block.y > kMaxThreadsPerBlock) {
    refuse("block x and y end at 1024");
  }
  if (block.z > kMaxBlockZ) refuse("block z ends at 64");
  const std::uint64_t threads = std::uint64_t{block.x} * block.y * block.z;
  if (threads > kMaxThreadsPerBlock) refuse("more than 1024 threads a block");
  if (threads > kernel.code->max_threads_per_block()) {
    refuse("its __launch_bounds__ allow " + std::to_string(kernel.code->max_threads_per_block()) +
           " threads a block");
  }
  const std::uint32_t allowed = kernel.max_dynamic_shared.load(std::memory_order_relaxed);
  if (shared_bytes > allowed) {
    refuse(std::to_string(allowed) +
           " bytes are allowed; kernel_set_max_dynamic_shared raises "
           "that to at most " +
           std::to_string(kernel.max_dynamic_shared_opt_in()));
  }
}

WorkPtr make_kernel_work(const Device& device, Kernel& kernel, const lockstep_launch_desc& desc) {
  if (&kernel.module->device() != &device) {
    throw Error(Native::kInvalidValue, "kernel " + kernel.code->name() +
                                           " was loaded on another device than the stream's");
  }
  check_launch(kernel, desc.grid, desc.block, desc.shared_bytes);
  const std::size_t parameters = kernel.code->parameters().size();
  if (desc.argument_count != parameters || (parameters > 0 && desc.arguments == nullptr)) {
    throw Error(Native::kInvalidValue, "kernel " + kernel.code->name() + " takes " +
                                           std::to_string(parameters) + " arguments, " +
                                           std::to_string(desc.argument_count) + " were given");
  }
  const std::uint32_t attributes = desc.attribute_count == 0 ? 0 : check_attributes(desc);
  return std::make_shared<KernelWork>(device, kernel, desc, attributes);
}

}  // namespace lockstep::hostrt
