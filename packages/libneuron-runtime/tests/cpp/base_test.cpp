#include <doctest/doctest.h>

#include <cstdlib>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/environment.h"
#include "base/error.h"
#include "base/md5.h"
#include "base/mutex.h"

namespace neuron::test {

namespace {

std::string md5(const std::string& text) {
  Md5 sum;
  // In two uneven pieces, so that the pending block is used.
  const auto bytes = std::as_bytes(std::span(text));
  sum.update(bytes.first(text.size() / 3));
  sum.update(bytes.subspan(text.size() / 3));
  std::string hex;
  for (const std::byte b : sum.finish()) hex += format("%02x", static_cast<unsigned>(b));
  return hex;
}

std::string message_of(auto&& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("MD5 gives the RFC's digests") {
  CHECK(md5("") == "d41d8cd98f00b204e9800998ecf8427e");
  CHECK(md5("abc") == "900150983cd24fb0d6963f7d28e17f72");
  CHECK(md5("12345678901234567890123456789012345678901234567890123456789012345678901234567890") ==
        "57edf4a22be3c955ac49da2e2107b67a");
  CHECK(md5(std::string(56, 'a')) == "3b0c8ac703f828b04c6c197006d17218");  // padding fills a block of its own
  CHECK(md5(std::string(64, 'a')) == "014842d480b571495a4a0363793f7367");
}

TEST_CASE("NEURON_RT_VISIBLE_CORES: accepted") {
  CHECK(parse_cores("3") == std::vector{3});
  CHECK(parse_cores("0-3") == std::vector{0, 1, 2, 3});
  CHECK(parse_cores("0,1,2") == std::vector{0, 1, 2});
  CHECK(parse_cores("4-5,6,7-8") == std::vector{4, 5, 6, 7, 8});
}

TEST_CASE("NEURON_RT_VISIBLE_CORES: refused") {
  const auto refusal = [](const char* text) { return message_of([&] { parse_cores(text); }); };
  CHECK(refusal("3,5,6").find("contiguous and ascending, but 5 follows 3") != std::string::npos);
  CHECK(refusal("1,0").find("0 follows 1") != std::string::npos);
  CHECK(refusal("1,1").find("1 follows 1") != std::string::npos);
  CHECK(refusal("5-3").find("runs backwards") != std::string::npos);
  CHECK(refusal("a").find("character 1") != std::string::npos);
  CHECK(refusal("1,").find("character 3") != std::string::npos);
  CHECK(refusal("1;2").find("',' or '-'") != std::string::npos);
  CHECK(refusal("-1").find("core number") != std::string::npos);
  CHECK(refusal("0-99999999999").find("core number") != std::string::npos);
}

TEST_CASE("integers and flags of the environment") {
  const char* name = "NEURON_TEST_VARIABLE";
  unsetenv(name);
  CHECK_FALSE(environment_integer(name, 0, 9));
  CHECK(environment_flag(name, true));
  setenv(name, "7", 1);
  CHECK(environment_integer(name, 0, 9) == 7);
  for (const char* bad : {"10", "-1", "7x", "x", "99999999999999999999"}) {
    setenv(name, bad, 1);
    CHECK(message_of([&] { environment_integer(name, 0, 9); }).find("expected an integer from 0 to 9") !=
          std::string::npos);
  }
  setenv(name, "Off", 1);
  CHECK_FALSE(environment_flag(name, true));
  setenv(name, "TRUE", 1);
  CHECK(environment_flag(name, false));
  setenv(name, "maybe", 1);
  CHECK(message_of([&] { environment_flag(name, false); }) == "NEURON_TEST_VARIABLE=\"maybe\": expected 0 or 1");
}

TEST_CASE("the mutex admits one thread at a time") {
  Mutex mutex;
  int64_t sum = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int n = 0; n < 20000; ++n) {
        std::lock_guard lock(mutex);
        ++sum;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(sum == 80000);
  CHECK(mutex.try_lock());
  CHECK_FALSE(mutex.try_lock());
  mutex.unlock();
}

}  // namespace neuron::test
