// The NEFF container: a header of 1024 bytes, then a tar archive. Reading trusts nothing.
//
// What this runtime writes: pkg_version 2, NEFF version 2.0, an uncompressed archive padded with zeros to a multiple of
// 1024 bytes, feature bit 63, and the member sg00/program.neuronx, which holds the program (docs/reference/program.md)
// and begins at a multiple of 512 bytes. The hash field is the MD5 of the whole file with that field zero; it is
// checked under NEURON_RT_VALIDATE_HASH=1.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace neuron {

inline constexpr size_t kNeffHeaderBytes = 1024;
inline constexpr uint64_t kProgramFeature = uint64_t{1} << 63;  // the payload holds a program of this runtime
inline constexpr char kProgramMember[] = "sg00/program.neuronx";

struct NeffHeader {
  uint64_t pkg_version = 2;
  uint64_t header_size = kNeffHeaderBytes;
  uint64_t data_size = 0;
  uint64_t version_major = 2, version_minor = 0;
  std::string build_version;
  uint32_t num_tpb = 1;
  std::array<std::byte, 32> hash{};
  std::array<std::byte, 16> uuid{};
  std::string name;
  uint32_t requested_tpb_count = 1;
  std::array<uint8_t, 64> tpb_per_node{1};
  uint64_t feature_bits = kProgramFeature;
  uint32_t lnc_size = 1;
};

struct NeffMember {
  std::string name;
  std::span<const std::byte> bytes;
};

// Views of a NEFF's bytes, which must outlive it.
class Neff {
 public:
  // Throws Error: NRT_INVALID for bytes that are no NEFF, NRT_UNSUPPORTED_NEFF_VERSION for a version this runtime does
  // not know.
  static Neff parse(std::span<const std::byte> bytes);

  const NeffHeader& header() const { return header_; }
  const std::vector<NeffMember>& members() const { return members_; }
  // Bytes of the program. Throws Error(NRT_UNSUPPORTED_NEFF_VERSION) for a file with the vendor's engine code,
  // NRT_INVALID for one without any.
  std::span<const std::byte> program() const;
  // Throws Error(NRT_INVALID) when the hash field is not the file's.
  void check_hash() const;

 private:
  std::span<const std::byte> file_;
  NeffHeader header_;
  std::vector<NeffMember> members_;
  std::shared_ptr<std::vector<std::byte>> inflated_;  // of a compressed payload
};

// Checks the program and wraps it. `members` are added behind ours; their names are paths of at most 99 characters.
// Throws Error(NRT_INVALID).
std::vector<std::byte> pack_neff(std::span<const std::byte> program, const std::string& name,
                                 std::span<const NeffMember> members);

// ---- Parts
// -----------------------------------------------------------------------------------------------------------------------

NeffHeader read_neff_header(std::span<const std::byte> file);
void write_neff_header(const NeffHeader& header, std::span<std::byte, kNeffHeaderBytes> out);
std::array<std::byte, 16> neff_hash(std::span<const std::byte> file);

// Regular files of a tar archive. Throws Error(NRT_INVALID).
std::vector<NeffMember> read_tar(std::span<const std::byte> archive);
// Appends one member and its padding.
void append_tar(std::vector<std::byte>& archive, const std::string& name, std::span<const std::byte> bytes);
bool is_gzip(std::span<const std::byte> payload);
// One gzip member, followed by anything. Throws Error: NRT_INVALID when malformed or larger than 1 GiB,
// NRT_UNSUPPORTED_NEFF_VERSION when built without zlib.
std::vector<std::byte> inflate_gzip(std::span<const std::byte> payload);

}  // namespace neuron
