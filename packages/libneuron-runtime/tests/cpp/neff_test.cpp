#include "neff/neff.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "base/error.h"
#include "program/program.h"
#include "samples.h"

namespace neuron::test {

namespace {

using Bytes = std::vector<std::byte>;

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

std::string member(const Neff& neff, const char* name) {
  for (const NeffMember& m : neff.members()) {
    if (m.name == name) return text_of(m.bytes);
  }
  return "(none)";
}

std::string refusal(std::span<const std::byte> file, NRT_STATUS status) {
  try {
    Program::load(Neff::parse(file).program());
  } catch (const Error& error) {
    CHECK(error.status() == status);
    return error.what();
  }
  return "accepted";
}

// A file with the given members and feature bits.
Bytes file_of(std::initializer_list<std::pair<const char*, std::string>> members, uint64_t features) {
  Bytes file(kNeffHeaderBytes);
  for (const auto& [name, text] : members) append_tar(file, name, bytes_of(text));
  file.resize(file.size() + 1024);
  NeffHeader header;
  header.data_size = file.size() - kNeffHeaderBytes;
  header.feature_bits = features;
  write_neff_header(header, std::span<std::byte, kNeffHeaderBytes>(file.data(), kNeffHeaderBytes));
  return file;
}

template <class T>
void put(Bytes& file, size_t offset, T value) {
  std::memcpy(file.data() + offset, &value, sizeof(value));
}

}  // namespace

TEST_CASE("a packed program comes back, aligned, with its description") {
  const Sample sample = samples()[1];  // the one with fixed sizes and two outputs
  const Bytes file = pack_neff(sample.bytes, "sums \"of\" rows", {});
  CHECK(file.size() % 1024 == 0);
  const Neff neff = Neff::parse(file);
  const auto program = neff.program();
  CHECK(std::equal(program.begin(), program.end(), sample.bytes.begin(), sample.bytes.end()));
  CHECK((program.data() - file.data()) % 512 == 0);
  CHECK(neff.header().name == "sums \"of\" rows");
  CHECK(neff.header().build_version.starts_with("libneuron-runtime "));
  CHECK(neff.header().feature_bits == kProgramFeature);
  CHECK(member(neff, "kelf-0.json").find("\"definition\":\"sg00/def.json\"") != std::string::npos);
  CHECK(member(neff, "info.json").find("\"name\":\"sums \\\"of\\\" rows\"") != std::string::npos);
  CHECK(member(neff, "sg00/def.json").find("\"sums\":{\"type\":\"output\",\"size\":20,\"var_id\":2,\"ops\":[]}") !=
        std::string::npos);
  const std::string graph = member(neff, "neff.json");
  CHECK(graph.find("\"shape\":[\"list_shape\",[[5,9],[5],[5,9]]]") != std::string::npos);
  CHECK(graph.find("\"dltype\":[\"list_str\",[\"float32\",\"float32\",\"float32\"]]") != std::string::npos);
}

TEST_CASE("sizes that depend on slots are -1 in the description") {
  const Neff neff = Neff::parse(pack_neff(add_sample().bytes, "add", {}));
  CHECK(neff.members().size() == 5);
}

TEST_CASE("packing is reproducible, and the hash finds every changed bit") {
  const Bytes file = pack_neff(add_sample().bytes, "add", {});
  CHECK(file == pack_neff(add_sample().bytes, "add", {}));
  CHECK(file != pack_neff(add_sample().bytes, "sub", {}));
  Neff::parse(file).check_hash();
  for (const size_t at : {size_t{250}, kNeffHeaderBytes + 512 + 100}) {
    Bytes changed = file;
    changed[at] ^= std::byte{1};
    CHECK_THROWS_WITH_AS(
        Neff::parse(changed).check_hash(),
        "NEFF: the hash in the header is not the file's: the file was damaged, or written by another compiler", Error);
  }
}

TEST_CASE("further members travel along") {
  const std::string note = "a note";
  const Bytes file = pack_neff(add_sample().bytes, "add", std::vector<NeffMember>{{"debug/note.txt", bytes_of(note)}});
  CHECK(member(Neff::parse(file), "debug/note.txt") == note);
}

TEST_CASE("bad members and programs are not packed") {
  const auto pack = [](const char* name) { pack_neff(add_sample().bytes, "add", std::vector<NeffMember>{{name, {}}}); };
  CHECK_THROWS_WITH_AS(
      pack("/etc/passwd"),
      "NEFF: \"/etc/passwd\" is no member name; expected a relative path of 1 to 99 printable characters", Error);
  CHECK_THROWS_AS(pack(""), Error);
  CHECK_THROWS_AS(pack("a/../b"), Error);
  CHECK_THROWS_AS(pack(std::string(100, 'a').c_str()), Error);
  CHECK_THROWS_WITH_AS(pack("neff.json"), "NEFF: two members are called \"neff.json\"", Error);
  CHECK_THROWS_AS(pack_neff(bytes_of("no program"), "x", {}), Error);
}

TEST_CASE("malformed files are refused with what is wrong") {
  const Bytes good = pack_neff(add_sample().bytes, "add", {});
  CHECK(refusal(std::span(good).first(1023), NRT_INVALID).find("1023 bytes are too few for its header of 1024") !=
        std::string::npos);
  CHECK(refusal(std::span(good).first(good.size() - 1), NRT_INVALID).find("the file is cut or extended") !=
        std::string::npos);
  Bytes bad = good;
  put<uint64_t>(bad, 0, 3);
  CHECK(refusal(bad, NRT_INVALID).find("package version 3") != std::string::npos);
  bad = good;
  put<uint64_t>(bad, 8, 512);
  CHECK(refusal(bad, NRT_INVALID).find("header size 512") != std::string::npos);
  bad = good;
  put<uint64_t>(bad, 24, 3);
  CHECK(
      refusal(bad, NRT_UNSUPPORTED_NEFF_VERSION) ==
      "NEFF: version mismatch, supported: up to 2.x, received: 3.0; compile the model with this release, or install a "
      "newer libneuron-runtime");
  bad = good;
  put<uint64_t>(bad, 544, kProgramFeature | 4);
  CHECK(refusal(bad, NRT_UNSUPPORTED_NEFF_VERSION).find("0x8000000000000004") != std::string::npos);
  bad = good;
  bad[kNeffHeaderBytes] ^= std::byte{1};  // the first member's name
  CHECK(refusal(bad, NRT_INVALID).find("tar header at byte 0 of the payload has a wrong checksum") !=
        std::string::npos);
}

TEST_CASE("a file that ends anywhere is refused, with its sizes put right too") {
  const Bytes good = pack_neff(samples()[1].bytes, "rows", {});
  const std::span<const std::byte> program = Neff::parse(good).program();
  const auto program_end = static_cast<size_t>(program.data() + program.size() - good.data());
  for (size_t size = 0; size < good.size(); ++size) {
    CAPTURE(size);
    const Bytes cut(good.begin(),
                    good.begin() + static_cast<ptrdiff_t>(size));  // its own allocation, for the sanitizer
    const std::string text = refusal(cut, NRT_INVALID);
    CHECK(text.find(size < kNeffHeaderBytes ? "too few for its header of 1024" : "the file is cut or extended") !=
          std::string::npos);
    if (size < kNeffHeaderBytes) continue;
    Bytes patched = cut;
    put<uint64_t>(patched, 16, size - kNeffHeaderBytes);
    try {
      const Neff neff = Neff::parse(patched);
      const auto read = neff.program();
      CHECK(std::ranges::equal(read, program));
      CHECK(size >= program_end);  // whole only where it was left whole
    } catch (const Error& error) {
      CHECK(error.status() == NRT_INVALID);
      const std::string what = error.what();
      CHECK((what.find("is larger than the file") != std::string::npos ||
             what.find("none of the 0 members is sg00/program.neuronx") != std::string::npos));
    }
  }
}

TEST_CASE("every flipped bit is found by the hash, and without it nothing worse than a refusal happens") {
  const Bytes good = pack_neff(samples()[1].bytes, "rows", {});
  for (size_t at = 0; at < good.size(); ++at) {
    Bytes bad = good;
    bad[at] ^= std::byte{1} << at % 8;
    CAPTURE(at);
    try {
      const Neff neff = Neff::parse(bad);
      CHECK_THROWS_WITH_AS(
          neff.check_hash(),
          "NEFF: the hash in the header is not the file's: the file was damaged, or written by another compiler",
          Error);
      Program::load(neff.program());
    } catch (const Error& error) {
      CHECK(std::string(error.what()).size() > 10);
    }
  }
}

TEST_CASE("sizes that no file has are refused") {
  const Bytes good = pack_neff(add_sample().bytes, "add", {});
  for (const uint64_t size : {uint64_t{0}, ~uint64_t{0}, uint64_t{1} << 63, uint64_t{1} << 40}) {
    Bytes bad = good;
    put<uint64_t>(bad, 16, size);
    CHECK(refusal(bad, NRT_INVALID).find("data_size is " + std::to_string(size) + ", but ") != std::string::npos);
  }
}

TEST_CASE("an archive without the header of a NEFF is named as such") {
  Bytes archive(2048);
  const uint8_t magic[] = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3};
  std::memcpy(archive.data(), magic, sizeof(magic));
  CHECK(refusal(archive, NRT_INVALID) ==
        "NEFF: this is a gzip archive without the header of 1024 bytes that a NEFF file has in front of it; give the "
        ".neff file, not the archive inside it");
}

TEST_CASE("a member that claims to be larger than the file is refused") {
  Bytes archive;
  append_tar(archive, "big", bytes_of("x"));
  std::memcpy(archive.data() + 124, "00000002000", 11);
  // The checksum is right again: 4 of 11 digits changed by known amounts.
  int sum = 0;
  for (int n = 0; n < 512; ++n) sum += n >= 148 && n < 156 ? ' ' : static_cast<int>(archive[static_cast<size_t>(n)]);
  std::snprintf(reinterpret_cast<char*>(archive.data()) + 148, 8, "%06o", static_cast<unsigned>(sum));
  CHECK_THROWS_WITH_AS(read_tar(archive), "NEFF: the tar member at byte 0 of the payload is larger than the file",
                       Error);
}

TEST_CASE("two members of one name are refused") {
  Bytes archive;
  append_tar(archive, "a", {});
  append_tar(archive, "a", {});
  CHECK_THROWS_AS(read_tar(archive), Error);
}

TEST_CASE("vendor-compiled files are named as such, others without a program too") {
  const Bytes vendor = file_of({{"neff.json", "{}"}, {"sg00/PE.bin", std::string(64, 'x')}}, 0x209c00);
  const std::string message = refusal(vendor, NRT_UNSUPPORTED_NEFF_VERSION);
  CHECK(message.find("vendor-compiled: sg00/PE.bin is machine code of a real NeuronCore") != std::string::npos);
  CHECK(refusal(file_of({{"neff.json", "{}"}}, 0), NRT_INVALID).find("none of the 1 members is sg00/program.neuronx") !=
        std::string::npos);
  CHECK(refusal(file_of({}, 0), NRT_INVALID).find("none of the 0 members") != std::string::npos);
}

TEST_CASE("damaged compressed payloads are refused") {
  Bytes file = file_of({}, 0);
  file[kNeffHeaderBytes] = std::byte{0x1f};
  file[kNeffHeaderBytes + 1] = std::byte{0x8b};
  file[kNeffHeaderBytes + 2] = std::byte{8};
  file[kNeffHeaderBytes + 10] = std::byte{0xFF};
  try {
    Neff::parse(file);
    CHECK(false);
  } catch (const Error& error) {
    const bool without_zlib = error.status() == NRT_UNSUPPORTED_NEFF_VERSION;
    CHECK(std::string(error.what()).find(without_zlib ? "without zlib" : "damaged") != std::string::npos);
  }
}

}  // namespace neuron::test
