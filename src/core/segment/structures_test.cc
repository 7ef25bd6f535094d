// The engine's parts, each by itself. Interleavings are explored in tests/model.

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "core/segment/agenda.h"
#include "core/segment/checked.h"
#include "core/segment/cut.h"
#include "core/segment/directory.h"
#include "core/segment/engine_test_support.h"
#include "core/segment/flights.h"
#include "core/segment/qsbr.h"
#include "core/segment/segment.h"
#include "core/segment/store_calls.h"
#include "core/segment/waiter_queue.h"

namespace leaf::test {
namespace {

TEST(SegmentTest, TakesInOrderAndNeverPassesTheEnd) {
  Segment<> segment({10, 20});
  EXPECT_EQ(segment.Take(3, true), (Range{10, 13}));
  EXPECT_TRUE(segment.Take(8, true).empty()) << "whole or nothing";
  EXPECT_EQ(segment.left(), (Range{13, 20}));
  EXPECT_EQ(segment.Take(8, false), (Range{13, 20}));
  EXPECT_TRUE(segment.Take(1, false).empty());
}

TEST(SegmentTest, WorksAtBothEndsOfTheIdSpace) {
  Segment<> low({0, 1});
  EXPECT_EQ(low.Take(1, true), (Range{0, 1}));
  Segment<> high({kMaxEnd - 2, kMaxEnd});
  EXPECT_TRUE(high.Take(kMaxEnd, true).empty());
  EXPECT_EQ(high.Take(kMaxEnd, false), (Range{kMaxEnd - 2, kMaxEnd}));
}

TEST(SegmentTest, CloseReturnsTheTailOnce) {
  Segment<> segment({10, 20});
  segment.Take(4, true);
  EXPECT_EQ(segment.Close(), (Range{14, 20}));
  EXPECT_TRUE(segment.Take(1, false).empty());
  EXPECT_TRUE(segment.Close().empty());
}

struct Item {
  explicit Item(std::string n) : text(std::move(n)) {}
  std::string_view name() const { return text; }
  std::uint32_t hash() const { return Hash(text); }
  static std::uint32_t Hash(std::string_view n) { return static_cast<std::uint32_t>(n.size()); }
  std::string text;
};

TEST(DirectoryTest, FindsWhatWasInsertedAcrossGrowthAndCollisions) {
  std::vector<std::unique_ptr<Item>> items;
  Directory<Item> directory(2);
  for (int i = 0; i < 500; ++i) {
    const std::string name = "tag" + std::to_string(i);  // few lengths, so many collisions
    EXPECT_EQ(directory.Find(name, Item::Hash(name)), nullptr);
    items.push_back(std::make_unique<Item>(name));
    directory.Insert(*items.back());
    for (const auto& item : items)
      ASSERT_EQ(directory.Find(item->name(), item->hash()), item.get());
  }
  std::size_t visited = 0;
  directory.ForEach([&](Item&) { ++visited; });
  EXPECT_EQ(visited, items.size());
}

TEST(DirectoryTest, NamesAreComparedByteByByte) {
  Item item("order");
  Directory<Item> directory;
  directory.Insert(item);
  for (const char* other : {"Order", "orde", "ordes"}) {
    EXPECT_EQ(directory.Find(other, item.hash()), nullptr) << other;
  }
  EXPECT_EQ(directory.Find(std::string("orde\0", 5), item.hash()), nullptr);
}

class QsbrTest : public testing::Test {
 protected:
  void Retire() {
    qsbr.Retire(new int(7), [](void* object) {
      delete static_cast<int*>(object);
      ++freed;
    });
  }
  static inline int freed = 0;
  Qsbr<> qsbr;
};

TEST_F(QsbrTest, FreesOnlyAfterEachOnlineReaderHasQuiesced) {
  freed = 0;
  Qsbr<>::Reader a(qsbr);
  Qsbr<>::Reader b(qsbr);
  Qsbr<>::Reader asleep(qsbr);
  for (auto* reader : {&a, &b, &asleep}) qsbr.Add(*reader);
  a.Online();
  b.Online();
  Retire();
  EXPECT_EQ(qsbr.Collect(), 1U);
  a.Quiesce();
  EXPECT_EQ(qsbr.Collect(), 1U) << "b may still hold it";
  b.Offline();
  EXPECT_EQ(qsbr.Collect(), 0U);
  EXPECT_EQ(freed, 1);
  Retire();
  EXPECT_EQ(qsbr.Collect(), 1U) << "a quiesced before it was retired";
  a.Quiesce();
  EXPECT_EQ(qsbr.Collect(), 0U);
  asleep.Online();
  asleep.Offline();
  a.Offline();
  for (auto* reader : {&a, &b, &asleep}) qsbr.Remove(*reader);
}

TEST_F(QsbrTest, FreesWhatIsLeftAtItsEnd) {
  freed = 0;
  {
    Qsbr<> short_lived;
    short_lived.Retire(new int(1), [](void* object) {
      delete static_cast<int*>(object);
      ++freed;
    });
  }
  EXPECT_EQ(freed, 1);
}

struct CutCase {
  std::vector<Range> held;
  std::int64_t n;
  bool one_piece;
  bool fits;
  std::vector<Range> pieces;
  std::int64_t skipped;
  std::vector<Range> rest;
};

TEST(CutTest, CutsOffTheFrontInFewPieces) {
  const std::vector<Range> broken = {{0, 1}, {10, 11}, {20, 21}, {30, 31}, {40, 50}};
  const std::vector<CutCase> cases = {
      {{{5, 9}}, 4, false, true, {{5, 9}}, 0, {}},
      {{{5, 9}}, 3, false, true, {{5, 8}}, 0, {{8, 9}}},
      {{{5, 9}}, 5, false, false, {}, 0, {{5, 9}}},
      {{}, 1, false, false, {}, 0, {}},
      {{{5, 9}, {20, 30}}, 6, false, true, {{5, 9}, {20, 22}}, 0, {{22, 30}}},
      {{{5, 9}, {20, 30}}, 6, true, true, {{20, 26}}, 4, {{26, 30}}},
      {{{5, 9}, {20, 30}}, 11, true, false, {}, 0, {{5, 9}, {20, 30}}},
      {broken, 4, false, true, {{0, 1}, {10, 11}, {20, 21}, {30, 31}}, 0, {{40, 50}}},
      {broken, 5, false, true, {{10, 11}, {20, 21}, {30, 31}, {40, 42}}, 1, {{42, 50}}},
      {broken, 13, false, true, {{10, 11}, {20, 21}, {30, 31}, {40, 50}}, 1, {}},
      {broken, 14, false, false, {}, 0, broken},
  };
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const CutCase& c = cases[i];
    std::vector<Range> held = c.held;
    Ranges out;
    std::int64_t skipped = 0;
    ASSERT_EQ(Cut(held, c.n, c.one_piece, out, skipped), c.fits) << "case " << i;
    EXPECT_EQ(std::vector<Range>(out.begin(), out.end()), c.pieces) << "case " << i;
    EXPECT_EQ(skipped, c.skipped) << "case " << i;
    EXPECT_EQ(held, c.rest) << "case " << i;
  }
}

TEST(CheckedTest, StaysBelowTheEnd) {
  EXPECT_EQ(AddCapped(kMaxEnd - 1, 1), kMaxEnd);
  EXPECT_EQ(AddCapped(kMaxEnd - 1, 2), kMaxEnd);
  EXPECT_EQ(AddCapped(kMaxEnd, kMaxEnd), kMaxEnd);
  EXPECT_EQ(MultiplyCapped(kMaxEnd / 4, 4), kMaxEnd - 3);
  EXPECT_EQ(MultiplyCapped(kMaxEnd / 2, 4), kMaxEnd);
  EXPECT_EQ(MultiplyCapped(0, 4), 0);
}

TEST(WaiterQueueTest, KeepsOrderThroughRemovals) {
  TaskQueue tasks;
  std::vector<std::unique_ptr<TestWaiter>> waiters;
  WaiterQueue queue;
  for (int i = 1; i <= 5; ++i) {
    waiters.push_back(std::make_unique<TestWaiter>(tasks, i, false));
    queue.PushBack(*waiters.back());
  }
  EXPECT_EQ(queue.ids(), 15);
  queue.Remove(*waiters[0]);
  queue.Remove(*waiters[2]);
  queue.Remove(*waiters[4]);
  EXPECT_EQ(queue.size(), 2);
  EXPECT_EQ(queue.ids(), 6);
  queue.PushBack(*waiters[0]);
  for (const std::int64_t count : {2, 4, 1}) EXPECT_EQ(queue.PopFront()->count, count);
  EXPECT_EQ(queue.PopFront(), nullptr);
  EXPECT_TRUE(queue.empty());
}

TEST(WaiterQueueTest, InsertsInOrderOfDeadline) {
  TaskQueue tasks;
  std::vector<std::unique_ptr<TestWaiter>> waiters;
  WaiterQueue queue;
  for (const int deadline : {30, 10, 20, 30, 5}) {
    waiters.push_back(std::make_unique<TestWaiter>(tasks, 1, false));
    waiters.back()->parking.deadline = Instant(seconds(deadline));
    queue.Insert(*waiters.back());
  }
  for (const std::size_t i : {4U, 1U, 2U, 0U, 3U}) EXPECT_EQ(queue.PopFront(), waiters[i].get());
  EXPECT_EQ(queue.PopFront(), nullptr);
}

TEST(AgendaTest, WakesForAnEarlierTimeOnly) {
  Agenda agenda;
  int woken = 0;
  agenda.SetWake([&] { ++woken; });
  const Instant t0(seconds(100));
  agenda.Begin();
  EXPECT_EQ(agenda.End(t0 + seconds(10)), t0 + seconds(10));
  agenda.Need(t0 + seconds(20));
  EXPECT_EQ(woken, 0);
  agenda.Need(t0 + seconds(5));
  EXPECT_EQ(woken, 1);
  agenda.Need(t0 + seconds(6));
  EXPECT_EQ(woken, 1) << "Tick comes before that already";
  agenda.Begin();
  agenda.Need(t0 + seconds(3));
  EXPECT_EQ(woken, 1) << "Tick is running and will see it";
  EXPECT_EQ(agenda.End(kNever), t0 + seconds(3));
}

TEST(FlightsTest, BoundsWhatIsUnderWayAndForgetsWhatHasLanded) {
  alignas(8) char a_tag[8];
  Tag& tag = *reinterpret_cast<Tag*>(a_tag);  // never looked into
  Flights flights(1);
  EXPECT_FALSE(flights.BeginSending()) << "nothing is due";
  flights.Queue(tag, false);
  flights.Queue(tag, true);
  ASSERT_TRUE(flights.BeginSending());
  EXPECT_FALSE(flights.BeginSending()) << "somebody is at it";
  EXPECT_EQ(flights.TakeDue(), &tag);
  EXPECT_EQ(flights.TakeDue(), nullptr) << "one at a time";
  const Flight flight = flights.Depart(tag);
  EXPECT_TRUE(flights.EndSending());
  EXPECT_EQ(flights.Land(flight), &tag);
  EXPECT_EQ(flights.Land(flight), nullptr);
  EXPECT_EQ(flights.Land(flight + 1), nullptr);
  EXPECT_EQ(flights.under_way(), 1);
  flights.FreePlace();
  ASSERT_TRUE(flights.BeginSending());
  EXPECT_EQ(flights.TakeDue(), &tag);
}

TEST(StoreCallsTest, AnswersOnceByTheStoreOrByTheDeadline) {
  Agenda agenda;
  StoreCalls calls(agenda);
  const Instant t0(seconds(100));
  std::vector<bool> answers;
  const Done<bool> note = [&](Result<bool> r) { answers.push_back(r.ok()); };
  const Done<bool> quick = calls.Bound<bool>(t0 + seconds(1), note);
  const Done<bool> late = calls.Bound<bool>(t0 + seconds(2), note);
  quick(true);
  EXPECT_EQ(calls.Tick(t0 + seconds(1)), t0 + seconds(2));
  EXPECT_EQ(answers, (std::vector<bool>{true}));
  EXPECT_EQ(calls.Tick(t0 + seconds(2)), kNever);
  EXPECT_EQ(answers, (std::vector<bool>{true, false}));
  late(true);
  quick(true);
  EXPECT_EQ(answers.size(), 2U);
}

}  // namespace
}  // namespace leaf::test
