"""The field tables that the fuzzer's mutator walks: where each field of a record lies and what it may hold."""

from schema import WIDTHS, Schema, class_name


def write_fields(schema: Schema) -> str:
    out = [
        "// Generated from schema/program.toml; do not edit.",
        "#pragma once",
        "",
        "#include <span>",
        "",
        '#include "program_schema.h"',
        "",
        "namespace neuron::schema {",
        "",
        "struct FieldInfo {",
        "  const char* name;",
        "  uint16_t offset;                  // bytes from the record's start",
        "  uint8_t width;                    // bytes of one element",
        "  uint8_t repeat;                   // elements",
        "  uint8_t ref;                      // code of the section that it points into; 0: none",
        "  std::span<const uint32_t> codes;  // of the enumeration; empty: a number",
        "};",
        "",
    ]
    for name, enum in schema.enums.items():
        codes = ", ".join(str(row["code"]) for row in enum["items"].values())
        out.append(f"inline constexpr uint32_t k{class_name(name)}Codes[] = {{{codes}}};")
    sections = schema.enums["section"]["items"]
    for record in schema.records.values():
        out.append(f"inline constexpr FieldInfo k{class_name(record.name)}Fields[] = {{")
        for f in record.fields:
            ref = sections[f.ref]["code"] if f.ref else 0
            codes = f"k{class_name(f.enum)}Codes" if f.enum else "{}"
            out.append(f'    {{"{f.name}", {f.offset}, {WIDTHS[f.type]}, {f.repeat}, {ref}, {codes}}},')
        out.append("};")
    return "\n".join([*out, "", "}  // namespace neuron::schema", ""])
