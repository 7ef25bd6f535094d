// What changes when another server answers at the store's address.

#include <future>

#include "store/blocking_store_testing.h"

namespace leaf {
namespace {

TEST_F(BlockingStoreTest, AnotherIdentityEndsTheSessionsWithTheFormerStore) {
  StartTwoSessions();
  script_->With([](Script& s) {
    s.identity = "scripted:2";
    s.cut_reserves = 1;
  });
  Reserve(10, "fine");  // finds its session cut, and opens another
  const Grant grant = answers_.Await(10);
  EXPECT_EQ(grant.outcome, Outcome::kGranted);
  EXPECT_EQ(grant.store_id, IdentityHash("scripted:2"));
  EXPECT_EQ(grant.store_turn, 1U);
  EXPECT_EQ(store_->Status().changes, 1U);
  EXPECT_EQ(store_->Status().identity, "scripted:2");
  for (Flight flight = 11; flight < 60; ++flight) {
    Reserve(flight, "fine");
    EXPECT_EQ(answers_.Await(flight).store_turn, 1U) << "the other session was ended as well";
  }
}

TEST_F(BlockingStoreTest, ATailIsHandedBackOnlyToTheStoreThatGrantedIt) {
  StartUp();
  const auto hand_back = [this](std::string_view identity) {
    std::promise<Result<bool>> handed;
    store_->HandBack("t", {1, 2}, IdentityHash(identity), kNever,
                     [&](Result<bool> done) { handed.set_value(std::move(done)); });
    return handed.get_future().get();
  };
  EXPECT_TRUE(hand_back("scripted:1").ok());
  EXPECT_FALSE(hand_back("scripted:2").ok());
}

}  // namespace
}  // namespace leaf
