"""The tables of the Python writer."""

from schema import Schema, class_name, opcode_params

STRUCT_CODES = {"u8": "B", "u16": "H", "u32": "I", "u64": "Q", "i32": "i", "i64": "q", "f64": "d"}


def write_python(schema: Schema) -> str:
    out = [
        '"""Tables of the program format. Generated from schema/program.toml; do not edit."""',
        "",
        "from enum import IntEnum",
        "from struct import Struct",
        "",
    ]
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
    out += [
        "",
        "# Record layouts: little-endian, no padding. FIELDS: (name, count, enum or None, section referred to or None).",
    ]
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
    out += [
        f'    Section.{item}: "{row["record"]}",'
        for item, row in schema.enums["section"]["items"].items()
        if "record" in row
    ]
    out += ["}", ""]
    out += (
        ["DTYPE_BYTES = {"]
        + [f"    Dtype.{k}: {row['bytes']}," for k, row in schema.enums["dtype"]["items"].items()]
        + ["}"]
    )
    out += (
        ["DTYPE_KIND = {"]
        + [f"    Dtype.{k}: Kind.{row['kind']}," for k, row in schema.enums["dtype"]["items"].items()]
        + ["}"]
    )
    micros = schema.enums["micro"]["items"]
    out += [
        "# micro -> (legal kinds, registers read, kind of the result or None for the operation's own)",
        "MICROS = {",
    ]
    for item, row in micros.items():
        kinds = ", ".join(f"Kind.{kind}" for kind in row["kinds"])
        result = f"Kind.{row['result']}" if "result" in row else None
        out.append(f"    Micro.{item}: (({kinds},), {row['args']}, {result}),")
    out.append("}")
    out += ['# opcode -> its params: (name, None for a number, "value" for a value, else the enum)', "PARAMS = {"]
    for item, row in schema.enums["opcode"]["items"].items():
        params = ", ".join(
            f'("{n}", {None if t is None else chr(34) + t + chr(34) if t == "value" else class_name(t)})'
            for n, t in opcode_params(row)
        )
        out.append(f"    Opcode.{item}: ({params}{',' if params else ''}),")
    out.append("}")
    out += ["# rule id -> (name, text)", "RULES = {"]
    out += [f'    "{rule["id"]}": ("{rule["name"]}", {rule["text"]!r}),' for rule in schema.rules]
    out += ["}", ""]
    return "\n".join(out)
