// What a tag costs and that the hot path allocates nothing. This program counts every allocation.

#include <gtest/gtest.h>
#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "core/id_service.h"
#include "core/segment/engine_test_support.h"

namespace {

std::atomic<std::int64_t> live_bytes{0};
std::atomic<std::int64_t> allocations{0};
constexpr std::int64_t kHeader = 8;  // malloc's own, before each block

void* Allocate(std::size_t size, std::size_t alignment) {
  void* memory = alignment > alignof(std::max_align_t)
                     ? std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment)
                     : std::malloc(size);
  if (memory == nullptr) throw std::bad_alloc();
  live_bytes += static_cast<std::int64_t>(malloc_usable_size(memory)) + kHeader;
  ++allocations;
  return memory;
}

void Free(void* memory) noexcept {
  if (memory == nullptr) return;
  live_bytes -= static_cast<std::int64_t>(malloc_usable_size(memory)) + kHeader;
  std::free(memory);
}

}  // namespace

void* operator new(std::size_t size) { return Allocate(size, 1); }
void* operator new[](std::size_t size) { return Allocate(size, 1); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  return Allocate(size, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept { Free(memory); }
void operator delete[](void* memory) noexcept { Free(memory); }
void operator delete(void* memory, std::size_t) noexcept { Free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { Free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { Free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { Free(memory); }

namespace leaf::test {
namespace {

class MemoryTest : public EngineTest {
 protected:
  /// Bytes a tag, with a 16-byte name, that is known and was never asked for.
  double BytesOfIdleTags(int count) {
    options.refresh = minutes(10);
    for (int i = 0; i < count; ++i) {
      std::string name = std::to_string(i);
      name.insert(0, 16 - name.size(), 't');
      store.AddRow(name, 1, 1000);
    }
    const std::int64_t before = live_bytes;
    Start();
    EXPECT_EQ(engine->Sum().known, count);
    return static_cast<double>(live_bytes - before) / count;
  }
};

TEST_F(MemoryTest, AnIdleTagTakesAtMost150Bytes) {
  const double bytes = BytesOfIdleTags(100'000);
  RecordProperty("bytes", std::to_string(bytes));
  std::printf("an idle tag takes %.1f bytes\n", bytes);
  EXPECT_LE(bytes, 150);
}

TEST_F(MemoryTest, SoItDoesWhereTheDirectoryHasJustGrown) {
  const double bytes = BytesOfIdleTags(98'400);  // just above three quarters of 2^17
  std::printf("an idle tag takes %.1f bytes\n", bytes);
  EXPECT_LE(bytes, 150);
}

TEST_F(MemoryTest, TheHotPathAllocatesNothing) {
  store.AddRow("order", 1, 1'000'000);
  Start();
  TakeOne("order");
  IdService service(engine.get(), IdLimits{});
  TestWaiter waiter(tasks, 1, false);
  Result<Ranges> out = Ranges{};
  const std::int64_t before = allocations;
  for (int i = 0; i < 50'000; ++i) {
    ASSERT_TRUE(service.NextIds(*reader, "order", waiter, clock.now, out));
    reader->Quiesce();
  }
  EXPECT_EQ(allocations - before, 0);
  EXPECT_EQ(out->at[0].first, 50'001);
}

TEST_F(MemoryTest, ATagInUseThatGoesThroughManySegmentsDoesNotGrow) {
  policy = MakeFixedPolicy();
  store.AddRow("order", 1, 1);
  Start();
  const auto turn = [this] {
    for (int i = 0; i < 1000; ++i) {
      TakeOne("order");
      reader->Quiesce();
    }
    Advance(seconds(2));
    store.asked.clear();
    store.asked.shrink_to_fit();
    store.batches.clear();
    store.batches.shrink_to_fit();
  };
  turn();
  const std::int64_t before = live_bytes;
  for (int i = 0; i < 20; ++i) turn();
  EXPECT_LE(live_bytes - before, 4096);
}

}  // namespace
}  // namespace leaf::test
