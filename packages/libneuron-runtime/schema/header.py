"""The C++ header: enumerations, record structs and tables."""

from schema import WIDTHS, Schema, class_name, opcode_params

CPP_TYPES = {
    "u8": "uint8_t",
    "u16": "uint16_t",
    "u32": "uint32_t",
    "u64": "uint64_t",
    "i32": "int32_t",
    "i64": "int64_t",
    "f64": "double",
}


def write_header(schema: Schema) -> str:
    out = [
        "// Generated from schema/program.toml; do not edit.",
        "#pragma once",
        "",
        "#include <cstddef>",
        "#include <cstdint>",
        "#include <type_traits>",
        "",
        "namespace neuron {",
        "",
    ]
    for name, enum in schema.enums.items():
        cpp = class_name(name) if name != "section" else "SectionKind"
        out.append(f"enum class {cpp} : uint{enum['width'] * 8}_t {{")
        out += [f"  {item} = {row['code']}," for item, row in enum["items"].items()]
        out += ["};", ""]
    out += ["namespace schema {", ""]
    magic = schema.format["magic"]
    out += [
        f'inline constexpr char kMagic[] = "{magic}";  // {len(magic)} bytes, without the NUL',
        f"inline constexpr uint32_t kVersion = {schema.format['version']};",
        f"inline constexpr int kMaxDims = {schema.format['max_dims']};",
        f"inline constexpr int kMaxMicro = {schema.format['max_micro']};",
        f"inline constexpr size_t kSectionAlignment = {schema.format['section_alignment']};",
        "inline constexpr uint32_t kNone = 0xFFFFFFFF;",
        "",
    ]
    for record in schema.records.values():
        out.append(f"struct {class_name(record.name)}Record {{")
        for f in record.fields:
            cpp = CPP_TYPES[f.type]
            if f.enum:
                enum_name = class_name(f.enum) if f.enum != "section" else "SectionKind"
                if schema.enums[f.enum]["width"] == WIDTHS[f.type]:
                    cpp = enum_name
            array = f"[{f.repeat}]" if f.repeat > 1 else ""
            out.append(f"  {cpp} {f.name}{array};")
        out += ["};"]
        out += [f"static_assert(sizeof({class_name(record.name)}Record) == {record.size});"]
        out += [
            f"static_assert(std::has_unique_object_representations_v<{class_name(record.name)}Record>);  // no padding",
            "",
        ]
    dtypes = schema.enums["dtype"]["items"]
    micros = schema.enums["micro"]["items"]
    kinds = list(schema.enums["kind"]["items"])
    out += [
        "struct DtypeInfo {",
        "  const char* name;  // nullptr: no such code",
        "  uint8_t bytes;",
        "  Kind kind;",
        "};",
        "",
    ]
    by_code = {row["code"]: (item, row) for item, row in dtypes.items()}
    out.append(f"inline constexpr DtypeInfo kDtypes[{max(by_code) + 1}] = {{  // by code")
    for code in range(max(by_code) + 1):
        if code in by_code:
            item, row = by_code[code]
            out.append(f'    {{"{item}", {row["bytes"]}, Kind::{row["kind"]}}},')
        else:
            out.append("    {nullptr, 0, Kind::F32},")
    out += ["};", ""]
    out += [
        "struct MicroInfo {",
        "  const char* name;   // nullptr: no such code",
        "  uint8_t kinds;      // bit k: Kind k is legal",
        "  uint8_t args;       // registers read: none, a, a and b, or a, b and c",
        "  bool own_result;    // the result's kind is `result`, not the operation's kind",
        "  Kind result;",
        "  float ulp;          // bound of the error in F32 against the exact function; 0: exact or not stated",
        "};",
        "",
    ]
    by_code = {row["code"]: (item, row) for item, row in micros.items()}
    out.append(f"inline constexpr MicroInfo kMicros[{max(by_code) + 1}] = {{  // by code")
    for code in range(max(by_code) + 1):
        if code in by_code:
            item, row = by_code[code]
            mask = sum(1 << kinds.index(kind) for kind in row["kinds"])
            result = row.get("result")
            own = "true" if result else "false"
            out.append(
                f'    {{"{item}", {mask}, {row["args"]}, {own}, Kind::{result or "F32"}, {float(row.get("ulp", 0))}f}},'
            )
        else:
            out.append("    {nullptr, 0, 0, false, Kind::F32, 0.0f},")
    out += ["};", ""]
    out += [
        "enum class ParamType : uint8_t { NUMBER, VALUE, "
        + ", ".join(
            sorted(
                {
                    t.upper()
                    for row in schema.enums["opcode"]["items"].values()
                    for _, t in opcode_params(row)
                    if t and t != "value"
                }
            )
        )
        + " };",
        "struct ParamInfo {",
        "  const char* name;  // nullptr: unused, must be 0",
        "  ParamType type;",
        "};",
        "struct OpcodeInfo {",
        "  Opcode opcode;",
        "  const char* name;",
        "  ParamInfo params[6];",
        "};",
        "inline constexpr OpcodeInfo kOpcodes[] = {",
    ]
    for item, row in schema.enums["opcode"]["items"].items():
        params = [f'{{"{n}", ParamType::{(t or "number").upper()}}}' for n, t in opcode_params(row)]
        params += ["{nullptr, ParamType::NUMBER}"] * (6 - len(params))
        out.append(f'    {{Opcode::{item}, "{item}", {{{", ".join(params)}}}}},')
    out += ["};", ""]
    out += [
        "constexpr const DtypeInfo* find(Dtype code) {",
        "  const auto i = static_cast<size_t>(code);",
        "  return i < sizeof(kDtypes) / sizeof(kDtypes[0]) && kDtypes[i].name ? &kDtypes[i] : nullptr;",
        "}",
        "constexpr const MicroInfo* find(Micro code) {",
        "  const auto i = static_cast<size_t>(code);",
        "  return i < sizeof(kMicros) / sizeof(kMicros[0]) && kMicros[i].name ? &kMicros[i] : nullptr;",
        "}",
        "constexpr const OpcodeInfo* find(Opcode code) {",
        "  for (const OpcodeInfo& info : kOpcodes) {",
        "    if (info.opcode == code) return &info;",
        "  }",
        "  return nullptr;",
        "}",
        "",
    ]
    if schema.rules:
        out += ["// Rules of the reference page; a refusal names one.", "enum class Rule : uint16_t {"]
        out += [f"  {rule['name']},  // {rule['id']}" for rule in schema.rules]
        out += ["};", f"inline constexpr const char* kRuleIds[{len(schema.rules)}] = {{"]
        out += [f'    "{rule["id"]}",' for rule in schema.rules]
        out += ["};", ""]
    out += ["}  // namespace schema", ""]
    out += ["// Name of an enumerator; nullptr for a number that is none."]
    for name, enum in schema.enums.items():
        cpp = class_name(name) if name != "section" else "SectionKind"
        out += [f"constexpr const char* name_of({cpp} code) {{", "  switch (code) {"]
        out += [f'    case {cpp}::{item}: return "{item}";' for item in enum["items"]]
        out += ["  }", "  return nullptr;", "}"]
    out += [
        "",
        "// The next three need a legal code.",
        "constexpr int bytes_of(Dtype dtype) { return schema::kDtypes[static_cast<size_t>(dtype)].bytes; }",
        "constexpr Kind kind_of(Dtype dtype) { return schema::kDtypes[static_cast<size_t>(dtype)].kind; }",
        "constexpr Kind result_kind(Micro op, Kind kind) {",
        "  const schema::MicroInfo& info = schema::kMicros[static_cast<size_t>(op)];",
        "  return info.own_result ? info.result : kind;",
        "}",
        "",
        "}  // namespace neuron",
        "",
    ]
    return "\n".join(out)
