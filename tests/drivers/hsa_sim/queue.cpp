// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <hsa/amd_hsa_queue.h>
#include <new>
#include <thread>

#include "kernels.h"
#include "memory.h"
#include "signals.h"

// Queues: rings of packets, each read by a thread. Packets are executed in their order, one at a
// time, which is one of the orders that hardware may choose.
namespace hsa_sim {
namespace {

constexpr std::uint32_t kPacketBytes = 64;
constexpr std::uint64_t kLookAgain = 5'000'000;  // nanoseconds

using ErrorCallback = void (*)(hsa_status_t, hsa_queue_t*, void*);

struct Queue {
  amd_queue_t shared;  // first: the handle is its address
  hsa_agent_t agent{};
  ErrorCallback on_error = nullptr;
  void* on_error_data = nullptr;
  std::atomic<bool> stop{false};
  std::thread thread;

  std::atomic_ref<std::uint64_t> written() {
    return std::atomic_ref<std::uint64_t>(const_cast<std::uint64_t&>(shared.write_dispatch_id));
  }
  std::atomic_ref<std::uint64_t> read() {
    return std::atomic_ref<std::uint64_t>(const_cast<std::uint64_t&>(shared.read_dispatch_id));
  }
};
Queue& queue_of(const hsa_queue_t* handle) {
  return *reinterpret_cast<Queue*>(const_cast<hsa_queue_t*>(handle));
}

class Processor {
 public:
  explicit Processor(Queue& queue) : queue_(queue) {}

  void run() {
    Signal& doorbell = signal_of(queue_.shared.hsa_queue.doorbell_signal);
    while (!queue_.stop.load()) {
      const std::int64_t rung = doorbell.value().load();
      if (step()) continue;
      if (queue_.stop.load()) return;
      wait_until(doorbell, HSA_SIGNAL_CONDITION_NE, rung, now() + kLookAgain);
    }
  }

 private:
  // False when there is nothing to do yet.
  bool step() {
    const std::uint64_t at = queue_.read().load();
    if (at >= queue_.written().load()) return false;
    auto* const packet = static_cast<std::byte*>(queue_.shared.hsa_queue.base_address) +
                         (at & (queue_.shared.hsa_queue.size - 1)) * kPacketBytes;
    auto& header = *reinterpret_cast<std::uint16_t*>(packet);
    const std::uint16_t value = std::atomic_ref(header).load(std::memory_order_acquire);
    const unsigned type = value & 0xFF;
    if (type == HSA_PACKET_TYPE_INVALID) return false;
    const std::uint64_t began = now();
    hsa_signal_t completion{};
    std::string why;
    switch (type) {
      case HSA_PACKET_TYPE_KERNEL_DISPATCH:
        completion = dispatch(*reinterpret_cast<hsa_kernel_dispatch_packet_t*>(packet), &why);
        break;
      case HSA_PACKET_TYPE_BARRIER_AND:
      case HSA_PACKET_TYPE_BARRIER_OR:
        completion = barrier(*reinterpret_cast<hsa_barrier_and_packet_t*>(packet),
                             type == HSA_PACKET_TYPE_BARRIER_AND);
        break;
      case HSA_PACKET_TYPE_VENDOR_SPECIFIC:
        completion =
            barrier_value(*reinterpret_cast<hsa_amd_barrier_value_packet_t*>(packet), &why);
        break;
      default:
        why = "a packet of type " + std::to_string(type);
    }
    if (queue_.stop.load()) return true;
    if (!why.empty()) {
      fail(why);
      return true;
    }
    std::atomic_ref(header).store(HSA_PACKET_TYPE_INVALID, std::memory_order_release);
    queue_.read().store(at + 1);
    if (type == HSA_PACKET_TYPE_BARRIER_AND || type == HSA_PACKET_TYPE_BARRIER_OR) {
      complete_barrier(completion, began);
    } else {
      complete(completion, began, "a packet at its end");
    }
    return true;
  }

  hsa_signal_t dispatch(hsa_kernel_dispatch_packet_t& packet, std::string* why) {
    settings().delay();
    const auto kernel = find_kernel(packet.kernel_object);
    if (kernel == nullptr) {
      *why = "a kernel that is not loaded (any more)";
    } else if (kernel->agent.handle != queue_.agent.handle) {
      *why = "kernel " + kernel->name + " is loaded on another GPU";
    } else if (*why = run_kernel(*kernel, packet); !why->empty()) {
      *why = "kernel " + kernel->name + ": " + *why;
    }
    return packet.completion_signal;
  }

  hsa_signal_t barrier(const hsa_barrier_and_packet_t& packet, bool all) {
    if (settings().logs()) settings().log("barrier");
    settings().delay_barrier();
    // What was 0 once is not looked at again: it may have another value by now, or be destroyed.
    static constexpr const char* kWaits = "a barrier packet that waits";
    std::array<Signal*, 5> open{};
    std::size_t count = 0;
    for (const hsa_signal_t signal : packet.dep_signal) {
      if (signal.handle != 0) open[count++] = &signal_of(signal, kWaits);
    }
    const std::size_t enough = all || count == 0 ? 0 : count - 1;
    // Looks again now and then whether the queue is being destroyed.
    while (!queue_.stop.load()) {
      auto* const end = std::remove_if(open.begin(), open.begin() + count,
                                       [](Signal* signal) { return is_over(*signal, kWaits); });
      count = static_cast<std::size_t>(end - open.begin());
      if (count <= enough) break;
      // Any of several: none of them alone can be slept on for long.
      const std::uint64_t deadline = now() + (all ? kLookAgain : 50'000);
      if (wait_until(*open[0], HSA_SIGNAL_CONDITION_EQ, 0, deadline) == 0) {
        open[0] = open[--count];
        if (count <= enough) break;
      }
    }
    return packet.completion_signal;
  }

  hsa_signal_t barrier_value(const hsa_amd_barrier_value_packet_t& packet, std::string* why) {
    if (packet.header.AmdFormat != HSA_AMD_PACKET_TYPE_BARRIER_VALUE) {
      *why = "a packet of AMD's format " + std::to_string(packet.header.AmdFormat);
      return {};
    }
    if (settings().logs()) settings().log("barrier on a value");
    const auto condition = static_cast<hsa_signal_condition_t>(packet.cond);
    while (packet.signal.handle != 0 && !queue_.stop.load()) {
      Signal& signal = signal_of(packet.signal);
      const std::int64_t value = signal.value().load();
      if (holds(value & packet.mask, condition, packet.value)) break;
      wait_until(signal, HSA_SIGNAL_CONDITION_NE, value, now() + kLookAgain);
    }
    return packet.completion_signal;
  }

  // The queue stops for good, as after a fault of the hardware.
  void fail(const std::string& why) {
    complain("queue " + std::to_string(queue_.shared.hsa_queue.id) + " stops: " + why);
    if (queue_.on_error != nullptr) {
      queue_.on_error(HSA_STATUS_ERROR_EXCEPTION, &queue_.shared.hsa_queue, queue_.on_error_data);
    }
    Signal& doorbell = signal_of(queue_.shared.hsa_queue.doorbell_signal);
    while (!queue_.stop.load()) {
      wait_until(doorbell, HSA_SIGNAL_CONDITION_NE, doorbell.value().load(), now() + kLookAgain);
    }
  }

  Queue& queue_;
};

void destroy(Queue& queue) {
  queue.stop.store(true);
  wake(signal_of(queue.shared.hsa_queue.doorbell_signal));
  // From its own thread when an error is reported.
  if (queue.thread.get_id() == std::this_thread::get_id()) {
    queue.thread.detach();
    return;
  }
  queue.thread.join();
  signal_of(queue.shared.hsa_queue.doorbell_signal).value().store(0);
  destroy_signal(queue.shared.hsa_queue.doorbell_signal);
  memory().release(queue.shared.hsa_queue.base_address);
  delete &queue;
}

}  // namespace
}  // namespace hsa_sim

using namespace hsa_sim;

HSA_SIM_API hsa_queue_create(hsa_agent_t agent, std::uint32_t size, hsa_queue_type32_t type,
                             ErrorCallback on_error, void* data, std::uint32_t, std::uint32_t,
                             hsa_queue_t** queue) {
  return call("hsa_queue_create", [&] {
    device_of(agent);
    require(queue != nullptr && size > 0 && (size & (size - 1)) == 0);
    static std::atomic<std::uint64_t> next_id{0};
    auto made = std::make_unique<Queue>();
    made->agent = agent;
    made->on_error = on_error;
    made->on_error_data = data;
    hsa_queue_t& shared = made->shared.hsa_queue;
    shared.type = type;
    shared.features = HSA_QUEUE_FEATURE_KERNEL_DISPATCH;
    shared.size = size;
    shared.id = next_id.fetch_add(1);
    shared.base_address =
        memory().allocate({{kCpu}, PoolKind::kFine}, std::uint64_t{size} * kPacketBytes);
    for (std::uint32_t i = 0; i < size; ++i) {
      put(static_cast<std::byte*>(shared.base_address) + i * kPacketBytes,
          static_cast<std::uint16_t>(HSA_PACKET_TYPE_INVALID));
    }
    shared.doorbell_signal = make_signal(-1);
    made->thread = std::thread([raw = made.get()] { Processor(*raw).run(); });
    *queue = &made.release()->shared.hsa_queue;
  });
}
HSA_SIM_API hsa_queue_destroy(hsa_queue_t* queue) {
  return call("hsa_queue_destroy", [&] {
    require(queue != nullptr, HSA_STATUS_ERROR_INVALID_QUEUE);
    destroy(queue_of(queue));
  });
}
HSA_SIM_API_AS(std::uint64_t) hsa_queue_load_read_index_relaxed(const hsa_queue_t* queue) {
  return queue_of(queue).read().load();
}
HSA_SIM_API_AS(std::uint64_t) hsa_queue_load_read_index_scacquire(const hsa_queue_t* queue) {
  return queue_of(queue).read().load();
}
HSA_SIM_API_AS(std::uint64_t) hsa_queue_load_write_index_relaxed(const hsa_queue_t* queue) {
  return queue_of(queue).written().load();
}
HSA_SIM_API_AS(std::uint64_t)
hsa_queue_add_write_index_screlease(const hsa_queue_t* queue, std::uint64_t count) {
  return queue_of(queue).written().fetch_add(count);
}
HSA_SIM_API_AS(std::uint64_t)
hsa_queue_add_write_index_relaxed(const hsa_queue_t* queue, std::uint64_t count) {
  return queue_of(queue).written().fetch_add(count);
}
HSA_SIM_API hsa_amd_queue_cu_set_mask(const hsa_queue_t* queue, std::uint32_t,
                                      const std::uint32_t*) {
  return call("hsa_amd_queue_cu_set_mask", [&] { require(queue != nullptr); });
}
HSA_SIM_API hsa_amd_queue_set_priority(hsa_queue_t* queue, hsa_amd_queue_priority_t) {
  return call("hsa_amd_queue_set_priority", [&] { require(queue != nullptr); });
}
