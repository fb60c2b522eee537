"""Generates everything that follows from program.toml: the C++ header, the Python writer's tables and the reference page.

    generate.py header|python|reference OUTPUT     write OUTPUT (only if its content changes)
    generate.py --check reference FILE             exit 1 unless FILE is what would be written

Needs Python 3.11 (tomllib) and nothing else.
"""

import argparse
import sys
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

SCHEMA = Path(__file__).with_name("program.toml")

CPP_TYPES = {"u8": "uint8_t", "u16": "uint16_t", "u32": "uint32_t", "u64": "uint64_t", "i32": "int32_t", "i64": "int64_t", "f64": "double"}
STRUCT_CODES = {"u8": "B", "u16": "H", "u32": "I", "u64": "Q", "i32": "i", "i64": "q", "f64": "d"}
WIDTHS = {"u8": 1, "u16": 2, "u32": 4, "u64": 8, "i32": 4, "i64": 8, "f64": 8}


@dataclass
class Field:
    name: str
    type: str
    repeat: int
    enum: str | None
    ref: str | None
    optional: bool
    doc: str
    offset: int


@dataclass
class Record:
    name: str
    doc: str
    fields: list[Field] = field(default_factory=list)
    size: int = 0


@dataclass
class Schema:
    format: dict
    enums: dict[str, dict]  # name -> {"doc": str, "items": {NAME: row}, "width": 2 or 4}
    records: dict[str, Record]
    rules: list[dict]  # name, phase, text, id


def class_name(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_"))


def read_record(name: str, table: dict) -> Record:
    record = Record(name, table["doc"])
    offset = alignment = 0
    for row in table["fields"]:
        base, _, repeat = row["type"].partition("x")
        width = WIDTHS[base]
        if offset % width:
            raise SystemExit(f"record {name}: field {row['name']} at byte {offset} is not aligned to its {width} bytes")
        alignment = max(alignment, width)
        record.fields.append(
            Field(
                row["name"], base, int(repeat or 1), row.get("enum"), row.get("ref"), row.get("optional", False), row.get("doc", ""), offset
            )
        )
        offset += width * int(repeat or 1)
    if offset % alignment:
        raise SystemExit(f"record {name}: {offset} bytes are not a multiple of its alignment {alignment}")
    record.size = offset
    return record


def read_schema(path: Path = SCHEMA) -> Schema:
    data = tomllib.loads(path.read_text())
    enums = {}
    for name, table in data["enum"].items():
        items = {key: row for key, row in table.items() if key != "doc"}
        enums[name] = {"doc": table["doc"], "items": items}
    enums["opcode"] = {"doc": "Kind of an instruction.", "items": data["opcode"]}
    enums["micro"] = {"doc": "Micro-operation inside an instruction.", "items": data["micro"]}
    for name, enum in enums.items():
        codes = [row["code"] for row in enum["items"].values()]
        if len(set(codes)) != len(codes):
            raise SystemExit(f"enum {name}: a code is used twice")
    records = {name: read_record(name, table) for name, table in data["record"].items()}
    for name, enum in enums.items():
        widths = [WIDTHS[f.type] for record in records.values() for f in record.fields if f.enum == name]
        enum["width"] = min(widths, default=4)
    rules = data.get("rule", [])
    counts: dict[str, int] = {}
    for rule in rules:
        letter = {"load": "L", "bind": "B"}[rule["phase"]]
        counts[letter] = counts.get(letter, 0) + 1
        rule["id"] = f"{letter}{counts[letter]}"
    return Schema(data["format"], enums, records, rules)


# ---- C++ ------------------------------------------------------------------------------------------------------------


def opcode_params(row: dict) -> list[tuple[str, str | None]]:
    """(name, None for a plain number, "value" for a VALUES index, else an enum's name) of each parameter."""
    result = []
    for text in row["params"]:
        if "@value" in text:
            result.append((text.removesuffix("@value"), "value"))
        else:
            name, _, enum = text.partition(":")
            result.append((name, enum or None))
    return result


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
        out += [f"static_assert(std::has_unique_object_representations_v<{class_name(record.name)}Record>);  // no padding", ""]
    dtypes = schema.enums["dtype"]["items"]
    micros = schema.enums["micro"]["items"]
    kinds = list(schema.enums["kind"]["items"])
    out += ["struct DtypeInfo {", "  const char* name;  // nullptr: no such code", "  uint8_t bytes;", "  Kind kind;", "};", ""]
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
            out.append(f'    {{"{item}", {mask}, {row["args"]}, {own}, Kind::{result or "F32"}, {float(row.get("ulp", 0))}f}},')
        else:
            out.append("    {nullptr, 0, 0, false, Kind::F32, 0.0f},")
    out += ["};", ""]
    out += [
        "enum class ParamType : uint8_t { NUMBER, VALUE, " + ", ".join(sorted({
            t.upper() for row in schema.enums["opcode"]["items"].values() for _, t in opcode_params(row) if t and t != "value"
        })) + " };",
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


# ---- Python ---------------------------------------------------------------------------------------------------------


def write_python(schema: Schema) -> str:
    out = ['"""Tables of the program format. Generated from schema/program.toml; do not edit."""', "", "from enum import IntEnum", "from struct import Struct", ""]
    out += [
        f'MAGIC = b"{schema.format["magic"]}"',
        f"VERSION = {schema.format['version']}",
        f"MAX_DIMS = {schema.format['max_dims']}",
        f"MAX_MICRO = {schema.format['max_micro']}",
        f"SECTION_ALIGNMENT = {schema.format['section_alignment']}",
        "NONE = 0xFFFFFFFF",
        "",
    ]
    for name, enum in schema.enums.items():
        out += ["", f"class {class_name(name)}(IntEnum):", f'    """{enum["doc"]}"""', ""]
        out += [f"    {item} = {row['code']}" for item, row in enum["items"].items()]
        out.append("")
    out += ["", "# Record layouts: little-endian, no padding. FIELDS: (name, count, enum or None, section referred to or None)."]
    for name, record in schema.records.items():
        code = "".join(f"{f.repeat if f.repeat > 1 else ''}{STRUCT_CODES[f.type]}" for f in record.fields)
        out.append(f'{name.upper()} = Struct("<{code}")')
    out.append("FIELDS = {")
    for name, record in schema.records.items():
        out.append(f'    "{name}": (')
        for f in record.fields:
            enum = class_name(f.enum) if f.enum else None
            ref = f'"{f.ref}"' if f.ref else None
            out.append(f'        ("{f.name}", {f.repeat}, {enum}, {ref}),')
        out.append("    ),")
    out += ["}", ""]
    out += ["# section -> record name; sections of bytes are left out", "SECTION_RECORDS = {"]
    out += [f'    Section.{item}: "{row["record"]}",' for item, row in schema.enums["section"]["items"].items() if "record" in row]
    out += ["}", ""]
    out += ["DTYPE_BYTES = {"] + [f"    Dtype.{k}: {row['bytes']}," for k, row in schema.enums["dtype"]["items"].items()] + ["}"]
    out += ["DTYPE_KIND = {"] + [f"    Dtype.{k}: Kind.{row['kind']}," for k, row in schema.enums["dtype"]["items"].items()] + ["}"]
    micros = schema.enums["micro"]["items"]
    out += ["# micro -> (legal kinds, registers read, kind of the result or None for the operation's own)", "MICROS = {"]
    for item, row in micros.items():
        kinds = ", ".join(f"Kind.{kind}" for kind in row["kinds"])
        result = f"Kind.{row['result']}" if "result" in row else None
        out.append(f"    Micro.{item}: (({kinds},), {row['args']}, {result}),")
    out.append("}")
    out += ["# opcode -> its params: (name, None for a number, \"value\" for a value, else the enum)", "PARAMS = {"]
    for item, row in schema.enums["opcode"]["items"].items():
        params = ", ".join(f'("{n}", {None if t is None else chr(34) + t + chr(34) if t == "value" else class_name(t)})' for n, t in opcode_params(row))
        out.append(f"    Opcode.{item}: ({params}{',' if params else ''}),")
    out.append("}")
    out += ["# rule id -> (name, text)", "RULES = {"]
    out += [f'    "{rule["id"]}": ("{rule["name"]}", {rule["text"]!r}),' for rule in schema.rules]
    out += ["}", ""]
    return "\n".join(out)


# ---- Reference page -------------------------------------------------------------------------------------------------


def cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def write_reference(schema: Schema) -> str:
    fmt = schema.format
    out = [
        "<!-- Generated from packages/libneuron-runtime/schema/program.toml by generate.py; do not edit. -->",
        "",
        "# Program format",
        "",
        "A program is what libneuron-runtime executes: a little-endian binary of a header, a section table, and sections of",
        "fixed-size records that are mapped and read in place. It is data, never machine code. Every number that may differ",
        "between launches of one program (an extent, a stride, an offset) is an index into the VALUES section; a *frozen*",
        "program has no SLOT values. A program travels as the member `sg00/program.neuronx` of a NEFF file.",
        "",
        "1. *Load* checks everything that does not depend on slots (rules L).",
        "2. *Bind* takes the slots, evaluates VALUES in order, checks GUARDS and the rules B, and prepares every instruction.",
        "3. *Launch* takes addresses and scalars and runs the instructions in order.",
        "",
        f"Magic `{fmt['magic']}`, version {fmt['version']}; at most {fmt['max_dims']} loop dimensions and {fmt['max_micro']} "
        f"micro-operations an instruction; sections are aligned to {fmt['section_alignment']} bytes. NONE is 0xFFFFFFFF.",
        "",
        "## Records",
        "",
    ]
    for record in schema.records.values():
        out += [f"### {record.name} ({record.size} bytes)", "", record.doc, ""]
        out += ["| offset | field | type | meaning |", "|---|---|---|---|"]
        for f in record.fields:
            kind = f.type + (f"[{f.repeat}]" if f.repeat > 1 else "")
            notes = []
            if f.enum:
                notes.append(f"a {f.enum}")
            if f.ref:
                notes.append(f"offset into {f.ref}" if f.ref == "STRINGS" else f"index into {f.ref}")
            if f.optional:
                notes.append("or NONE")
            if f.name == "reserved":
                notes.append("0")
            text = ", ".join(notes) + ("; " if notes and f.doc else "") + f.doc
            out.append(f"| {f.offset} | {f.name} | {kind} | {cell(text)} |")
        out.append("")
    out += ["## Enumerations", ""]
    for name, enum in schema.enums.items():
        if name in ("opcode", "micro"):
            continue
        extra = sorted({key for row in enum["items"].values() for key in row if key not in ("code", "doc")})
        out += [f"### {name}", "", " ".join(enum["doc"].split()), ""]
        out += ["| code | name | " + "".join(f"{key} | " for key in extra) + "meaning |", "|---" * (3 + len(extra)) + "|"]
        for item, row in enum["items"].items():
            out.append(f"| {row['code']} | {item} | " + "".join(f"{row.get(key, '')} | " for key in extra) + f"{cell(row.get('doc', ''))} |")
        out.append("")
    out += ["## Instructions", ""]
    for item, row in schema.enums["opcode"]["items"].items():
        out += [f"### {item} (code {row['code']})", "", " ".join(row["doc"].split()), ""]
        params = opcode_params(row)
        if params:
            text = ", ".join(f"`{n}`" + (f" (a {t})" if t else "") for n, t in params)
            out += [f"Params: {text}. The others are 0.", ""]
        else:
            out += ["Params: none; all are 0.", ""]
    out += [
        "## Micro-operations",
        "",
        "`args` counts the registers read, in the order a, b, c. `result` is the kind of the result where it is not the operation's kind.",
        "`ulp` bounds the error against the exact function in F32.",
        "",
        "| code | name | kinds | args | result | ulp | meaning |",
        "|---|---|---|---|---|---|---|",
    ]
    for item, row in schema.enums["micro"]["items"].items():
        out.append(
            f"| {row['code']} | {item} | {', '.join(row['kinds'])} | {row['args']} | {row.get('result', '')} | {row.get('ulp', '')} | "
            f"{cell(row.get('doc', ''))} |"
        )
    out.append("")
    if schema.rules:
        out += ["## Rules", ""]
        for phase, title in (("load", "Checked at load"), ("bind", "Checked at bind")):
            out += [f"### {title}", "", "| rule | name | text |", "|---|---|---|"]
            out += [f"| {rule['id']} | {rule['name']} | {cell(rule['text'])} |" for rule in schema.rules if rule["phase"] == phase]
            out.append("")
        out += [
            "A program that breaks a rule is refused with `NRT_INVALID` and a sentence that names the record, what was found, what was",
            "expected and the rule's number.",
            "",
        ]
    return "\n".join(out)


WRITERS = {"header": write_header, "python": write_python, "reference": write_reference}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("what", choices=WRITERS)
    parser.add_argument("file", type=Path)
    args = parser.parse_args()
    text = WRITERS[args.what](read_schema())
    old = args.file.read_text() if args.file.exists() else None
    if args.check:
        if old != text:
            print(f"{args.file} is not up to date: run {Path(__file__).name} {args.what} {args.file}", file=sys.stderr)
            return 1
    elif old != text:
        args.file.parent.mkdir(parents=True, exist_ok=True)
        args.file.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
