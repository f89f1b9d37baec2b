// SPDX-License-Identifier: Apache-2.0
// When modules are unloaded: not before their kernels have ended, and without breaking a capture
// that another library has open.
#include "slots_fixture.h"

namespace {

using lockstep::gpu_test::fake;
using smoke::call;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class SlotsModulesTest : public lockstep::gpu_test::SlotsTest {
 protected:
  void SetUp() override {
    SlotsTest::SetUp();
    ASSERT_EQ(fake().stream_create(true, 0, &foreign_), 0);
    // Nothing of the tests before.
    ASSERT_TRUE(call(b_.device_synchronize, device_).ok());
    fake().calls.clear();
  }
  void TearDown() override {
    EXPECT_EQ(fake().capture_mode, std::uint32_t{LOCKSTEP_CAPTURE_GLOBAL});  // as it was
    fake().stream_destroy(foreign_);
    SlotsTest::TearDown();
  }
  void begin_foreign(void* stream) {
    ASSERT_EQ(fake().begin_capture(stream, LOCKSTEP_CAPTURE_GLOBAL), 0);
  }
  // The other library's capture has to be whole.
  void end_foreign(void* stream) {
    void* graph = nullptr;
    EXPECT_EQ(fake().end_capture(stream, &graph), 0);
    if (graph != nullptr) fake().graph_destroy(graph);
  }
  lockstep_stream* borrow(void* native) {
    lockstep_stream* made = nullptr;
    EXPECT_TRUE(call(b_.stream_from_native, device_, native, &made).ok());
    return made;
  }
  std::vector<std::string> take_calls() { return std::exchange(fake().calls, {}); }

  void* foreign_ = nullptr;
};

TEST_F(SlotsModulesTest, OnlyStreamsThatWereLaunchedIntoAreWaitedFor) {
  b_.module_destroy(make_module());
  EXPECT_THAT(take_calls(), ElementsAre("unload"));
  EXPECT_TRUE(launch(one_).ok());
  b_.module_destroy(make_module());
  EXPECT_THAT(take_calls(), ElementsAre("launch", "wait", "unload"));
  b_.module_destroy(make_module());
  EXPECT_THAT(take_calls(), ElementsAre("unload"));
  EXPECT_TRUE(launch(two_).ok());
  EXPECT_TRUE(call(b_.stream_synchronize, two_).ok());
  b_.module_destroy(make_module());
  EXPECT_THAT(take_calls(), ElementsAre("launch", "unload"));
}

TEST_F(SlotsModulesTest, AnotherLibrarysCaptureSurvives) {
  EXPECT_TRUE(launch(one_).ok());
  lockstep_module* const module = make_module();
  begin_foreign(foreign_);
  b_.module_destroy(module);
  EXPECT_THAT(take_calls(), ElementsAre("launch", "wait", "unload"));
  end_foreign(foreign_);
}

TEST_F(SlotsModulesTest, WorkOfAStreamThatWentIsWaitedFor) {
  lockstep_stream* const gone = make_stream();
  EXPECT_TRUE(launch(gone).ok());
  b_.stream_destroy(gone);
  lockstep_module* const module = make_module();
  begin_foreign(foreign_);
  b_.module_destroy(module);
  EXPECT_THAT(take_calls(), ElementsAre("launch", "wait", "unload"));
  end_foreign(foreign_);
}

TEST_F(SlotsModulesTest, AStreamOfOursThatAnotherLibraryCapturesIsLeftAlone) {
  EXPECT_TRUE(launch(one_).ok());
  EXPECT_TRUE(launch(two_).ok());
  begin_foreign(b_.stream_native(two_));
  b_.module_destroy(make_module());
  b_.module_destroy(make_module());
  EXPECT_THAT(take_calls(), ElementsAre("launch", "launch"));
  end_foreign(b_.stream_native(two_));
  // Nobody has to ask for it: the next module is an occasion.
  b_.module_destroy(make_module());
  EXPECT_THAT(take_calls(), ElementsAre("wait", "wait", "unload", "unload", "unload"));
}

TEST_F(SlotsModulesTest, ABorrowedStreamIsWaitedForByItsUser) {
  lockstep_stream* const borrowed = borrow(foreign_);
  EXPECT_TRUE(launch(borrowed).ok());
  b_.module_destroy(make_module());
  EXPECT_THAT(take_calls(), ElementsAre("launch"));  // its owner may have destroyed it
  EXPECT_TRUE(call(b_.stream_synchronize, borrowed).ok());
  b_.module_destroy(make_module());
  EXPECT_THAT(take_calls(), ElementsAre("unload", "unload"));
  EXPECT_TRUE(launch(borrowed).ok());
  b_.stream_destroy(borrowed);
  b_.module_destroy(make_module());
  EXPECT_THAT(take_calls(), ElementsAre("launch"));
  EXPECT_TRUE(call(b_.device_synchronize, device_).ok());
  EXPECT_THAT(take_calls(), ElementsAre("wait for all", "unload"));
}

TEST_F(SlotsModulesTest, AWaitThatFailedProvesNothing) {
  lockstep_stream* const borrowed = borrow(foreign_);
  EXPECT_TRUE(launch(borrowed).ok());
  begin_foreign(b_.stream_native(one_));
  EXPECT_FALSE(call(b_.device_synchronize, device_).ok());  // breaks that capture, as it does
  void* none = nullptr;
  EXPECT_EQ(fake().end_capture(b_.stream_native(one_), &none), 901);
  take_calls();
  b_.module_destroy(make_module());
  EXPECT_THAT(take_calls(), IsEmpty());
  EXPECT_TRUE(call(b_.device_synchronize, device_).ok());
  EXPECT_THAT(take_calls(), ElementsAre("wait for all", "unload"));
  b_.stream_destroy(borrowed);
}

TEST_F(SlotsModulesTest, ARefusedUnloadIsTriedAgain) {
  fake().unload_result = 719;
  b_.module_destroy(make_module());
  EXPECT_THAT(take_calls(), ElementsAre("unload"));
  lockstep_module* const next = make_module();
  EXPECT_THAT(take_calls(), ElementsAre("unload"));
  b_.module_destroy(next);
  EXPECT_THAT(take_calls(), ElementsAre("unload"));
}

TEST_F(SlotsModulesTest, TheLegacyStreamIsWaitedForAfterALaunchThere) {
  // The fake driver has streams for handles only.
  void* const made = fake().made_traits.legacy_stream;
  fake().next_stream = made;
  void* native = nullptr;
  ASSERT_EQ(fake().stream_create(false, 0, &native), 0);
  lockstep_stream* legacy = nullptr;
  ASSERT_TRUE(
      call(b_.stream_special, device_, std::uint32_t{LOCKSTEP_STREAM_LEGACY}, &legacy).ok());
  EXPECT_TRUE(launch(legacy).ok());
  b_.stream_destroy(legacy);
  b_.module_destroy(make_module());
  EXPECT_THAT(take_calls(), ElementsAre("launch", "wait", "unload"));
  ASSERT_EQ(fake().stream_destroy(made), 0);
}

}  // namespace
