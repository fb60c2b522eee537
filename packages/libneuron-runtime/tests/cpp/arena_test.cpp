#include "device/sim/arena.h"

#include <doctest/doctest.h>

#include <cstring>
#include <random>
#include <set>
#include <string>
#include <thread>

#include "base/error.h"

namespace neuron::sim::test {

namespace {

constexpr uint64_t kLimit = uint64_t{64} << 20;

std::string message_of(auto&& body, NRT_STATUS status) {
  try {
    body();
  } catch (const Error& error) {
    CHECK(error.status() == status);
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("sizes are rounded up by at most a quarter, to multiples of 64") {
  size_t last = 0;
  for (size_t size = 1; size <= size_t{3} << 20; size += 1 + size / 50) {
    const size_t rounded = Arena::rounded(size);
    CAPTURE(size);
    CHECK(rounded >= size);
    CHECK(rounded % 64 == 0);
    CHECK(rounded >= last);
    if (size > 1024) CHECK(rounded <= size + size / 4 + 64);
    last = rounded;
  }
  CHECK(Arena::rounded(1) == 64);
  CHECK(Arena::rounded(1025) == 1280);
  CHECK(Arena::rounded(size_t{1} << 20) == size_t{1} << 20);
}

TEST_CASE("allocations are aligned, disjoint, writable and counted") {
  Visibility visibility(true);
  constexpr uint64_t kRoom = 4 * kLimit;  // one block for each size class, and some
  Arena arena(visibility, kRoom);
  std::mt19937 random(7);
  struct Piece {
    std::byte* address;
    size_t size;
    uint64_t taken;
    std::byte mark;
  };
  std::vector<Piece> pieces;
  uint64_t allocated = 0;
  for (int n = 0; n < 4000; ++n) {
    if (pieces.size() < 200 && random() % 5 < 3) {
      const size_t most = random() % 8 == 0 ? 300000 : 3000;
      const size_t size = 1 + random() % most;
      auto* address = static_cast<std::byte*>(arena.allocate(size));
      REQUIRE(reinterpret_cast<uintptr_t>(address) % 64 == 0);
      REQUIRE(arena.stats().allocated >= allocated + size);
      const uint64_t taken =
          arena.stats().allocated - allocated;  // more than the rounded size when a larger class helps out
      const auto mark = static_cast<std::byte>(n);
      std::memset(address, static_cast<int>(mark), size);
      pieces.push_back({address, size, taken, mark});
      allocated += taken;
    } else if (!pieces.empty()) {
      const size_t k = random() % pieces.size();
      const Piece piece = pieces[k];
      for (size_t b = 0; b < piece.size; ++b) REQUIRE(piece.address[b] == piece.mark);
      CHECK(arena.owns(piece.address + piece.size - 1));
      CHECK(arena.free(piece.address));
      CHECK_FALSE(arena.owns(piece.address));
      allocated -= piece.taken;
      pieces[k] = pieces.back();
      pieces.pop_back();
    }
    REQUIRE(arena.stats().allocated == allocated);
    REQUIRE(arena.stats().reserved >= allocated);
    REQUIRE(arena.stats().reserved <= kRoom);
  }
}

TEST_CASE("freed memory is used again before new memory is taken") {
  Visibility visibility(true);
  Arena arena(visibility, kLimit);
  void* small = arena.allocate(100);
  void* large = arena.allocate(size_t{5} << 20);
  const uint64_t reserved = arena.stats().reserved;
  CHECK(reserved == 4 * Arena::kBlock);  // one block of small pieces, three for 5 MiB
  arena.free(small);
  arena.free(large);
  CHECK(arena.allocate(100) == small);
  CHECK(arena.allocate(size_t{6} << 20) == large);
  CHECK(arena.stats().reserved == reserved);
}

TEST_CASE("neighbouring runs join") {
  Visibility visibility(true);
  Arena arena(visibility, kLimit);
  constexpr size_t kSize = size_t{20} << 20;
  void* a = arena.allocate(kSize);
  void* b = arena.allocate(kSize);
  void* c = arena.allocate(kSize);
  arena.free(b);
  arena.free(a);
  arena.free(c);
  CHECK(arena.allocate(3 * kSize) == a);
  CHECK(arena.stats().reserved == 3 * kSize);
}

TEST_CASE("empty_cache gives free blocks back and keeps live ones") {
  Visibility visibility(true);
  Arena arena(visibility, kLimit);
  auto* kept = static_cast<char*>(arena.allocate(1000));
  std::strcpy(kept, "kept");
  void* small = arena.allocate(3000);
  void* large = arena.allocate(size_t{9} << 20);
  std::memset(large, 1, size_t{9} << 20);
  arena.free(small);
  arena.free(large);
  CHECK(arena.stats().reserved == 7 * Arena::kBlock);
  arena.empty_cache();
  CHECK(arena.stats().reserved == Arena::kBlock);
  CHECK(std::string(kept) == "kept");
  // What was given back reads as zeros when it is taken again: the host has really dropped it.
  auto* again = static_cast<std::byte*>(arena.allocate(size_t{9} << 20));
  CHECK(again[0] == std::byte{0});
  CHECK(arena.stats().peak_reserved == 7 * Arena::kBlock);
  arena.reset_peak();
  CHECK(arena.stats().peak_reserved == arena.stats().reserved);
}

TEST_CASE("the limit holds, and what is cached is given up before an allocation fails") {
  Visibility visibility(true);
  Arena arena(visibility, kLimit);
  std::vector<void*> all;
  for (int n = 0; n < 32; ++n) all.push_back(arena.allocate(Arena::kBlock));
  CHECK(arena.stats().reserved == kLimit);
  const std::string message = message_of([&] { arena.allocate(1); }, NRT_RESOURCE);
  CHECK(message.find("67108864 of 67108864 bytes are allocated") != std::string::npos);
  CHECK(arena.stats().out_of_memory == 1);
  for (size_t n = 0; n < 32; n += 2) arena.free(all[n]);  // 16 scattered free blocks: half of the limit
  void* large = arena.allocate(kLimit / 2);               // no free run is long enough, so they move
  CHECK(arena.stats().reserved == kLimit);
  std::memset(large, 1, kLimit / 2);
  CHECK(message_of([&] { arena.allocate(kLimit + 1); }, NRT_RESOURCE).find("67108865 bytes were asked for") !=
        std::string::npos);
  CHECK(message_of([&] { arena.allocate(~size_t{0} - 100); }, NRT_RESOURCE).find("exhausted") != std::string::npos);
}

TEST_CASE("a small size finds room in a larger class when all blocks are taken") {
  Visibility visibility(true);
  Arena arena(visibility, 2 * Arena::kBlock);
  void* first = arena.allocate(4096);
  void* second = arena.allocate(2048);
  void* third = arena.allocate(64);
  CHECK(arena.stats().allocated == 4096 + 2048 + 2048);
  CHECK(arena.stats().reserved == 2 * Arena::kBlock);
  for (void* address : {first, second, third}) CHECK(arena.free(address));
  CHECK(arena.stats().allocated == 0);
  CHECK_THROWS_AS(arena.allocate(3 * Arena::kBlock), Error);
}

TEST_CASE("wrong frees are refused") {
  Visibility visibility(true);
  Arena arena(visibility, kLimit);
  auto* small = static_cast<std::byte*>(arena.allocate(100));
  auto* large = static_cast<std::byte*>(arena.allocate(size_t{5} << 20));
  int local = 0;
  CHECK_FALSE(arena.free(&local));
  const auto refused = [&](void* address) {
    return message_of([&] { arena.free(address); }, NRT_INVALID).find("not the start") != std::string::npos;
  };
  CHECK(refused(small + 64));
  CHECK(refused(small + 1));
  CHECK(refused(large + Arena::kBlock));
  CHECK(refused(large + (size_t{30} << 20)));
  CHECK(arena.free(small));
  CHECK(refused(small));
  CHECK(arena.free(large));
  CHECK(refused(large));
  CHECK(arena.stats().frees == 2);
}

TEST_CASE("a class whose piece does not divide the block keeps inside it") {
  Visibility visibility(true);
  Arena arena(visibility, kLimit);
  std::set<std::byte*> seen;
  constexpr size_t kSize = 700 << 10;  // pieces of 768 KiB, two in a block
  for (int n = 0; n < 6; ++n) {
    auto* address = static_cast<std::byte*>(arena.allocate(kSize));
    std::memset(address, n, kSize);
    for (std::byte* other : seen) CHECK((other + kSize <= address || address + kSize <= other));
    seen.insert(address);
  }
  CHECK(arena.stats().reserved == 3 * Arena::kBlock);
}

TEST_CASE("threads") {
  Visibility visibility(true);
  Arena arena(visibility, kLimit);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&arena, t] {
      std::mt19937 random(static_cast<unsigned>(t));
      std::vector<void*> mine;
      for (int n = 0; n < 3000; ++n) {
        if (mine.size() < 20) {
          const size_t size = 1 + random() % 5000;
          mine.push_back(arena.allocate(size));
          std::memset(mine.back(), t, size);
        } else {
          arena.free(mine[n % 20]);
          mine[n % 20] = mine.back();
          mine.pop_back();
        }
        if (n % 500 == 0) arena.empty_cache();
      }
      for (void* address : mine) arena.free(address);
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(arena.stats().allocated == 0);
  CHECK(arena.stats().allocations == arena.stats().frees);
}

}  // namespace neuron::sim::test
