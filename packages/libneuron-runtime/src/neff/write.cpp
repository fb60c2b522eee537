// The writer: a program and the JSON members that describe it.
#include <algorithm>
#include <optional>
#include <string_view>

#include "base/error.h"
#include "base/md5.h"
#include "neff/neff.h"
#include "neuron/version.h"
#include "program/bind.h"
#include "program/program.h"

namespace neuron {

namespace {

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    if (static_cast<unsigned char>(c) < ' ') {
      result += format("\\u%04x", static_cast<unsigned char>(c));
    } else {
      result += c;
    }
  }
  return result + '"';
}

// Names as the framework's graph files spell them.
const char* type_name(Dtype dtype) {
  switch (dtype) {
    case Dtype::UINT8:
      return "uint8";
    case Dtype::INT8:
      return "int8";
    case Dtype::INT16:
      return "int16";
    case Dtype::BF16:
      return "bfloat16";
    case Dtype::FP16:
      return "float16";
    case Dtype::INT32:
      return "int32";
    case Dtype::FP32:
      return "float32";
    case Dtype::INT64:
      return "int64";
    case Dtype::BOOL:
      return "bool";
    case Dtype::FP64:
      return "float64";
  }
  return "unknown";
}

class Description {
 public:
  explicit Description(const Program& program) : p_(program) {
    if (p_.header().slot_count == 0) values_ = evaluate(p_, {});
  }

  // neff.json: one node for each input, one for the whole program; sizes that depend on slots are -1.
  std::string graph() const {
    const uint32_t inputs = p_.input_count(), outputs = p_.output_count();
    std::string nodes, arguments, heads, rows, shapes, storage, types, signature[2], names, edges;
    const auto comma = [](std::string& list, const std::string& item) { list += (list.empty() ? "" : ",") + item; };
    for (uint32_t n = 0; n < inputs + outputs; ++n) {
      const std::string name = quoted(p_.text(p_.io()[n].name));
      const std::string shape = sizes(n), type = quoted(type_name(p_.io()[n].dtype));
      if (n < inputs) {
        comma(nodes, "{\"op\":\"null\",\"name\":" + name + ",\"inputs\":[],\"output_names\":[" + name +
                         "],\"is_param\":\"0\"}");
        comma(edges, format("[%u,0,0]", n));
        comma(arguments, std::to_string(n));
      } else {
        comma(names, name);
        comma(heads, format("[%u,%u,0]", inputs, n - inputs));
      }
      if (n <= inputs) comma(rows, std::to_string(n));
      comma(shapes, shape);
      comma(storage, std::to_string(n));
      comma(types, type);
      comma(signature[n < inputs ? 0 : 1],
            name + format(":{\"id\":%u,\"dtype\":", n) + type + ",\"shape\":" + shape + "}");
    }
    if (outputs == 0) comma(rows, std::to_string(inputs));
    comma(rows, std::to_string(inputs + outputs));
    comma(nodes, format("{\"op\":\"tvm_op\",\"name\":\"sg_core\",\"attrs\":{\"func_name\":\"__kelf\",\"flatten_data\":"
                        "\"0\",\"num_inputs\":\"%u\","
                        "\"kelf\":\"kelf-0.json\",\"num_outputs\":\"%u\"},\"inputs\":[",
                        inputs, outputs) +
                     edges + "],\"output_names\":[" + names + "]}");
    return "{\"nodes\":[" + nodes + "],\"arg_nodes\":[" + arguments + "],\"heads\":[" + heads + "],\"node_row_ptr\":[" +
           rows + "],\"attrs\":{\"shape\":[\"list_shape\",[" + shapes + "]],\"storage_id\":[\"list_int\",[" + storage +
           "]],\"dltype\":[\"list_str\",[" + types + "]]},\"metadata\":{\"signatures\":{\"default\":{\"inputs\":{" +
           signature[0] + "},\"outputs\":{" + signature[1] + "}}}}}";
  }

  // sg00/def.json: inputs and outputs by name.
  std::string definition() const {
    std::string variables;
    for (uint32_t n = 0; n < p_.io().size(); ++n) {
      const schema::IoRecord& io = p_.io()[n];
      variables +=
          (n ? "," : "") + quoted(p_.text(io.name)) +
          format(":{\"type\":\"%s\",\"size\":%lld,\"var_id\":%u,\"ops\":[]}", n < p_.input_count() ? "input" : "output",
                 static_cast<long long>(number(p_.buffers()[io.buffer].nbytes)), n + 1);
    }
    return "{\"name\":\"sg00\",\"version\":\"0.6\",\"program\":\"program.neuronx\",\"var\":{" + variables + "}}";
  }

 private:
  int64_t number(uint32_t index) const {
    if (!values_.empty()) return values_[index];
    const schema::ValueRecord& value = p_.values()[index];
    return value.op == ValueOp::CONST ? value.imm : -1;
  }

  std::string sizes(uint32_t n) const {
    const schema::IoRecord& io = p_.io()[n];
    std::string result = "[";
    for (uint32_t d = 0; d < io.rank; ++d) result += (d ? "," : "") + std::to_string(number(io.dims[d]));
    return result + "]";
  }

  const Program& p_;
  std::vector<int64_t> values_;
};

void check_member(const NeffMember& member) {
  const std::string& name = member.name;
  const bool printable = std::all_of(name.begin(), name.end(), [](char c) { return c > ' ' && c < 127; });
  if (name.empty() || name.size() > 99 || !printable || name.front() == '/' || name.find("..") != std::string::npos) {
    throw Error(NRT_INVALID,
                format("NEFF: \"%.128s\" is no member name; expected a relative path of 1 to 99 printable characters",
                       name.c_str()));
  }
}

}  // namespace

std::vector<std::byte> pack_neff(std::span<const std::byte> bytes, const std::string& name,
                                 std::span<const NeffMember> extra) {
  const auto program = Program::load(bytes);
  const Description description(*program);
  const std::string graph = description.graph(), definition = description.definition();
  const std::string kelf =
      "{\"graphs\":[{\"definition\":\"sg00/"
      "def.json\",\"name\":\"sg00\"}],\"version\":\"0.5\",\"target\":\"simulator\"}";
  const std::string info =
      "{\"tool_version\":\"" NEURON_RT_VERSION "\",\"kelp_version\":\"Dynamic\",\"name\":" + quoted(name) +
      ",\"num_tpb\":1,\"num_tpb_requested\":1,\"num_tpb_per_node\":[1]}";
  std::vector<NeffMember> members = {{kProgramMember, bytes},
                                     {"sg00/def.json", bytes_of(definition)},
                                     {"kelf-0.json", bytes_of(kelf)},
                                     {"info.json", bytes_of(info)},
                                     {"neff.json", bytes_of(graph)}};
  size_t size = kNeffHeaderBytes;
  for (const NeffMember& member : extra) {
    check_member(member);
    for (const NeffMember& other : members) {
      if (other.name == member.name)
        throw Error(NRT_INVALID, format("NEFF: two members are called \"%s\"", member.name.c_str()));
    }
    members.push_back(member);
  }
  for (const NeffMember& member : members) size += member.bytes.size() + 1024;
  std::vector<std::byte> file;
  file.reserve(size + 2048);
  file.resize(kNeffHeaderBytes);
  for (const NeffMember& member : members) append_tar(file, member.name, member.bytes);
  file.resize((file.size() + 1024 + 1023) / 1024 * 1024);  // two zero blocks end an archive

  NeffHeader header;
  header.data_size = file.size() - kNeffHeaderBytes;
  header.build_version = "libneuron-runtime " NEURON_RT_VERSION;
  header.name = name;
  Md5 md5;
  md5.update(bytes);
  header.uuid = md5.finish();  // equal programs have equal ids
  const std::span<std::byte, kNeffHeaderBytes> head(file.data(), kNeffHeaderBytes);
  write_neff_header(header, head);
  const auto hash = neff_hash(file);
  std::copy(hash.begin(), hash.end(), header.hash.begin());
  write_neff_header(header, head);
  return file;
}

}  // namespace neuron
