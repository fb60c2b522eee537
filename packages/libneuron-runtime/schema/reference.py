"""The reference page."""

from schema import Schema, opcode_params


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
        out += [
            "| code | name | " + "".join(f"{key} | " for key in extra) + "meaning |",
            "|---" * (3 + len(extra)) + "|",
        ]
        for item, row in enum["items"].items():
            out.append(
                f"| {row['code']} | {item} | "
                + "".join(f"{row.get(key, '')} | " for key in extra)
                + f"{cell(row.get('doc', ''))} |"
            )
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
            out += [
                f"| {rule['id']} | {rule['name']} | {cell(rule['text'])} |"
                for rule in schema.rules
                if rule["phase"] == phase
            ]
            out.append("")
        out += [
            "A program that breaks a rule is refused with `NRT_INVALID` and a sentence that names the record, what was found, what was",
            "expected and the rule's number.",
            "",
        ]
    return "\n".join(out)
