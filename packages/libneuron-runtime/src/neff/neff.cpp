#include "neff/neff.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "base/error.h"
#include "base/md5.h"

namespace neuron {

namespace {

// Byte offsets of the header's fields.
constexpr size_t kPkgVersion = 0, kHeaderSize = 8, kDataSize = 16, kVersionMajor = 24, kVersionMinor = 32, kBuild = 40,
                 kBuildBytes = 128, kNumTpb = 168, kHash = 172, kHashBytes = 32, kUuid = 204, kName = 220,
                 kNameBytes = 256, kRequested = 476, kPerNode = 480, kFeatures = 544, kLnc = 552;

constexpr uint64_t kNewestMajor = 2;

template <class T>
T get(std::span<const std::byte> bytes, size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

template <class T>
void put(std::span<std::byte> bytes, size_t offset, const T& value) {
  std::memcpy(bytes.data() + offset, &value, sizeof(T));
}

std::string get_text(std::span<const std::byte> bytes, size_t offset, size_t size) {
  const char* text = reinterpret_cast<const char*>(bytes.data() + offset);
  return std::string(text, strnlen(text, size));
}

void put_text(std::span<std::byte> bytes, size_t offset, size_t size, const std::string& text) {
  std::memcpy(bytes.data() + offset, text.data(), std::min(text.size(), size - 1));
}

// Whether a member is what the vendor's compiler puts beside its engine code.
bool is_engine_code(std::string_view name) {
  return name.size() > 5 && name.starts_with("sg") && name.find('/') != std::string_view::npos &&
         name.ends_with(".bin");
}

}  // namespace

NeffHeader read_neff_header(std::span<const std::byte> file) {
  if (file.size() < kNeffHeaderBytes) {
    throw Error(NRT_INVALID,
                format("NEFF: %zu bytes are too few for its header of %zu", file.size(), kNeffHeaderBytes));
  }
  NeffHeader h;
  h.pkg_version = get<uint64_t>(file, kPkgVersion);
  h.header_size = get<uint64_t>(file, kHeaderSize);
  h.data_size = get<uint64_t>(file, kDataSize);
  h.version_major = get<uint64_t>(file, kVersionMajor);
  h.version_minor = get<uint64_t>(file, kVersionMinor);
  h.build_version = get_text(file, kBuild, kBuildBytes);
  h.num_tpb = get<uint32_t>(file, kNumTpb);
  h.hash = get<std::array<std::byte, 32>>(file, kHash);
  h.uuid = get<std::array<std::byte, 16>>(file, kUuid);
  h.name = get_text(file, kName, kNameBytes);
  h.requested_tpb_count = get<uint32_t>(file, kRequested);
  h.tpb_per_node = get<std::array<uint8_t, 64>>(file, kPerNode);
  h.feature_bits = get<uint64_t>(file, kFeatures);
  h.lnc_size = get<uint32_t>(file, kLnc);
  const auto number = [](uint64_t n) { return static_cast<unsigned long long>(n); };
  if (is_gzip(file)) {
    throw Error(NRT_INVALID,
                format("NEFF: this is a gzip archive without the header of %zu bytes that a NEFF file has in front of "
                       "it; give the .neff file, not the archive inside it",
                       kNeffHeaderBytes));
  }
  if (h.header_size != kNeffHeaderBytes || (h.pkg_version != 1 && h.pkg_version != 2)) {
    throw Error(NRT_INVALID,
                format("NEFF: package version %llu and header size %llu, expected 1 or 2 and %zu; this is no NEFF file",
                       number(h.pkg_version), number(h.header_size), kNeffHeaderBytes));
  }
  if (h.data_size != file.size() - kNeffHeaderBytes) {
    throw Error(NRT_INVALID,
                format("NEFF: data_size is %llu, but %zu bytes follow the header; the file is cut or extended",
                       number(h.data_size), file.size() - kNeffHeaderBytes));
  }
  if (h.version_major > kNewestMajor) {
    throw Error(NRT_UNSUPPORTED_NEFF_VERSION,
                format("NEFF: version mismatch, supported: up to %llu.x, received: %llu.%llu; compile the model with "
                       "this release, or install a newer libneuron-runtime",
                       number(kNewestMajor), number(h.version_major), number(h.version_minor)));
  }
  if ((h.feature_bits & kProgramFeature) && h.feature_bits != kProgramFeature) {
    throw Error(NRT_UNSUPPORTED_NEFF_VERSION,
                format("NEFF: feature bits 0x%llx hold some that this runtime does not know (known: 0x%llx)",
                       number(h.feature_bits), number(kProgramFeature)));
  }
  return h;
}

void write_neff_header(const NeffHeader& h, std::span<std::byte, kNeffHeaderBytes> out) {
  std::fill(out.begin(), out.end(), std::byte{0});
  put(out, kPkgVersion, h.pkg_version);
  put(out, kHeaderSize, h.header_size);
  put(out, kDataSize, h.data_size);
  put(out, kVersionMajor, h.version_major);
  put(out, kVersionMinor, h.version_minor);
  put_text(out, kBuild, kBuildBytes, h.build_version);
  put(out, kNumTpb, h.num_tpb);
  put(out, kHash, h.hash);
  put(out, kUuid, h.uuid);
  put_text(out, kName, kNameBytes, h.name);
  put(out, kRequested, h.requested_tpb_count);
  put(out, kPerNode, h.tpb_per_node);
  put(out, kFeatures, h.feature_bits);
  put(out, kLnc, h.lnc_size);
}

std::array<std::byte, 16> neff_hash(std::span<const std::byte> file) {
  const std::array<std::byte, kHashBytes> zeros{};
  Md5 md5;
  md5.update(file.first(kHash));
  md5.update(zeros);
  md5.update(file.subspan(kHash + kHashBytes));
  return md5.finish();
}

Neff Neff::parse(std::span<const std::byte> bytes) {
  Neff neff;
  neff.file_ = bytes;
  neff.header_ = read_neff_header(bytes);
  std::span<const std::byte> payload = bytes.subspan(kNeffHeaderBytes);
  if (is_gzip(payload)) {
    neff.inflated_ = std::make_shared<std::vector<std::byte>>(inflate_gzip(payload));
    payload = *neff.inflated_;
  }
  neff.members_ = read_tar(payload);
  return neff;
}

std::span<const std::byte> Neff::program() const {
  for (const NeffMember& member : members_) {
    if (member.name == kProgramMember) return member.bytes;
  }
  for (const NeffMember& member : members_) {
    if (is_engine_code(member.name)) {
      throw Error(NRT_UNSUPPORTED_NEFF_VERSION,
                  format("NEFF: vendor-compiled: %s is machine code of a real NeuronCore, which this device does not "
                         "run; compile the model for the simulator (a file with the member %s), or load it on a "
                         "Trainium host",
                         member.name.c_str(), kProgramMember));
    }
  }
  throw Error(NRT_INVALID, format("NEFF: none of the %zu members is %s, so that there is nothing to run",
                                  members_.size(), kProgramMember));
}

void Neff::check_hash() const {
  const auto hash = neff_hash(file_);
  std::array<std::byte, kHashBytes> expected{};  // the rest of the field is zero
  std::copy(hash.begin(), hash.end(), expected.begin());
  if (header_.hash != expected) {
    throw Error(NRT_INVALID,
                "NEFF: the hash in the header is not the file's: the file was damaged, or written by another compiler");
  }
}

}  // namespace neuron
