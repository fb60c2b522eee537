// The payload of a NEFF: a tar archive (ustar, POSIX or GNU), perhaps compressed by gzip.
#include <algorithm>
#include <charconv>
#include <cstring>
#include <string_view>
#include <unordered_set>

#ifdef NEURON_HAVE_ZLIB
#include <zlib.h>
#endif

#include "base/error.h"
#include "neff/neff.h"

namespace neuron {

namespace {

constexpr size_t kTarBlock = 512;
constexpr size_t kNameBytes = 100, kSize = 124, kChecksum = 148, kType = 156, kMagic = 257, kPrefix = 345,
                 kPrefixBytes = 155;
constexpr size_t kMaxMembers = 65536;
constexpr size_t kMaxInflated = size_t{1} << 30;

std::string_view field(const std::byte* block, size_t offset, size_t size) {
  const char* text = reinterpret_cast<const char*>(block) + offset;
  return {text, strnlen(text, size)};
}

// Octal digits, perhaps surrounded by spaces. False for anything else.
bool octal(std::string_view text, uint64_t& value) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  if (text.empty() || text.size() > 20) return false;
  value = 0;
  for (const char c : text) {
    if (c < '0' || c > '7') return false;
    value = value * 8 + static_cast<uint64_t>(c - '0');
  }
  return true;
}

// Name of a member by its own header.
std::string short_name(const std::byte* block) {
  std::string name(field(block, 0, kNameBytes));
  if (field(block, kMagic, 5) == "ustar") {
    if (const auto prefix = field(block, kPrefix, kPrefixBytes); !prefix.empty())
      name = std::string(prefix) + "/" + name;
  }
  return name;
}

// The path in a POSIX extended header, whose records are "LENGTH KEY=VALUE\n"; empty when there is none.
std::string pax_path(std::string_view records) {
  while (!records.empty()) {
    size_t length = 0;
    const auto [end, error] = std::from_chars(records.data(), records.data() + records.size(), length);
    if (error != std::errc() || length <= static_cast<size_t>(end - records.data()) || length > records.size()) break;
    std::string_view record = records.substr(0, length);
    record.remove_prefix(static_cast<size_t>(end - records.data()));
    if (record.starts_with(" path=") && record.ends_with('\n')) return std::string(record.substr(6, record.size() - 7));
    records.remove_prefix(length);
  }
  return "";
}

uint64_t checksum(const std::byte* block) {
  uint64_t sum = 8 * ' ';  // the checksum field itself counts as spaces
  for (size_t n = 0; n < kTarBlock; ++n) {
    if (n < kChecksum || n >= kChecksum + 8) sum += static_cast<uint64_t>(block[n]);
  }
  return sum;
}

}  // namespace

std::vector<NeffMember> read_tar(std::span<const std::byte> archive) {
  std::vector<NeffMember> members;
  std::unordered_set<std::string> names;
  std::string long_name;  // of the next member, from an extended header
  size_t position = 0;
  while (archive.size() - position >= kTarBlock) {
    const std::byte* block = archive.data() + position;
    if (std::all_of(block, block + kTarBlock, [](std::byte b) { return b == std::byte{0}; })) break;
    uint64_t sum = 0, size = 0;
    if (!octal(field(block, kChecksum, 8), sum) || sum != checksum(block)) {
      throw Error(NRT_INVALID,
                  format("NEFF: the tar header at byte %zu of the payload has a wrong checksum", position));
    }
    if (!octal(field(block, kSize, 12), size) || size > archive.size() - position - kTarBlock) {
      throw Error(NRT_INVALID,
                  format("NEFF: the tar member at byte %zu of the payload is larger than the file", position));
    }
    position += kTarBlock;
    const std::span<const std::byte> content = archive.subspan(position, size);
    const std::string_view text(reinterpret_cast<const char*>(content.data()), content.size());
    switch (static_cast<char>(block[kType])) {
      case 'x':
        long_name = pax_path(text);
        break;
      case 'L':
        long_name = text.substr(0, text.find('\0'));
        break;
      case '0':
      case '\0': {
        std::string name = long_name.empty() ? short_name(block) : long_name;
        if (name.starts_with("./")) name.erase(0, 2);
        if (members.size() == kMaxMembers || name.empty() || !names.insert(name).second) {
          throw Error(
              NRT_INVALID,
              format("NEFF: tar member %zu is unnamed, has an earlier one's name, or is one too many", members.size()));
        }
        members.push_back({std::move(name), content});
        [[fallthrough]];
      }
      default:
        long_name.clear();  // directories and links are passed over
    }
    position += std::min<size_t>((size + kTarBlock - 1) / kTarBlock * kTarBlock, archive.size() - position);
  }
  return members;
}

void append_tar(std::vector<std::byte>& archive, const std::string& name, std::span<const std::byte> bytes) {
  const size_t start = archive.size();
  archive.resize(start + kTarBlock + (bytes.size() + kTarBlock - 1) / kTarBlock * kTarBlock);
  std::byte* block = archive.data() + start;
  const auto text = [&](size_t offset, std::string_view value) {
    std::memcpy(block + offset, value.data(), value.size());
  };
  text(0, name);
  text(100, "0000644");
  text(108, "0000000");
  text(116, "0000000");
  text(kSize, format("%011zo", bytes.size()));
  text(136, "00000000000");  // no time: equal programs give equal files
  text(kType, "0");
  text(kMagic, std::string_view("ustar\00000", 8));
  text(kChecksum, format("%06llo", static_cast<unsigned long long>(checksum(block))));
  block[kChecksum + 7] = std::byte{' '};
  std::copy(bytes.begin(), bytes.end(), archive.begin() + static_cast<ptrdiff_t>(start + kTarBlock));
}

bool is_gzip(std::span<const std::byte> payload) {
  return payload.size() >= 3 && payload[0] == std::byte{0x1f} && payload[1] == std::byte{0x8b} &&
         payload[2] == std::byte{8};
}

#ifdef NEURON_HAVE_ZLIB

std::vector<std::byte> inflate_gzip(std::span<const std::byte> payload) {
  z_stream stream{};
  if (inflateInit2(&stream, 16 + MAX_WBITS) != Z_OK)
    throw Error(NRT_RESOURCE, "NEFF: no memory to inflate the payload");
  struct End {
    z_stream& stream;
    ~End() { inflateEnd(&stream); }
  } end{stream};
  std::vector<std::byte> out;
  size_t taken = 0;
  int result = Z_OK;
  while (result == Z_OK) {
    if (stream.avail_in == 0) {
      const size_t chunk = std::min<size_t>(payload.size() - taken, 1 << 30);
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(payload.data() + taken));
      stream.avail_in = static_cast<uInt>(chunk);
      taken += chunk;
    }
    const size_t have = out.size();
    if (have >= kMaxInflated)
      throw Error(NRT_INVALID, format("NEFF: the payload inflates to more than %zu bytes", kMaxInflated));
    out.resize(std::min(kMaxInflated, std::max<size_t>(have * 2, 1 << 16)));
    stream.next_out = reinterpret_cast<Bytef*>(out.data() + have);
    stream.avail_out = static_cast<uInt>(out.size() - have);
    result = inflate(&stream, Z_NO_FLUSH);
    out.resize(out.size() - stream.avail_out);
  }
  if (result != Z_STREAM_END) {
    throw Error(NRT_INVALID,
                format("NEFF: the compressed payload is damaged (%s)", stream.msg ? stream.msg : "it ends too early"));
  }
  return out;
}

#else

std::vector<std::byte> inflate_gzip(std::span<const std::byte>) {
  throw Error(NRT_UNSUPPORTED_NEFF_VERSION, "NEFF: the payload is compressed, and this runtime was built without zlib");
}

#endif

}  // namespace neuron
