#include "registry/fixed/fixed_registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "state/slot_file.h"

namespace leaf {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr std::int64_t kNow = 1'700'000'000'000;
constexpr std::int64_t kLease = 600'000;

ClaimAsk Ask(char owner) {
  ClaimAsk ask;
  ask.owner = std::string(32, owner);
  ask.identity = "10.0.0.1:8080";
  ask.workers = 1024;
  ask.layout = "41/10/12@1288834974657";
  ask.now_ms = kNow;
  ask.lease_ms = kLease;
  return ask;
}

class FixedRegistryTest : public testing::Test {
 protected:
  FixedRegistryTest() {
    std::string folder = testing::TempDir() + "leaf-fixed-XXXXXX";
    if (mkdtemp(folder.data()) == nullptr) std::abort();
    folder_ = folder;
  }
  ~FixedRegistryTest() override { std::filesystem::remove_all(folder_); }

  std::string path() const { return folder_ + "/snowflake-worker-39"; }
  std::unique_ptr<RegistryDriver> Make() const {
    RegistryOptions options;
    options.kind = "fixed";
    options.worker = 39;
    return MakeFixedRegistry(options, folder_)();
  }
  std::unique_ptr<RegistryDriver> Open() const {
    auto driver = Make();
    std::vector<std::string> warnings;
    const Result<void> opened = driver->Open(kNever, warnings);
    EXPECT_TRUE(opened.ok()) << (opened.ok() ? "" : opened.error().message);
    EXPECT_EQ(driver->connected(), opened.ok());
    return driver;
  }
  std::string OpenError() const {
    const auto driver = Make();
    std::vector<std::string> warnings;
    const Result<void> opened = driver->Open(kNever, warnings);
    EXPECT_FALSE(opened.ok());
    if (opened.ok()) return "";
    EXPECT_EQ(opened.error().code, Code::kUnavailable);
    EXPECT_FALSE(driver->connected());
    return opened.error().message;
  }
  static WorkerRight Claimed(RegistryDriver& driver, const ClaimAsk& ask) {
    auto right = driver.Claim(ask);
    EXPECT_TRUE(right.ok()) << (right.ok() ? "" : right.error().message);
    return right.ok() ? std::move(right).value() : WorkerRight();
  }
  /// What the journal of that right says, if nothing was minted at or above `short_ms`.
  static RightRecord JournalOf(const WorkerRight& right, std::int64_t short_ms) {
    return {right.worker, right.generation, right.owner, right.limit_ms, short_ms};
  }

  std::string folder_;
};

TEST_F(FixedRegistryTest, TheFirstClaimHasNoFloorAndEndsAfterALease) {
  const WorkerRight right = Claimed(*Open(), Ask('a'));
  EXPECT_EQ(right.worker, 39);
  EXPECT_EQ(right.generation, 1);
  EXPECT_EQ(right.owner, std::string(32, 'a'));
  EXPECT_EQ(right.floor_ms, 0);
  EXPECT_EQ(right.limit_ms, kNow + kLease);
  EXPECT_FALSE(right.registry_ms.has_value()) << "a file has no clock";
  EXPECT_EQ(right.free_workers, -1);
}

TEST_F(FixedRegistryTest, TheNextOwnerBeginsAtTheLimit) {
  const WorkerRight first = Claimed(*Open(), Ask('a'));
  const WorkerRight next = Claimed(*Open(), Ask('b'));
  EXPECT_EQ(next.floor_ms, first.limit_ms);
  EXPECT_EQ(next.generation, 2);
  EXPECT_GE(next.limit_ms, first.limit_ms);
}

TEST_F(FixedRegistryTest, AClockThatWentBackLowersNoLimit) {
  const WorkerRight first = Claimed(*Open(), Ask('a'));
  ClaimAsk ask = Ask('b');
  ask.now_ms = kNow - 86'400'000;
  const WorkerRight next = Claimed(*Open(), ask);
  EXPECT_EQ(next.floor_ms, first.limit_ms);
  EXPECT_EQ(next.limit_ms, first.limit_ms);
}

TEST_F(FixedRegistryTest, AJournalOfThisVeryRightProvesALowerFloor) {
  const WorkerRight first = Claimed(*Open(), Ask('a'));
  ClaimAsk ask = Ask('b');
  ask.journal = JournalOf(first, kNow + 3'000);
  EXPECT_EQ(Claimed(*Open(), ask).floor_ms, kNow + 3'000);
}

TEST_F(FixedRegistryTest, AJournalOfAnythingElseProvesNothing) {
  const WorkerRight right = Claimed(*Open(), Ask('a'));
  const RightRecord sound = JournalOf(right, kNow);
  RightRecord worker = sound, generation = sound, owner = sound;
  worker.worker = 38;
  generation.generation = right.generation - 1;
  owner.owner = std::string(32, 'x');
  std::int64_t limit = right.limit_ms;
  for (const RightRecord& journal : {worker, generation, owner}) {
    ClaimAsk ask = Ask('b');
    ask.journal = journal;
    const WorkerRight next = Claimed(*Open(), ask);
    EXPECT_EQ(next.floor_ms, limit);
    limit = next.limit_ms;
    // The next round is to differ in one field only, so the first right is written again.
    std::filesystem::remove(path());
    Claimed(*Open(), Ask('a'));
  }
}

TEST_F(FixedRegistryTest, AJournalAboveTheLimitDoesNotRaiseTheFloor) {
  const WorkerRight first = Claimed(*Open(), Ask('a'));
  ClaimAsk ask = Ask('b');
  ask.journal = JournalOf(first, first.limit_ms + 5);
  EXPECT_EQ(Claimed(*Open(), ask).floor_ms, first.limit_ms);
}

TEST_F(FixedRegistryTest, ARepeatedClaimIsTheSameRight) {
  const auto driver = Open();
  const WorkerRight first = Claimed(*driver, Ask('a'));
  const WorkerRight again = Claimed(*driver, Ask('a'));
  EXPECT_EQ(again.generation, first.generation);
  EXPECT_TRUE(driver->Extend(first, first.limit_ms + 1, kLease, kNever).ok());
}

/// Or one slow sync at a start would cost a lease.
TEST_F(FixedRegistryTest, AClaimThatHadNoAnswerIsFoundAgainWithItsFloor) {
  RegistryOptions options;
  options.worker = 39;
  const RegistryFactory sessions = MakeFixedRegistry(options, folder_);
  ASSERT_TRUE(sessions()->Claim(Ask('a')).ok());
  ClaimAsk later = Ask('a');
  later.now_ms += 1'500;
  const WorkerRight first = Claimed(*sessions(), later);
  EXPECT_EQ(first.floor_ms, 0) << "nobody minted before";
  EXPECT_EQ(first.limit_ms, kNow + 1'500 + kLease);

  const RegistryFactory restarted = MakeFixedRegistry(options, folder_);
  ClaimAsk ask = Ask('b');
  ask.journal = JournalOf(first, kNow + 3'000);
  ASSERT_TRUE(restarted()->Claim(ask).ok());
  const WorkerRight next = Claimed(*restarted(), ask);
  EXPECT_EQ(next.floor_ms, kNow + 3'000) << "what the journal proved to the claim that was lost";
  EXPECT_EQ(next.generation, 2);
  EXPECT_EQ(Claimed(*MakeFixedRegistry(options, folder_)(), ask).floor_ms, next.limit_ms)
      << "another process knows nothing of it";
}

TEST_F(FixedRegistryTest, WhatIsAnsweredIsInTheFile) {
  const auto driver = Open();
  WorkerRight right = Claimed(*driver, Ask('a'));
  const auto extended = driver->Extend(right, right.limit_ms + 1'000, kLease, kNever);
  ASSERT_TRUE(extended.ok());
  // Another session reads it while the first one is open: nothing waits in memory.
  EXPECT_EQ(Open()->List(kNever)->at(0).limit_ms, right.limit_ms + 1'000);
  ASSERT_TRUE(driver->Lower(*extended, kNow + 1, kNever).ok());
  const auto listed = Open()->List(kNever);
  ASSERT_EQ(listed->size(), 1U);
  EXPECT_EQ(listed->at(0).limit_ms, kNow + 1);
  EXPECT_EQ(listed->at(0).identity, "10.0.0.1:8080");
  struct stat info {};
  ASSERT_EQ(stat(path().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0600U);
}

TEST_F(FixedRegistryTest, AnExtensionThatCannotBeWrittenIsNoExtension) {
  const auto driver = Open();
  const WorkerRight right = Claimed(*driver, Ask('a'));
  std::filesystem::rename(path(), path() + ".moved");
  const auto extended = driver->Extend(right, right.limit_ms + 1, kLease, kNever);
  ASSERT_FALSE(extended.ok());
  EXPECT_EQ(extended.error().code, Code::kUnavailable);
  EXPECT_THAT(extended.error().message, HasSubstr("removed or replaced while in use"));
  EXPECT_FALSE(driver->connected()) << "what the file holds is in doubt";
  std::filesystem::rename(path() + ".moved", path());
  EXPECT_EQ(Open()->List(kNever)->at(0).limit_ms, right.limit_ms);
}

TEST_F(FixedRegistryTest, AFolderThatIsNotThereIsSaid) {
  std::filesystem::remove_all(folder_);
  const auto driver = Open();
  const auto right = driver->Claim(Ask('a'));
  ASSERT_FALSE(right.ok());
  EXPECT_THAT(right.error().message, AllOf(HasSubstr(path()), HasSubstr("cannot make it")));
}

TEST_F(FixedRegistryTest, ALateSessionOfBeforeWritesNothing) {
  const auto stuck = Open();
  const WorkerRight old = Claimed(*stuck, Ask('a'));
  const WorkerRight next = Claimed(*Open(), Ask('b'));
  EXPECT_EQ(stuck->Extend(old, old.limit_ms + kLease, kLease, kNever).error().code,
            Code::kConflict);
  EXPECT_EQ(stuck->Lower(old, kNow, kNever).error().code, Code::kConflict);
  EXPECT_EQ(Open()->List(kNever)->at(0).owner, next.owner);
}

TEST_F(FixedRegistryTest, ACopiedFileIsRefusedWithWhatToDo) {
  Claimed(*Open(), Ask('a'));
  std::filesystem::copy_file(path(), path() + ".copy");
  std::filesystem::rename(path() + ".copy", path());
  EXPECT_THAT(OpenError(), AllOf(HasSubstr(path()), HasSubstr("was copied from elsewhere"),
                                 HasSubstr("Give this server another number")));
}

TEST_F(FixedRegistryTest, ADamagedFileIsRefusedWithWhatToDo) {
  Claimed(*Open(), Ask('a'));
  std::ofstream(path(), std::ios::binary | std::ios::trunc) << std::string(8192, '#');
  EXPECT_THAT(OpenError(), AllOf(HasSubstr("limit of worker 39 " + path()),
                                 HasSubstr("damaged, or not leafd's")));
}

TEST_F(FixedRegistryTest, ATornWriteLeavesTheLimitOfBefore) {
  const auto driver = Open();
  const WorkerRight right = Claimed(*driver, Ask('a'));  // slot of sequence 1
  ASSERT_TRUE(driver->Extend(right, right.limit_ms + 1'000, kLease, kNever).ok());
  ASSERT_TRUE(driver->Extend(right, right.limit_ms + 2'000, kLease, kNever).ok());
  for (const std::int64_t at : {0, 4096}) {
    const std::string copy = [&] {
      std::ifstream in(path(), std::ios::binary);
      return std::string(std::istreambuf_iterator<char>(in), {});
    }();
    {
      std::fstream file(path(), std::ios::binary | std::ios::in | std::ios::out);
      file.seekp(at + 60);
      file << "torn";
    }
    const std::int64_t limit = Open()->List(kNever)->at(0).limit_ms;
    EXPECT_TRUE(limit == right.limit_ms + 1'000 || limit == right.limit_ms + 2'000) << limit;
    std::fstream file(path(), std::ios::binary | std::ios::in | std::ios::out);
    file << copy;
  }
}

TEST_F(FixedRegistryTest, ARecordOfAnotherVersionIsRefused) {
  for (const char* payload : {"", "5", "5 6", "5 6 owner", "x 6 owner me", "-1 6 owner me",
                              "5 -6 owner me", "5 99999999999999999999 owner me"}) {
    SCOPED_TRACE(payload);
    {
      SlotFile file(path(), "test");
      ASSERT_TRUE(file.Load().ok());
      ASSERT_TRUE(file.Save(payload).ok());
    }
    EXPECT_THAT(OpenError(), HasSubstr("its record is not one of this version"));
  }
}

TEST_F(FixedRegistryTest, AWorkerBeyondTheLayoutIsNotGiven) {
  ClaimAsk ask = Ask('a');
  ask.workers = 32;
  const auto driver = Open();
  const auto right = driver->Claim(ask);
  ASSERT_FALSE(right.ok());
  EXPECT_EQ(right.error().code, Code::kUnavailable);
  EXPECT_THAT(right.error().message, HasSubstr("worker 39 is not in the layout, which holds 0 to "
                                               "31"));
  EXPECT_FALSE(std::filesystem::exists(path()));
}

TEST_F(FixedRegistryTest, AWorkerOfAnotherProcessIsNotGiven) {
  ClaimAsk ask = Ask('a');
  ask.excluded = {1, 39};
  const auto driver = Open();
  const auto right = driver->Claim(ask);
  ASSERT_FALSE(right.ok());
  EXPECT_THAT(right.error().message, HasSubstr("in use by another process of this host"));
  ask.excluded = {1, 38};
  EXPECT_TRUE(driver->Claim(ask).ok());
}

TEST_F(FixedRegistryTest, RetiringIsTheConfigurationsJob) {
  const auto driver = Open();
  EXPECT_EQ(driver->Retire(39, kNever).error().code, Code::kNotFound);
  Claimed(*driver, Ask('a'));
  EXPECT_EQ(driver->Retire(38, kNever).error().code, Code::kNotFound);
  const auto retired = driver->Retire(39, kNever);
  EXPECT_EQ(retired.error().code, Code::kConflict);
  EXPECT_THAT(retired.error().message, HasSubstr("snowflake.registry = fixed:39"));
}

}  // namespace
}  // namespace leaf
