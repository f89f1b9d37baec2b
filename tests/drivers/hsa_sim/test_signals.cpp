// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <gtest/gtest.h>
#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>

// The layer itself, called as AMD's runtime calls it: what becomes of signals that are destroyed
// while something is under way that uses them.
namespace {

void must(hsa_status_t status) { ASSERT_EQ(status, HSA_STATUS_SUCCESS); }

hsa_signal_t make_signal(hsa_signal_value_t value) {
  hsa_signal_t signal{};
  must(hsa_signal_create(value, 0, nullptr, &signal));
  return signal;
}
void wait_for_zero(hsa_signal_t signal) {
  while (hsa_signal_wait_scacquire(signal, HSA_SIGNAL_CONDITION_EQ, 0, UINT64_MAX,
                                   HSA_WAIT_STATE_BLOCKED) != 0) {
  }
}

class HsaSimSignals : public ::testing::Test {
 protected:
  void SetUp() override {
    must(hsa_init());
    must(hsa_iterate_agents(
        [](hsa_agent_t agent, void* data) {
          hsa_device_type_t type{};
          const hsa_status_t status = hsa_agent_get_info(agent, HSA_AGENT_INFO_DEVICE, &type);
          if (type == HSA_DEVICE_TYPE_GPU) *static_cast<hsa_agent_t*>(data) = agent;
          return status;
        },
        &gpu_));
    ASSERT_NE(gpu_.handle, 0U);
  }
  hsa_queue_t* make_queue() const {
    hsa_queue_t* queue = nullptr;
    must(hsa_queue_create(gpu_, 64, HSA_QUEUE_TYPE_MULTI, nullptr, nullptr, 0, 0, &queue));
    return queue;
  }

  hsa_agent_t gpu_{};
};

void put_barrier(hsa_queue_t* queue, hsa_packet_type_t type,
                 const std::array<hsa_signal_t, 2>& after, hsa_signal_t completion) {
  const std::uint64_t at = hsa_queue_add_write_index_screlease(queue, 1);
  hsa_barrier_and_packet_t packet{};
  packet.header = HSA_PACKET_TYPE_INVALID;
  std::copy(after.begin(), after.end(), packet.dep_signal);
  packet.completion_signal = completion;
  auto& place = static_cast<hsa_barrier_and_packet_t*>(queue->base_address)[at & (queue->size - 1)];
  place = packet;
  std::atomic_ref(place.header).store(static_cast<std::uint16_t>(type), std::memory_order_release);
  hsa_signal_store_screlease(queue->doorbell_signal, static_cast<hsa_signal_value_t>(at));
}

TEST_F(HsaSimSignals, ABarrierMayCompleteADestroyedOne) {
  hsa_queue_t* const queue = make_queue();
  const hsa_signal_t first = make_signal(1), gone = make_signal(1), last = make_signal(1);
  put_barrier(queue, HSA_PACKET_TYPE_BARRIER_AND, {first}, gone);
  must(hsa_signal_destroy(gone));
  std::array<hsa_signal_t, 100> others{};
  for (hsa_signal_t& other : others) other = make_signal(1);
  put_barrier(queue, HSA_PACKET_TYPE_BARRIER_AND, {}, last);
  ::testing::internal::CaptureStderr();
  hsa_signal_store_screlease(first, 0);
  wait_for_zero(last);
  EXPECT_EQ(::testing::internal::GetCapturedStderr().find(
                "hsa_sim: a destroyed signal is completed, by a barrier packet: made "),
            0U);
  for (const hsa_signal_t other : others) {
    EXPECT_NE(other.handle, gone.handle);
    EXPECT_EQ(hsa_signal_load_scacquire(other), 1);
    must(hsa_signal_destroy(other));
  }
  must(hsa_queue_destroy(queue));
}

TEST_F(HsaSimSignals, BarriersWaitForAllOrForAny) {
  hsa_queue_t* const queue = make_queue();
  const hsa_signal_t one = make_signal(1), two = make_signal(1), any = make_signal(1),
                     all = make_signal(1);
  put_barrier(queue, HSA_PACKET_TYPE_BARRIER_OR, {one, two}, any);
  put_barrier(queue, HSA_PACKET_TYPE_BARRIER_AND, {one, two}, all);
  hsa_signal_store_screlease(two, 0);
  wait_for_zero(any);
  EXPECT_EQ(hsa_signal_load_scacquire(all), 1);
  hsa_signal_store_screlease(one, 0);
  wait_for_zero(all);
  must(hsa_queue_destroy(queue));
}

void destroy_and_wait(hsa_signal_t gone, hsa_signal_t first) {
  const hsa_signal_t never = make_signal(1);  // made now: later it might be the one that is gone
  hsa_signal_destroy(gone);
  hsa_signal_store_screlease(first, 0);
  wait_for_zero(never);
}
void load_after_the_end() {
  const hsa_signal_t signal = make_signal(0);
  hsa_signal_destroy(signal);
  hsa_signal_load_relaxed(signal);
}
// Nothing was to complete it any more.
void barrier_completes_one_of_value_0(hsa_queue_t* queue) {
  const hsa_signal_t first = make_signal(1), gone = make_signal(0);
  put_barrier(queue, HSA_PACKET_TYPE_BARRIER_AND, {first}, gone);
  destroy_and_wait(gone, first);
}
void barrier_waits(hsa_queue_t* queue) {
  const hsa_signal_t gone = make_signal(1);
  put_barrier(queue, HSA_PACKET_TYPE_BARRIER_AND, {gone}, {});
  destroy_and_wait(gone, make_signal(1));
}
void copy_completes(hsa_agent_t gpu) {
  const hsa_signal_t first = make_signal(1), gone = make_signal(1);
  char from = 0, to = 0;
  hsa_amd_memory_async_copy(&to, gpu, &from, gpu, 0, 1, &first, gone);
  destroy_and_wait(gone, first);
}

TEST_F(HsaSimSignals, WhateverElseUsesADestroyedOneEndsTheProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      load_after_the_end(),
      "hsa_sim: a signal is used that does not exist \\(any more\\), by a call: made [0-9]+ "
      "us ago, destroyed [0-9]+ us ago with the value 0");
  EXPECT_DEATH(barrier_completes_one_of_value_0(make_queue()),
               "not exist \\(any more\\), by a barrier packet: ");
  EXPECT_DEATH(barrier_waits(make_queue()),
               "not exist \\(any more\\), by a barrier packet that waits: ");
  EXPECT_DEATH(copy_completes(gpu_), "not exist \\(any more\\), by a copy at its end: ");
}

}  // namespace
