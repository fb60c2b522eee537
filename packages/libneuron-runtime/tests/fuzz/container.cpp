#include "container.h"

#include <algorithm>
#include <cstring>
#include <string>
#ifdef NEURON_HAVE_ZLIB
#include <zlib.h>
#endif

#include "base/error.h"
#include "neff/neff.h"

namespace neuron::fuzz {

namespace {

constexpr size_t kTarBlock = 512;
// Of a tar header (POSIX.1-1988).
constexpr size_t kTarSize = 124, kTarChecksum = 148, kTarType = 156, kTarPrefix = 345;

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

void set_checksum(std::byte* block) {
  std::memset(block + kTarChecksum, ' ', 8);
  unsigned sum = 0;
  for (size_t n = 0; n < kTarBlock; ++n) sum += static_cast<unsigned>(block[n]);
  char text[8];
  std::snprintf(text, sizeof(text), "%06o", sum);
  std::memcpy(block + kTarChecksum, text, 7);
}

// Appends a member of another type than a regular file.
void append_special(std::vector<std::byte>& archive, char type, const std::string& content) {
  const size_t start = archive.size();
  append_tar(archive, "special", bytes_of(content));
  archive[start + kTarType] = static_cast<std::byte>(type);
  set_checksum(archive.data() + start);
}

std::string pax_record(const std::string& key, const std::string& value) {
  const size_t rest = key.size() + value.size() + 3;
  size_t length = rest + 1;
  while (std::to_string(length).size() + rest != length) ++length;
  return std::to_string(length) + ' ' + key + '=' + value + '\n';
}

void append_program(std::vector<std::byte>& archive, std::span<const std::byte> program, Random& random) {
  const std::string name = kProgramMember;
  const size_t start = archive.size();
  switch (random.chance(12) ? random.below(6) : 6) {
    case 0:
      append_special(archive, 'x', pax_record("mtime", "1") + pax_record("path", name));
      append_tar(archive, "short", program);
      break;
    case 1:
      append_special(archive, 'L', name + '\0');
      append_tar(archive, "short", program);
      break;
    case 2:
      append_tar(archive, name.substr(name.find('/') + 1), program);
      std::memcpy(archive.data() + start + kTarPrefix, name.data(), name.find('/'));
      set_checksum(archive.data() + start);
      break;
    case 3:
      append_tar(archive, "./" + name, program);
      break;
    case 4:
      append_special(archive, '5', "");
      append_tar(archive, name, program);
      break;
    case 5: {  // records that no reader should trust
      const std::string records[] = {
          "x path=a\n", "99999999999999999999 path=a\n", "3 p", "0 path=a\n", "500 path=a\n", ""};
      append_special(archive, 'x', random.of(records));
      append_tar(archive, name, program);
      break;
    }
    default:
      append_tar(archive, name, program);
  }
}

#ifdef NEURON_HAVE_ZLIB
std::vector<std::byte> compressed(std::span<const std::byte> archive) {
  z_stream stream{};
  deflateInit2(&stream, 1, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  std::vector<std::byte> out(deflateBound(&stream, archive.size()));
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(archive.data()));
  stream.avail_in = static_cast<uInt>(archive.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}
#endif

void strange_header(NeffHeader& header, Random& random) {
  switch (random.below(6)) {
    case 0:
      header.version_major = random.below(5);
      break;
    case 1:
      header.feature_bits ^= uint64_t{1} << random.below(64);
      break;
    case 2:
      header.pkg_version = random.below(4);
      break;
    case 3:
      header.header_size = 1024 << random.below(2);
      break;
    case 4:
      header.data_size += random.below(3) - 1;
      break;
    default:
      header.name = std::string(random.below(300), '"');
  }
}

}  // namespace

bool unpack(std::span<const std::byte> file, Model& model) {
  try {
    const Neff neff = Neff::parse(file);
    auto read_model = read(neff.program());
    if (!read_model) return false;
    model = std::move(*read_model);
    for (const NeffMember& member : neff.members()) {
      if (member.name == kLaunchMember)
        std::memcpy(&model.launch, member.bytes.data(), std::min(sizeof(model.launch), member.bytes.size()));
    }
    return true;
  } catch (const Error&) {
    return false;
  }
}

std::vector<std::byte> pack(std::vector<std::byte> program, const LaunchInput& launch, Random& random) {
  if (random.chance(32) && !program.empty()) random.of(program) ^= std::byte{1} << random.below(8);
  if (random.chance(100)) program.resize(random.below(program.size() + 1));
  std::vector<std::byte> archive;
  if (random.chance(200)) {
    append_tar(archive, random.chance(2) ? "sg00/PE.bin" : "neff.json", bytes_of("text"));
  } else {
    append_program(archive, program, random);
  }
  if (random.chance(60)) append_tar(archive, random.chance(4) ? kProgramMember : "note", bytes_of("a note"));
  append_tar(archive, kLaunchMember, std::as_bytes(std::span(&launch, 1)));
  if (random.chance(100)) {
    std::byte* block = archive.data();
    std::memcpy(block + kTarSize, random.chance(2) ? "77777777777" : " 0000z00000", 11);
    set_checksum(block);
  }
  if (random.chance(100)) random.of(archive) ^= std::byte{1} << random.below(8);
  archive.resize(archive.size() + 2 * kTarBlock);
#ifdef NEURON_HAVE_ZLIB
  if (random.chance(40)) {
    archive = compressed(archive);
    if (random.chance(4)) random.of(archive) ^= std::byte{1} << random.below(8);
    if (random.chance(8)) archive.resize(random.below(archive.size()) + 3);
    if (random.chance(8)) return archive;  // without the header
  }
#endif
  std::vector<std::byte> file(kNeffHeaderBytes);
  file.insert(file.end(), archive.begin(), archive.end());
  NeffHeader header;
  header.data_size = archive.size();
  if (random.chance(60)) strange_header(header, random);
  const std::span<std::byte, kNeffHeaderBytes> head(file.data(), kNeffHeaderBytes);
  write_neff_header(header, head);
  if (launch.flags & kCheckHash) {
    const auto hash = neff_hash(file);
    if (!random.chance(16)) std::copy(hash.begin(), hash.end(), header.hash.begin());
    write_neff_header(header, head);
  }
  return file;
}

void repair_container(std::vector<std::byte>& file) {
  if (file.size() < kNeffHeaderBytes) return;
  NeffHeader header;
  try {
    header = read_neff_header(file);
  } catch (const Error&) {
    header = {};
  }
  header.data_size = file.size() - kNeffHeaderBytes;
  write_neff_header(header, std::span<std::byte, kNeffHeaderBytes>(file.data(), kNeffHeaderBytes));
  for (size_t at = kNeffHeaderBytes; at + kTarBlock <= file.size(); at += kTarBlock) {
    // A block with the mark of a tar header, whose checksum a change of it has made wrong.
    if (std::memcmp(file.data() + at + 257, "ustar", 5) == 0) set_checksum(file.data() + at);
  }
}

}  // namespace neuron::fuzz
